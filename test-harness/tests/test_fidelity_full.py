# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The kinds of test_fidelity.py from a resolver that sends whole answers, in fixed order, with other bounds of
TTLs. A file of its own: two resolvers would share the service's port."""

import dns.message
import pytest
from conftest import kernel_path
from test_fidelity import GROUPS, VARIANTS, Hot, assert_same, kernel, validating, wires_of

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
        assert h.heat([q for group in FULL_GROUPS.values() for q in group]) == []
        yield h


@pytest.mark.parametrize("group", FULL_GROUPS)
def test_same_full_answer(full, group):
    for options in VARIANTS.values():
        for family in (4, 6):
            assert_same(full, FULL_GROUPS[group], options, family)


def test_full_answers_are_full(full):
    replies = [dns.message.from_wire(r) for r in full.ask(wires_of(GROUPS["types"], {}, full.rng))]
    # Debian's Unbound drops the NS records that come with positive answers: additional data are what is left
    assert any(r.additional for r in replies)
    most = {rrset.ttl for group in FULL_GROUPS.values() for wire in full.ask(wires_of(group, {}, full.rng))
            for rrset in dns.message.from_wire(wire).sections[1]}
    assert 0 < min(most) and 190 < max(most) <= 200
