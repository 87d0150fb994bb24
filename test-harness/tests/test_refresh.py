# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A hot name is refreshed before it expires, with few queries to the authoritative server, and no client waits for it."""

import time

import pytest

from lab.client import Asker
from lab.network import SERVICE

NAME, TTL, PERIODS, RATE = "brief.lab.example", 5, 10, 1000
AUTHORITY_DELAY = 0.4  # seconds


@pytest.mark.limit(300)
def test_ten_periods_of_a_five_second_name(path):
    world = path.world
    # slow from the first question on: Unbound measures its servers, and would retransmit to a suddenly slower one
    world.relay.delay = AUTHORITY_DELAY
    try:
        world.heat(path.daemon, NAME, "A", timeout=3)
        before, begin, waited = path.daemon.reasons(), time.monotonic(), path.unbound.recursions()
        with Asker(world, path.network.client1, SERVICE[4], [(NAME, "A")], RATE, seconds=TTL * PERIODS) as asker:
            answers = asker.result()
        waited = path.unbound.recursions() - waited
        path.world.heat(path.daemon, NAME, "A", timeout=3)
    finally:
        world.relay.delay = 0.0
    asked = world.relay.count(f"{NAME}.", since=begin)
    answered = path.daemon.reasons()["ANSWERED"] - before["ANSWERED"]
    slowest = max((a.latency for a in answers if a.latency is not None), default=0) / 1e9
    print(f"{len(answers)} queries, {answered} answered in the kernel, slowest {slowest * 1e3:.1f} ms, "
          f"authoritative server asked {asked} times in {PERIODS} periods")
    assert not [a for a in answers if a.latency is None], "queries lost"
    # 0 is what Unbound itself sends in an entry's last second
    wrong = [a for a in answers if a.rcode != 0 or not 0 <= a.ttl <= TTL]
    assert not wrong, f"{len(wrong)} answers with an error or a TTL out of bounds: {wrong[:3]}"
    # by Unbound's own count: on a busy machine any query may take long
    assert waited == 0, f"{waited} queries have waited for the authoritative server"
    assert PERIODS - 1 <= asked <= 2 * PERIODS
    assert answered > 0
