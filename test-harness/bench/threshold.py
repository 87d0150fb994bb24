# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part of `misses` with bounds of parking: hydns-pending-max from 0 to more than a crowd, while crowds ask.

The crowd of 10,000 clients of `coalescing` asks 100 new names; the authoritative server takes longer than the crowd takes to ask.
The resolver alone, the same on an interface with the program attached, and the kernel path with each bound take turns, all without
packet rings. What is over the bound must be the resolver's at once, none may be lost that the resolver alone answers, and nobody may
wait longer."""

import itertools
import random
import statistics
from contextlib import ExitStack

from lab.measure import percentile

from . import crowds
from .first_sight import first_sight
from .result import Goal, going_on, say

CLIENTS, NAMES = 10_000, 100
LATE = 0.5                     # seconds that the authoritative server takes
BOUNDS = 0, 1, 100, 10_000, "auto"
ALONE, ATTACHED, HYDNS = CONTENDERS = ("alone", "attached", "hydns")
TURNS = 1, 9                   # of each contender (with --quick, without)
FIRST_PORT = 5350


def contenders():
    """(contender, its hydns-pending-max)"""
    return [(ALONE, None), (ATTACHED, None), *((HYDNS, most) for most in BOUNDS)]


def in_words(contender, most):
    return contender if most is None else f"hydns-pending-max {most}"


def turn(stand, server, names):
    """{figure: value} of one crowd. at_once: it had asked all before anybody was answered."""
    before = first_sight(stand.daemon)
    crowd, _ = stand.crowd(server, CLIENTS, names)
    saw = first_sight(stand.daemon) - before
    return {"milliseconds": percentile(crowd.latencies, 0.999) / 1e6 if crowd.latencies else crowds.TIMEOUT * 1e3,
            "p50_ms": percentile(crowd.latencies, 0.5) / 1e6 if crowd.latencies else crowds.TIMEOUT * 1e3,
            "lost": crowd.lost, "parked": saw.parked, "passed": saw.passed, "at_once": crowd.sent_first}


def over(most, turns):
    """The most queries that a turn parked beyond the bound, of the turns whose crowd had asked all before the first reply, which makes
    room. None: there was no such turn."""
    counts = [t["parked"] for t in turns if t["at_once"]]
    return max(max(0, n - most) for n in counts) if counts else None


def add_point(result, kind, contender, most, turns):
    point = result.add(contender, [t["milliseconds"] for t in turns], "milliseconds", part="threshold", resolver=kind)
    point["p50_ms"] = round(statistics.median(t["p50_ms"] for t in turns), 3)
    point["lost"], point["lost_of"] = sum(t["lost"] for t in turns), len(turns) * CLIENTS
    if contender == HYDNS:
        point["pending_max"] = most
        point["parked"], point["passed"] = (max(t[key] for t in turns) for key in ("parked", "passed"))
    say(f"threshold: {kind}, {in_words(contender, most)}: p99.9 {point['milliseconds']:.0f} ms, p50 {point['p50_ms']:.0f} ms, "
        f"{point['lost']} of {point['lost_of']} lost"
        + (f", at most {point['parked']} parked, {point['passed']} passed" if contender == HYDNS else ""))
    return point


def add_goals(result, kind, points, turns):
    alone, attached = (points[c, None] for c in (ALONE, ATTACHED))
    for most in BOUNDS:
        ours, what = points[HYDNS, most], f"{kind}, hydns-pending-max {most}:"
        if most != "auto":
            beyond = over(most, turns[HYDNS, most])
            result.goals.append(Goal(f"{what} queries over it not passed at once", 0, beyond, least=False,
                                     why="" if beyond is not None else "all turns were slower to ask than the server to answer"))
        result.goals += [
            Goal(f"{what} more lost than alone", 0, max(0, ours["lost"] - alone["lost"]), least=False,
                 why=f"with the program attached {max(0, attached['lost'] - alone['lost'])}"),
            Goal(f"{what} times the p99.9 alone", 1, round(ours["milliseconds"] / alone["milliseconds"], 3),
                 least=False, why=f"with the program attached {attached['milliseconds'] / alone['milliseconds']:.3f}")]


def bounds_of(bench, result, kind, stand, servers):
    rng, next_name = random.Random(bench.settings.seed), itertools.count(1)
    turns = {c: [] for c in servers}
    for number in range(bench.settings.choose(*TURNS)):
        for contender in rng.sample(list(servers), len(servers)):
            with going_on(f"threshold: {kind}, turn {number + 1}, {in_words(*contender)}"):
                turns[contender].append(turn(stand, servers[contender], list(itertools.islice(next_name, NAMES))))
    points = {c: add_point(result, kind, *c, t) for c, t in turns.items()}
    add_goals(result, kind, points, turns)


def run(bench, result):
    with crowds.Stand(bench, LATE) as stand:
        for kind in crowds.KINDS:
            with ExitStack() as stack:
                links = {ALONE: bench.plain_link, ATTACHED: bench.routed_link}
                servers = {(c, most): stand.parking(stack, kind, port, most=most) if c == HYDNS
                           else stand.alone(stack, kind, links[c], port)
                           for port, (c, most) in enumerate(contenders(), FIRST_PORT)}
                stand.wait_ready(len(BOUNDS))
                bounds_of(bench, result, kind, stand, servers)
