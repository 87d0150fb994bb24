# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How many queries may be parked: what is over a bound goes to the resolver at once, and nothing is lost."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import kernel_path

from lab.client import ask
from lab.crowd import gather
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

CLIENTS, SECONDS = 1000, 0.1
LATE = 0.2
TIMEOUT = 5                        # seconds that a client waits
DISCARD_MS = 500                   # discard-timeout


def wait_silent_for_all(path, reference, before):
    """Until each client of both, also the last one, has waited longer than discard-timeout. before: queries that the reference had."""
    wait_until(lambda: reference.received() >= before + CLIENTS, SOON, "all clients to have asked")
    asked = time.monotonic()

    def over():
        counts = path.daemon.call({"cmd": "stats"})["resolvers"][0]["parking"]
        return counts["discarded"] == counts["parked"] > 0 and time.monotonic() - asked > DISCARD_MS / 1000
    wait_until(over, SOON, "all that were parked to be dropped")


# What Unbound counts of a query that it reads, and whose reply it drops.
COUNTERS = ("total.num.queries", "total.num.cachemiss", "total.requestlist.exceeded", "total.num.queries_discard_timeout",
            "num.query.type.A", "num.query.class.IN", "num.query.opcode.QUERY", "num.query.flags.RD", "num.query.flags.AD", "num.query.ipv6", "num.query.edns.present",
            "num.query.edns.DO")


def counted(server):
    stats = server.stats()
    return {name: int(stats.get(name, 0)) for name in COUNTERS}      # it leaves zeros out


def grown(server, before):
    return {name: n - before[name] for name, n in counted(server).items()}


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


@pytest.mark.parametrize("family, kind", ((4, {}), (6, {"dnssec": True})), ids=("4", "6-dnssec"))
def test_what_unbound_would_not_answer_is_not_passed_to_it(world, family, kind):
    """Unbound drops its reply to a query that has waited longer than discard-timeout; those that were parked it need not even
    read, but its counters have them. Who asks later is answered."""
    options = {"server": [f"discard-timeout: {DISCARD_MS}", "wait-limit: 0", "extended-statistics: yes"]}
    questions = [("d1.lab.example", "A")]
    with kernel_path(world, unbound_options=options) as path, world.reference(**options) as reference:
        for server, address in ((path.unbound, SERVICE[4]), (reference, REFERENCE[4])):
            ask(path.network.client1, address, "lab.example", "SOA")
        received, before = path.unbound.received(), reference.received()
        our_counters, their_counters = counted(path.unbound), counted(reference)
        world.relay.gone = True
        try:
            with ThreadPoolExecutor(2) as pool:
                crowds = [pool.submit(gather, world, path.network.client1, address, questions, CLIENTS, SECONDS, timeout=TIMEOUT,
                                     **kind) for address in (SERVICE[family], REFERENCE[family])]
                wait_silent_for_all(path, reference, before)
                world.relay.gone = False
                ours, alone = (crowd.result(SOON) for crowd in crowds)
        finally:
            world.relay.behave()
        assert (ours.twice, ours.strays) == (0, []), ours
        assert ours.lost == alone.lost == CLIENTS, "Unbound alone answered some"
        counts = path.daemon.call({"cmd": "stats"})["resolvers"][0]["parking"]
        assert counts["discarded"] > CLIENTS // 2, counts
        read = path.unbound.received() - received
        assert read <= CLIENTS - counts["discarded"], (read, counts)
        assert grown(path.unbound, our_counters) == grown(reference, their_counters)
        wait_until(lambda: path.daemon.call({"cmd": "status"})["resolvers"][0]["parking"]["waiting"] == 0, SOON, "nothing to wait")
        wait_until(lambda: ask(path.network.client1, SERVICE[4], questions[0][0]), SOON, "who asks later to be answered")
