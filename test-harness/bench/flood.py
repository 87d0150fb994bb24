# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Good traffic beside floods: how much of it is answered, and when, against the same server without the flood.

Good clients ask 2,000 times a second, each well below the limit: hot names, and by every tenth query one that nobody has asked. A flood
comes at 1, 5 and 10 times what Unbound alone without limits answers here, of hot names or of names that never repeat; that is measured
first. Generator (kernel/beside.bpf.c), driver, XDP program and the stack up to the socket work on one processor, as where a network card
interrupts another processor than the resolver's. There go first, by real-time priority: threads that poll both ends of the link, and the
authoritative server; and whatever else runs goes before the generator. Server and hydnsd have the other processor.
So what is missing is missing at the server: what finds its socket full is lost, and lost_on_link shows that the link loses nothing. Good
queries go before the flood; when the generator can't give the whole flood, multiple_reached says how much it was, and asked_per_second
whether anything else has kept it from its processor. A good query without an answer for a second counts as lost, and as that late. No
client asks again, and none follows a truncated reply by TCP.

The contenders take turns: for each flood all without it, then all at each multiple, each with a moment that does not count. Replies are
seen at the client's end of the link by the kernel's clock; their hop limit tells whether the kernel path has sent them."""

import json
import re
import statistics
import subprocess
from contextlib import ExitStack

import numpy as np
from lab import cpus
from lab.network import DEFAULT_HOPS
from lab.run import HarnessError
from lab.tools import TOP

from . import floods, limited
from .overhead import cpu_ns
from .pace import OnDemand, options_of, yielding
from .result import Goal, going_on, say

HELP = "good traffic beside floods: replies and latency against the same without a flood, and other servers'"
PARTS = floods.PARTS
RATE = 2000                    # good queries a second
MULTIPLES = (5,), (1, 5, 10)   # of what the resolver can take (with --quick, without)
TURNS = 1, 3
SETTLE, SECONDS = (0.5, 0.5), (1.0, 2.0)      # of a load: not counted, counted
PATIENCE = 1.0                 # seconds after which a good query counts as lost
WINDOW = 192                   # queries under way while the resolver's capacity is measured
CAPACITY_QUERIES = {"hot": 20_000, "new": 5_000}
CAPACITY_RUNS = 3, 5
REACHED = 0.97                 # of a flood's rate that count as all of it
WARMING = 20                   # loads without a flood at most until the kernel has its rules
SEEN = 0.001                   # share of packets from which on a reason is in the result
REPLIES, P99 = 0.95, 1.5       # goals
DROPPED = re.findall(r"^HYDNS_REASON\((\w+), +DROP, +QUERY", (TOP / "include/hydns/reasons.def").read_text(), re.M)


class Load:
    """Runs the generator against contenders. No name that is to be asked once is asked again. Of good queries: hot is how many names
    they ask again and again, new_every of how many one asks a name of its own; 0: none does."""
    hot, new_every = floods.HOT, floods.NEW_EVERY

    def __init__(self, bench):
        self.bench, self.first = bench, self.hot
        self.settle, self.seconds = bench.settings.choose(*zip(SETTLE, SECONDS))

    def _start(self, contender, frames, replies, rate):
        options = options_of({"client": contender.link.client, "frames": frames, "replies": replies, "good-rate": RATE,
                              "rate": rate and int(rate), "seconds": self.seconds, "settle": self.settle, "patience": PATIENCE,
                              "hot": self.hot, "new-every": self.new_every, "first": self.first, "kernel-hops": DEFAULT_HOPS})
        argv = contender.link.client_ns.command(yielding(self.bench.tools, "beside", *options))
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, contender, frames, rate):
        """What came of one load, as figures()."""
        replies = self.bench.run.dir / "replies"
        before, lost, seen = contender.reasons(), contender.lost_on_link(), []
        with self._start(contender, frames, replies, rate) as generator:
            for line in generator.stdout:
                said = json.loads(line)
                if "counts" in said:
                    seen.append(cpu_ns(contender.pids()))
            errors = generator.stderr.read()
        if generator.returncode != 0 or len(seen) != 2:
            raise HarnessError(f"pace beside: {errors.strip()[-1000:]}")
        contender.must_run()
        after, said["lost_on_link"] = contender.reasons(), contender.lost_on_link() - lost
        self.first += said["sent_in_all"]
        return figures(said, replies, seen[1] - seen[0], {reason: after[reason] - before[reason] for reason in after})


def figures(said, replies, cpu, reasons):
    """{figure: value} of one load; latencies in us, sorted, a lost query as late as one can be."""
    if not replies.stat().st_size:
        raise HarnessError("no good query was sent: the generator got no processor, run it when the machine is idle")
    table = np.loadtxt(replies, dtype=np.int64, ndmin=2)
    replies.unlink()
    _, latency, answered, kernel = table.T
    answered = (answered == 1) & (latency <= PATIENCE * 1e9)
    seconds, sent = said["seconds"], max(1, said["flood_sent"])
    return {"good": float(answered.sum()) / seconds, "asked": len(table) / seconds, "share": float(answered.mean()),
            "by_kernel": float((answered & (kernel == 1)).mean()),
            "latency": np.sort(np.where(answered, latency / 1e3, PATIENCE * 1e6)), "busy": cpu / 1e9 / seconds,
            "flood": said["flood_sent"] / seconds, "flood_answered": said["flood_replies"] / sent,
            "flood_truncated": said["flood_truncated"] / sent, "flood_by_kernel": said["flood_by_kernel"] / sent,
            "flood_octets": said["flood_octets"] / sent, "lost_on_link": said["lost_on_link"] / said["sent_in_all"],
            "reasons": {reason: n / said["sent_in_all"] for reason, n in reasons.items() if n}}


def capacity(bench, contender):
    """{"hot" or "new": replies a second of Unbound alone without limits}, on this contender's host."""
    found = {}
    if not contender:
        raise HarnessError(f"{limited.UNBOUND_ALONE} could not run, by which floods are measured")
    with contender.unlimited() as server:
        for load, queries in CAPACITY_QUERIES.items():
            sequence = bench.run.dir / f"flood-{load}"
            (np.arange(1 << 14) % (floods.HOT if load == "hot" else 1 << 14)).astype(np.uint32).tofile(sequence)
            with OnDemand(bench.tools, contender.link.client_ns, "--client", contender.link.client, "--sequence", sequence, "--port",
                          server.port, "--window", WINDOW, "--queries", queries) as asker:
                asker.run(0)              # fills the cache
                first = [0 if load == "hot" else (i + 1) * queries for i in range(bench.settings.choose(*CAPACITY_RUNS))]
                found[load] = statistics.median(asker.run(f)["per_second"] for f in first)
    return found


def warm(contender, load, frames):
    """Good queries alone, until caches have the hot names and, with the kernel path, so has the kernel."""
    for _ in range(WARMING):
        load.run(contender, frames, None)
        if not contender.daemon or contender.daemon.call({"cmd": "status"})["rules"] >= floods.HOT:
            return
    raise HarnessError(f"the kernel has not got the {floods.HOT} hot names: {contender.daemon.call({'cmd': 'status'})['resolvers']}")


def start(bench, stack, name, zone, load, frames, result):
    """The contender, or None when it could not run; adds the reason to result.absent."""
    try:
        with ExitStack() as own:
            contender = own.enter_context(limited.Contender(bench, name, zone))
            warm(contender, load, frames)
            stack.push(own.pop_all())
    except HarnessError as error:
        result.absent.append({"contender": name, "why": str(error)})
        say(f"flood: {name} could not run: {error}")
        return None
    return contender


def median(turns, what):
    return float(statistics.median(turn[what] for turn in turns))


def add_point(result, part, contender, multiple, turns, quiet, wanted):
    """turns: figures of all turns; quiet: of those without a flood; wanted: flood a second."""
    late, calm = ({f"p{p}": [float(np.percentile(turn["latency"], p)) for turn in some] for p in (50, 99)} for some in (turns, quiet))
    point = result.add(contender.name, [turn["good"] for turn in turns], "replies_per_second", part=part, multiple=multiple,
                       rate=RATE, version=contender.servers[0].version())
    point["asked_per_second"] = round(median(turns, "asked"))
    point["replies_ratio"] = round(statistics.median(a["share"] / b["share"] if b["share"] else 0 for a, b in zip(turns, quiet)), 4)
    point["latency_us"] = {p: round(statistics.median(us), 1) for p, us in late.items()}
    point["latency_ratio"] = {p: round(statistics.median(a / b for a, b in zip(us, calm[p])), 3) for p, us in late.items()}
    point["latency_us_range"] = {p: [round(min(us), 1), round(max(us), 1)] for p, us in late.items()}
    point["processor_busy"] = round(median(turns, "busy"), 3)
    point["lost_on_link"] = round(median(turns, "lost_on_link"), 4)
    point["good_by_kernel"] = round(median(turns, "by_kernel"), 4)
    if multiple:
        add_flood(point, multiple, turns, wanted)
    point["reasons"] = {reason: share for reason in sorted({r for turn in turns for r in turn["reasons"]})
                        if (share := round(statistics.median(turn["reasons"].get(reason, 0) for turn in turns), 4)) >= SEEN}
    say_point(point)
    return point


def add_flood(point, multiple, turns, wanted):
    """What became of the flood, as shares of its queries."""
    given = median(turns, "flood")
    point["flood_per_second"] = round(given)
    point["multiple_reached"] = multiple if given >= REACHED * wanted else round(multiple * given / wanted, 2)
    for what in ("flood_answered", "flood_truncated", "flood_by_kernel"):
        point[what] = round(median(turns, what), 4)
    point["flood_octets"] = round(median(turns, "flood_octets"), 1)
    point["dropped_by_kernel"] = round(statistics.median(sum(turn["reasons"].get(r, 0) for r in DROPPED) for turn in turns), 4)


def say_point(p):
    flood = "no flood" if not p["multiple"] else f"{p['flood_per_second']:,} flood/s ({p['multiple_reached']} times)"
    text = (f"flood: {p['part']}, {p['contender']}, {flood}: {p['replies_per_second']:,.0f} of {p['asked_per_second']:,} good queries/s "
            f"({p['replies_ratio']:.3f}), p50 "
            f"{p['latency_us']['p50']:,.0f} us ({p['latency_ratio']['p50']:.2f}), p99 {p['latency_us']['p99']:,.0f} us "
            f"({p['latency_ratio']['p99']:.2f}), processor {p['processor_busy']:.0%}")
    if p["multiple"]:
        text += (f"; flood answered {p['flood_answered']:.1%}, by the kernel {p['flood_by_kernel']:.1%}, "
                 f"dropped there {p['dropped_by_kernel']:.1%}")
    say(text)


def add_goals(result, part, points):
    """Of the kernel path, at the worst of the multiples; with its guard where the resolver's own limits can't tell the flood."""
    for name in limited.GUARDED:
        if name.partition(" ")[0] in PARTS[part].guard:
            name = limited.GUARDED[name]
        own = [p for p in points if p["contender"] == name and p["multiple"]]
        reached = max((p["multiple_reached"] for p in own), default=0)
        why = f"told by {PARTS[part].told}; up to {reached} times" if own else "it could not run"
        result.goals += [
            Goal(f"{name}, {part}: replies, times those without a flood", REPLIES,
                 min((p["replies_ratio"] for p in own), default=None), why=why),
            Goal(f"{name}, {part}: p99, times that without a flood", P99,
                 max((p["latency_ratio"]["p99"] for p in own), default=None), least=False, why=why)]


def measure(bench, result, part, contenders, load, capacities):
    """One flood, all contenders."""
    flood, frames = PARTS[part], bench.run.dir / f"{part}.frames"
    multiples, runs = (0, *bench.settings.choose(*MULTIPLES)), {}
    flood.write(frames)
    for _ in range(bench.settings.choose(*TURNS)):
        for multiple in multiples:
            for contender in contenders:
                with going_on(f"flood: {part}, {contender.name}, {multiple} times"):
                    runs.setdefault((contender, multiple), []).append(
                        load.run(contender, frames, multiple * capacities[flood.load]))
    points = [add_point(result, part, contender, multiple, runs[contender, multiple], runs[contender, 0],
                        multiple * capacities[flood.load]) for contender in contenders for multiple in multiples]
    add_goals(result, part, points)


def run(bench, result):
    zone, frames, load = bench.run.dir / "flood.zone", bench.run.dir / "warm.frames", Load(bench)
    floods.write_zone(zone)
    PARTS["cookies"].write(frames)
    with cpus.left_to_resolver(), ExitStack() as stack:
        found = [start(bench, stack, name, zone, load, frames, result) for name in limited.CONTENDERS]
        contenders = [contender for contender in found if contender]
        capacities = capacity(bench, next((c for c in contenders if c.name == limited.UNBOUND_ALONE), None))
        for names, per_second in capacities.items():
            result.add("Unbound without limits", [per_second], "replies_per_second", load=names)
            say(f"flood: Unbound without limits answers {per_second:,.0f} queries/s, {names} names")
        for part in bench.settings.only or PARTS:
            measure(bench, result, part, contenders, load, capacities)
