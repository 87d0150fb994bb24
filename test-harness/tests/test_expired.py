# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Expired data, and data with TTL 0, come from Unbound, as from Unbound without the kernel path."""

import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from conftest import kernel_path

from lab.client import exchange, query
from lab.compare import difference, split, ttls
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until
from lab.tools import unbound_has_fast_reload

TTL = 3                                          # of both names
NAMES = ("moment.lab.example", "moments.lab.example")
QUESTIONS = [(name, flags) for name in NAMES for flags in ({}, {"dnssec": True})]
DEAD = 60.0                                      # seconds: no resolver waits so long for an authoritative server
MARK = "    # serve-expired"
NOT_SERVED = "    serve-expired: no"
AT_ONCE = ["serve-expired-client-timeout: 0"]


@pytest.fixture(scope="module")
def pair(world):
    """The kernel path and Unbound alone, which change their configurations together."""
    with kernel_path(world, unbound_options={"server": [MARK.strip(), NOT_SERVED.strip()], "threads": 1}) as path, \
            world.reference(server=[MARK.strip(), NOT_SERVED.strip()], threads=1) as reference:
        yield SimpleNamespace(path=path, both=(path.unbound, reference), world=world, lines=NOT_SERVED)


def configure(pair, *lines):
    text = "\n".join(f"    {line}" for line in lines)
    for unbound in pair.both:
        unbound.change(f"{MARK}\n{pair.lines}", f"{MARK}\n{text}")
    pair.lines = text


def ask_both(pair, name, **flags):
    """(kernel path's reply, the resolver's alone, did the kernel answer)"""
    before = pair.path.daemon.reasons()["ANSWERED"]
    ours, theirs = (exchange(pair.path.network.client1, server[4], query(name, **flags).to_wire())
                    for server in (SERVICE, REFERENCE))
    assert ours and theirs, f"silent: {'' if ours else 'kernel path '}{'' if theirs else 'the resolver alone'}"
    return ours, theirs, pair.path.daemon.reasons()["ANSWERED"] - before


def heat(pair):
    for name, flags in QUESTIONS:
        pair.world.heat(pair.path.daemon, name, **flags)


def stale_ttl(reply_ttl):
    """Of expired answers: serve-expired-reply-ttl; newer releases never give one that is above the record's own."""
    return min(reply_ttl, TTL) if unbound_has_fast_reload() else reply_ttl


def let_expire(pair, reply_ttl):
    """Asks both until both serve everything expired. The kernel may answer what has not expired, no longer."""
    died, kernel, stale = time.monotonic(), 0, set()
    while len(stale) < len(QUESTIONS):
        assert time.monotonic() < died + SOON, f"not expired: {set(range(len(QUESTIONS))) - stale}"
        for number, (name, flags) in enumerate(QUESTIONS):
            sent = time.monotonic()
            ours, theirs, answered = ask_both(pair, name, **flags)
            assert difference(ours, theirs, ttl_slack=None) is None
            kernel += answered
            if answered:
                assert 0 < max(ttls(ours)) <= TTL and sent < died + TTL
            if sent > died + TTL + 1 and set(ttls(ours)) == set(ttls(theirs)) == {reply_ttl}:
                stale.add(number)
    print(f"{kernel} answers came from the kernel before they expired")


@contextmanager
def dead_relay(world):
    world.relay.delay = DEAD
    try:
        yield
    finally:
        world.relay.delay = 0.0


@contextmanager
def no_authority(pair):
    try:
        with dead_relay(pair.world):
            yield
    finally:
        for unbound in pair.both:
            unbound.control("flush_infra", "all")


@pytest.mark.parametrize("reply_ttl,options", [
    (7, ["serve-expired-client-timeout: 20", "serve-expired-reply-ttl: 7", "serve-expired-ttl: 3600",
         "serve-expired-ttl-reset: yes"]),
    (30, AT_ONCE)], ids=["after-a-timeout", "at-once"])
def test_expired_answers_are_unbounds(pair, reply_ttl, options):
    configure(pair, "serve-expired: yes", *options)
    reply_ttl = stale_ttl(reply_ttl)
    heat(pair)
    for name, flags in QUESTIONS:
        ask_both(pair, name, **flags)
    with no_authority(pair):
        let_expire(pair, reply_ttl)
        for _ in range(3):
            for name, flags in QUESTIONS:
                ours, theirs, answered = ask_both(pair, name, **flags)
                assert difference(ours, theirs) is None
                assert answered == 0 and set(ttls(ours)) == {reply_ttl}
        if options == AT_ONCE:         # otherwise the answer does not come from the cache, where the module looks
            for name, flags in QUESTIONS:
                assert "stale" in pair.path.daemon.explain(name, do=bool(flags))["text"]


def test_hot_again_after_a_new_resolution(pair):
    """After the test before: expired data are fresh, and answered in the kernel again."""
    def fresh():
        return all(max(ttls(reply)) <= TTL for name, flags in QUESTIONS for reply in ask_both(pair, name, **flags)[:2])
    wait_until(fresh, 10, "both to resolve anew")
    heat(pair)
    for name, flags in QUESTIONS:
        assert difference(*ask_both(pair, name, **flags)[:2], ttl_slack=TTL) is None


def with_ttls(name, values):
    """A change of replies for Relay: the answer's records about this name get these TTLs, in turn."""
    wanted = query(name).question[0].name.to_wire()

    def change(wire):
        _, question, records, _ = split(wire)
        if question[:-4].lower() != wanted:
            return wire
        answer = [r for r in records if r.section == 0]
        for number, record in enumerate(answer):
            at = record.at - 6
            wire = wire[:at] + values[number % len(values)].to_bytes(4, "big") + wire[at + 4:]
        return wire
    return change


@pytest.mark.parametrize("name,values,kernel", [
    ("host60", [1 << 31], False), ("host61", [(1 << 32) - 1], False), ("host62", [(1 << 31) - 1], True),
    ("many", [300, 1 << 31], False), ("alias", [(1 << 31) + 300], False)])
def test_ttl_of_32_bits(pair, name, values, kernel):
    """RFC 2181 section 8: a TTL with the most significant bit set is 0, and such data are for one client. Newer releases take it for a
    long one (RFC 8767 section 4), the one without the kernel path as well."""
    kernel = kernel or unbound_has_fast_reload()
    configure(pair, "serve-expired: no")
    name += ".lab.example"
    pair.world.relay.change = with_ttls(name, values)
    try:
        if kernel:
            pair.world.heat(pair.path.daemon, name)
        for _ in range(10):
            ours, theirs, answered = ask_both(pair, name)
            assert difference(ours, theirs, ttl_slack=60) is None
            assert answered == kernel
            assert (min(ttls(ours)) == 0) == (not kernel)
    finally:
        pair.world.relay.behave()
