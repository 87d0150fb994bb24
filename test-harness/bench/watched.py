# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What it costs to be watched: the demo's load with dnstap, with metrics that are scraped once a second, and with both.

Each turn starts the resolver and hydnsd, warms the cache, and plays the same queries as fast as replies come; the contenders take
turns, the first one last in every other round. The collector of dnstap messages only takes them, as one on another host would. With
fstrm_capture, which writes them into a file, the collector shares the client's processors, and so those of the kernel path: a veth handles a
packet where it is sent. The resolver's own messages for what it answers itself are part of the cost; so the resolver without
the kernel path is measured with and without dnstap as well."""

import statistics
import threading
import time
from collections import namedtuple
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

from lab import cpus, load, measure
from lab.dnstap import Collector, Sink, all_written, bind_lines, unbound_lines
from lab.dnstap import of as dnstap_counts
from lab.metrics import Metrics
from lab.run import HarnessError, wait_until
from lab.servers import EVERY_CLIENT_WAITS
from lab.world import World

from .result import Goal, say

HELP = "the demo's replies per second while dnstap and metrics are on, against off"
SECONDS = 4, 8           # of load in a turn (with --quick, without)
ROUNDS = 3, 7
FRESH = 0.1              # share of names that nobody asks again, as in the demo
SCRAPE_EVERY = 1.0       # seconds
OWN = "the resolver's own messages alone"
Contender = namedtuple("Contender", "dnstap scraped hydns capture", defaults=(None, False, True, False))
"""dnstap: hydns-dnstap, None for no dnstap at all; scraped: whether metrics are; hydns: whether it is there; capture: into a file."""
CONTENDERS = {
    "off": Contender(), OWN: Contender("no"), "complete": Contender("complete"), "sample": Contender("sample"), "metrics": Contender(scraped=True),
    "complete and metrics": Contender("complete", scraped=True), "complete, into a file": Contender("complete", capture=True),
    "alone": Contender(hydns=False), "alone with dnstap": Contender("own", hydns=False),
}
# What the messages of kernel answers add to the resolver's own; of the others, what all adds to nothing.
AGAINST = {"alone with dnstap": "alone"} | dict.fromkeys(("complete", "sample", "complete, into a file"), OWN)
LEAST = 0.95             # times the replies a second, goal
SCRAPE_MOST = 5.0        # milliseconds, goal


def logged(dnstap):
    """hyDNS's options."""
    return {} if dnstap in (None, "own") else {"hydns-dnstap": dnstap, "hydns-allow-unlogged": "yes" if dnstap == "no" else "no"}


def unbound(world, daemon, dnstap, socket):
    clause = [f"{option}: {value}" for option, value in logged(dnstap).items()]
    return world.unbound(daemon, threads=len(cpus.RESOLVER), clause=clause + unbound_lines(socket, "client") * bool(dnstap))


def bind(world, daemon, dnstap, socket):
    options = ["minimal-responses yes;", EVERY_CLIENT_WAITS, *bind_lines(socket, "client") * bool(dnstap)]
    return world.named(daemon, threads=len(cpus.RESOLVER), options=options,
                       clause=[f"{option} {value};" for option, value in logged(dnstap).items()])


PARTS = {"Unbound": unbound, "BIND": bind}


@contextmanager
def scraping(world, daemon):
    """Yields the milliseconds that each scrape took; one a second until the block ends."""
    times, over = [], threading.Event()

    def scrape(metrics):
        while not over.wait(SCRAPE_EVERY):
            begun = time.monotonic()
            metrics.scrape()
            times.append((time.monotonic() - begun) * 1e3)

    with Metrics(world, world.network.resolver, daemon.control_socket) as metrics:
        cpus.give_to_resolver(metrics.program)
        thread = threading.Thread(target=scrape, args=(metrics,), daemon=True)
        thread.start()
        try:
            yield times
        finally:
            over.set()
            thread.join()


def turn(world, data, kind, contender, seconds):
    """Figures of one turn: replies_per_second and others of measure(), scrape_ms, log."""
    dnstap, scraped, hydns, capture = CONTENDERS[contender]
    with ExitStack() as stack:
        daemon = stack.enter_context(world.hydnsd()) if hydns else None
        collector = stack.enter_context(Collector(world, world.network.resolver) if capture else
                                        Sink(world.run.dir / "sink.sock")) if dnstap else None
        server = stack.enter_context(PARTS[kind](world, daemon, dnstap, collector and collector.socket))
        for program in (daemon.program, server.program) if daemon else (server.program,):
            cpus.give_to_resolver(program)
        if daemon:
            wait_until(daemon.resolver_ready, 10, f"{kind} to register with hydnsd")
        measure.warm_up(world, server, data, lambda n: say(f"warming the cache: {n:,} questions so far"))
        scrapes = stack.enter_context(scraping(world, daemon)) if scraped else []
        figures, _ = measure.measure(world, server, daemon, data, seconds, None, lambda meter: None)
        log = {}
        if daemon and dnstap:
            wait_until(lambda: all_written(daemon), 30, "all kernel answers to be written")
            log = dnstap_counts(daemon)
    return SimpleNamespace(figures=figures, scrapes=scrapes, log=log)


def check(kind, contender, log):
    """`complete` loses no message."""
    if contender.startswith("complete") and log["lost"]:
        raise HarnessError(f"{kind}, {contender}: messages were lost: {log}")


def rounds(bench, world, data, kind):
    """{contender: [its turns]}"""
    turns, seconds = {c: [] for c in CONTENDERS}, bench.settings.choose(*SECONDS)
    for n in range(bench.settings.choose(*ROUNDS)):
        for contender in list(CONTENDERS)[::-1 if n % 2 else 1]:
            done = turn(world, data, kind, contender, seconds)
            check(kind, contender, done.log)
            turns[contender].append(done)
            say(f"watched: {kind}, {contender}: {done.figures['replies_per_second'] / 1e3:,.0f} k replies/s, "
                f"{done.figures['kernel_share']:.0%} in the kernel")
    return turns


def point(result, kind, contender, turns):
    figures = [t.figures for t in turns]
    p = result.add(contender, [f["replies_per_second"] for f in figures], "replies_per_second", resolver=kind,
                   kernel_share=round(statistics.median(f["kernel_share"] for f in figures), 4),
                   p99_us=statistics.median(f["p99_us"] for f in figures))
    scrapes = sorted(ms for t in turns for ms in t.scrapes)
    if scrapes:
        p.update(scrapes=len(scrapes), scrape_ms={"p50": round(measure.percentile(scrapes, 0.5), 2),
                                                  "p95": round(measure.percentile(scrapes, 0.95), 2)})
    if turns[0].log:
        p.update({name: sum(t.log[name] for t in turns) for name in ("answered", "logged", "written", "lost", "skipped")})
    return p


def compare(result, kind, points, turns):
    """Ratios within one round, and their median."""
    for contender in CONTENDERS:
        base = AGAINST.get(contender, "off")
        if contender in ("off", "alone"):
            continue
        ratios = [a.figures["replies_per_second"] / b.figures["replies_per_second"]
                  for a, b in zip(turns[contender], turns[base])]
        points[contender].update(against=base, ratio=round(statistics.median(ratios), 3), ratios=[round(r, 3) for r in ratios])
    both = points["complete and metrics"]
    result.goals.append(Goal(f"{kind}: replies/s with dnstap (complete) and metrics, times off", LEAST, both["ratio"]))
    result.goals.append(Goal(f"{kind}: a scrape, p95, ms", SCRAPE_MOST, both["scrape_ms"]["p95"], least=False))
    result.goals.append(Goal(f"{kind}: messages that `complete` lost", 0, points["complete"]["lost"] + both["lost"], least=False))


def run(bench, result):
    seed, seconds = str(bench.settings.seed), bench.settings.choose(*SECONDS)
    with cpus.left_to_resolver(), World(lambda directory, addresses: load.tree(directory, addresses, seed)) as world:
        say("watched: generating the demo's workload")
        data = load.workload(world, seed, seconds, None, None, measure.probes(seconds), FRESH)
        for kind in bench.settings.only or PARTS:
            turns = rounds(bench, world, data, kind)
            points = {c: point(result, kind, c, turns[c]) for c in CONTENDERS}
            compare(result, kind, points, turns)
