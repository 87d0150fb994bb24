# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An attacker beside the name servers: it sees each query of the resolver to one server, and sends forged answers by a link of its
own to the same wire (src/spoofer.c). It sees more than an attacker off the path, so that each forged answer can be right in all
but one thing."""

import subprocess
from collections import Counter

from pyroute2 import netns

from .network import REFERENCE, Namespace
from .process import Program
from .run import wait_until

LINK = "u0"                      # of the name servers
ADDRESS = "203.0.113.66"         # in every forged answer
# By what is wrong. Unbound itself takes a query for answered when the name differs, and asks again.
SILENT = {"port": "p", "id": "i", "source": "s", "source-port": "f", "destination": "d", "checksum": "x", "late": "l",
          "doubled": "b", "former": "o"}
NAMES = {"case": "c", "question": "q"}


class Attacker:
    """Context manager. kinds: of SILENT or NAMES; copies of each to every query, at most in all. result() ends it; then sent has
    the forged answers by kind, and queries, ports and ids what it saw."""

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
            elif word in ("port", "id"):
                (self.ports if word == "port" else self.ids)[int(numbers[0])] = int(numbers[1])
            else:
                self.sent[word] = int(numbers[0])
        return self


def chi_square(times, first, count, bins):
    """(chi-square, degrees of freedom) of numbers counted in times over equal bins of count numbers from first on."""
    filled = [0] * bins
    for number, n in times.items():
        filled[(number - first) * bins // count] += n
    expected = sum(filled) / bins
    return sum((n - expected) ** 2 / expected for n in filled), bins - 1
