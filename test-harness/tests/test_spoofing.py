# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Forged answers to queries that left by packet rings. The server answers after 50 ms; meanwhile an attacker who sees each query
sends answers that are wrong in one thing each. Unbound must take none of them."""

import math

import pytest
from conftest import kernel_path

from lab import changing_zones, rings
from lab.client import ask
from lab.network import SERVICE, UPSTREAM_PORTS
from lab.run import SOON, wait_until
from lab.spoofing import ADDRESS, NAMES, SILENT, Attacker, chi_square

RATE = 400
NXDOMAIN, SERVFAIL = 3, 2
DELAY = 0.05
EVIL = "cb007142"         # ADDRESS, as asker prints it


@pytest.fixture(scope="module")
def path(world):
    with kernel_path(world, unbound_options={"server": ["use-caps-for-id: yes"]}) as p:
        rings.wait_open(p.daemon)
        settle(p)
        world.relay.delay = DELAY
        yield p
        world.relay.behave()


def settle(path):
    """Until queries leave by rings: only then Unbound knows the zone's server and its next hop."""
    def used():
        before = rings.counted(path.daemon).answers
        for name, rdtype in rings.never_asked(8, "lab.example"):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1)
        return rings.counted(path.daemon).answers - before >= 7
    wait_until(used, SOON, "answers to come by rings")


def attack(path, seconds, kinds, **options):
    """Recursions for lab.example under attack: (answers, the attacker, answers that came by rings)."""
    before = rings.counted(path.daemon).answers
    with Attacker(path.world, changing_zones.RELAY, kinds, **options) as attacker:
        with rings.fresh_load(path.world, RATE, seconds, zone="lab.example") as asker:
            answers = asker.result()
        attacker.result()
    return answers, attacker, rings.counted(path.daemon).answers - before


def assert_none_taken(path, answers):
    forged = [a for a in answers if a.rcode == 0 or a.rdata == EVIL]
    assert not forged, f"{len(forged)} of {len(answers)} clients got a forged answer, the first: {forged[0]}"
    assert ADDRESS not in path.unbound.cache()


def test_wrong_in_one_thing(path):
    unwanted = path.unbound.stats()["unwanted.replies"]
    answers, attacker, by_rings = attack(path, 12, SILENT, copies=3)
    print(attacker.sent, attacker.queries, by_rings)
    assert_none_taken(path, answers)
    wrong = [a for a in answers if a.rcode != NXDOMAIN]
    assert not wrong, f"{len(wrong)} of {len(answers)} clients did not get the server's answer, the first: {wrong[0]}"
    assert sum(attacker.sent.values()) >= 10000
    assert all(attacker.sent[kind] for kind in SILENT), attacker.sent
    # Right address and ports: such an answer comes to the thread, and only Unbound sees that the id is wrong.
    assert by_rings >= attacker.queries + attacker.sent["id"] // 2
    assert path.unbound.stats()["unwanted.replies"] - unwanted >= attacker.sent["id"] // 2
    assert_even(attacker)


def assert_even(attacker):
    """Beyond 6.5 standard deviations a fair draw comes once in 10^10 runs."""
    first, last = map(int, UPSTREAM_PORTS.split("-"))
    for times, begin, count in ((attacker.ports, first, last - first + 1), (attacker.ids, 0, 65536)):
        assert all(begin <= number < begin + count for number in times)
        chi, free = chi_square(times, begin, count, 64)
        assert chi - free < 6.5 * math.sqrt(2 * free), f"chi-square {chi:.0f} with {free} degrees of freedom"


def test_wrong_name(path):
    """Unbound itself gives up on a query whose answer has another name, and asks again: with 0x20 without capitals."""
    answers, attacker, _ = attack(path, 6, NAMES)
    print(attacker.sent, attacker.queries, {r: sum(a.rcode == r for a in answers) for r in (NXDOMAIN, SERVFAIL, None)})
    assert_none_taken(path, answers)
    assert all(attacker.sent[kind] >= 100 for kind in NAMES), attacker.sent
