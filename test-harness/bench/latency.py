# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How long a client waits: the kernel path and the resolver alone, in turns.

Closed loop with 1 to 512 queries under way, by the harness's own client, and open loop at fixed rates, by dnsperf. Clients may use
every processor; the resolver has its own, as elsewhere. dnsperf (2.10 and 2.14) is no closed loop with few queries under way:
it wakes its sending thread before it counts what has come, and if that thread is quick, it finds as many under way as before and
waits until the receiving one has waited in vain for 100 ms. Then the resolver is asked by a few queries after each pause, when
processors sleep and caches are cold, and the quicker it answers the more pauses there are. dnsperf reports every query (-v) by a
system call, whose time is the same for both contenders and so hides a part of the difference; it is least when dnsperf writes to
memory."""

import subprocess
import tempfile
from contextlib import ExitStack

from lab import cpus
from lab.measure import dnsperf_summary, percentile
from lab.process import Program
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from . import peers
from .overhead import WithPlugin
from .result import Goal, say

HELP = "time to reply by concurrency and by rate, kernel path and resolver alone"
NAMES = 1000
MEMORY = "/dev/shm"
CLIENTS = 16                   # of dnsperf
TIMEOUT = 5                    # seconds, as dnsperf's
NOERROR = "0"
PERCENTILES = {"p50": 0.50, "p75": 0.75, "p95": 0.95, "p99": 0.99, "p99.9": 0.999}
P50_FROM, P50_LESS = 32, 0.65
BUCKETS_PER_OCTAVE = 4         # of the distribution in the JSON


class Hot(WithPlugin):
    """Unbound with module and daemon; a name is hot from its second sighting on."""
    admission = 2


def finish(bench, name, ns, argv, seconds, report=None):
    """Runs a load generator on all processors to its end; returns its output as text."""
    program = Program(bench.run, ns, name, ["taskset", "-c", ",".join(map(str, cpus.ALL)), *argv], stdout=report)
    try:
        program.popen.wait(seconds + 30)
    except subprocess.TimeoutExpired:
        program.stop()
        raise HarnessError(f"{name} did not end within {seconds + 30} s: is the machine busy?") from None
    text = program.log.read_text()
    if program.popen.returncode != 0:
        raise HarnessError(f"{name} ended with status {program.popen.returncode}: {text[-500:]}")
    program.log.unlink()
    return text


def dnsperf(bench, link, questions, seconds, under_way, rate):
    """Open loop. Returns the latencies in microseconds, sorted, and dnsperf's summary."""
    argv = [bench.tools.dnsperf, "-v", "-s", link.SERVICE, "-d", questions, "-l", seconds, "-q", under_way,
            "-c", min(under_way, CLIENTS), "-O", "suppress=timeout,congestion,sendfailed", "-Q", rate]
    with tempfile.TemporaryFile("w+", dir=MEMORY) as report:
        text = finish(bench, "dnsperf", link.client_ns, argv, seconds, report)
        report.seek(0)
        text = report.read() + text
    latencies = sorted(1e6 * float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("> NOERROR"))
    if not latencies:
        raise HarnessError(f"dnsperf: no query was answered: {text[-500:]}")
    return latencies, dnsperf_summary(text)


def closed_loop(bench, link, questions, seconds, concurrency, timeout=TIMEOUT):
    """Returns the latencies in microseconds, sorted, and {"completed": ..., "lost": ..., "seconds": ...}. timeout: seconds after
    which a query counts as lost."""
    with tempfile.NamedTemporaryFile("r", dir=MEMORY) as report:
        finish(bench, "asker", link.client_ns, [bench.tools.asker, "-s", link.SERVICE, "-d", questions, "-o", report.name,
                                                "-l", seconds, "-q", concurrency, "-t", timeout], seconds)
        replies = [line.split() for line in report]
    answered = [(int(sent), int(latency)) for sent, latency, _, rcode, *_ in replies if rcode == NOERROR]
    if not answered:
        raise HarnessError(f"asker: none of {len(replies)} queries was answered")
    took = max(sent + latency for sent, latency in answered) - int(replies[0][0])
    return sorted(latency / 1e3 for _, latency in answered), {
        "completed": len(answered), "lost": len(replies) - len(answered), "seconds": took / 1e9}


def distribution(latencies):
    """[upper bound in microseconds, how many] by quarters of octaves."""
    counts, bound, i = [], 1.0, 0
    while i < len(latencies):
        n = i
        while n < len(latencies) and latencies[n] <= bound:
            n += 1
        if n > i:
            counts.append([round(bound, 2), n - i])
        i, bound = n, bound * 2 ** (1 / BUCKETS_PER_OCTAVE)
    return counts


def compare(bench, servers, questions, result, concurrency, rate=None):
    """Adds a point for each contender; its percentiles are over the queries of all turns."""
    seconds, turns = bench.settings.choose((1, 2), (3, 5))
    latencies, summaries = {c: [] for c in servers}, {c: [] for c in servers}
    for _ in range(turns):
        for contender, link in servers.items():
            more, summary = (dnsperf(bench, link, questions, seconds, concurrency, rate) if rate
                             else closed_loop(bench, link, questions, seconds, concurrency))
            latencies[contender] += more
            summaries[contender].append(summary)
    points = {}
    for contender, all_of_it in latencies.items():
        all_of_it.sort()
        rates = [s["completed"] / s["seconds"] for s in summaries[contender]]
        p = result.add(contender, rates, "replies_per_second", concurrency=concurrency, rate=rate,
                       lost=sum(s["lost"] for s in summaries[contender]), replies=len(all_of_it))
        p["latency_us"] = {name: round(percentile(all_of_it, share), 1) for name, share in PERCENTILES.items()}
        p["distribution_us"] = distribution(all_of_it)
        points[contender] = p
    ours, alone = (points[c]["latency_us"] for c in ("hydns", "resolver"))
    say(f"latency: {f'{rate:,} per second' if rate else f'concurrency {concurrency}'}: "
        + ", ".join(f"{n} {alone[n]:,.0f} -> {ours[n]:,.0f} us" for n in PERCENTILES))
    return ours, alone


def all_in_kernel(hot, daemon):
    """Asks for all names again: at a high rate the plugin counts only a sample of the queries."""
    hot.warm(range(NAMES))
    return daemon.call({"cmd": "status"})["rules"] >= NAMES


def start(bench, stack):
    """Context manager: both resolvers with warm caches, and rules for all names; yields {contender: link}."""
    zone = bench.run.dir / "latency.zone"
    peers.write_zone(zone, NAMES)
    for link, port in ((bench.routed_link, peers.BACKEND), (bench.plain_link, peers.BACKEND)):
        stack.enter_context(peers.Peer(bench, link, "NSD", port, zone, address="127.0.0.1"))
    daemon = stack.enter_context(Hydnsd(bench.world_like, bench.routed_link.ns, (bench.routed_link.server,)))
    cpus.give_to_resolver(daemon.program)
    hot = stack.enter_context(Hot(bench, bench.routed_link, "Unbound", 53, zone, daemon=daemon))
    alone = stack.enter_context(peers.Peer(bench, bench.plain_link, "Unbound", 53, zone))
    wait_until(daemon.resolver_ready, 10, "Unbound's module to register with hydnsd")
    alone.warm(range(NAMES))
    wait_until(lambda: all_in_kernel(hot, daemon), 20, f"{NAMES} names in the kernel")
    return {"resolver": bench.plain_link, "hydns": bench.routed_link}, hot.dir / "names"


def run(bench, result):
    lower, p50 = [], []
    with ExitStack() as stack:
        servers, questions = start(bench, stack)
        for concurrency in bench.settings.choose((1, 8, 32, 128, 512), (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)):
            ours, alone = compare(bench, servers, questions, result, concurrency)
            lower.append(max(ours[n] / alone[n] for n in PERCENTILES))
            if concurrency >= P50_FROM:
                p50.append(1 - ours["p50"] / alone["p50"])
        for rate in bench.settings.choose((20_000,), (5_000, 20_000, 50_000)):
            compare(bench, servers, questions, result, 200, rate)
    result.goals.append(Goal("times the resolver's own latency, worst percentile up to p99.9 and concurrency", 1.0,
                             round(max(lower), 3), least=False))
    result.goals.append(Goal(f"share by which p50 is lower, least from concurrency {P50_FROM} on", P50_LESS,
                             round(min(p50), 3)))
