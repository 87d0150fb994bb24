# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part of `misses` by the number of queries under way: the resolver alone, with rules alone, and with all ways.

A closed loop as in `latency`, each contender on a host of its own (stand.py). Of the queries 80 % ask known names by Zipf's law, all
of which have rules; the others ask names that nobody has asked before, each four times in a row, so that there is a resolution
under way when the second comes. Rules alone have neither packet rings nor parking; all ways are the defaults."""

import statistics
from contextlib import ExitStack

import numpy as np
from lab import cpus
from lab.losses import wait_for_room
from lab.measure import percentile
from lab.run import wait_until
from lab.servers import Hydnsd

from . import crowds, peers, stand
from .latency import PERCENTILES, closed_loop
from .overhead import WithPluginAsItComes
from .pace import draw
from .result import Goal, going_on, say

NAMES, ZIPF = 1000, 1.0
NEW, IN_A_ROW = 0.2, 4
CONCURRENCY = (1, 16, 256, 4096), (1, 4, 16, 64, 256, 1024, 4096)      # (with --quick, without)
TURNS, SECONDS = (1, 3), (1, 2)                                        # of each contender at each concurrency
TIMEOUT = 1                    # seconds after which a query counts as lost
MOST_A_SECOND = 400_000        # more than one client asks: it would begin again with the first new name
ALONE, RULES, ALL = CONTENDERS = ("alone", "rules", "all")
TAIL, LEAST_REPLIES = "p99.9", 1000     # fewer in a turn have no such percentile


class Alone(crowds.Unlimited, stand.Alone):
    pass


class AllWays(crowds.Unlimited, stand.Alone, WithPluginAsItComes):
    pass


class RulesAlone(AllWays):
    rings = "no", "no"

    def clause(self, line):
        return super().clause(line) + line.format("hydns-pending-max", 0)


class Questions:
    """A file for the client, each time with other names that nobody has asked before."""

    def __init__(self, bench):
        self.file, self.rng = bench.run.dir / "concurrency-questions", np.random.default_rng(bench.settings.seed)
        self.next = NAMES

    def write(self, count):
        known = draw.choose(self.rng, draw.zipf(NAMES, ZIPF), count).reshape(-1, IN_A_ROW)
        new = self.rng.random(len(known)) < NEW
        first, self.next = self.next, self.next + int(new.sum())
        known[new] = np.arange(first, self.next)[:, None]
        letters = ord("a") + (known.reshape(-1, 1) >> 4 * np.arange(8) & 15)       # as peers.label()
        rest = np.frombuffer(f".{peers.ZONE} A\n".encode(), np.uint8)
        self.file.write_bytes(np.hstack([letters.astype(np.uint8), np.tile(rest, (count, 1))]).tobytes())
        return self.file


class Hosts:
    """The hosts of the contenders. Context manager: with the authoritative server."""

    def __init__(self, bench):
        self.bench, self.zone = bench, bench.run.dir / "concurrency.zone"
        self.authoritative = stand.Authoritative(bench.run, "concurrency")
        self.host = {c: stand.Host(bench.run, i, "concurrency", c, self.authoritative) for i, c in enumerate(CONTENDERS)}
        for host in self.host.values():
            host.take_xdp_replies(bench.tools.pass_object)
            wait_for_room(host.client_ns, host.client, max(max(CONCURRENCY)))
        peers.write_zone(self.zone, None)

    def __enter__(self):
        self.server = self.authoritative.server(self.bench, self.zone)
        self.server.__enter__()
        return self

    def __exit__(self, *exc):
        self.server.__exit__(*exc)

    def start(self, stack, kind, contender):
        """The resolver with all known names in its cache, and in the kernel where it has one."""
        host = self.host[contender]
        what = self.bench, host, kind, 53, self.zone
        if contender == ALONE:
            server = stack.enter_context(Alone(*what))
            server.warm(range(NAMES))
            return server
        daemon = stack.enter_context(Hydnsd(self.bench.world_like, host.ns, (host.server, host.upstream), name=host.label))
        cpus.keep_from_resolver(daemon.program)
        server = stack.enter_context((RulesAlone if contender == RULES else AllWays)(*what, daemon=daemon))
        wait_until(daemon.resolver_ready, 20, f"{kind}'s plugin to register with hydnsd ({contender})")
        lanes = stand.DEVICES if contender == ALL else 0
        wait_until(lambda: lanes_of(daemon) == lanes, 20, f"{lanes} lanes ({contender})")
        wait_until(lambda: known_have_rules(server, daemon), 20, f"{NAMES} names in the kernel")
        return server


def lanes_of(daemon):
    return len(daemon.call({"cmd": "status"})["resolvers"][0]["lanes"])


def known_have_rules(server, daemon):
    server.warm(range(NAMES))
    return daemon.call({"cmd": "status"})["rules"] >= NAMES


def add_point(result, kind, concurrency, contender, turns):
    """turns: what closed_loop() returned of each."""
    rates = [summary["completed"] / summary["seconds"] for _, summary in turns]
    point = result.add(contender, rates, "replies_per_second", part="concurrency", resolver=kind, concurrency=concurrency,
                       lost=sum(s["lost"] for _, s in turns), lost_of=sum(s["lost"] + s["completed"] for _, s in turns),
                       replies=sum(len(latencies) for latencies, _ in turns))
    # of each turn, so that one in which the machine did something else counts no more than the others
    point["latency_us"] = {name: round(statistics.median(percentile(latencies, share) for latencies, _ in turns), 1)
                           for name, share in PERCENTILES.items()}
    say(f"concurrency: {kind}, {concurrency} under way, {contender}: {point['replies_per_second']:,.0f} replies/s, "
        + ", ".join(f"{n} {us:,.0f} us" for n, us in point["latency_us"].items()) + f", {point['lost']} lost")
    return point


def measure(bench, result, kind, concurrency, servers, questions):
    """{contender: point}"""
    seconds, turns = bench.settings.choose(*SECONDS), {c: [] for c in servers}
    for number in range(bench.settings.choose(*TURNS)):
        file = questions.write(MOST_A_SECOND * seconds)
        for contender in list(servers)[::-1 if number % 2 else 1]:
            with going_on(f"concurrency: {kind}, {concurrency} under way, turn {number + 1}, {contender}"):
                turns[contender].append(closed_loop(bench, servers[contender].link, file, seconds, concurrency, TIMEOUT))
    return {c: add_point(result, kind, concurrency, c, t) for c, t in turns.items()}


def ratios(points, base, figure):
    """(ratio, concurrency) of all ways to the base, of each concurrency where both have the figure."""
    of = {n: (figure(p[ALL]), figure(p[base])) for n, p in points.items()}
    return [(ours / theirs, n) for n, (ours, theirs) in of.items() if ours and theirs]


def add_goals(bench, result, kind, points):
    """points: {concurrency: {contender: point}}. The goals ask for the worst concurrency."""
    enough = LEAST_REPLIES * bench.settings.choose(*TURNS)

    def replies(point):
        return point["replies_per_second"]

    def tail(point):
        return point["replies"] >= enough and point["latency_us"][TAIL]
    for base, words in ((ALONE, "the resolver alone"), (RULES, "rules alone")):
        for what, figure, worst in (("replies/s", replies, min), (TAIL, tail, max)):
            ratio, where = worst(ratios(points, base, figure), default=(None, "too few replies"))
            result.goals.append(Goal(f"{kind}, all ways, worst concurrency: times the {what} of {words}", 1,
                                     ratio and round(ratio, 3), least=worst is min, why=str(where)))
    more, where = max((p[ALL]["lost"] - p[ALONE]["lost"], n) for n, p in points.items())
    result.goals.append(Goal(f"{kind}, all ways, worst concurrency: queries lost more than by the resolver alone", 0, max(0, more),
                             least=False, why=str(where)))


def run(bench, result):
    questions, hosts = Questions(bench), Hosts(bench)
    for kind in crowds.KINDS:
        with ExitStack() as stack:
            stack.enter_context(hosts)
            with going_on(f"concurrency: {kind}, servers start"):
                servers = {c: hosts.start(stack, kind, c) for c in CONTENDERS}
            add_goals(bench, result, kind, {n: measure(bench, result, kind, n, servers, questions)
                                            for n in bench.settings.choose(*CONCURRENCY)})
