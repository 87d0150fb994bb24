# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Limits of how many queries wait at a resolver (wait-limit, clients-per-query): as the resolver alone keeps them."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import bind_path, kernel_path

from lab.client import ask
from lab.crowd import gather
from lab.network import REFERENCE, SERVICE
from lab.run import SOON

CLIENTS, SECONDS = 30, 0.05
LATE = 0.6                         # seconds that the server takes: all have asked by then
LIMIT = 4
TIMEOUT = 3


def crowds(world, path, name):
    """What a crowd gets of this resolver and of the one alone, asked at the same time."""
    for service in (SERVICE[4], REFERENCE[4]):
        ask(path.network.client1, service, "lab.example", "SOA")
    world.relay.delay = LATE
    try:
        with ThreadPoolExecutor(2) as pool:
            both = [pool.submit(gather, world, path.network.client1, service, [(name, "A")], CLIENTS, SECONDS, timeout=TIMEOUT)
                    for service in (SERVICE[4], REFERENCE[4])]
            return [crowd.result(SOON) for crowd in both]
    finally:
        world.relay.behave()


def notes(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["notes"]


def test_wait_limit(world):
    options = {"server": [f"wait-limit: {LIMIT}", "discard-timeout: 0"]}
    with kernel_path(world, unbound_options=options) as path, world.reference(**options) as _:
        ours, alone = crowds(world, path, "waits.lab.example")
        assert ours.lost == alone.lost and 0 < alone.lost < CLIENTS and not ours.strays
        assert path.daemon.reasons()["PARKED"] == 0
        assert any("wait-limit" in n for n in notes(path))


def test_clients_per_query(world):
    line = f"clients-per-query {LIMIT}; max-clients-per-query {LIMIT};"
    with bind_path(world, options=[line]) as path, world.named_reference(options=[line]) as _:
        ours, alone = crowds(world, path, "cpq.lab.example")
        assert ours.lost == alone.lost and 0 < alone.lost < CLIENTS and not ours.strays
        assert path.daemon.reasons()["PARKED"] == 0
        assert any("clients-per-query" in n for n in notes(path))


@pytest.mark.parametrize("resolver", [kernel_path, bind_path], ids=["unbound", "bind"])
def test_their_own_values_let_queries_wait(world, resolver):
    """With these, queries in the kernel take none of what the limits protect: all are answered."""
    with resolver(world) as path:
        ask(path.network.client1, SERVICE[4], "lab.example", "SOA")
        world.relay.delay = LATE
        try:
            ours = gather(world, path.network.client1, SERVICE[4], [("own.lab.example", "A")], CLIENTS, SECONDS, timeout=TIMEOUT)
        finally:
            world.relay.behave()
        assert (ours.lost, ours.twice, ours.strays) == (0, 0, []) and len(ours.answers) == 1
        assert path.daemon.reasons()["PARKED"] > 0 and not any("-limit" in n or "per-query" in n for n in notes(path))
