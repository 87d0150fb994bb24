# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Forged answers to named's own queries that left by packet rings. The server answers after 50 ms; meanwhile an attacker who sees
each query sends answers that are wrong in one thing each. named must take none of them. It does not compare letter cases."""

import pytest
from bind_rings import upstream_path

from lab import rings
from lab.ring_load import settle
from lab.run import SOON, wait_until
from lab.spoofing import PREFIX, SILENT, attack, evenness, forged
from lab.tcp_relay import TcpRelay

NXDOMAIN, SERVFAIL = 3, 2
# named sees these alone. Then it asks by TCP at once, so that the others would find no query under way.
ANOTHER_ID = ("id", "former")
OTHERS = [kind for kind in SILENT if kind not in ANOTHER_ID]


@pytest.fixture(scope="module")
def path(world):
    with upstream_path(world) as p, TcpRelay(world):
        settle(p, queries=False, zone="lab.example")
        yield p


def assert_none_taken(path, answers, rcodes=(NXDOMAIN,)):
    assert answers
    assert not forged(answers), f"clients got forged answers: {forged(answers)}"
    assert PREFIX not in path.named.cache()
    wrong = [a for a in answers if a.rcode not in rcodes]
    assert not wrong, f"{len(wrong)} of {len(answers)} clients did not get the server's answer, the first: {wrong[0]}"


def assert_even(attacker):
    for what, chi, free, even, count in evenness(attacker, 64):
        assert even and count >= attacker.queries // 2, f"{what}: chi-square {chi:.0f} with {free} degrees of freedom"


def mismatches(path):
    return path.named.resolving().get("Mismatch", 0)


def test_wrong_in_what_named_need_not_see(path):
    """Such an answer is nobody's, and each query waits for the right one, which comes by the ring. But half of the wrong ports are
    another query's, which has another id."""
    came, seen = rings.counted(path.daemon).answers, mismatches(path)
    answers, attacker = attack(path.world, OTHERS, 8, copies=3)
    came, seen = rings.counted(path.daemon).answers - came, mismatches(path) - seen
    print(attacker.sent, attacker.queries, came, seen)
    assert_none_taken(path, answers)
    assert attacker.queries >= len(answers) and all(attacker.sent[kind] for kind in OTHERS), attacker.sent
    assert came >= attacker.queries // 2
    wait_until(lambda: not rings.claimed(path.daemon), SOON, "no query to be under way, and no port to be claimed")
    assert_even(attacker)


def test_wrong_id(path):
    """Right address and ports: named sees it, counts it, and asks again by TCP. So it does when an answer comes to a port that has
    another query since."""
    seen = mismatches(path)
    answers, attacker = attack(path.world, ANOTHER_ID, 8)
    seen = mismatches(path) - seen
    print(attacker.sent, attacker.queries, seen)
    assert_none_taken(path, answers)
    assert all(attacker.sent[kind] for kind in ANOTHER_ID), attacker.sent
    assert seen >= attacker.queries // 2


def test_wrong_question(path):
    """named takes such a query for answered, badly, and says SERVFAIL or asks again."""
    answers, attacker = attack(path.world, ["question"], 4)
    print(attacker.sent, attacker.queries)
    assert_none_taken(path, answers, (NXDOMAIN, SERVFAIL, None))
    assert attacker.sent["question"] >= len(answers) // 2
