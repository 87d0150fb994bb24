# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Forged answers to queries that left by packet rings. The server answers after 50 ms; meanwhile an attacker who sees each
query sends answers that are wrong in one thing each. Unbound must take none of them. fuzz/spoof does more of it."""

import pytest
from conftest import kernel_path

from lab import rings
from lab.ring_load import settle
from lab.run import SOON, wait_until
from lab.spoofing import NAMES, PREFIX, SILENT, UNBOUND_OPTIONS, attack, evenness, forged

NXDOMAIN, SERVFAIL = 3, 2


@pytest.fixture(scope="module")
def path(world):
    with kernel_path(world, unbound_options=UNBOUND_OPTIONS) as p:
        settle(p, queries=False, zone="lab.example")
        yield p
        world.relay.behave()


def assert_none_taken(path, answers):
    assert answers
    assert not forged(answers), f"clients got forged answers: {forged(answers)}"
    assert PREFIX not in path.unbound.cache()


def test_wrong_in_one_thing(path):
    unwanted, came = path.unbound.stats()["unwanted.replies"], rings.counted(path.daemon).answers
    answers, attacker = attack(path.world, SILENT, 12, copies=3)
    unwanted, came = path.unbound.stats()["unwanted.replies"] - unwanted, rings.counted(path.daemon).answers - came
    print(attacker.sent, attacker.queries, came, unwanted)
    assert_none_taken(path, answers)
    wrong = [a for a in answers if a.rcode != NXDOMAIN]
    assert not wrong, f"{len(wrong)} of {len(answers)} clients did not get the server's answer, the first: {wrong[0]}"
    assert attacker.queries >= len(answers) and sum(attacker.sent.values()) >= 20 * len(answers)
    assert all(attacker.sent[kind] for kind in SILENT), attacker.sent
    # Right address and ports: such an answer comes to the thread by the ring, and only Unbound sees that the id is wrong.
    assert came >= (attacker.queries + attacker.sent["id"]) // 2
    assert unwanted >= attacker.sent["id"] // 2
    wait_until(lambda: not rings.claimed(path.daemon), SOON, "no query to be under way, and no port to be claimed")
    for what, chi, free, even, count in evenness(attacker, 64):
        assert even and count >= attacker.queries // 2, f"{what}: chi-square {chi:.0f} with {free} degrees of freedom"


@pytest.mark.parametrize("kind", NAMES)
def test_wrong_name(path, kind):
    """Unbound takes such a query for answered. Then it asks again, with 0x20 without capitals, and compares. One kind at a
    time: where it has to throw away the answers that it would compare, it believes the first."""
    answers, attacker = attack(path.world, [kind], 4)
    print(attacker.sent, attacker.queries, {r: sum(a.rcode == r for a in answers) for r in (NXDOMAIN, SERVFAIL, None)})
    assert_none_taken(path, answers)
    assert attacker.sent[kind] >= len(answers) // 2
