# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One measured load: dnsperf for throughput, asker as a light prober for latency, counters for the rest.

Two dnsperf processes, one in each client network, send the workload; together they keep a fixed number of queries under way
or a fixed rate. Two askers, over IPv4 and IPv6, measure the latency of single queries with a sample of the same workload:
dnsperf's summary has no percentiles, and its output per query would slow it down."""

import math
import re
import signal
import time

from . import cpus
from .client import Asker
from .demo_options import OUTSTANDING
from .network import SERVICE
from .process import Program
from .run import HarnessError

PROBE_RATE = 250            # queries per second of each prober
CLIENTS = 8
LEAST_SECONDS = 2           # the least that a run must last
TIMEOUT = 5                 # seconds after which a query counts as lost, dnsperf's own default
PROGRESS = 5                # seconds from one word of progress to the next
PATIENCE = 60               # seconds after its due time within which a load must end
PROCESSORS = {"machine": cpus.ALL, "resolver": cpus.RESOLVER, "others": cpus.OTHERS}
# reasons for packets that are, or may be, no queries to a registered resolver
NOT_OURS = ("NOT_IP", "NOT_UDP", "NOT_SERVICE", "EMPTY")


def probes(seconds):
    """Number of probe queries in a measurement of so many seconds."""
    return 2 * PROBE_RATE * seconds


def dnsperf_summary(text):
    """Figures of dnsperf's summary: sent, completed, lost, seconds."""
    def number(pattern):
        found = re.search(pattern, text)
        if not found:
            errors = [line for line in text.splitlines() if line.startswith("Error")]
            raise HarnessError(f"dnsperf ended without a summary: {errors[-1] if errors else text[-2000:]}")
        return float(found.group(1))
    return {"sent": int(number(r"Queries sent: +(\d+)")), "completed": int(number(r"Queries completed: +(\d+)")),
            "lost": int(number(r"Queries lost: +(\d+)")), "seconds": number(r"Run time \(s\): +([\d.]+)")}


def percentile(ordered, share):
    """Nearest-rank percentile of a sorted list."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def busy_seconds(processors):
    """CPU time of these processors, all tasks together, that was not idle."""
    busy = 0
    with open("/proc/stat") as f:
        for line in f:
            name, *ticks = line.split()
            if name in [f"cpu{n}" for n in processors]:
                ticks = [int(n) for n in ticks[:8]]
                busy += sum(ticks) - ticks[3] - ticks[4]
    return busy / 100


class Meter:
    """The program's counters over time; all 0 without a daemon."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.series = []
        self.begin = time.monotonic()
        self.first_reasons = self.reasons = {}
        self.first = self.last = self._read()
        self.first_reasons = self.reasons

    def _read(self):
        if not self.daemon:
            return 0, 0
        self.reasons = self.daemon.reasons()
        answered = self.reasons["ANSWERED"]
        return answered, sum(n for name, n in self.reasons.items() if name not in NOT_OURS) - answered

    def counted(self):
        """{reason: packets} since the beginning."""
        return {name: n - self.first_reasons[name] for name, n in self.reasons.items() if n != self.first_reasons[name]}

    def read(self):
        """Reads the counters and adds no point to the series; returns (answered, passed) since the last reading."""
        before, self.last = self.last, self._read()
        return self.last[0] - before[0], self.last[1] - before[1]

    def sample(self):
        answered, passed = self.read()
        self.series.append({"seconds": round(time.monotonic() - self.begin, 2), "answered": answered,
                            "passed": passed,
                            "kernel_share": round(answered / (answered + passed), 4) if answered + passed else 0.0})

    @property
    def answered(self):
        return self.last[0] - self.first[0]


def _dnsperf(world, stream, seconds, rate):
    ns = (world.network.client1, world.network.client2)[stream.client - 1]
    argv = [world.tools.dnsperf, "-s", stream.server, "-B", "-d", stream.file, "-l", seconds, "-n", 1,
            "-c", CLIENTS, "-q", round(OUTSTANDING * stream.share), "-T", 1,
            "-O", "suppress=timeout,congestion,sendfailed"]
    return Program(world.run, ns, f"dnsperf{stream.client}",
                   argv + (["-Q", round(rate * stream.share)] if rate else []))


def start_loads(world, streams, seconds, rate=None):
    """Starts a dnsperf for each stream. rate: queries a second of all together; None: a fixed number is under way."""
    return [_dnsperf(world, stream, seconds, rate) for stream in streams]


def take_summaries(loads):
    """The summaries of loads that have ended, whose logs are removed."""
    summaries = [dnsperf_summary(load.log.read_text()) for load in loads]
    for load in loads:
        load.log.unlink()
    return summaries


def warm_up(world, server, data, progress):
    """Fills the resolver's cache: asks every repeated question once over the resolver's loopback, past the kernel path.
    Returns the number of queries. progress: called with the number so far, now and then. HarnessError when the resolver
    gets none for PATIENCE seconds."""
    if not data.warm.stat().st_size:
        return 0                     # no name repeats, and dnsperf takes no empty file
    load = Program(world.run, world.network.resolver, "warm-up",
                   [world.tools.dnsperf, "-s", SERVICE[4], "-d", data.warm, "-n", 1, "-c", CLIENTS, "-q", OUTSTANDING,
                    "-O", "suppress=timeout,congestion,sendfailed"])
    before = last = server.received()
    at = time.monotonic()
    while load.running():
        time.sleep(0.1)
        if time.monotonic() - at < PROGRESS:
            continue
        now = server.received()
        if now > last:
            at, last = time.monotonic(), now
            progress(now - before)
        elif time.monotonic() - at > PATIENCE:
            raise HarnessError(f"{server.name} has got {now - before:,} queries to warm its cache, and no more for {PATIENCE} s")
    summary = dnsperf_summary(load.log.read_text())
    load.log.unlink()
    return summary["completed"]


def _play(loads, seconds, sample=lambda: None, patience=PATIENCE):
    """Waits for the loads' end. Returns True when it came early: one load had no more queries, since a name to be asked once
    must not be asked again. Then all are ended: the rest alone would be another load. sample: called every half second.
    HarnessError when a load goes on for more than patience seconds after it was due to end."""
    begun, early = time.monotonic(), False
    while any(load.running() for load in loads):
        if time.monotonic() - begun > seconds + patience:
            running = " and ".join(load.label for load in loads if load.running())
            raise HarnessError(f"{running}: no end {patience:g} s after it was due")
        for _ in range(5):
            time.sleep(0.1)          # notice an early end this soon
            if not early and not all(load.running() for load in loads) and time.monotonic() - begun < 0.95 * seconds:
                early = True
                for load in loads:
                    if load.running():
                        load.popen.send_signal(signal.SIGINT)      # dnsperf prints its summary then
        sample()                     # the sampling interval
    return early


def _check_long_enough(summaries, seconds):
    """Refuses figures of a run that ended during start-up."""
    played, queries = max(s["seconds"] for s in summaries), sum(s["sent"] for s in summaries)
    if played < min(LEAST_SECONDS, 0.95 * seconds):
        raise HarnessError(f"{queries:,} queries lasted {played:.2f} of {seconds} s, which is too short for figures: give "
                           f"--queries {enough_queries(queries, played, seconds)}")


def enough_queries(queries, played, seconds):
    """Number of queries that is enough for the seconds, when queries lasted for played seconds."""
    return 1000 * math.ceil(1.2 * queries * seconds / max(played, 0.01) / 1000)


def recursion_cost(world, resolver, streams, seconds):
    """CPU seconds of the resolver for a reply that needs recursion, measured by a load of nothing else. None when it answered
    many of the names without recursion, as from NSEC records (RFC 8198): those replies cost less."""
    recursed, cpu = resolver.recursions(), resolver.program.cpu_seconds()
    loads = start_loads(world, streams, seconds)
    _play(loads, seconds)
    cpu = resolver.program.cpu_seconds() - cpu
    summaries = take_summaries(loads)
    recursed = resolver.recursions() - recursed
    others = sum(s["completed"] for s in summaries) - recursed
    return cpu / recursed if recursed and others <= 0.02 * recursed else None


def measure(world, resolver, daemon, data, seconds, rate, progress):
    """Runs the load against a started resolver, for the seconds or until the queries are used up. Returns (figures, details);
    details has the time series ('series'), figures of dnsperf and the machine, and whether the load 'ended_early'."""
    recursed, overflows = resolver.recursions(), world.network.udp_overflows()
    processes = [resolver.program] + ([daemon.program] if daemon else [])
    cpu, meter = [p.cpu_seconds() for p in processes], Meter(daemon)
    busy = {role: busy_seconds(numbers) for role, numbers in PROCESSORS.items()}
    probers = [Asker(world, world.network.client2, SERVICE[f], data.probes[f], PROBE_RATE, seconds=seconds,
                     timeout=TIMEOUT, edns=f == 6) for f in (4, 6)]
    loads = start_loads(world, data.streams, seconds, rate)

    def sample():
        meter.sample()
        progress(meter)

    with probers[0] as first, probers[1] as second:
        early = _play(loads, seconds, sample)
        used = [p.cpu_seconds() - c for p, c in zip(processes, cpu)]
        ran = time.monotonic() - meter.begin
        busy = {role: busy_seconds(numbers) - busy[role] for role, numbers in PROCESSORS.items()}
        recursed = resolver.recursions() - recursed
        answers = first.result(early) + second.result(early)
    meter.read()
    summaries = take_summaries(loads)
    _check_long_enough(summaries, seconds)
    latencies = sorted(a.latency / 1000 for a in answers if a.latency is not None)
    if not latencies:
        raise HarnessError("no prober query was answered")
    replies = sum(s["completed"] for s in summaries) + len(latencies)
    elapsed = max(s["seconds"] for s in summaries)
    return {
        "replies_per_second": round(replies / elapsed),
        "p50_us": round(percentile(latencies, 0.50), 1), "p95_us": round(percentile(latencies, 0.95), 1),
        "p99_us": round(percentile(latencies, 0.99), 1),
        "lost": sum(s["lost"] for s in summaries) + len(answers) - len(latencies),
        "resolver_cpu_seconds_per_million": round(sum(used) / replies * 1e6, 3),
        "kernel_share": round(meter.answered / replies, 4),
    }, {
        "ended_early": early, "queries": sum(s["sent"] for s in summaries),
        "series": meter.series, "reasons": meter.counted(), "replies": replies, "seconds": elapsed,
        "cpu_seconds": dict(zip((resolver.name, "hydnsd"), (round(u, 2) for u in used))),
        "recursions": recursed, "machine_cpu_seconds_per_million": round(busy["machine"] / replies * 1e6, 3),
        "processors_busy": {role: round(busy[role] / ran / len(numbers), 3) for role, numbers in PROCESSORS.items()},
        "latency_samples": len(latencies),
        "socket_overflows": {role: n - overflows.get(role, 0) for role, n in world.network.udp_overflows().items()
                             if n != overflows.get(role, 0)},
    }
