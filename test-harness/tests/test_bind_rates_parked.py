# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's rate-limit and queries that wait in the kernel for a resolution under way: named debits the response to the first, the program
or named those to the others. Each client gets what named alone, where all wait, would give it."""

from contextlib import ExitStack

import pytest
from test_bind_rates import SLIP, WINDOW, address_of, both_same, burst, from_full_balances, kind_of, named_pair, same_lines

from lab.burst import new_second, sent
from lab.client import ask, query
from lab.network import CLIENT1, CLIENT1_MORE, CLIENT2
from lab.run import wait_until

# Responses a second; queries of the client above that, and of the one below. named lets 10 clients wait for a question.
RATE, ABOVE, BELOW = 2, 7, 2
NAMES = {"responses": "waits.lab.example", "nxdomains": "nosuch.waits.lab.example"}
LOCAL = {4: CLIENT1_MORE[4], 6: CLIENT1[6]}
PREFIX = {4: f"{LOCAL[4]}/32", 6: "fd53:1::/64"}
STEP = 2                 # seconds from one burst to the next


@pytest.fixture(scope="module")
def pair(world):
    with named_pair(world, f"responses-per-second {RATE};", f"window {WINDOW};", f"slip {SLIP};", recursion=True) as p:
        world.rewrite_lab({**world.zones.content, "waits": ["300 A 192.0.2.7"]})
        for server in p.both:
            ask(p.network.client2, address_of(p, server), "lab.example", "SOA", local=CLIENT2[4])
        p.network.poll()
        yield p
        p.network.poll(on=False)
        world.relay.behave()


class Resolution:
    """One that is under way until the authoritative server is let go, in the second after a given one at the earliest. A client below
    the limit waits for it as well."""

    def __init__(self, pair, server, name, family, after):
        self.pair, self.server, self.family, self.after = pair, server, family, after
        self.wire = query(name).to_wire()
        self.stack = ExitStack()
        self.before = self._taken()

    def _taken(self):
        """Queries that named has read, or that wait in the kernel."""
        return self.server.stats().get(f"Requestv{self.family}", 0) + self.pair.daemon.reasons()["PARKED"]

    def _wait_taken(self, n):
        wait_until(lambda: self._taken() - self.before >= n, 10, lambda: f"{n} queries to wait: {self._taken() - self.before}")

    def join(self, others):
        """After so many queries of others. named says what is under way when it reads the second in all, and so parks the next."""
        self.below = self.stack.enter_context(
            sent(self.pair.network.client2, address_of(self.pair, self.server, self.family), [self.wire] * BELOW,
                 local=CLIENT2[self.family], ready=lambda: self._wait_taken(others + 1), begin=lambda: None))
        self._wait_taken(others + BELOW)

    def end(self, queries):
        """When all wait."""
        self._wait_taken(ABOVE + BELOW)
        queries.begun = new_second(self.after)
        self.pair.path.world.relay.held = False


def crowd(pair, server, name, family, passed, after=None):
    """What became of the queries of both clients, which all waited. passed: how many of the client above the limit, 1 or 0, reach named
    before its others are parked. None: not all waited, or they were late."""
    relay = pair.path.world.relay
    server.control("flushname", name)
    relay.held = True
    resolution = Resolution(pair, server, name, family, after)
    with resolution.stack:
        try:
            if not passed:
                resolution.join(0)
            done = burst(pair, server, [resolution.wire] * ABOVE, LOCAL[family], resolution.end,
                         ready=(lambda: resolution.join(1)) if passed else None, begin=lambda: None)
        finally:
            relay.held = False
        wait_until(lambda: resolution.below.read() >= BELOW, 10, "the replies to the client below the limit")
        assert [kind_of(wire) for wire in resolution.below.replies] == ["answer"] * BELOW
    parked = server is pair.alone or done.kernel["PARKED"] >= ABOVE - passed
    return done if parked and done.seconds == 1 and after in (None, done.begun - 1) else None


def crowds(pair, name, family):
    """Two of each server, from full balances. The second has no query of the client above its limit reach named early: for a response
    that it drops named has nothing to offer, and the parked queries might all pass."""
    done = []
    for server in pair.both:
        for passed in (1, 0):
            after = None if passed else done[-1].begun + STEP - 1
            done.append(crowd(pair, server, name, family, passed, after))
            if done[-1] is None:
                return None
    return list(zip(done[:2], done[2:]))


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("kind", NAMES)
def test_parked_queries(pair, kind, family):
    """What is above the limit is dropped, or answered with TC, also in the next burst, whose balance is not back yet."""
    (first, second), kernel = both_same(from_full_balances(lambda: crowds(pair, NAMES[kind], family)))
    assert (first.answers, second.answers) == (RATE, 0)
    assert first.slipped and second.slipped and second.dropped
    assert kernel["ANSWERED"] and kernel["LIMIT_REACHED"] and kernel["LIMITED"] and kernel["LIMIT_TRUNCATED"]
    assert any(f"to {PREFIX[family]}" in line for line in same_lines(pair, PREFIX[family]))
