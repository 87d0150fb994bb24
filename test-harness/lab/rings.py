# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings as the program and hydnsd count and show them."""

import itertools
from collections import namedtuple

from . import pinned
from .client import Asker
from .layouts import layout
from .network import SERVICE
from .run import SOON, wait_until

RESOLVERS = 16           # HYDNS_RESOLVERS
WORD = 8                 # octets of a port word

Counts = namedtuple("Counts", "queries answers")
"""Packets that the program gave to rings: queries of clients, answers of upstream servers."""

_names = itertools.count()


def _queued(daemon):
    return [sum(n) for n in zip(*(pinned.counters(daemon.pins / "hydns_queued", i) for i in range(RESOLVERS)))]


def counted(daemon):
    """Of all resolvers since the maps were made; with or without hydnsd."""
    return Counts(*_queued(daemon)[:len(Counts._fields)])


def full(daemon):
    """Packets that found a ring full, so that the program left them to sockets."""
    return _queued(daemon)[len(Counts._fields)]


def replies(daemon):
    """Replies to clients that left by rings, of the resolvers that are connected."""
    found = [r["packet_rings"] for r in daemon.call({"cmd": "stats"})["resolvers"]]
    return sum(counts["sent"] - counts["sent_upstream"] for counts in found)


def claimed(daemon):
    """The ports that queries to upstream wait at."""
    with pinned.writable(daemon.pins / "hydns_ports") as words:
        return [port for port in range(len(words) // WORD) if any(words[port * WORD:port * WORD + WORD])]


def lanes(daemon):
    """As status shows them; none while hydnsd does not listen."""
    status = daemon.try_call({"cmd": "status"})
    return [lane for r in status["resolvers"] for lane in r["lanes"]] if status else []


def _used(daemon):
    """Whether each resolver with lanes has told the program to use them, which it does once all are open."""
    page = layout("hydns_resolver_page")
    status = daemon.try_call({"cmd": "status"})
    for r in status["resolvers"] if status else []:
        if r["lanes"]:
            try:
                with pinned.writable(daemon.pins / f"page_{r['authority']}") as memory:
                    if not page.unpack(memory)["queue"]:
                        return False
            except OSError:              # a page that is being replaced
                return False
    return bool(status)


def wait_open(daemon, links=None):
    """Until these links, by default all that hydnsd is attached to, and no others, have lanes, all are open and in use, and the program
    puts packets there."""
    links = links or daemon.interfaces

    def good():
        found = lanes(daemon)
        return {lane["interface"] for lane in found} == set(links) and all(lane["open"] for lane in found) and \
            _used(daemon) and daemon.resolvers_ready() > 0

    def seen():
        return f"lanes on {', '.join(links)}, open and in use, of {daemon.try_call({'cmd': 'status'})}"
    wait_until(good, SOON, seen)


def never_asked(count, zone="kinds.example"):
    """Questions that nobody has asked before: each takes a query to upstream."""
    return [(f"ring{next(_names)}.{zone}", "A") for _ in range(count)]


def load(world, rate, *, server=SERVICE[4], zone="kinds.example", most=15, **options):
    """Load of names that nobody has asked before, until its result is taken, for `most` seconds."""
    return Asker(world, world.network.client1, server, never_asked(rate * most, zone), rate, **options)


class Used:
    """How many packets rings have taken since it was made or marked."""

    def __init__(self, path):
        self.daemon = path.daemon
        self.mark()

    def mark(self):
        self.before = counted(self.daemon)

    def now(self):
        return Counts(*(n - before for n, before in zip(counted(self.daemon), self.before)))

    def wait(self, queries=100, answers=100):
        """For so many more from now on."""
        self.mark()
        wait_until(lambda: self.now().queries >= queries and self.now().answers >= answers, SOON,
                   f"{queries} queries and {answers} answers to come by rings")


def seen(daemon, reasons, count=30):
    """Until the program has seen so many more packets that end like one of these; hydnsd runs."""
    def number():
        return sum(n for reason, n in daemon.reasons().items() if reason in reasons)
    before = number()
    wait_until(lambda: number() >= before + count, SOON, f"{count} packets that end with {' or '.join(reasons)}")


def numbers(daemon):
    """{(interface, queue): number} of open lanes."""
    return {(lane["interface"], lane["queue"]): lane["number"] for lane in lanes(daemon) if lane["open"]}
