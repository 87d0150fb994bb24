# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Forged answers to forwarded queries. The upstream server answers after 50 ms; meanwhile an attacker who sees each request sends
answers that are wrong in one thing each. No client gets one of them, and each gets the server's own."""

import pytest
from forwarding_paths import KINDS as RESOLVERS
from forwarding_paths import forwarding_path

from lab import changing_zones
from lab.run import SOON, wait_until
from lab.spoofing import DELAY, KINDS, PREFIX, attack, evenness, forged

NXDOMAIN = 3


def resolver(path, command):
    return path.daemon.call({"cmd": command})["resolvers"][0]["forwarding"]


@pytest.fixture(scope="module", params=RESOLVERS)
def path(world, request):
    with forwarding_path(world, request.param, changing_zones.RELAY, zone="lab.example.") as p:
        yield p
        world.relay.behave()


def test_wrong_in_one_thing(path):
    before = resolver(path, "stats")
    answers, attacker = attack(path.world, KINDS, 12, copies=3)
    after = resolver(path, "stats")
    mismatched, relayed, late = (after[name] - before[name] for name in ("mismatched", "relayed", "timed_out"))
    print(attacker.sent, attacker.queries, mismatched, relayed, late)
    assert answers and not forged(answers), f"clients got forged answers: {forged(answers)}"
    assert PREFIX not in path.server.cache()
    wrong = [a for a in answers if a.rcode != NXDOMAIN]
    # Unbound, which asks when a request has timed out, takes a query for answered when the name differs. BIND does not.
    assert len(wrong) <= late, f"{len(wrong)} of {len(answers)} clients did not get the server's answer, the first: {wrong[0]}"
    assert all(attacker.sent[kind] for kind in KINDS), attacker.sent
    assert relayed >= len(answers) // 2, "most were not forwarded"
    # What comes from the right address to the right port in time is dropped by the program, which sees what is wrong.
    assert mismatched >= (attacker.sent["id"] + attacker.sent["case"] + attacker.sent["question"]) // 2
    wait_until(lambda: resolver(path, "status")["open"] == 0, SOON, "no request to be open")
    for what, chi, free, even, queries in evenness(attacker, 64):
        assert even and queries >= attacker.queries // 2, f"{what}: chi-square {chi:.0f} with {free} degrees of freedom"
