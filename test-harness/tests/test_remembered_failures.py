# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Failures that Unbound remembers (RFC 9520): the kernel answers the retries of clients at names whose authoritative servers fail,
as Unbound would, and no longer than Unbound."""

import time
from types import SimpleNamespace

import dns.rcode
import pytest
from conftest import kernel_path

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

REMEMBERED = 5           # seconds: NORR_TTL of Unbound
VARIANTS = ({}, {"edns": True}, {"dnssec": True})


@pytest.fixture(scope="module")
def pair(world):
    """The kernel path and Unbound alone."""
    with kernel_path(world, unbound_options={"server": ["extended-statistics: yes"]}) as path, world.reference() as reference:
        yield SimpleNamespace(path=path, reference=reference, world=world)


@pytest.fixture
def failing(pair):
    """While it lasts the authoritative server fails at everything, and no resolver knows the names."""
    pair.world.relay.change = lambda wire: wire[:3] + bytes([wire[3] & 0xf0 | dns.rcode.SERVFAIL]) + wire[4:]
    try:
        yield pair
    finally:
        pair.world.relay.behave()
        for unbound in (pair.path.unbound, pair.reference):
            unbound.forget_servers()


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


def test_no_longer_than_unbound(failing):
    """Unbound tries again as soon as it would without the kernel path, however many ask: the former failure has ended then."""
    name, begun = "host50.lab.example", time.monotonic()
    heat(failing, name)
    kernel = 0
    while time.monotonic() < begun + 3 * REMEMBERED:
        rcode, by_kernel = asked(failing, name)
        assert rcode == dns.rcode.SERVFAIL
        kernel += by_kernel
    tried = [at for at, asked_name, _ in list(failing.world.relay.asked) if asked_name == f"{name}." and at > begun]
    longest = max(b - a for a, b in zip(tried, [*tried[1:], time.monotonic()]))
    assert kernel > 100 and len(tried) > 1
    assert longest < REMEMBERED + 2, f"Unbound did not try for {longest:.1f} s"


def test_flushed(failing):
    """The resolver is asked anew at once."""
    name = "host51.lab.example"
    heat(failing, name)
    failing.world.relay.behave()
    failing.path.unbound.control("flush", name)
    failing.path.unbound.forget_servers()
    assert asked(failing, name) == (dns.rcode.NOERROR, False)
    failing.world.heat(failing.path.daemon, name)
    assert asked(failing, name) == (dns.rcode.NOERROR, True)


def test_server_recovers(failing):
    """Once a client has the answer nobody gets the failure any more."""
    name = "host52.lab.example"
    heat(failing, name)
    failing.world.relay.behave()
    failing.path.unbound.forget_servers()
    wait_until(lambda: asked(failing, name)[0] == dns.rcode.NOERROR, SOON, "an answer")
    for _ in range(200):
        assert asked(failing, name)[0] == dns.rcode.NOERROR


def test_checking_disabled_is_unbounds(failing):
    name = "host53.lab.example"
    heat(failing, name)
    assert asked(failing, name, cd=True) == (dns.rcode.SERVFAIL, False)


def test_unbound_counts_them(failing):
    name = "host54.lab.example"
    heat(failing, name)
    before, kernel = failing.path.unbound.stats(), answered(failing)
    for _ in range(50):
        asked(failing, name)
    after, kernel = failing.path.unbound.stats(), answered(failing) - kernel
    grown = {key: after[key] - before[key] for key in ("num.answer.rcode.SERVFAIL", "total.num.queries")}
    assert kernel > 10 and grown == {"num.answer.rcode.SERVFAIL": 50, "total.num.queries": 50}
