# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The answers of test_fidelity.py from a resolver that sends whole answers, in fixed order, with other bounds of TTLs. In a
file of its own: two resolvers would share the service's port."""

import time

import dns.message
import pytest
from conftest import kernel_path
from test_fidelity import GROUPS, VARIANTS, Hot, assert_same, kernel, validating, wires_of

from lab.client import exchange, query
from lab.compare import ttls
from lab.changing_zones import records
from lab.network import SERVICE
from lab.run import SOON, wait_until

FULL_GROUPS = {
    **{group: GROUPS[group] for group in ("types", "chains", "negative", "negative-chains", "wildcards", "dname", "root",
                                          "referral", "signed", "signed3", "insecure", "all-types")},
    # 0 is raised, and what is more than a day lowered
    "ttl": kernel("ttl0 ttl-most ttl-day ttl-short unequal"),
}


@pytest.fixture(scope="module")
def full(world):
    server = [*validating(world), "minimal-responses: no", "rrset-roundrobin: no", "cache-max-ttl: 200",
              "cache-min-ttl: 40", "cache-max-negative-ttl: 50"]
    with kernel_path(world, unbound_options={"server": server}) as path:
        h = Hot(path)
        h.begun = time.monotonic()
        assert h.heat([q for group in FULL_GROUPS.values() for q in group]) == []
        yield h


@pytest.mark.parametrize("group", FULL_GROUPS)
def test_same_full_answer(full, group):
    full.keep_hot(FULL_GROUPS[group])
    for options in VARIANTS.values():
        for family in (4, 6):
            assert_same(full, FULL_GROUPS[group], options, family)


def test_full_answers_are_full(full):
    replies = [dns.message.from_wire(r) for r in full.ask(wires_of(GROUPS["types"], {}, full.rng))]
    # Debian's Unbound drops the NS records that come with positive answers: additional data are what is left
    assert any(r.additional for r in replies)
    most = {rrset.ttl for group in FULL_GROUPS.values() for wire in full.ask(wires_of(group, {}, full.rng))
            for rrset in dns.message.from_wire(wire).sections[1]}
    # nothing was cached before; what goes on counts down
    assert 0 < min(most) and 200 - (time.monotonic() - full.begun) - 1 <= max(most) <= 200


def test_better_source_ends_earlier(full):
    """Additional data of an answer come again from their own question, which counts more: the same, with a lower TTL.
    Unbound sends that with the answer from then on, and the rule would have gone on with the higher one."""
    network, world = full.path.network, full.path.world
    answer, address = (query(f"{label}.lab.example", rdtype).to_wire() for label, rdtype in (("www", "MX"), ("mail", "A")))

    def sent(namespace):
        return ttls(exchange(namespace, SERVICE[4], answer))[-1]
    assert full.heat(kernel("www", "MX", zone="lab.example")) == []
    assert sent(network.client1) > 100
    try:
        world.change_lab({**records(), "mail": ["100 A 192.0.2.200"]}, "mail.lab.example", "A", " 100 IN A ")
        exchange(network.resolver, SERVICE[4], address)
        assert sent(network.resolver) <= 100
        wait_until(lambda: sent(network.client1) <= 100, SOON, "the kernel path to send the lower TTL")
    finally:
        world.change_lab(records(), "mail.lab.example", "A", " 600 IN A ")
