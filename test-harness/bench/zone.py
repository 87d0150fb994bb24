# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""An authoritative server's whole zone: BIND with the plugin, which has preloaded it, and other servers, by the number of names.

Clients ask for all names alike (`names`), or for random ones below the apex that do not exist (`absent`). Servers and links are as
in `versus`: each contender is alone on one processor while it is asked, with driver and XDP program; the generator has the other.
Preloading, too, has one processor for named, its plugin and hydnsd."""

import statistics
from contextlib import ExitStack

import numpy as np
from lab.run import HarnessError

from . import versus, zone_servers
from .mixed import kernel_share
from .pace import SEQUENCE, sequence
from .result import Goal, say
from .zone_servers import HYDNS

HELP = "a whole zone, preloaded, by its number of names, and names that it does not have: the kernel path and other servers"
SIZES = (1, 1_000, 100_000), (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
ABSENT_IN = 100_000            # names of the zone that is asked for others
TURNS = 3, 5
SECONDS = 0.4, 1.5             # of each flood of a turn
HALF = 1 << 31                 # names below this exist or are in the sequence; what is added to them is below it, too
WANTED = {"NSD": 13, "Knot": 13, "Knot, XDP": 5}
SHARE = 0.99


def existing(bench, names):
    """(sequence, what each flood adds to it)"""
    return sequence(bench.run.dir, names, None, bench.settings.seed), lambda: 0


def absent(bench, names):
    """The same for random names of which the zone has none. No flood asks what one before did, but by chance."""
    rng, path = np.random.default_rng([bench.settings.seed, names]), bench.run.dir / f"absent-{names}"
    rng.integers(names, HALF, SEQUENCE, dtype=np.uint32).tofile(path)
    return path, lambda: int(rng.integers(0, HALF))


PARTS = {"names": existing, "absent": absent}


def turn(bench, server, seq, first):
    """{figure: value} of one turn."""
    begun, before = server.cpu_ns(), server.reasons()
    runs = versus.floods(bench, server.link, seq, server.port, bench.settings.choose(*SECONDS), first, **server.options)
    server.must_run()
    cpu = (server.cpu_ns() - begun) / 1e9
    replies, answers = (sum(run[what] for run in runs) for what in ("replies", "answers"))
    seconds = sum(run["replies"] / run["per_second"] for run in runs if run["per_second"])
    if not seconds or answers < 0.99 * replies:
        raise HarnessError(f"{server.peer.kind}, port {server.port}: {replies:,} replies, too few, or only {answers:,} were answers")
    found = {"replies_per_second": versus.best_of(runs), "processor_busy": cpu / seconds, "cpu_us_of_resolver": cpu * 1e6 / replies}
    return {**found, "kernel_share": kernel_share(before, server.reasons())} if before else found


def add_points(result, part, names, servers, turns):
    points = {}
    for contender, figures in turns.items():
        runs = {what: [turn[what] for turn in figures] for what in figures[0]}
        points[contender] = p = result.add(contender, runs.pop("replies_per_second"), "replies_per_second", part=part, names=names,
                                           version=servers[contender].peer.version())
        p.update({what: round(statistics.median(values), 4) for what, values in runs.items()})
        # within a turn, because the machine drifts
        p["hydns_times"] = round(statistics.median(ours["replies_per_second"] / max(1, turn["replies_per_second"])
                                                   for ours, turn in zip(turns[HYDNS], figures)), 2)
    return points


def measure(bench, result, part, names, servers):
    (seq, first), turns = PARTS[part](bench, names), {contender: [] for contender in servers}
    for _ in range(bench.settings.choose(*TURNS)):
        for contender, server in servers.items():
            turns[contender].append(turn(bench, server, seq, first))
    points = add_points(result, part, names, servers, turns)
    say(f"zone: {part}, {names:,} names: " + ", ".join(f"{c} {p['replies_per_second'] / 1e3:,.0f} k" for c, p in points.items())
        + f"; in the kernel {points[HYDNS]['kernel_share']:.1%}")
    return points


def octets(point):
    return sum(n for what, n in point.items() if what.endswith("_bytes"))


def add_preloading(result, point, preloading):
    """To the point of the kernel path. Memory of a name: above that of the first zone, which is mostly that of packet rings."""
    point.update(preloading)
    first = next(p for p in result.points if "preload_seconds" in p)
    more = point["names"] - first["names"]
    point["octets_per_name"] = round((octets(point) - octets(first)) / more, 1) if more else None
    say(f"zone: {point['names']:,} names preloaded in {point['preload_seconds']:.2f} s, {point['kept']:,} of {point['questions']:,} answers; "
        f"{octets(point) / 1e6:,.0f} MB in all")


def add_goal(result, part, text, wanted, points, key, why):
    """At the size where it is least."""
    measured = [p for p in points if p.get(key) is not None]
    least = min(measured, key=lambda p: p[key], default=None)
    result.goals.append(Goal(f"{part}: {text}", wanted, least and least[key], why=f"at {least['names']:,} names" if least else why))


def add_goals(result, part):
    points = [p for p in result.points if p["part"] == part]
    why = {a["contender"]: a["why"].splitlines()[0][:80] for a in result.absent}
    for kind, wanted in WANTED.items():
        add_goal(result, part, f"times the replies per second of {kind}", wanted, [p for p in points if p["contender"] == kind],
                 "hydns_times", why.get(kind, ""))
    add_goal(result, part, "share that the kernel answers", SHARE, [p for p in points if p["contender"] == HYDNS], "kernel_share", "")


def run(bench, result):
    parts, hosts = bench.settings.only or tuple(PARTS), zone_servers.hosts(bench.run)
    for names in bench.settings.choose(*SIZES):
        here = [part for part in parts if part == "names" or names == ABSENT_IN]
        if not here:
            continue
        with ExitStack() as stack:
            servers = zone_servers.start(bench, stack, hosts, names, result)
            points = [measure(bench, result, part, names, servers)[HYDNS] for part in here]
            add_preloading(result, points[0], servers[HYDNS].preloading)
    for part in parts:
        add_goals(result, part)
