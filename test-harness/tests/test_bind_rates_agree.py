# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Many clients at a named whose rate-limit counts kernel answers, and at named alone: in each second each of them gets as many answers,
and as many replies with TC, from both, and both log the same. With --limit-queries 1000000 it is the long comparison."""

import re
from contextlib import ExitStack

import pytest
from test_bind_rates import heat, kind_of, log_lines, named_pair, rest
from test_limits_agree import Crowd

from lab.client import query
from lab.network import CLIENT1_MORE

RATE, MOST = 40, 100             # MOST: queries of a client in a second
WIRES = [query(*q).to_wire() for q in (("www.rate.example", "A"), ("www.rate.example", "TXT"), ("nosuch.rate.example", "A"))]
UNREAD = query("www.rate.example", cd=True).to_wire()
LINES = f"responses-per-second {RATE};", f"nodata-per-second {RATE // 4};", f"nxdomains-per-second {RATE // 4};", "window 3;", "slip 2;"


def network_of(client):
    """What rate-limit counts as one: an IPv4 address, and an IPv6 /64."""
    return "fd53:1::/64" if ":" in client else f"{client}/32"


class Limited(Crowd):
    def _wire(self):
        """What the kernel answers, of three kinds, and what it does not read."""
        kind = self.rng.random()
        return WIRES[0] if kind < 0.5 else UNREAD if kind < 0.6 else WIRES[1] if kind < 0.8 else WIRES[2]

    @staticmethod
    def counted_as(client, wire):
        return network_of(client), kind_of(wire)

    def lines(self):
        return [{re.sub(r"\([0-9a-f]{8}\)", "", line) for client in CLIENT1_MORE for line in log_lines(server, network_of(client))}
                for server in self.pair.both]


@pytest.fixture(scope="module")
def pair(world):
    with named_pair(world, *LINES) as p:
        for wire in (("www.rate.example", "A"), ("www.rate.example", "TXT"), ("nosuch.rate.example", "A")):
            heat(p, *wire)
        yield p


@pytest.mark.limit(3000)
def test_balances_are_spent_alike(pair, request):
    wanted, asked, seconds, unsure = request.config.getoption("--limit-queries"), 0, 0, set()
    before = pair.daemon.reasons()
    with ExitStack() as stack:
        crowd = Limited(pair, stack, seed=1)
        while asked < wanted:
            counts = {client: crowd.rng.randrange(MOST) if ":" not in client else 3 for client in CLIENT1_MORE}
            seen = crowd.second(counts)
            seconds += 1
            assert seconds < 60 + wanted / 500, "the machine is too busy to send the queries of a second within it"
            if not seen:          # late: balances may differ until the window is over, and with them what is logged
                rest()
                unsure |= set.union(*crowd.lines())
                continue
            (ours, own), (our_lines, own_lines) = seen
            assert ours == own, (seconds, {k: (ours[k], own[k]) for k in ours | own if ours[k] != own[k]})
            assert our_lines - unsure == own_lines - unsure
            asked += sum(counts.values())
    after = pair.daemon.reasons()
    print(f"{asked} queries in {seconds} seconds;", {k: n - before[k] for k, n in after.items() if n != before[k]})
    assert all(after[r] > before[r] for r in ("LIMITED", "LIMIT_TRUNCATED", "ANSWERED"))
