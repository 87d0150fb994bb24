# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND renews or replaces an RRset that stands in several answers for one of them: all others show it."""

import pytest
from conftest import bind_path

from harness.client import ask, exchange, query
from harness.compare import difference
from harness.lab import records
from harness.network import SERVICE
from harness.run import wait_until

ALIASES = ("turn", "shift")     # of turned and shifted, which live ten seconds


@pytest.fixture
def cyclic(world):
    """RRsets only rotate, and renewals are BIND's own: its prefetch, in the last two seconds of a TTL."""
    with bind_path(world, options=["rrset-order { order cyclic; };"], clause=["hydns-refresh 0;"]) as path:
        yield path


def last(namespace, name):
    """The last address in the answer, and its TTL."""
    rrset = ask(namespace, SERVICE[4], f"{name}.lab.example").answer[-1]
    return rrset[0].address, rrset.ttl


def test_rrset_renewed_for_another_question(cyclic):
    network, world = cyclic.network, cyclic.world
    for name in ALIASES:
        exchange(network.resolver, SERVICE[4], query(f"{name}ed.lab.example").to_wire())
        world.heat(cyclic.daemon, f"{name}.lab.example")
    world.heat(cyclic.daemon, "many.lab.example")
    wire = query("many.lab.example").to_wire()
    assert difference(exchange(network.client1, SERVICE[4], wire), exchange(network.resolver, SERVICE[4], wire)) is None
    world.rewrite_lab(records(77))
    try:
        wait_until(lambda: max(last(network.client1, alias)[1] for alias in ALIASES) <= 1, 12,
                   "the last two seconds of the targets' TTLs")
        assert last(network.client1, "shift")[0] == "192.0.2.1"
        assert all(cyclic.daemon.explain(f"{alias}.lab.example")["where"] == "kernel" for alias in ALIASES)
        # the aliases are not asked there: BIND would offer them anew
        wait_until(lambda: min(last(network.resolver, f"{alias}ed")[1] for alias in ALIASES) > 7, 0.9,
                   "BIND to renew the targets")
        wait_until(lambda: last(network.client1, "turn")[1] > 7, 0.2, "the kernel path to show the renewal")
        wait_until(lambda: last(network.client1, "shift")[0] == "192.0.2.77", 0.2,
                   "the kernel path to show the new address")
    finally:
        world.rewrite_lab(records())
