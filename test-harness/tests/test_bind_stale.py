# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Expired data from BIND's cache (serve-stale, RFC 8767) come from named alone, as from a named without the kernel path: with
named's TTL and extended error, and no longer."""

from types import SimpleNamespace

import dns.message
import dns.rcode
import pytest
from conftest import bind_path
from test_expired import QUESTIONS, TTL, ask_both, dead_relay, heat

from lab.compare import difference, ttls
from lab.run import SOON, replaced, wait_until
from lab.servers import EVERY_CLIENT_WAITS

STALE_ANSWER = 3                                 # RFC 8914 section 4.4
NOT_SERVED = "stale-answer-enable no;"


@pytest.fixture(scope="module")
def pair(world):
    """The kernel path and a named alone, which change their configurations together."""
    # An alias is refreshed for each query, so by the time that its target is too old ten refreshes may be under way.
    options = ["resolver-query-timeout 400; stale-cache-enable yes;", EVERY_CLIENT_WAITS, NOT_SERVED]
    with bind_path(world, options=options) as path, world.named_reference(options=options) as reference:
        yield SimpleNamespace(path=path, world=world, both=(path.named, reference), line=NOT_SERVED)


def configure(pair, line):
    for named in pair.both:
        named.config.write_text(replaced(named.config.read_text(), pair.line, line))
        named.control("reconfig")
    pair.line = line


def state(wire):
    """fresh, stale, partly stale (an alias or its target) or failed, with what the reply says of it."""
    reply = dns.message.from_wire(wire)
    if reply.rcode() == dns.rcode.SERVFAIL:
        return "failed"
    errors = [option.code for option in reply.options if option.otype == 15]
    assert reply.rcode() == dns.rcode.NOERROR, reply
    # named may add why it could not ask
    assert reply.edns < 0 or (STALE_ANSWER in errors) == (max(ttls(wire)) > TTL), reply
    return "stale" if min(ttls(wire)) > TTL else "partly stale" if max(ttls(wire)) > TTL else "fresh"


def assert_same(ours, theirs, states, ttl_slack=1):
    """The extended error says how named got stale data, or why it has none, at that moment: in it the two servers may
    differ."""
    why = difference(ours, theirs, ttl_slack=ttl_slack)
    assert why is None or (states[0] == states[1] != "fresh" and why.kind == "OPT"), why


def ask_until_both(pair, wanted):
    """Asks every question; the kernel may only answer data that have not expired, and failures that named remembers. Returns how
    many it answered with data."""
    kernel, still = 0, set(range(len(QUESTIONS)))

    def are():
        nonlocal kernel
        for number in sorted(still):
            name, flags = QUESTIONS[number]
            ours, theirs, answered = ask_both(pair, name, **flags)
            states = state(ours), state(theirs)
            given = states[0] == "failed" or (states[0] == "fresh" and max(ttls(ours)) <= TTL)
            assert not answered or given, (name, flags, states)
            if states[0] == states[1]:
                assert_same(ours, theirs, states, TTL if states[0] == "fresh" else None)
            kernel += answered and states[0] != "failed"
            if states == (wanted, wanted):
                still.discard(number)
        return not still
    wait_until(are, 2 * SOON, f"both to say what is {wanted}")
    return kernel


@pytest.mark.parametrize("reply_ttl,options", [
    (7, "stale-answer-client-timeout off; stale-answer-ttl 7; stale-refresh-time 30; max-stale-ttl 3600;"),
    (30, "stale-answer-client-timeout 0; stale-refresh-time 4; max-stale-ttl 15;")], ids=["when-it-fails", "at-once"])
def test_stale_answers_are_named_s(pair, reply_ttl, options):
    configure(pair, f"stale-answer-enable yes; {options}")
    ask_until_both(pair, "fresh")      # within stale-refresh-time of a failure named does not ask the authoritative server again
    heat(pair)
    for name, flags in QUESTIONS:
        ask_both(pair, name, **flags)
    with dead_relay(pair.world):
        kernel = ask_until_both(pair, "stale")
        print(f"{kernel} answers came from the kernel before they expired")
        for _ in range(3):
            for name, flags in QUESTIONS:
                ours, theirs, answered = ask_both(pair, name, **flags)
                assert_same(ours, theirs, (state(ours), state(theirs)))
                assert answered == 0 and set(ttls(ours)) == {reply_ttl}
        if "max-stale-ttl 15" in options:
            assert ask_until_both(pair, "failed") == 0


def test_nothing_stale_without_the_option(pair):
    """And expired data are fresh, and answered in the kernel, as soon as the authoritative server is back."""
    configure(pair, NOT_SERVED)
    ask_until_both(pair, "fresh")
    heat(pair)
    with dead_relay(pair.world):
        ask_until_both(pair, "failed")
    ask_until_both(pair, "fresh")
    heat(pair)
