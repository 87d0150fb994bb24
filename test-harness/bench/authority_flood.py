# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part `flood` of `authority`: random names that do not exist, at ten times what named alone answers of them, beside good queries for
names of the zone. Loads, processors and latencies are those of the bench `flood`; here named has no limits, and the zone is preloaded.
What named alone can take is measured first, as `versus` does: its best rate under floods."""

import statistics
from contextlib import ExitStack

import numpy as np
from lab import cpus
from lab import whole_zones as zones

from . import authority_servers as servers
from . import flood, floods, limited, peers, versus
from .result import Goal, going_on, say
from .zone_servers import BIND, HYDNS

NAMES = 1_000
MULTIPLE = 10
TURNS = 1, 3
CAPACITY_RUNS = 1, 3
CAPACITY_SECONDS = 0.4, 1.5    # of each of its floods
BUSY = 5                       # percent of a processor, goal
FLOOD = floods.Flood(floods.flood_of(floods.unlabelled(peers.ZONE), sources=floods.BOTS, labelled=True), "its names, which do not exist")


class Load(flood.Load):
    """Good queries ask for names of the zone alone."""
    hot, new_every = NAMES, 0


class Contender:
    """named on a host of its own, and what flood.Load needs of it. daemon: hydnsd, which named has the plugin with."""

    def __init__(self, name, server, daemon=None):
        self.name, self.link, self.servers, self.daemon = name, server.link, [server], daemon

    def pids(self):
        """Of named, whose processor time is the question."""
        return [server.program.pid for server in self.servers]

    def must_run(self):
        for part in (*self.servers, self.daemon):
            if part:
                part.program.must_run()

    def lost_on_link(self):
        return limited.lost_on(self.link)

    def reasons(self):
        return self.daemon.reasons() if self.daemon else {}


def start(bench, stack, zone):
    """[named with the plugin, named alone]"""
    hosts = [limited.Host(bench.run, f"authority-{name}") for name in ("hydns", "alone")]
    server = stack.enter_context(servers.preloaded(bench, hosts[0], zone, service6=limited.SERVICE6))
    alone = stack.enter_context(servers.alone(bench, hosts[1], zone, port=53, service6=limited.SERVICE6))
    return [Contender(HYDNS, server, server.daemon), Contender(BIND, alone)]


def capacity(bench, contender):
    """How many names that do not exist it answers a second."""
    sequence = bench.run.dir / "authority-absent"
    (np.arange(1 << 14) + NAMES).astype(np.uint32).tofile(sequence)
    seconds, runs = (bench.settings.choose(*of) for of in (CAPACITY_SECONDS, CAPACITY_RUNS))
    return statistics.median(versus.best(bench, contender.link, sequence, 53, seconds) for _ in range(runs))


def lost(turns, load):
    """Good queries without an answer in time, in all turns."""
    return sum(round((1 - turn["share"]) * turn["asked"] * load.seconds) for turn in turns)


def add_points(result, contender, runs, load, wanted):
    """Without the flood and with it. runs: {multiple: figures of all turns}"""
    for multiple, turns in runs.items():
        point = flood.add_point(result, "flood", contender, multiple, turns, runs[0], multiple * wanted)
        point |= {"names": NAMES, "lost": lost(turns, load), "lost_of": sum(round(turn["asked"] * load.seconds) for turn in turns)}


def add_goals(result):
    p = next(p for p in result.points if p.get("part") == "flood" and p["contender"] == HYDNS and p["multiple"])
    why = f"{p['flood_per_second']:,} a second, {p['multiple_reached']} times what BIND alone answers"
    result.goals += [Goal("flood: named's CPU, percent of a processor", BUSY, round(100 * p["processor_busy"], 2), least=False, why=why),
                     Goal("flood: good queries lost", 0, p["lost"], least=False, why=f"of {p['lost_of']:,}")]


def run(bench, result):
    zone = zones.write(zones.Kind(zones.plain), bench.run.dir / "authority-flood", NAMES, bench.settings.seed)
    frames, load = bench.run.dir / "authority.frames", Load(bench)
    FLOOD.write(frames)
    with cpus.left_to_resolver(), ExitStack() as stack:
        contenders = start(bench, stack, zone)
        most = capacity(bench, contenders[1])
        say(f"authority: BIND alone answers {most:,.0f} queries/s for names that do not exist")
        runs = {contender: {0: [], MULTIPLE: []} for contender in contenders}
        for _ in range(bench.settings.choose(*TURNS)):
            for multiple in (0, MULTIPLE):
                for contender in contenders:
                    with going_on(f"authority: flood, {contender.name}, {multiple} times"):
                        runs[contender][multiple].append(load.run(contender, frames, multiple * most))
        for contender in contenders:
            add_points(result, contender, runs[contender], load, most)
    add_goals(result)
