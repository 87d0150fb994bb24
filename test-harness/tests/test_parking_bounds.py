# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How many queries may be parked: what is over a bound goes to the resolver at once, and nothing is lost."""

import pytest
from conftest import kernel_path

from lab.client import ask
from lab.crowd import gather
from lab.network import SERVICE

CLIENTS, SECONDS = 1000, 0.1
LATE = 0.2


@pytest.mark.parametrize("bounds", (("max", 0), ("max", 1), ("max", 100), ("max", 10000), ("per-question", 0), ("per-question", 100)),
                         ids=lambda b: f"{b[0]}-{b[1]}")
def test_bounds(world, bounds):
    which, most = bounds
    with kernel_path(world, unbound_options={"clause": [f"hydns-pending-{which}: {most}"]}) as path:
        ask(path.network.client1, SERVICE[4], "lab.example", "SOA")
        before = path.daemon.reasons()["PARKED"]
        world.relay.delay = LATE
        try:
            c = gather(world, path.network.client1, SERVICE[4], [(f"b{which[0]}{most}.lab.example", "A")], CLIENTS, SECONDS)
        finally:
            world.relay.behave()
        assert (c.lost, c.twice, c.strays) == (0, 0, []), c
        parked = path.daemon.reasons()["PARKED"] - before
        spilled = path.daemon.call({"cmd": "stats"})["resolvers"][0]["parking"]["spilled"]
        assert parked <= most if most < CLIENTS else parked > CLIENTS // 2
        if 0 < most < CLIENTS:
            assert parked == most and spilled["MAX" if which == "max" else "PER_QUESTION"] > CLIENTS // 2, spilled
