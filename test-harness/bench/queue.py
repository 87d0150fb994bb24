# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What packet rings give Unbound: misses through rings and through sockets, and through clients' rings alone.

Each contender has a host of its own (stand.py), with Unbound in one thread on the resolver's processor. Rates and CPU by a closed
loop in short turns, as in `overhead`, with the threads that poll the host's links; times to reply by a closed loop, as in `latency`;
then what idle rings cost, and the demo as it comes, with rings and kernel answers. Only the demo and the load of new names have
the plugin's default admission; else nothing is offered, so that every query is a miss."""

import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from lab.measure import percentile
from lab.run import HarnessError
from lab.tools import TOP

from . import peers, released_unbound
from .latency import PERCENTILES, closed_loop, distribution
from .overhead import COLD, against, cpu_ns, in_turns, one_turn, ratio_of
from .pace import OnDemand, draw
from .result import Goal, say
from .stand import RELEASED, RINGS, Hosts

# In parts: rates and CPU (rates), idle rings (idle), times to reply (latency), new names (new), the demo (demo).
HELP = "misses through packet rings and through sockets: replies, CPU, time to reply; idle rings; the demo"
NAMES = 1000
WINDOW = 192                # as in overhead
# unique: names that never repeat. new: as `demo --fresh 0.95`, so many of which never repeat, and the others by Zipf's law.
QUERIES = {"cached": 8_000, "unique": 1_500, "new": 1_500}         # in a turn: about 50 ms
NEW, ZIPF = 0.95, 0.9
NUMBERS = 1 << 14           # of names in a sequence
ROUNDS, BLOCKS = (8, 20), {"cached": (2, 3), "unique": (3, 6), "new": (3, 6)}     # (with --quick, without)
BASE, OURS = "sockets", "rings"
CONTENDERS = {"cached": tuple(RINGS), "unique": tuple(RINGS), "new": ("alone", "sockets", "rings")}     # and RELEASED, where it was built
FIGURES = ("replies", "cpu_of_resolver", "cpu_in_all")
# of rings to sockets: least replies a second, most CPU for a reply
WANTED = {"cached": (1.25, 0.80), "unique": (1.40, 0.70)}
# new names: most CPU of resolver and hydnsd for a reply, of Unbound alone
WANTED_NEW = {"sockets": 1.02, "rings": 0.65}
# Least share of a contender's datagrams that went by the rings that it has: on a machine that is busy otherwise answers may
# wait so long that rings are suspended for a second.
BY_RINGS = 0.5
SLOWER = ("p50", "p95", "p99")
TURNS, TURN_SECONDS = (3, 8), (0.5, 2)      # (with --quick, without), of each contender at each concurrency
FRESH_FROM = 100_000        # the number of the first name that only that client asks for
FRESH_A_SECOND = 100_000    # more than there are recursions: the client would begin again with the first name
SWITCHES, PERCENT, MEMORY = 2, 0.1, 16 * 2**20
DEMO_REPLIES, DEMO_CPU = 1.8, 0.55


# --- rates and CPU ------------------------------------------------------------------------------------------
def contenders(load):
    return CONTENDERS[load] + ((RELEASED,) if load == "new" and released_unbound.command() else ())


class Load:
    """Cached names, names that never repeat, or new names among others."""

    def __init__(self, bench, hosts, name):
        self.bench, self.hosts, self.name, self.first = bench, hosts, name, NAMES
        self.sequence = bench.run.dir / f"queue-{name}"
        rng, own = np.random.default_rng(bench.settings.seed), np.arange(NUMBERS)
        numbers = {"cached": lambda: rng.integers(0, NAMES, NUMBERS), "unique": lambda: own,
                   "new": lambda: np.where(rng.random(NUMBERS) < NEW, NAMES + own, draw.choose(rng, draw.zipf(NAMES, ZIPF), NUMBERS))}
        numbers[name]().astype(np.uint32).tofile(self.sequence)
        # What is added to the numbers grows from turn to turn. New names begin at another place each time, too, and may come round.
        self.step = {"cached": 0, "unique": QUERIES[name], "new": NUMBERS + QUERIES[name]}[name]

    def take(self, server):
        self.first += self.step
        daemon = [server.daemon.program.pid] if self.name == "new" and hasattr(server, "daemon") else []
        return one_turn(server, server.link.polling, self.first if self.step else 0, self.name, daemon)

    def block(self, rounds, rng):
        """(what in_turns() does, {contender: what its rings have carried}), of servers started for it."""
        with ExitStack() as stack:
            servers = self.hosts.start(stack, contenders(self.name), admission=None if self.name == "new" else COLD)
            for server in servers.values():
                server.warm(range(NAMES))
                server.asker = stack.enter_context(OnDemand(
                    self.bench.tools, server.link.client_ns, "--client", server.link.client, "--sequence", self.sequence,
                    "--repeated", NAMES if self.name == "new" else 0, "--port", server.port, "--window", WINDOW,
                    "--queries", QUERIES[self.name]))
            before = {c: server.carried() for c, server in servers.items() if RINGS.get(c)}
            runs = in_turns(servers, self.take, rounds, rng)
            return runs, {c: check_rings(c, b, servers[c].carried(), (2 * rounds + 1) * QUERIES[self.name], self.name)
                          for c, b in before.items()}


def check_rings(contender, before, after, queries, load):
    """{counter: for a query}. HarnessError when the contender took another way than it is there for."""
    each = {key: (after[key] - before[key]) / queries for key in after if isinstance(after[key], int)}
    clients, upstream = RINGS[contender]
    recursion = upstream == "yes" and load != "cached"
    wanted = {"queries": clients == "yes", "sent_upstream": recursion, "received_answers": recursion}
    for key, expected in wanted.items():
        if each[key] < BY_RINGS if expected else each[key]:
            detours = {k: n - before["detours"][k] for k, n in after["detours"].items() if n > before["detours"][k]}
            raise HarnessError(f"{contender}, {load}: {each[key]:.3f} {key} by rings for each query; detours: {detours}")
    return each


def add_point(result, load, contender, blocks, carried, base=BASE):
    turns = [turn for runs in blocks for turn in runs[contender]]
    point = result.add(contender, [t[0] for t in turns], "replies_per_second", load=load)
    point["cpu_us_of_resolver"] = round(statistics.median(t[1] for t in turns), 3)
    point["cpu_us_in_all"] = round(statistics.median(t[2] for t in turns), 3)
    point["processor_busy"] = round(statistics.median(t[0] * t[2] for t in turns) / 1e6, 3)
    if contender != base:
        for i, name in enumerate(FIGURES):
            ratio, half = against(blocks, base, contender, i)
            point[f"{name}_to_{base}"], point[f"{name}_to_{base}_95"] = round(ratio, 4), round(half, 4)
    if RINGS.get(contender):
        for name, key in (("by_rings", "sent"), ("wakeups", "wakeups")):
            point[f"{name}_a_reply"] = round(statistics.median(c[contender][key] for c in carried), 4)
    return point


def in_words(p, base=BASE):
    text = (f"{p['replies_per_second']:,.0f} replies/s, CPU {p['cpu_us_of_resolver']:.2f} us of the resolver, "
            f"{p['cpu_us_in_all']:.2f} in all, {p['processor_busy']:.2f} of the processor")
    if p["contender"] == base:
        return text
    return text + ": " + ", ".join(f"{p[f'{n}_to_{base}']:.3f} +- {p[f'{n}_to_{base}_95']:.3f} times the {words}"
                                   for n, words in zip(FIGURES, ("replies", "resolver's CPU", "CPU in all")))


def measured(bench, hosts, name):
    """(what in_turns() returned, what rings have carried), for each block."""
    load, rng = Load(bench, hosts, name), random.Random(bench.settings.seed)
    blocks = [load.block(bench.settings.choose(*ROUNDS), rng) for _ in range(bench.settings.choose(*BLOCKS[name]))]
    return zip(*blocks)


def rates(bench, result, hosts, name):
    blocks, carried = measured(bench, hosts, name)
    for contender in CONTENDERS[name]:
        point = add_point(result, name, contender, blocks, carried)
        say(f"queue: {name}, {contender}: {in_words(point)}")
    replies, cpu = WANTED[name]
    for text, wanted, key, more in (("replies/s", replies, "replies", True), ("CPU for a reply", cpu, "cpu_in_all", False)):
        result.goals.append(Goal(f"times the {text} of sockets, {name} names, both rings", wanted, point[f"{key}_to_sockets"],
                                 least=more, why=f"+- {point[f'{key}_to_sockets_95']:.3f}"))


def new_names(bench, result, hosts):
    """CPU of a resolver and its hydnsd for a reply, of the resolver's alone. From here on clients take replies from XDP, which costs
    all contenders the same."""
    for contender in contenders("new"):
        hosts.host[contender].take_xdp_replies(bench.tools.pass_object)
    blocks, carried = measured(bench, hosts, "new")
    for contender in contenders("new"):
        point = add_point(result, "new", contender, blocks, carried, base="alone")
        say(f"queue: new, {contender}, with hydnsd: {in_words(point, base='alone')}")
    goals = [("Unbound alone", "alone", contender, wanted) for contender, wanted in WANTED_NEW.items()]
    if released_unbound.command():
        goals.append(("Unbound as released", RELEASED, "sockets", WANTED_NEW["sockets"]))
    else:
        result.absent.append({"contender": RELEASED, "why": "bench/install-peers builds it"})
    for words, base, contender, wanted in goals:
        ratio, half = against(blocks, base, contender, FIGURES.index("cpu_of_resolver"))
        result.goals.append(Goal(f"times the CPU for a reply of {words}, {NEW:.0%} new names, {contender}", wanted, round(ratio, 4),
                                 least=False, why=f"+- {half:.3f}"))


# --- time to reply ------------------------------------------------------------------------------------------
class Questions:
    """Files for the client: of the cached names, or each time of names that nobody has asked for."""

    def __init__(self, directory):
        self.file, self.next = directory / "queue-questions", FRESH_FROM

    def write(self, load, seconds):
        numbers = range(NAMES)
        if load == "unique":
            numbers = range(self.next, self.next + int(FRESH_A_SECOND * seconds))
            self.next = numbers.stop
        self.file.write_text("".join(f"{peers.label(n)}.{peers.ZONE} A\n" for n in numbers))
        return self.file


def times(bench, result, servers, questions, load, concurrency):
    """Adds a point for each contender; returns {percentile: (times that of sockets, half of its 95 % interval)}."""
    seconds, turns = bench.settings.choose(*TURN_SECONDS), bench.settings.choose(*TURNS)
    taken, summaries = {c: [] for c in servers}, {c: [] for c in servers}
    for turn in range(turns):
        for contender in list(servers)[::-1 if turn % 2 else 1]:
            file = questions.write(load, seconds)
            more, summary = closed_loop(bench, servers[contender].link, file, seconds, concurrency)
            taken[contender].append(sorted(more))
            summaries[contender].append(summary)
    points = {}
    for contender, each in taken.items():
        rates_of = [s["completed"] / s["seconds"] for s in summaries[contender]]
        p = result.add(contender, rates_of, "replies_per_second", load=load, concurrency=concurrency,
                       lost=sum(s["lost"] for s in summaries[contender]))
        points[contender] = p
        every = sorted(us for turn in each for us in turn)
        # of each turn, so that one in which the machine did something else counts no more than the others
        p["latency_us"] = {name: round(statistics.median(percentile(turn, share) for turn in each), 1)
                           for name, share in PERCENTILES.items()}
        p["distribution_us"], p["replies"] = distribution(every), len(every)
    ours, base = (points[c]["latency_us"] for c in (OURS, BASE))
    ratios = {n: ratio_of([math.log(percentile(a, PERCENTILES[n]) / percentile(b, PERCENTILES[n]))
                           for a, b in zip(taken[OURS], taken[BASE])]) for n in SLOWER}
    points[OURS]["times_sockets"] = {n: [round(figure, 3) for figure in each] for n, each in ratios.items()}
    say(f"queue: {load}, concurrency {concurrency}: " + ", ".join(
        f"{n} {base[n]:,.0f} -> {ours[n]:,.0f} us ({ratios[n][0]:.2f} +- {ratios[n][1]:.2f})" for n in SLOWER)
        + f", lost {points[BASE]['lost']} -> {points[OURS]['lost']}")
    return ratios


def latency(bench, result, hosts):
    """The goals ask for no certain loss: a ratio's 95 % interval that begins above 1."""
    worst = dict.fromkeys(SLOWER, (0, 0, ""))
    with ExitStack() as stack:
        servers, questions = hosts.start(stack, (BASE, OURS)), Questions(bench.run.dir)
        for server in servers.values():
            server.warm(range(NAMES))
        for load in bench.settings.choose(("unique",), ("cached", "unique")):
            for concurrency in bench.settings.choose((1, 32, 512), (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)):
                for name, (ratio, half) in times(bench, result, servers, questions, load, concurrency).items():
                    worst[name] = max(worst[name], (ratio - half, half, f"{ratio:.3f} +- {half:.3f}, {load}, {concurrency}"))
    for name, (least, _, where) in worst.items():
        result.goals.append(Goal(f"times {name} of misses through sockets at least, worst concurrency", 1.0, round(least, 3),
                                 least=False, why=where))


# --- idle rings ---------------------------------------------------------------------------------------------
def resident(pid):
    """Octets of memory, the kernel's rings that are mapped among them."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("Rss:"))


def idle(bench, result, hosts):
    """Servers that have just started and that nobody asks."""
    seconds, figures = bench.settings.choose(3, 20), {}
    with ExitStack() as stack:
        for contender, server in hosts.start(stack, ("alone", BASE, OURS)).items():
            pid, switches = server.program.pid, server.program.switches
            before, cpu, begun = switches(), cpu_ns([pid]), time.monotonic()
            time.sleep(seconds)
            took = time.monotonic() - begun
            p = result.add(contender, [(switches() - before) / took], "switches_per_second", load="idle")
            p["cpu_percent"], p["resident_octets"] = round((cpu_ns([pid]) - cpu) / took / 1e7, 3), resident(pid)
            figures[contender] = p
            say(f"queue: idle, {contender}: {p['switches_per_second']:.1f} context switches a second, {p['cpu_percent']:.3f} % "
                f"of a processor, {p['resident_octets'] / 2**20:.1f} MiB")
    ours = figures[OURS]
    more = ours["switches_per_second"] - figures["alone"]["switches_per_second"]
    memory = ours["resident_octets"] - figures[BASE]["resident_octets"]
    result.goals += [
        Goal("percent of a processor, idle with rings", PERCENT, ours["cpu_percent"], least=False),
        Goal("context switches a second more than the resolver alone, idle", SWITCHES,
             round(more, 1), least=False,      # so many seconds may begin and end with a beat
             why=f"through sockets {figures[BASE]['switches_per_second'] - figures['alone']['switches_per_second']:.1f}"),
        Goal("octets of memory for the rings of a thread, two interfaces", MEMORY, memory, least=False)]


# --- the demo -----------------------------------------------------------------------------------------------
def demo(bench, result, _hosts):
    """As it comes: the resolver alone, and with rings and kernel answers."""
    shares, busy = {"replies_per_second": [], "resolver_cpu_seconds_per_million": []}, []
    for _ in range(bench.settings.choose(1, 3)):
        out = bench.run.dir / "demo.json"
        argv = [sys.executable, TOP / "test-harness" / "demo", "--seconds", str(bench.settings.choose(5, 20)),
                "--seed", str(bench.settings.seed), "--json", out, "--plot", out.with_suffix(".png")]
        # a run of its own
        done = subprocess.run(argv, capture_output=True, text=True,
                              env={k: v for k, v in os.environ.items() if k != "HYDNS_RUN_ID"})
        if done.returncode != 0:
            raise HarnessError(f"demo: {done.stderr[-500:] or done.stdout[-500:]}")
        figures = json.loads(out.read_text())
        for key, each in shares.items():
            each.append(figures["on"][key] / figures["off"][key])
        busy.append([figures["details"][half]["processors_busy"] for half in ("off", "on")])
    replies, cpu = (statistics.median(each) for each in shares.values())
    p = result.add("hydns", shares["replies_per_second"], "times_resolver", load="demo")
    p["cpu_of_resolver_to_alone"] = round(cpu, 4)
    # With few processors the load generator may be what limits the replies.
    p["processors_busy"] = {role: [round(statistics.median(b[half][role] for b in busy), 3) for half in (0, 1)]
                            for role in ("resolver", "others")}
    limits = ", ".join(f"{role} {off:.0%} -> {on:.0%}" for role, (off, on) in p["processors_busy"].items())
    say(f"queue: the demo: {replies:.2f} times the replies/s of Unbound alone, {cpu:.3f} times the CPU of resolver and hydnsd")
    result.goals.append(Goal("times the replies/s of Unbound alone, the demo", DEMO_REPLIES, round(replies, 3),
                             why=f"processors busy: {limits}"))
    result.goals.append(Goal("times the CPU for a reply of Unbound alone, the demo", DEMO_CPU, round(cpu, 3), least=False))


def all_rates(bench, result, hosts):
    for name in WANTED:
        rates(bench, result, hosts, name)


PARTS = {"rates": all_rates, "idle": idle, "latency": latency, "new": new_names, "demo": demo}


def run(bench, result):
    hosts = Hosts(bench)
    for name in (bench.settings.only or PARTS):
        PARTS[name](bench, result, hosts)
