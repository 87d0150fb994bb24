# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part of `misses` with a crowd that asks what the resolver is at work on: parked in the kernel, and by the resolver alone.

A crowd of clients asks names that nobody has asked before, within a tenth of a second; the authoritative server takes 200 ms. Three
contenders take turns: the resolver alone, the kernel path that parks nothing, and the kernel path, both without packet rings. Each
client must get its answer, once."""

import itertools
import random
import statistics
from contextlib import ExitStack

from . import crowds
from .overhead import cpu_ns
from .result import Goal, going_on, say

CLIENTS = 10_000
LATE = 0.2                     # seconds that the authoritative server takes
CROWDS = {"one name": 1, "1,000 names": 1000}
TURNS = 2, 9                   # of each contender (with --quick, without)
ALONE, PASSED, PARKED = CONTENDERS = ("alone", "unparked", "parked")
# ms from the first reply to a name's question to the last; of the resolver's CPU without parking
SPREAD_MS, CPU = 20, 0.1


def turn(stand, server, names):
    """{figure: value} of one crowd that asks these names."""
    pids = [server.program.pid]
    before, overflows = cpu_ns(pids), server.link.ns.udp_overflows()
    crowd, upstream = stand.crowd(server, CLIENTS, names)
    return {"overflows": server.link.ns.udp_overflows() - overflows,
            "cpu_us_a_client": (cpu_ns(pids) - before) / 1e3 / CLIENTS, "milliseconds": crowd.spread_ms, "lost": crowd.lost,
            "upstream_queries": upstream}


def add_point(result, kind, crowd, contender, turns):
    point = result.add(contender, [t["milliseconds"] for t in turns], "milliseconds", part="coalescing", resolver=kind, crowd=crowd)
    point["cpu_us_a_client"] = round(statistics.median(t["cpu_us_a_client"] for t in turns), 3)
    point["lost"], point["lost_of"] = sum(t["lost"] for t in turns), len(turns) * CLIENTS
    point["overflows"] = sum(t["overflows"] for t in turns)
    point["upstream_queries"] = max(t["upstream_queries"] for t in turns)
    say(f"coalescing: {kind}, {crowd}, {contender}: {point['milliseconds']:.1f} ms from the first reply to the last for a name, "
        f"CPU {point['cpu_us_a_client']:.2f} us a client, {point['lost']} of {point['lost_of']} lost, "
        f"{point['overflows']} for want of room in a socket, at most {point['upstream_queries']} queries to upstream")
    return point


def crowds_of(bench, result, kind, stand, servers):
    rng, next_name = random.Random(bench.settings.seed), itertools.count(1)
    for crowd, names in CROWDS.items():
        turns = {c: [] for c in servers}
        for number in range(bench.settings.choose(*TURNS)):
            for contender in rng.sample(list(servers), len(servers)):
                with going_on(f"coalescing: {kind}, {crowd}, turn {number + 1}, {contender}"):
                    turns[contender].append(turn(stand, servers[contender], list(itertools.islice(next_name, names))))
        points = {c: add_point(result, kind, crowd, c, t) for c, t in turns.items()}
        parked = points[PARKED]
        result.goals += [
            Goal(f"ms from the first reply to the last for a name, {kind}, {crowd}", SPREAD_MS, parked["milliseconds"],
                 least=False),
            Goal(f"times the resolver's CPU without parking, {kind}, {crowd}", CPU,
                 round(parked["cpu_us_a_client"] / points[PASSED]["cpu_us_a_client"], 3), least=False),
            Goal(f"times the queries to upstream of the resolver alone, {kind}, {crowd}", 1,
                 round(parked["upstream_queries"] / points[ALONE]["upstream_queries"], 3), least=False),
            Goal(f"queries lost, {kind}, {crowd}", 0, parked["lost"], least=False)]


def run(bench, result):
    with crowds.Stand(bench, LATE) as stand:
        for kind in crowds.KINDS:
            with ExitStack() as stack:
                servers = {ALONE: stand.alone(stack, kind, bench.plain_link, 53),
                           PASSED: stand.parking(stack, kind, 5353, most=0),
                           PARKED: stand.parking(stack, kind, 53)}
                stand.wait_ready(2)
                crowds_of(bench, result, kind, stand, servers)
