# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A hot name gets the same answer from the kernel as from Unbound, and Unbound does not see the query.

"From Unbound": the query comes from the resolver's namespace over loopback, where there is no XDP program, so that the same
process with the same cache answers without the kernel path."""

import time

import dns.flags
import dns.message
import dns.rcode
import pytest

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import SERVICE

VARIANTS = {
    "plain": {},
    "edns": {"edns": True},
    "small-edns": {"edns": True, "payload": 512},
    "dnssec-ok": {"dnssec": True},
    "cookie": {"cookie": bytes(range(8))},
    "ad": {"ad": True},
}
QUESTIONS = [("www.lab.example", "A"), ("www.lab.example", "AAAA"), ("www.lab.example", "TXT"),
             ("www.lab.example", "MX"), ("chain.lab.example", "A"), ("many.lab.example", "A"),
             ("svc.lab.example", "HTTPS"), ("empty.lab.example", "A"), ("missing.lab.example", "A")]
ASKED = 50


def both(path, server, q, client=None):
    """Replies from the kernel path and from Unbound directly."""
    wire = q.to_wire()
    return (exchange(client or path.network.client1, server, wire), exchange(path.network.resolver, server, wire))


def changed(before, after):
    """{reason: packets} between two readings of the program's counters."""
    return {reason: after[reason] - n for reason, n in before.items() if after[reason] != n}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("family", (4, 6))
def test_same_answer_in_any_variant(path, family, variant):
    name, options = "www.lab.example", VARIANTS[variant]
    path.world.heat(path.daemon, name, "A", server=SERVICE[family], **options)
    before = path.daemon.reasons()["ANSWERED"]
    received = path.unbound.received()
    for i in range(ASKED):
        q = query("".join(c.upper() if (k + i) % 3 == 0 else c for k, c in enumerate(name)), "A", **options)
        kernel = exchange(path.network.client1, SERVICE[family], q.to_wire())
        assert kernel is not None
        assert kernel[:2] == q.to_wire()[:2], "the reply's id is not the query's"
    assert path.unbound.received() == received, "Unbound has seen queries that the kernel should answer"
    assert path.daemon.reasons()["ANSWERED"] == before + ASKED
    kernel, direct = both(path, SERVICE[family], q)
    assert difference(kernel, direct) is None


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: f"{q[0].split('.')[0]}-{q[1]}")
def test_same_answer_of_every_kind(path, question):
    name, rdtype = question
    for options in ({}, {"dnssec": True}):
        path.world.heat(path.daemon, name, rdtype, **options)
        received, before = path.unbound.received(), path.daemon.reasons()
        q = query(name, rdtype, **options)
        kernel = exchange(path.network.client1, SERVICE[4], q.to_wire())
        assert path.unbound.received() == received, changed(before, path.daemon.reasons())
        direct = exchange(path.network.resolver, SERVICE[4], q.to_wire())
        assert difference(kernel, direct) is None


def test_explain_says_so(path):
    path.world.heat(path.daemon, "www.lab.example", "A")
    said = path.daemon.ctl("explain", "www.lab.example", "A").stdout
    assert "answered in kernel" in said
    cold = path.daemon.ctl("explain", "never-asked.lab.example", "A").stdout
    assert "answered in kernel" not in cold and cold.strip()


def test_second_client_network(path):
    path.world.heat(path.daemon, "www.lab.example", "A")
    received = path.unbound.received()
    for family in (4, 6):
        assert ask(path.network.client2, SERVICE[family], "www.lab.example").answer
    assert path.unbound.received() == received


def test_rotation_gives_every_order(path):
    """Unbound rotates by query id and time; so must the kernel: each of the eight comes first sometimes."""
    path.world.heat(path.daemon, "many.lab.example", "A")
    first = {ask(path.network.client1, SERVICE[4], "many.lab.example").answer[0][0].address for _ in range(200)}
    assert len(first) == 8


def test_unbound_statistics_count_kernel_answers(path):
    path.world.heat(path.daemon, "www.lab.example", "A")
    total, own = path.unbound.stats()["total.num.queries"], path.unbound.received()
    for _ in range(ASKED):
        ask(path.network.client1, SERVICE[4], "www.lab.example")
    assert path.unbound.received() == own
    assert path.unbound.stats()["total.num.queries"] >= total + ASKED


def test_kill_switch(path):
    path.world.heat(path.daemon, "www.lab.example", "A")
    received = path.unbound.received()
    path.daemon.ctl("pause")
    try:
        assert ask(path.network.client1, SERVICE[4], "www.lab.example").answer
        assert path.unbound.received() == received + 1
    finally:
        path.daemon.ctl("resume")
    assert ask(path.network.client1, SERVICE[4], "www.lab.example").answer
    assert path.unbound.received() == received + 1


TICK = 0.01     # seconds: the longest clock tick of a kernel (HZ=100)
CLOCK_REALTIME_COARSE = 5     # of linux/time.h; Python has no name for it


def ends(ns, name):
    """(when the name's TTL may end, in seconds of the wall clock, by a reply of now; the TTL). However long the query
    has waited, it was answered in one of the seconds from its sending to the reply. The program reads the clock that
    moves with the tick, and may keep the former tick's time for the present one."""
    begun = time.clock_gettime(CLOCK_REALTIME_COARSE) - TICK
    ttl = ask(ns, SERVICE[4], name).answer[0].ttl
    return set(range(int(begun) + ttl, int(time.time()) + ttl + 1)), ttl


def test_ttl_counts_down_as_unbounds(path):
    """Asked alternately for some seconds, kernel and Unbound count down to the same end."""
    name = "host1.lab.example"
    path.world.heat(path.daemon, name, "A")
    received, directly = path.unbound.received(), 0
    from_kernel, from_unbound = [], []
    while len({ttl for _, ttl in from_kernel}) < 5:
        from_kernel.append(ends(path.network.client1, name))
        from_unbound.append(ends(path.network.resolver, name))
        directly += 1
    common = set.intersection(*(possible for possible, _ in from_kernel + from_unbound))
    assert common, f"kernel: {each_once(from_kernel)}; Unbound: {each_once(from_unbound)}"
    assert path.unbound.received() == received + directly, "the kernel did not answer what was to be compared"


def each_once(answers):
    """Possible ends, and the TTL that they follow from, in the order in which they came."""
    return list(dict.fromkeys((*sorted(possible), f"TTL {ttl}") for possible, ttl in answers))


def test_cd_and_no_recursion_go_to_unbound(path):
    path.world.heat(path.daemon, "www.lab.example", "A")
    for options in ({"cd": True}, {"rd": False}):
        q = query("www.lab.example", "A", **options)
        kernel, direct = both(path, SERVICE[4], q)
        assert difference(kernel, direct) is None


def test_answer_too_large_is_truncated_by_unbound(path):
    q = query("big.lab.example", "TXT")
    for _ in range(100):
        kernel = exchange(path.network.client1, SERVICE[4], q.to_wire())
    assert dns.message.from_wire(kernel, ignore_trailing=True).flags & dns.flags.TC
    assert difference(kernel, exchange(path.network.resolver, SERVICE[4], q.to_wire())) is None
