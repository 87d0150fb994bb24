# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An attacker beside the name servers: it sees each query of the resolver to one server, and sends forged answers by a link of
its own to the same wire (src/spoofer.c). It sees more than an attacker off the path, so that each forged answer can be right
in all but one thing."""

import math
import subprocess
from collections import Counter

from pyroute2 import netns

from . import changing_zones, rings
from .network import REFERENCE, UPSTREAM_PORTS, Namespace
from .process import Program
from .run import wait_until

LINK = "u0"                      # of the name servers
PREFIX = "203.0.113."            # of the address in every forged answer; then the number of what is wrong, in this order:
# By what is wrong. Unbound itself takes a query for answered when the name differs, and asks again.
SILENT = {"port": "p", "id": "i", "source": "s", "source-port": "f", "destination": "d", "checksum": "x", "late": "l",
          "doubled": "b", "former": "o"}
NAMES = {"case": "c", "question": "q"}
KINDS = [*SILENT, *NAMES]


def forged(answers):
    """Those of asker's answers that are forged, by what is wrong with them."""
    found = Counter()
    for a in answers:
        if a.rdata and a.rdata.startswith("cb0071"):
            found[KINDS[int(a.rdata[6:8], 16) - 1]] += 1
    return found


class Attacker:
    """Context manager. kinds: of SILENT or NAMES; copies of each to every query, at most in all. result() ends it; then sent
    has the forged answers by kind, and queries, ports and ids what it saw."""

    def __init__(self, world, server, kinds, *, copies=1, most=None):
        self.world, self.server, self.copies, self.most = world, server, copies, most
        self.letters = "".join({**SILENT, **NAMES}[kind] for kind in kinds)

    def __enter__(self):
        run, wire = self.world.run, self.world.network.authoritative
        self.ns = Namespace(run, "attacker")
        try:
            self._start(run, wire)
        except BaseException:
            netns.remove(self.ns.name)
            raise
        return self

    def _start(self, run, wire):
        with wire.netlink() as ip:
            ip.link("add", ifname="attacker", kind="macvlan", link=ip.link_lookup(ifname=LINK)[0], macvlan_mode="bridge",
                    net_ns_fd=self.ns.name)
        self.ns.link_state("attacker", up=True)
        self.output = run.dir / "spoofer.out"
        argv = [self.world.tools.built("test-harness/spoofer"), "-l", LINK, "-s", self.server, "-o", REFERENCE[4],
                "-n", self.ns.path, "-i", "attacker", "-c", self.copies, "-k", self.letters]
        with open(self.output, "w") as out:
            self.program = Program(run, wire, "spoofer", [*argv, *(["-m", self.most] if self.most else [])], stdout=out,
                                   stdin=subprocess.DEVNULL)
        self.program.wait_ready(lambda: self.output.read_text().startswith("ready"), 10)

    def __exit__(self, *exc):
        self.program.stop()
        netns.remove(self.ns.name)

    def result(self):
        wait_until(lambda: self.program.stop() == 0, 10, "spoofer to end")
        self.sent, self.ports, self.ids = Counter(), Counter(), Counter()
        for line in self.output.read_text().splitlines()[1:]:
            word, *numbers = line.split()
            if word == "queries":
                self.queries = int(numbers[0])
            elif word in ("at-port", "with-id"):
                (self.ports if word == "at-port" else self.ids)[int(numbers[0])] = int(numbers[1])
            else:
                self.sent[word] = int(numbers[0])
        return self


RATE = 400                       # recursions a second: as many as the relay forwards
DELAY = 0.05                     # seconds that the server takes to answer
UNBOUND_OPTIONS = {"server": ["use-caps-for-id: yes", "extended-statistics: yes"]}


def attack(world, kinds, seconds, **options):
    """Recursions for lab.example under attack: (asker's answers, the attacker)."""
    world.relay.delay = DELAY
    with Attacker(world, changing_zones.RELAY, kinds, **options) as attacker:
        with rings.load(world, RATE, zone="lab.example", seconds=seconds, most=seconds + 1) as asker:
            answers = asker.result()
        return answers, attacker.result()


def chi_square(times, numbers, bins):
    """(chi-square, degrees of freedom) of what was counted in times, over bins of these numbers, all of which are as likely."""
    filled, expected = [0] * bins, [0] * bins
    count = sum(times.get(number, 0) for number in numbers)
    for i, number in enumerate(numbers):
        filled[i * bins // len(numbers)] += times.get(number, 0)
        expected[i * bins // len(numbers)] += count / len(numbers)
    return sum((n - e) ** 2 / e for n, e in zip(filled, expected)), bins - 1


def evenness(attacker, bins=None):
    """For ports and ids of the queries seen: (what, chi-square, degrees of freedom, whether it is even, queries). Beyond 6.5
    standard deviations a fair draw comes once in 10^10 times. Queries that took sockets left from other ports, and Unbound
    avoids those that IANA has assigned. bins: few enough for that to make no difference; None: each number that was seen is one,
    which needs some 15 queries for each."""
    first, last = map(int, UPSTREAM_PORTS.split("-"))
    for what, times, numbers in (("ports", attacker.ports, range(first, last + 1)), ("ids", attacker.ids, range(65536))):
        if not bins:
            numbers = [number for number in numbers if number in times]
        chi, free = chi_square(times, numbers, bins or len(numbers))
        yield what, chi, free, abs(chi - free) < 6.5 * math.sqrt(2 * free), sum(times.get(n, 0) for n in numbers)
