# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Failures that a resolver remembers (RFC 9520): the kernel answers the retries of clients at names whose authoritative servers
fail, as the resolver would, and no longer than it."""

import time
from types import SimpleNamespace

import dns.rcode
import pytest
from conftest import bind_path, kernel_path

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

# Seconds for which a failure is remembered: NORR_TTL of Unbound, servfail-ttl of named. Both still answer in the last one.
REMEMBERED = {"unbound": 5, "bind": 2}
VARIANTS = ({}, {"edns": True}, {"dnssec": True})
OFFERS_AFTER = 10        # queries for one name, at most
SLACK = 1                # seconds that a resolver may wait for a processor before it remembers what it has tried
FLUSH = {"unbound": "flush", "bind": "flushname"}
# counters of failures and of all replies
COUNTERS = {"unbound": ("num.answer.rcode.SERVFAIL", "total.num.queries"), "bind": ("QrySERVFAIL", "Response")}


@pytest.fixture(scope="module", params=("unbound", "bind"))
def pair(world, request):
    """The kernel path and the same resolver alone."""
    kind = request.param
    if kind == "unbound":
        both = kernel_path(world, unbound_options={"server": ["extended-statistics: yes"]}), world.reference()
    else:
        options = [f"servfail-ttl {REMEMBERED[kind]};"]
        both = bind_path(world, options=options), world.named_reference(options=options)
    with both[0] as path, both[1] as reference:
        yield SimpleNamespace(path=path, reference=reference, world=world, kind=kind, remembered=REMEMBERED[kind])


@pytest.fixture
def failing(pair):
    """While it lasts the authoritative server fails at everything, and no resolver knows the names."""
    pair.world.relay.change = lambda wire: wire[:3] + bytes([wire[3] & 0xf0 | dns.rcode.SERVFAIL]) + wire[4:]
    try:
        yield pair
    finally:
        pair.world.relay.behave()
        for server in (pair.path.server, pair.reference):
            server.forget_servers()


def answered(pair):
    return pair.path.daemon.reasons()["ANSWERED"]


def asked(pair, name, family=4, **options):
    """(rcode, whether the kernel gave it)."""
    before = answered(pair)
    reply = ask(pair.path.network.client1, SERVICE[family], name, timeout=8, **options)
    assert reply is not None, f"{name}: silence"
    return reply.rcode(), answered(pair) - before == 1


def heat(pair, name, **options):
    """Until the kernel answers with the failure."""
    wait_until(lambda: asked(pair, name, **options) == (dns.rcode.SERVFAIL, True), SOON, f"{name} to fail in the kernel")


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("options", VARIANTS, ids=str)
def test_same_answer(failing, options, family):
    name = f"host{10 + family + 10 * VARIANTS.index(options)}.lab.example"

    def same():
        before = answered(failing)
        ours, theirs = (exchange(failing.path.network.client1, server[family], query(name, **options).to_wire(), timeout=8)
                        for server in (SERVICE, REFERENCE))
        assert difference(ours, theirs) is None and ours[3] & 0xf == dns.rcode.SERVFAIL
        return answered(failing) > before
    wait_until(same, SOON, f"{name} to fail in the kernel")
    assert sum(same() for _ in range(20)) > 0


def failures_of(pair, name, seconds):
    """Asks all the time; [(when each was asked, whether the kernel answered)]."""
    got, begun = [], time.monotonic()
    while not got or got[-1][0] < begun + seconds:
        at = time.monotonic()
        rcode, by_kernel = asked(pair, name)
        assert rcode == dns.rcode.SERVFAIL
        got.append((at, by_kernel))
    return got


def tried(pair, name, since):
    """When the resolver asked the authoritative server for the name."""
    return [at for at, asked_name, _ in list(pair.world.relay.asked) if asked_name == f"{name}." and at > since]


def test_no_longer_than_the_resolver(failing):
    """However many ask: it tries again as soon as it would without the kernel path."""
    name, begun = "host50.lab.example", time.monotonic()
    heat(failing, name)
    got = failures_of(failing, name, 3 * failing.remembered)
    times = tried(failing, name, begun)
    by_kernel = [at for at, by_kernel in got if by_kernel]
    oldest = max(at - max(when for when in times if when < at) for at in by_kernel)
    assert len(by_kernel) > 100 and times[-1] > got[0][0]
    assert oldest < failing.remembered + 1 + SLACK, f"the kernel gave a failure {oldest:.1f} s after the resolver's last try"


def test_as_long_as_the_resolver(failing):
    """Also in the second in which the resolver's memory of it ends: a few queries that make it offer the failure get it from the
    resolver's memory, and then none does."""
    name = "host51.lab.example"
    heat(failing, name)
    begun = time.monotonic()
    got = failures_of(failing, name, 3 * failing.remembered)
    times, longest, run = tried(failing, name, begun), 0, 0
    for (at, by_kernel), (later, _) in zip(got, got[1:]):
        resolved = any(at < when < later for when in times)
        run = 0 if by_kernel or resolved else run + 1
        longest = max(longest, run)
    assert times, "the resolver did not try again"
    assert longest <= OFFERS_AFTER, f"{longest} queries in a row were answered from the resolver's memory"


def test_flushed(failing):
    """The resolver is asked anew at once."""
    name = "host52.lab.example"
    heat(failing, name)
    failing.world.relay.behave()
    failing.path.server.control(FLUSH[failing.kind], name)
    failing.path.server.forget_servers()
    assert asked(failing, name) == (dns.rcode.NOERROR, False)
    failing.world.heat(failing.path.daemon, name)
    assert asked(failing, name) == (dns.rcode.NOERROR, True)


def test_server_recovers(failing):
    """Once a client has the answer nobody gets the failure any more."""
    name = "host53.lab.example"
    heat(failing, name)
    failing.world.relay.behave()
    failing.path.server.forget_servers()
    wait_until(lambda: asked(failing, name)[0] == dns.rcode.NOERROR, SOON, "an answer")
    for _ in range(200):
        assert asked(failing, name)[0] == dns.rcode.NOERROR


def test_checking_disabled_is_the_resolvers(failing):
    name = "host54.lab.example"
    heat(failing, name)
    assert asked(failing, name, cd=True) == (dns.rcode.SERVFAIL, False)


def test_other_types_and_no_recursion_are_the_resolvers(failing):
    """A failure says nothing of other questions."""
    name = "host55.lab.example"
    heat(failing, name)
    before = answered(failing)
    ask(failing.path.network.client1, SERVICE[4], name, "TXT", timeout=8)
    ask(failing.path.network.client1, SERVICE[4], name, rd=False, timeout=8)
    assert answered(failing) == before


def test_the_resolver_counts_them(failing):
    name = "host56.lab.example"
    heat(failing, name)
    counters = COUNTERS[failing.kind]
    before, kernel = failing.path.server.stats(), answered(failing)
    for _ in range(50):
        asked(failing, name)
    after, kernel = failing.path.server.stats(), answered(failing) - kernel
    assert kernel > 10 and [after[key] - before.get(key, 0) for key in counters] == [50, 50]
