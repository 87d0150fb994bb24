# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What it costs to be watched: the demo's load with dnstap, with metrics that are scraped once a second, with both, and while hydnsctl
captures every packet.

A contender and what it is compared with are up at the same time, each in a network of its own, warmed at the same time, and have the
load by slices of a tenth of a second, the same queries each: so the machine's mood is that of both, and what has to be resolved again
is the same. The collector of dnstap messages only takes them, as one on another host would. With fstrm_capture, which writes them into
a file, the collector shares the client's processors, and so those of the kernel path: a veth handles a packet where it is sent. The
resolver's own messages for what it answers itself are part of the cost; so the resolver without the kernel path is measured with and
without dnstap as well. "off" against itself shows the error."""

import re
import signal
import statistics
import tempfile
import time
from collections import namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from lab import cpus, load, measure
from lab.dnstap import Collector, Sink, all_written, bind_lines, unbound_lines
from lab.dnstap import of as dnstap_counts
from lab.metrics import Metrics
from lab.process import Program
from lab.run import SOON, HarnessError, wait_until
from lab.servers import EVERY_CLIENT_WAITS
from lab.world import World

from .alternate import SLICE, alternate
from .overhead import cpu_ns
from .result import Goal, say

HELP = "the demo's replies per second while dnstap and metrics are on, against off"
SECONDS = 2              # of load in a turn, for each of the two
SLICES = round(SECONDS / SLICE)
TURNS = 4, 16            # that count (with --quick, without)
FILLS = 3                # turns before, in which the kernel path gets its rules
MOST_PER_SECOND = 100000  # queries that a turn may need, so that names to be asked once do not come again
FRESH = 0.1              # share of names that nobody asks again, as in the demo
AT_ONCE = 10000          # questions that both are warmed with before either gets more
SCRAPE_EVERY = 1.0       # seconds of load
SOME_OCTETS = 10000      # more than without a message
CAPTURE_MOST = "8G"      # larger than what all turns give
OWN = "the resolver's own messages alone"
Contender = namedtuple("Contender", "dnstap scraped hydns into_file captured", defaults=(None, False, True, False, False))
"""dnstap: hydns-dnstap, None for no dnstap at all; scraped: whether metrics are; hydns: whether it is there; into_file: the messages;
captured: every packet is, into another file."""
CONTENDERS = {
    "off": Contender(), OWN: Contender("no"), "complete": Contender("complete"), "sample": Contender("sample"),
    "metrics": Contender(scraped=True),
    "complete and metrics": Contender("complete", scraped=True), "complete, into a file": Contender("complete", into_file=True),
    "captured": Contender(captured=True),
    "alone": Contender(hydns=False), "alone with dnstap": Contender("own", hydns=False),
}
# What each is compared with: of messages of kernel answers, what they add to the resolver's own.
AGAINST = {"off": "off", OWN: "off", "complete": OWN, "sample": OWN, "complete, into a file": OWN, "metrics": "off",
           "complete and metrics": "off", "captured": "off", "alone with dnstap": "alone"}
LEAST = 0.95             # times the replies a second, goal
SCRAPE_MOST = 5.0        # milliseconds of CPU time, goal


def logged(dnstap):
    """hyDNS's options."""
    return {} if dnstap in (None, "own") else {"hydns-dnstap": dnstap, "hydns-allow-unlogged": "yes" if dnstap == "no" else "no"}


def unbound(world, daemon, dnstap, socket):
    clause = [f"{option}: {value}" for option, value in logged(dnstap).items()]
    return world.unbound(daemon, threads=len(cpus.RESOLVER), clause=clause, others=unbound_lines(socket, "client") if dnstap else ())


def bind(world, daemon, dnstap, socket):
    options = ["minimal-responses yes;", EVERY_CLIENT_WAITS, *(bind_lines(socket, "client") if dnstap else ())]
    return world.named(daemon, threads=len(cpus.RESOLVER), options=options,
                       clause=[f"{option} {value};" for option, value in logged(dnstap).items()])


PARTS = {"Unbound": unbound, "BIND": bind}


class Side:
    """A resolver that is watched as a contender says, in a world of its own. Context manager."""

    def __init__(self, world, kind, contender):
        self.world, self.kind, self.contender = world, kind, CONTENDERS[contender]
        self.figures, self.scrapes, self.log = [], {"scrape_ms": [], "scrape_cpu_ms": []}, {}
        self.captured = {}
        self._stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def _start(self, stack):
        world, (dnstap, scraped, hydns, into_file, captured) = self.world, self.contender
        self.daemon = stack.enter_context(world.hydnsd()) if hydns else None
        self.collector = stack.enter_context(Collector(world, world.network.resolver) if into_file else
                                             Sink(world.run.dir / "sink.sock")) if dnstap else None
        self.server = stack.enter_context(PARTS[self.kind](world, self.daemon, dnstap, self.collector and self.collector.socket))
        self.metrics = stack.enter_context(Metrics(world, world.network.resolver, self.daemon.control_socket)) if scraped else None
        for part in (self.daemon, self.server, self.metrics):
            if part:
                cpus.give_to_resolver(part.program)
        if self.daemon:
            wait_until(self.daemon.resolver_ready, 10, f"{self.kind} to register with hydnsd")
        self.capture = self._start_capture(stack) if captured else None

    def _start_capture(self, stack):
        file = self.world.run.dir / "captured.pcapng"
        capture = Program(self.world.run, self.world.network.resolver, "capture",
                          self.daemon.capture_command("--size", CAPTURE_MOST, file))
        stack.callback(file.unlink)
        stack.callback(capture.stop)
        capture.wait_ready(lambda: file.exists() and file.stat().st_size, SOON)
        return capture

    def _counted(self):
        """(Answers of the kernel path, CPU seconds of resolver and hydnsd) so far."""
        programs = [part.program for part in (self.server, self.daemon) if part]
        return self.daemon.reasons()["ANSWERED"] if self.daemon else 0, sum(program.cpu_seconds() for program in programs)

    def play(self, streams, k):
        """A slice of a turn begins. The turn's loads end by a signal, long before they would by themselves."""
        if k == 0:
            self._before = self._counted()
            self._loads = measure.start_loads(self.world, streams, 2 * SECONDS + measure.PATIENCE)
        if self.metrics and k % round(SCRAPE_EVERY / SLICE) == 1:
            time.sleep(SLICE / 2)            # not when all have just gone on
            self._scrape()

    def _scrape(self):
        """CPU time: of hydns-metrics and of hydnsd, with what hydnsd does for rules meanwhile."""
        pids = [self.metrics.program.pid, self.daemon.program.pid]
        begun, cpu = time.monotonic(), cpu_ns(pids)
        self.metrics.request()
        self.scrapes["scrape_ms"].append((time.monotonic() - begun) * 1e3)
        self.scrapes["scrape_cpu_ms"].append((cpu_ns(pids) - cpu) / 1e6)

    def end_loads(self):
        """While they are stopped: each prints its summary as soon as it goes on."""
        for dnsperf in self._loads:
            dnsperf.must_run()
            dnsperf.popen.send_signal(signal.SIGINT)

    def count(self, ran):
        """Adds the figures of a turn in which it ran for so many seconds."""
        for dnsperf in self._loads:
            dnsperf.popen.wait(measure.PATIENCE)
        summaries = measure.take_summaries(self._loads)
        replies = sum(s["completed"] for s in summaries)
        answered, cpu = (after - before for after, before in zip(self._counted(), self._before))
        self.figures.append({"replies_per_second": round(replies / ran), "kernel_share": answered / replies,
                             "cpu_seconds_per_million": cpu / replies * 1e6, "lost": sum(s["lost"] for s in summaries)})

    def finish(self):
        """What became of its messages, and of the packets that were to be captured."""
        if self.collector:
            wait_until(lambda: self.collector.octets() > SOME_OCTETS, 10, "messages to be collected")
        if self.daemon and self.contender.dnstap:
            wait_until(lambda: all_written(self.daemon), 30, "all kernel answers to be written")
            self.log = dnstap_counts(self.daemon)
        if self.capture:
            self.capture.stop(signal.SIGINT)
            said = re.search(r"^(\d+) packets captured, (\d+) lost", self.capture.log.read_text(), re.M)
            self.captured = {"captured": int(said[1]), "capture_lost": int(said[2])}


def warm_up(sides, data):
    """Fills the caches of both, so many names at a time that what one knows of a name is hardly older than what the other does."""
    questions = data.warm.read_text().splitlines(keepends=True)
    with ThreadPoolExecutor(len(sides)) as pool, tempfile.NamedTemporaryFile("w") as file:
        now = replace(data, warm=Path(file.name))
        for begin in range(0, len(questions), AT_ONCE):
            say(f"warming the caches: {begin:,} of {len(questions):,} questions")
            file.seek(0)
            file.truncate()
            file.writelines(questions[begin:begin + AT_ONCE])
            file.flush()
            list(pool.map(lambda side: measure.warm_up(side.world, side.server, now, lambda n: None), sides))


def turn(sides, part):
    """One turn of load at both."""
    with alternate([side.world for side in sides], SLICES, lambda n, k: sides[n].play(part.streams, k)) as ran:
        for side in sides:
            side.end_loads()
    for side, seconds in zip(sides, ran):
        side.count(seconds)


def check(kind, contender, log):
    """`complete` loses no message."""
    if contender.startswith("complete") and log["lost"]:
        raise HarnessError(f"{kind}, {contender}: messages were lost: {log}")


def pair(worlds, data, parts, kind, names):
    """Two contenders side by side, each in its world. Returns their sides, with the figures of each part but the first FILLS."""
    with ExitStack() as stack:
        sides = [stack.enter_context(Side(world, kind, name)) for world, name in zip(worlds, names)]
        warm_up(sides, data)
        for n, part in enumerate(parts):
            turn(sides[::-1 if n % 2 else 1], part)
        for side in sides:
            side.finish()
            del side.figures[:FILLS]
    return sides


def percentiles(figures):
    return {f"p{share}": round(measure.percentile(sorted(figures), share / 100), 2) for share in (50, 95)}


def point(result, kind, contender, side, base):
    figures = side.figures
    ratios = [a["replies_per_second"] / b["replies_per_second"] for a, b in zip(figures, base.figures)]
    p = result.add(contender, [f["replies_per_second"] for f in figures], "replies_per_second", resolver=kind,
                   kernel_share=round(statistics.median(f["kernel_share"] for f in figures), 4),
                   cpu_ratio=round(statistics.median(a["cpu_seconds_per_million"] / b["cpu_seconds_per_million"]
                                                     for a, b in zip(figures, base.figures)), 3),
                   lost_queries=sum(f["lost"] for f in figures), against=AGAINST[contender],
                   of_base=[f["replies_per_second"] for f in base.figures],
                   ratio=round(statistics.median(ratios), 3),
                   error=round(statistics.stdev(ratios) / len(ratios) ** 0.5, 3), ratios=[round(r, 3) for r in ratios])
    if side.metrics:
        p.update({name: percentiles(each) for name, each in side.scrapes.items()}, scrapes=len(side.scrapes["scrape_ms"]))
    p.update({name: side.log[name] for name in ("answered", "logged", "written", "lost", "skipped", "own") if side.log}, **side.captured)
    check(kind, contender, side.log)
    say(f"watched: {kind}, {contender}: {p['ratio']:.3f} +- {p['error']:.3f} times {AGAINST[contender]}, "
        f"{p['kernel_share']:.0%} in the kernel")
    return p


def goals(result, kind, points):
    both = points["complete and metrics"]
    result.goals.append(Goal(f"{kind}: replies/s with dnstap (complete) and metrics, times off", LEAST, both["ratio"]))
    result.goals.append(Goal(f"{kind}: CPU time of a scrape, p95, ms", SCRAPE_MOST, both["scrape_cpu_ms"]["p95"], least=False,
                             why=f"from request to reply {both['scrape_ms']['p95']}, on the processor that the load keeps busy"))
    lost = sum(p["lost"] for contender, p in points.items() if contender.startswith("complete"))
    result.goals.append(Goal(f"{kind}: messages that `complete` lost", 0, lost, least=False))


def run(bench, result):
    seed, turns = str(bench.settings.seed), FILLS + bench.settings.choose(*TURNS)
    with cpus.left_to_resolver(), ExitStack() as stack:
        worlds = [stack.enter_context(World(lambda directory, addresses: load.tree(directory, addresses, seed))) for _ in range(2)]
        say("watched: generating the demo's workload")
        data = load.workload(worlds[0], seed, SECONDS, None, turns * SECONDS * MOST_PER_SECOND, measure.probes(SECONDS), FRESH)
        parts = load.divided(data, turns)
        for kind in bench.settings.only or PARTS:
            points = {}
            for contender, base in AGAINST.items():
                side, against = pair(worlds, data, parts, kind, (contender, base))
                points[contender] = point(result, kind, contender, side, against)
            goals(result, kind, points)
