# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part `updates` of `authority`: dynamic updates of single names of a preloaded zone, while clients ask for names of it.

One updater sends RFC 2136 messages by UDP, by the clock, with so many under way at most; no name has two under way. The address that an
update gives to a name is the update's number, so a reply says which update it is of. It is outdated when it shows an earlier one than
was acknowledged before the query was sent. Clients ask at fixed rates: names of the whole zone, names that are updated, and names that do
not exist. The hop limit of a reply tells whether the kernel has sent it."""

import bisect
import ipaddress
import random
import select
import socket
import time
from contextlib import ExitStack, contextmanager

import dns.rcode
import dns.update
from lab import whole_zones as zones
from lab.client import Asker
from lab.network import DEFAULT_HOPS
from lab.run import HarnessError

from . import authority_servers as servers
from .result import Goal, going_on, say
from .zone_servers import HYDNS

NAMES = 5_000, 1_000_000
RATE = 1_000                   # updates a second
UNDER_WAY = 64                 # updates at most
CHANGING = 1_000               # names that are updated
SECONDS = 3, 20
PATIENCE = 2.0                 # seconds after which an update counts as lost
CLIENTS = {"names": 4_000, "changing": 1_000, "absent": 500}     # queries a second
DRAWN = 20_000                 # different questions of a client
FIRST = int(ipaddress.ip_address("10.0.0.0"))                    # the address that update number 0 would give
SHARE = 0.95
UPDATED = "    max-journal-size unlimited;\n    allow-update { any; };\n"


class Updater:
    """acked: {name: [(when it was acknowledged, number of the update)]}, in ns."""

    def __init__(self, link, zone, names, rng):
        self.link, self.zone, self.names, self.rng = link, zone, names, rng
        self.acked, self.sent, self.refused, self.lost = {name: [] for name in names}, 0, 0, 0
        self.under_way, self.idle = {}, []

    def message(self, name):
        update = dns.update.Update(self.zone.origin, id=self.sent & 0xffff)
        update.replace(name, zones.TTL, "A", str(ipaddress.ip_address(FIRST + self.sent)))
        return update.to_wire()

    @contextmanager
    def _socket(self):
        with self.link.client_ns.entered():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with s:
            s.connect((self.link.SERVICE, 53))
            yield s

    def _send(self, s):
        if not self.idle:
            self.idle = [name for name in self.names if name not in self.busy()]
            self.rng.shuffle(self.idle)
        name = self.idle.pop()
        self.sent += 1
        self.under_way[self.sent & 0xffff] = name, self.sent, time.monotonic()
        s.send(self.message(name))

    def busy(self):
        return {name for name, _, _ in self.under_way.values()}

    def _receive(self, s, until):
        while select.select([s], [], [], max(0.0, until - time.monotonic()))[0]:
            reply = s.recv(4096)
            name, number, _ = self.under_way.pop(int.from_bytes(reply[:2], "big"), (None, 0, 0))
            if name and reply[3] & 0x0f == dns.rcode.NOERROR:
                self.acked[name].append((time.monotonic_ns(), number))
            elif name:
                self.refused += 1

    def _give_up(self):
        """A lost update may still be carried out, so its name stays out of the others."""
        late = [key for key, (_, _, sent) in self.under_way.items() if time.monotonic() - sent > PATIENCE]
        for key in late:
            self.names.remove(self.under_way.pop(key)[0])
        self.lost += len(late)

    def run(self, seconds):
        """Returns how long it took until each was acknowledged."""
        begun = time.monotonic()
        with self._socket() as s:
            while (now := time.monotonic()) < begun + seconds:
                most = min(UNDER_WAY, len(self.names))
                due = min(int((now - begun) * RATE) - self.sent, most - len(self.under_way))
                for _ in range(due):
                    self._send(s)
                self._receive(s, now + 1 / RATE)
                self._give_up()
            while self.under_way:
                self._receive(s, time.monotonic() + 0.01)
                self._give_up()
        return time.monotonic() - begun

    def count(self):
        return sum(len(acked) for acked in self.acked.values())


def number_of(rdata):
    """Of the update that gave the address; 0: of none."""
    number = int(rdata, 16) - FIRST if rdata and len(rdata) == 8 else 0
    return number if 0 < number < 1 << 24 else 0


def outdated(answers, questions, acked):
    """The answers that are older than an update which was acknowledged before their queries were sent."""
    for answer in answers:
        known = acked.get(questions[answer.question][0])
        before = bisect.bisect_left(known, (answer.sent, 0)) if known else 0
        if before and answer.latency is not None and number_of(answer.rdata) < known[before - 1][1]:
            yield answer


def figures(answers, questions, acked):
    """Of one client."""
    replied = [a for a in answers if a.latency is not None]
    if not replied:
        raise HarnessError("no client was answered")
    return {"kernel": sum(a.hops == DEFAULT_HOPS for a in replied) / len(replied), "asked": len(answers),
            "lost": len(answers) - len(replied), "failed": sum(a.rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN) for a in replied),
            "outdated": len(list(outdated(answers, questions, acked)))}


def questions(zone, changing, rng):
    return {"names": zone.questions(rng, DRAWN), "changing": [(name, "A") for name in rng.choices(changing, k=DRAWN)],
            "absent": zone.absent(rng, DRAWN)}


def play(bench, server, zone):
    """(updater, seconds, {client: figures}) of updates while clients ask."""
    rng, seconds = random.Random(f"updates {bench.settings.seed}"), bench.settings.choose(*SECONDS)
    all_names = [zone.full(owner) for owner, types in zone.names[2:]]
    changing = rng.sample(all_names, min(CHANGING, len(all_names)))
    asked, updater = questions(zone, changing, rng), Updater(server.link, zone, [f"{name}." for name in changing], rng)
    with ExitStack() as stack:
        askers = {client: stack.enter_context(Asker(bench.world_like, server.link.client_ns, server.link.SERVICE, asked[client], rate,
                                                    seconds=seconds, timeout=PATIENCE, edns=True, watch=True))
                  for client, rate in CLIENTS.items()}
        took = updater.run(seconds)
        answers = {client: asker.result() for client, asker in askers.items()}
    acked = {name.removesuffix("."): known for name, known in updater.acked.items()}
    return updater, took, {client: figures(answers[client], asked[client], acked) for client in CLIENTS}


def add_point(result, server, zone, updater, took, clients):
    point = result.add(HYDNS, [updater.count() / took], "updates_per_second", part="updates", names=len(zone.names), rate=RATE,
                       version=server.version(), **server.found)
    point |= {"acknowledged": updater.count(), "refused": updater.refused, "lost_updates": updater.lost}
    point |= {f"kernel_share_{client}": round(found["kernel"], 4) for client, found in clients.items()}
    point |= {key: sum(found[key] for found in clients.values()) for key in ("asked", "lost", "failed", "outdated")}
    return point


def add_goals(result, p):
    why = f"{p['updates_per_second']:,.0f} updates a second"
    result.goals += [Goal("updates: share of the kernel of the zone's names", SHARE, p["kernel_share_names"], why=why),
                     Goal("updates: outdated replies", 0, p["outdated"], least=False, why=f"of {p['asked']:,}, {why}")]


def run(bench, result):
    link, kind = servers.Host(bench, "authority-updates"), zones.Kind(zones.plain, names=NAMES)
    zone = zones.write(kind, bench.run.dir / "authority-updates", bench.settings.choose(*NAMES), bench.settings.seed)
    with going_on("authority: updates"), servers.preloaded(bench, link, zone, more=UPDATED) as server:
        updater, took, clients = play(bench, server, zone)
        server.program.must_run()
        point = add_point(result, server, zone, updater, took, clients)
    say(f"authority: updates: {point['updates_per_second']:,.0f} of {RATE:,} a second acknowledged, {point['refused']} refused, "
        f"{point['lost_updates']} lost; in the kernel: " + ", ".join(f"{client} {found['kernel']:.2%}" for client, found in clients.items())
        + f"; {point['outdated']} outdated, {point['lost']} lost, {point['failed']} failed of {point['asked']:,} replies")
    add_goals(result, point)
