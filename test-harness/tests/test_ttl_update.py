# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A shared RRset is refreshed for one of its answers: all the others show its new TTL."""

import time

import pytest
from conftest import kernel_path

from lab.attempts import until_conclusive
from lab.client import must_exchange, query
from lab.compare import ttls
from lab.network import SERVICE
from lab.run import SOON, wait_until


SETTLE = 0.05     # seconds, the most that hydnsd waits before it acts on a renewal (hydnsd/resolvers/ttl_updates.h)
STALL = 0.3       # seconds without a look, after which the two of the last tenth of a TTL may not have been enough


@pytest.fixture
def unrefreshed(world):
    """Unbound refreshes by itself: its prefetch, in the last tenth of a TTL, two seconds here, when a query comes to it."""
    with kernel_path(world, unbound_options={"clause": ["hydns-refresh: 0"]}) as p:
        yield p


@pytest.mark.limit(300)
def test_ttl_update_from_another_question(unrefreshed):
    """An alias's rule has its target's address; after a TTL update of that address the rule counts on with the later TTL."""
    until_conclusive(lambda number, pace: renew_for_another_question(unrefreshed, pace), STALL)


def renew_for_another_question(path, pace):
    network = path.network
    alias, target = (query(f"{name}.lab.example", "A").to_wire() for name in ("to-twenty", "twenty"))

    def left(namespace, wire):
        pace.look()
        return ttls(must_exchange(namespace, SERVICE[4], wire))[-1]

    for label in ("to-twenty", "twenty"):
        path.unbound.control("flush", f"{label}.lab.example")      # of an attempt before
    must_exchange(network.resolver, SERVICE[4], target)
    path.world.heat(path.daemon, "to-twenty.lab.example", "A")
    wait_until(lambda: left(network.client1, alias) <= 2, 25, "the last tenth of the target's TTL")
    assert path.daemon.explain("to-twenty.lab.example", "A")["where"] == "kernel"
    before = path.daemon.call({"cmd": "stats"})["renewed"]
    # the alias is not asked there: Unbound would refresh it as well, and offer that
    wait_until(lambda: left(network.resolver, target) > 2, SOON, "Unbound to renew the target")
    wait_until(lambda: path.daemon.call({"cmd": "status"}) and left(network.client1, alias) > 2, SOON, "the kernel path to show it")
    assert path.daemon.call({"cmd": "stats"})["renewed"] > before, "the rule has come to its own end"


def test_soa_of_denials_is_another_copy(unrefreshed):
    """Unbound caches the SOA that came with a denial, which ends with it, apart from the one that was asked for."""
    network, daemon, soa = unrefreshed.network, unrefreshed.daemon, query("lab.example", "SOA").to_wire()
    denial = query("empty.lab.example", "A").to_wire()

    def left(namespace):
        return ttls(must_exchange(namespace, SERVICE[4], denial))[0]

    must_exchange(network.resolver, SERVICE[4], soa)
    unrefreshed.unbound.control("flush_zone", "lab.example")    # leaves what it flushes in the cache, expired
    unrefreshed.world.heat(daemon, "empty.lab.example", "A")
    before = daemon.call({"cmd": "stats"})
    unrefreshed.world.heat(daemon, "lab.example", "SOA")    # Unbound has refreshed its first copy for that, with a TTL update
    watched = time.monotonic() + 10 * SETTLE
    while time.monotonic() < watched:
        most = left(network.resolver) + 1       # first, for it falls while the kernel is asked
        assert left(network.client1) <= most
    after = daemon.call({"cmd": "stats"})
    assert (after["renewed"], after["withdrawn"]) == (before["renewed"], before["withdrawn"])
