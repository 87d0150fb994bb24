# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Resolvers with packet rings under load: the paths that tests share, queries in the background, and what rings have taken of
them."""

import time
from contextlib import ExitStack

from . import rings
from .account import Account
from .client import ask
from .network import SERVICE
from .run import SOON, wait_until
from .servers import ATTEMPTS

RATE = 500               # queries a second of names that nobody has asked before
LOCAL = "here.example"   # the resolver itself has its data: no query to upstream
NXDOMAIN = 3
RINGS_OFF = ("hydns:\n", "hydns:\n    hydns-queue: no\n    hydns-queue-upstream: no\n")    # for Unbound.change()
UNBOUND = {"server": [ATTEMPTS, "log-servfail: yes", f'local-zone: "{LOCAL}." redirect',
                      f'local-data: "{LOCAL}. 60 A 192.0.2.99"']}


class Paths:
    """Context manager: one path at a time, which tests with the same options share. make(world, **options) opens one."""

    def __init__(self, world, make):
        self.world, self.make, self.stack, self.options, self.account = world, make, ExitStack(), None, None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.world.relay.behave()
        return self.stack.__exit__(*exc)

    def take(self, *, queries=True, upstream=True, **options):
        """With all lanes open. A test may kill its programs."""
        if self.options != options:
            self.stack.close()
            self.options = None
            self.path = self.stack.enter_context(self.make(self.world, **options))
            self.options = options
        for server in (self.path.daemon, self.path.server):
            if not server.program.running():
                server.start()
        self.world.relay.behave()
        self.path.server.forget_servers()       # those that were silent in another test
        settle(self.path, queries=queries, upstream=upstream)
        self.world.relay.asked.clear()
        self.account = Account(self.path)
        return self.path

    def tell(self):
        """Prints what has happened since take()."""
        if self.account:
            self.account.tell()
        self.account = None


def settle(path, *, queries=True, upstream=True, zone="kinds.example"):
    """Until all lanes are open, then asks until queries and answers come by rings: only then the resolver knows the zone's
    servers and their next hop."""
    rings.wait_open(path.daemon)

    def used():
        before = rings.counted(path.daemon)
        for name, rdtype in rings.never_asked(8, zone):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1)
        now = rings.counted(path.daemon)
        return now.queries - before.queries >= 8 * queries and now.answers - before.answers >= 8 * upstream
    wait_until(used, SOON, "queries and answers to come by rings")


def fresh(path, **options):
    return rings.load(path.world, RATE, **options)


def local(path, rate=None, **options):
    return rings.load(path.world, rate or path.local_rate, zone=LOCAL, most=6, **options)


def assert_answered(answers, rcode=NXDOMAIN, since=0, until=float("inf"), losses=None):
    """Those that were sent in this time, but for as many as these Losses explain: a queue or a socket was full."""
    asked = [a for a in answers if since <= a.sent < until]
    lost = [a for a in asked if a.latency is None]
    unexplained = len(lost) - (losses.explain(len(lost)) if losses else 0)
    wrong = [a for a in asked if a.latency is not None and a.rcode != rcode]
    assert len(asked) > 50
    assert not unexplained, f"{unexplained} of {len(asked)} queries without an answer{described(lost)}"
    assert not wrong, f"{len(wrong)} of {len(asked)} answers are wrong{described(wrong)}"


def described(answers, most=10):
    """Lines that tell when the first of them were asked; the time is what note() prints."""
    return "".join(f"\n{a.sent / 1e9:.3f} s: question {a.question}, " + ("no answer" if a.latency is None else
                   f"RCODE {a.rcode} after {a.latency / 1e6:.0f} ms") for a in answers[:most])


def note(what):
    """pytest shows it when the test has failed."""
    print(f"{time.monotonic():.3f} s: {what}")


def come(path, count=100):
    """Until so many more queries have come to the resolver, by rings or sockets."""
    before = path.server.received()
    wait_until(lambda: path.server.received() >= before + count, SOON, f"{count} queries to come to {path.server.name}")
