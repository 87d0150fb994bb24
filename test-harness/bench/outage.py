# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part of `misses` with authoritative servers that fall silent, of the 1 % of the names that make 30 % of the queries.

One client asks at a fixed rate, the same for all: 20,000 a second, or less where a resolver alone does not answer as many here. The
names that will fall silent live two seconds; the others outlive the run. After some seconds the authoritative server of the former
is stopped, so that nobody refuses what comes for it. Resolvers alone and with the kernel path take turns, each newly started.
What the kernel answered or parked is counted once the resolver has no answer any more. Every query that passed to it
counts as one for a silent name, so the share is a least one."""

import os
import signal
import statistics
import time
from contextlib import ExitStack, contextmanager

import numpy as np
from lab import cpus
from lab.client import Asker
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from . import crowds, peers
from .first_sight import first_sight
from .overhead import Patched, WithPluginAsItComes
from .result import Goal, going_on, say

NAMES, SILENT, SHARE = 1000, 10, 0.3
RATES = 20_000, 10_000, 5_000, 2_000      # a second; the first that all resolvers alone answer
BEARABLE = 0.99                # of the queries of a rate that are answered
TTL = 2                        # seconds, of the names that fall silent
KNOWN = TTL + 1.5              # seconds for which a resolver has answers: Unbound gives a TTL of 0 for a second more
SETTLE, BEFORE, SECONDS = 1, (3, 20), (8, 120)      # of load: not counted, before the outage, of the outage (with --quick, without)
MARGIN = 0.2                   # seconds before the end of the load, when the counters are read
TIMEOUT = 3.0                  # seconds after which a query counts as lost: asker knows 65,536 at once
SEQUENCE = 1 << 16
SUBZONE = f"s.{peers.ZONE}"    # of the names that fall silent
SERVER = 5301                  # the port of its authoritative server
ALONE, HYDNS = CONTENDERS = ("alone", "hydns")
SHARES = "silent_unanswered", "kernel_or_parked", "parked_then_passed"
IN_KERNEL, REPLIES, P99 = 0.95, 0.95, 1.05     # goals


class TwoServers(crowds.Unlimited):
    """A resolver that asks another server for SUBZONE, and lets all clients wait."""

    def configure(self, peer):
        text = super().configure(peer)
        if self.kind == "BIND":
            return text + f'zone "{SUBZONE}" {{ type forward; forward only; forwarders {{ 127.0.0.1 port {SERVER}; }}; }};\n'
        return text + f'forward-zone:\n    name: "{SUBZONE}"\n    forward-addr: 127.0.0.1@{SERVER}\n'


class Alone(TwoServers, Patched):
    pass


class Hydns(TwoServers, WithPluginAsItComes):
    pass


class Stand:
    """Context manager: the two authoritative servers of each contender's link, and the questions."""

    def __init__(self, bench):
        self.bench, self.links = bench, {ALONE: bench.plain_link, HYDNS: bench.routed_link}
        self.zone = bench.run.dir / "outage.zone"
        self._stack = ExitStack()

    def __enter__(self):
        peers.write_zone(self.zone, None)
        with self.zone.open("a") as zone:
            zone.write(f"*.s {TTL} A 203.0.113.1\n")
        self.mortal = {}
        for contender, link in self.links.items():
            for port in (peers.BACKEND, SERVER):
                self.mortal[contender] = self._stack.enter_context(peers.Peer(self.bench, link, "NSD", port, self.zone,
                                                                              address="127.0.0.1", processors=cpus.OTHERS))
        rng = np.random.default_rng(self.bench.settings.seed)
        self.silent = rng.random(SEQUENCE) < SHARE
        numbers = np.where(self.silent, rng.integers(0, SILENT, SEQUENCE), rng.integers(SILENT, NAMES, SEQUENCE))
        self.questions = [(f"{peers.label(n)}.{SUBZONE if s else peers.ZONE}", "A")
                          for n, s in zip(numbers.tolist(), self.silent.tolist())]
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def start(self, stack, kind, contender, port=53):
        """(the resolver with a warm cache, its hydnsd or None)"""
        link, daemon, more = self.links[contender], None, {}
        if contender == HYDNS:
            daemon = stack.enter_context(Hydnsd(self.bench.world_like, link.ns, (link.server,)))
            more = {"daemon": daemon}
        server = stack.enter_context((Hydns if daemon else Alone)(self.bench, link, kind, port, self.zone, **more))
        if daemon:
            cpus.give_to_resolver(daemon.program)
            wait_until(daemon.resolver_ready, 20, f"{kind}'s plugin to register with hydnsd")
        server.warm(range(NAMES))
        return server, daemon

    def ask(self, server, rate, seconds):
        """An Asker that has begun."""
        return Asker(self.bench.world_like, server.link.client_ns, server.link.SERVICE, self.questions, rate, seconds=seconds,
                     timeout=TIMEOUT, port=server.port)

    @contextmanager
    def outage(self, contender):
        """All processes of the server stand still within the block."""
        group = self.mortal[contender].program.pid
        os.killpg(group, signal.SIGSTOP)
        try:
            yield
        finally:
            os.killpg(group, signal.SIGCONT)


def recorded(asker):
    """(when each query was sent, its latency or -1, which question it was), in ns, of an Asker that has ended."""
    asker.finish()
    table = np.loadtxt(asker.output, dtype=np.int64, usecols=(0, 1, 2))
    asker.output.unlink()
    return table.T


def bearable(stand):
    """The rate, of RATES, that both resolvers alone answer."""
    with ExitStack() as stack:
        servers = [stand.start(stack, kind, ALONE, port)[0] for kind, port in zip(crowds.KINDS, (53, 5353))]
        for rate in RATES:
            shares = []
            for server in servers:
                with stand.ask(server, rate, 1.0) as asker:
                    _, latency, _ = recorded(asker)
                shares.append((latency >= 0).mean())
            say(f"outage: {rate:,} queries/s: " + ", ".join(f"{s.kind} alone answers {a:.2%}" for s, a in zip(servers, shares)))
            if min(shares) >= BEARABLE:
                return rate
    raise HarnessError(f"this machine does not carry {RATES[-1]:,} queries a second: is it busy?")


def by_seconds(sent, latency, begin, seconds):
    """(replies, p99 in us) in each second of queries from this moment on."""
    second = (sent - begin) // 1_000_000_000
    for number in range(seconds):
        came = latency[(second == number) & (latency >= 0)]
        yield len(came), float(np.percentile(came, 99)) / 1e3 if len(came) else TIMEOUT * 1e6


def pause_until(when):
    time.sleep(max(0.0, when - time.monotonic()))


def load(stand, server, daemon, contender, rate, before, seconds):
    """(when the outage began, the times between which the program's first sights were counted, these, what recorded() returns),
    times in ns, of a load with an outage after so many seconds."""
    with stand.ask(server, rate, SETTLE + before + seconds) as asker:
        begun = time.monotonic()
        pause_until(begun + SETTLE + before)
        with stand.outage(contender):
            silence, window, seen = time.monotonic_ns(), [], []
            for moment in (silence / 1e9 + KNOWN, begun + SETTLE + before + seconds - MARGIN):
                pause_until(moment)
                seen.append(daemon and first_sight(daemon))
                window.append(time.monotonic_ns())
            return silence, window, seen, recorded(asker)


def turn(stand, kind, contender, rate, before, seconds):
    """{figure: value}"""
    with ExitStack() as stack, going_on(f"outage: {kind}, {contender}, {before} s before and {seconds} s of silence"):
        server, daemon = stand.start(stack, kind, contender)
        silence, window, seen, (sent, latency, question) = load(stand, server, daemon, contender, rate, before, seconds)
    silent, of_outage, lost = stand.silent[question], sent >= silence, latency < 0
    others = sent[~silent], latency[~silent]
    figures = {"before": list(by_seconds(*others, silence - before * 10**9, before)),
               "meanwhile": list(by_seconds(*others, silence, seconds - 1)),
               "lost": int((of_outage & ~silent & lost).sum()), "silent_unanswered": float(lost[of_outage & silent].mean())}
    if daemon:
        asked = max(1, int(((sent >= window[0]) & (sent < window[1]) & silent).sum()))
        saw = seen[1] - seen[0]
        figures |= {"kernel_or_parked": max(0.0, 1 - saw.passed / asked), "parked_then_passed": saw.passed_later / asked}
    return figures


def add_point(result, kind, contender, rate, seconds, figures):
    (replies_before, p99_before), (replies, p99) = (zip(*figures[when]) for when in ("before", "meanwhile"))
    point = result.add(contender, replies, "replies_per_second", part="outage", resolver=kind, rate=rate, outage_seconds=seconds)
    point["replies_before"] = round(statistics.median(replies_before))
    for key, runs in (("p99_us_before", p99_before), ("p99_us", p99)):
        point[key] = round(statistics.median(runs), 1)
    point["lost"] = figures["lost"]
    point |= {key: round(figures[key], 4) for key in SHARES if key in figures}
    say(f"outage: {kind}, {contender}, {rate:,} queries/s, {seconds} s: " + (
        f"{point['kernel_or_parked']:.2%} of the questions for silent names answered in the kernel or parked, "
        f"{point['parked_then_passed']:.2%} passed later; "
        if "kernel_or_parked" in point else "")
        + f"other names {point['replies_before']:,} -> {point['replies_per_second']:,.0f} replies/s, p99 "
        f"{point['p99_us_before']:,.0f} -> {point['p99_us']:,.0f} us, {point['lost']} lost")
    return point


def add_goals(result, kind, ours, alone):
    result.goals += [
        Goal(f"share in the kernel or parked, questions for silent names, {kind}", IN_KERNEL, ours["kernel_or_parked"]),
        Goal(f"times the replies/s of other names before the outage, {kind}", REPLIES,
             round(ours["replies_per_second"] / ours["replies_before"], 4),
             why=f"{kind} alone {alone['replies_per_second'] / alone['replies_before']:.3f}"),
        Goal(f"times the p99 of other names before the outage, {kind}", P99, round(ours["p99_us"] / ours["p99_us_before"], 3),
             least=False, why=f"{kind} alone {alone['p99_us'] / alone['p99_us_before']:.3f}")]


def run(bench, result):
    before, seconds = bench.settings.choose(*zip(BEFORE, SECONDS))
    with Stand(bench) as stand:
        with going_on("outage: the rate that resolvers alone answer"):
            rate = bearable(stand)
        for kind in crowds.KINDS:
            points = {c: add_point(result, kind, c, rate, seconds, turn(stand, kind, c, rate, before, seconds)) for c in CONTENDERS}
            add_goals(result, kind, points[HYDNS], points[ALONE])
