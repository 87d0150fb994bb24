# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The same names served by the kernel path and by other servers, each alone on one processor.

A kernel thread on the servers' processor polls the server's end of each link, so that this processor bears the whole cost of
a query for each contender: driver and XDP program, or driver, sockets and server. The generator has the other processor. Each
contender is asked as fast as possible, then somewhat faster than it could answer, because some answer less under a flood; its
best rate counts."""

from contextlib import ExitStack

from lab import cpus
from lab.run import HarnessError

from . import peers
from .pace import options_of, pace, poll_by_thread, sequence
from .result import Goal, say

HELP = "the kernel path and each other server alone on one processor, same names"
NAMES = 1000
FLOODS = (1.6, 1.1)           # times the best so far
WANTED = {"Unbound": 20, "BIND": 20, "NSD": 13, "Knot": 13}
ABOVE = (*peers.AF_XDP, "dnsdist", "PowerDNS Recursor", "Knot Resolver")


def flood(bench, link, seq, port, rate, queries, **options):
    """What pace printed of it."""
    lines = pace(bench.tools, link.client_ns, "flood", "--client", link.client, "--sequence", seq, "--port", port,
                 "--rounds", 1, "--queries", int(queries), *options_of({"rate": rate and int(rate), **options}))
    return lines[-1]


def floods(bench, link, seq, port, seconds, first=lambda: 0, **options):
    """As fast as possible, then by FLOODS. first: says what each adds to the numbers of the sequence."""
    runs = [flood(bench, link, seq, port, None, 3e6 * seconds, first=first(), **options)]
    for times in FLOODS:
        rate = max(best_of(runs), 20_000) * times
        runs.append(flood(bench, link, seq, port, rate, rate * seconds, first=first(), **options))
    return runs


def best_of(runs):
    """Replies a second."""
    return max(run["per_second"] for run in runs)


def best(*arguments, **options):
    """Of floods()."""
    return best_of(floods(*arguments, **options))


def kernel_path(bench, seq):
    """Replies a second: of echo, and of the kernel path."""
    link = bench.second_link
    lines = pace(bench.tools, link.ns, "capacity", *link.options, "--rules", NAMES, "--sequence", seq,
                 "--rounds", 1, "--queries", bench.settings.choose(1_000_000, 4_000_000))
    return {line["contender"]: line["per_second"] for line in lines if "contender" in line}


def start(stack, peer, names, result, caches=peers.CACHES):
    """The peer, or None when it could not run; adds the reason to result.absent. Those of caches have so many names there."""
    try:
        stack.enter_context(peer)
        if peer.kind in caches:
            peer.warm(range(names))
    except HarnessError as error:
        result.absent.append({"contender": peer.kind, "why": str(error)})
        say(f"{result.bench}: {peer.kind} could not run: {error}")
        return None
    return peer


def goals(result):
    medians = {p["contender"]: p for p in result.points}
    ours = medians["hydns"]["replies_per_second"]
    for kind, p in medians.items():
        p["hydns_times"] = round(ours / p["replies_per_second"], 2) if p["replies_per_second"] else None
    why = {a["contender"]: a["why"].splitlines()[0][:80] for a in result.absent}
    for kind, wanted in {**WANTED, **dict.fromkeys(ABOVE, 1)}.items():
        times = medians[kind]["hydns_times"] if kind in medians else None
        result.goals.append(Goal(f"times the replies per second of {kind}", wanted, times, why=why.get(kind, "")))


def measure(bench, seq, link, running, result):
    runs = {"echo": [], "hydns": [], **{p.kind: [] for p in running}}
    for turn in range(bench.settings.choose(2, 5)):
        for contender, per_second in kernel_path(bench, seq).items():
            runs[contender].append(per_second)
        for peer in running:
            peer.program.must_run()
            runs[peer.kind].append(best(bench, link, seq, peer.port, bench.settings.choose(0.4, 1.5)))
        say(f"versus: turn {turn + 1}: " + ", ".join(f"{k} {r[-1] / 1e3:,.0f} k" for k, r in runs.items()))
    return runs


def run(bench, result):
    link, seq = bench.peer_link, sequence(bench.run.dir, NAMES, None, bench.settings.seed)
    zone = bench.run.dir / "peers.zone"
    for polled in (link, bench.second_link):
        poll_by_thread(polled, cpus.RESOLVER[0])
    peers.write_zone(zone, NAMES)
    with ExitStack() as stack:
        stack.enter_context(peers.Peer(bench, link, "NSD", peers.BACKEND, zone, address="127.0.0.1"))
        sockets = [k for k in peers.KINDS if k not in peers.AF_XDP]
        found = [start(stack, peers.Peer(bench, link, kind, peers.BACKEND + 1 + i, zone), NAMES, result) for i, kind in enumerate(sockets)]
        running = [p for p in found if p]
        runs = measure(bench, seq, link, running, result)
        versions = {p.kind: p.version() for p in running}
        # last, because their programs on the interface would disturb the others
        for kind in peers.AF_XDP:
            with ExitStack() as alone:
                xdp = start(alone, peers.Peer(bench, link, kind, 53, zone), NAMES, result)
                if xdp:
                    versions[kind] = xdp.version()
                    for contender, more in measure(bench, seq, link, [xdp], result).items():
                        runs[contender] = runs.get(contender, []) + more
    for kind, r in runs.items():
        result.add(kind, r, "replies_per_second", rules=NAMES, version=versions.get(kind))
    goals(result)

