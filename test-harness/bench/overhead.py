# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How much more the resolver's own answers cost with the program attached, and with the plugin, while nothing is offloaded.

A closed loop keeps so many queries under way that the resolver's processor is never idle. A kernel thread on that processor
polls the server's end of the link, so that driver, XDP program, sockets and resolver share it, as on a host whose network card
interrupts the resolver's processors. The CPU time of both for a reply, as the scheduler counts it, bounds the replies a second.
The replies a second are reported too, but include the generator's pauses.

The contenders take turns of a fraction of a second, in a random order for each round and then in its reverse (A B B A). Only
turns of one round are compared, so that drift affects all of them. Single turns differ by 5 to 10 % on a virtual machine; so
there are many, and the lowest and the highest fifth of the rounds do not count. Each block of rounds restarts all servers: two
runs of one program differ by their addresses in memory, so the confidence interval is that of the blocks. A second resolver
without program and plugin may be a contender too: its ratio should be 1, and its distance from 1 shows the error of the other
figures."""

import math
import random
import statistics
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from lab import cpus
from lab.process import tail
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from . import peers
from .pace import OnDemand, poll_by_thread
from .result import Goal, say

HELP = "the resolver's own answers with the program attached, and with the plugin, nothing offloaded"
NAMES = 1000
# Queries under way. A veth has room for 256. named's socket has room for about 96: its buffer is as large as the system allows,
# and each frame from the generator counts as a page.
WINDOW = {"Unbound": 192, "BIND": 80}
BIND_BUFFER = "    minimal-responses yes;\n", "    minimal-responses yes;\n    udp-receive-buffer 4194304;\n"
MOST = 1.02        # times the CPU time for a reply, goal
LEAST = 0.98       # times the replies a second, goal
COLD = 1_000_000                # sightings before a name is hot: more than a run has of any name
PORTS = {"alone": 5310, "alone again": 5311, "attached": 5312, "plugin": 5313}
# The plugin's thread makes a single-threaded resolver multi-threaded, in which sockets and locks cost a little more. So Unbound
# is measured with one thread as well; BIND has several threads in any case.
RESOLVERS = {"Unbound": ("Unbound", 2), "Unbound, one thread": ("Unbound", 1), "BIND": ("BIND", 1)}   # kind and threads
QUICK = ("Unbound", "BIND")
# cached: cached names; unique: names that never repeat; offered: the same, while the plugin offers by its default options.
# Neither plugin offers the first answer to a name that had to be looked up.
LOADS = {"Unbound": ("cached", "unique", "offered"), "Unbound, one thread": ("cached",),
         "BIND": ("cached", "unique", "offered")}
# The contenders: only two where turns vary most.
CONTENDERS = {"cached": tuple(PORTS), "unique": ("alone", "plugin"), "offered": ("alone", "plugin")}
ROUNDS = {"cached": 16, "unique": 40, "offered": 40}    # in a block
BLOCKS = {"cached": (3, 4), "unique": (6, 9), "offered": (3, 3)}    # (with --quick, without)
# in a turn: about 50 ms, which is shorter than disturbances by other virtual machines
QUERIES = {"Unbound": {"cached": 8_000, "unique": 1_500, "offered": 1_500},
           "BIND": {"cached": 5_000, "unique": 1_200, "offered": 1_200}}
TEXTS = {"alone again": "another without anything", "attached": "program attached", "plugin": "program and plugin"}
# two-sided 95 % points of Student's t, for 1, 2, ... degrees of freedom
STUDENT = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11, 2.10, 2.09,
           2.09)
LEFT_OUT = 5       # of so many rounds the lowest and the highest do not count


def cpu_ns(pids):
    """CPU time of all threads of these processes, as the scheduler counts it."""
    return sum(int(stat.read_text().split()[0]) for pid in pids for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"))


class Patched(peers.Peer):
    """The patched resolver; threads counts for Unbound only."""

    def __init__(self, *arguments, threads=1, **options):
        super().__init__(*arguments, **options)
        self.threads, self.make_config = threads, self.configure

    def command(self):
        return self.bench.tools.bind("sbin/named") if self.kind == "BIND" else super().command()

    def configure(self, peer):
        if self.kind == "BIND":
            return peers.bind_config(peer).replace(*BIND_BUFFER)
        return peers.unbound_config(peer).replace("num-threads: 1", f"num-threads: {self.threads}")


class WithPlugin(Patched):
    """The same with its plugin. admission: sightings before a name is hot, rings: (hydns-queue, hydns-queue-upstream); None for the
    plugin's defaults."""
    admission, rings = COLD, None

    def __init__(self, *arguments, daemon, **options):
        super().__init__(*arguments, **options)
        self.daemon = daemon

    def command(self):
        return self.bench.tools.unbound_with_plugin() if self.kind == "Unbound" else super().command()

    def clause(self, line):
        settings = {"hydns-socket": f'"{self.daemon.plugin_socket}"'}
        if self.admission:
            settings["hydns-admission"] = self.admission
        if self.rings:
            settings["hydns-queue"], settings["hydns-queue-upstream"] = self.rings
        return "".join(line.format(*setting) for setting in settings.items())

    def configure(self, peer):
        text = super().configure(peer)
        if self.kind == "Unbound":
            text = text.replace('module-config: "iterator"', 'module-config: "hydns iterator"')
            return text + "hydns:\n" + self.clause("    {}: {}\n")
        return text + f'plugin query "{self.bench.tools.bind_plugin}" {{\n' + self.clause("    {} {};\n") + "};\n"


class WithPluginAsItComes(WithPlugin):
    admission = None


class Resting(WithPlugin):
    """Without packet rings, which would take every query here, and hide what the plugin costs."""
    rings = "no", "no"


class Offering(Resting):
    admission = None


class Turns:
    """A load, and the resolvers that take turns under it."""

    def __init__(self, bench, links, resolver, load, contenders=None):
        self.bench, self.load = bench, load
        self.contenders = contenders or CONTENDERS[load]
        self.kind, self.threads = RESOLVERS[resolver]
        self.queries = QUERIES[self.kind][load]
        self.links, self.polling = links
        self.sequence = bench.run.dir / f"overhead-{load}"
        if not self.sequence.exists():
            numbers = np.random.default_rng(bench.settings.seed).integers(0, NAMES, 1 << 14) if load == "cached" \
                else np.arange(1 << 14)
            numbers.astype(np.uint32).tofile(self.sequence)
        self.next = NAMES

    @contextmanager
    def servers(self):
        """Context manager: all contenders, with warm caches; yields {contender: server}."""
        zone = self.bench.run.dir / "overhead.zone"
        peers.write_zone(zone, None)
        with ExitStack() as stack:
            for link in self.links.values():
                stack.enter_context(peers.Peer(self.bench, link, "NSD", peers.BACKEND, zone, address="127.0.0.1",
                                               processors=cpus.OTHERS))
            daemon = stack.enter_context(Hydnsd(self.bench.world_like, self.links[True].ns, (self.links[True].server,)))
            cpus.keep_from_resolver(daemon.program)
            servers = {c: stack.enter_context(self.subject(c, PORTS[c], zone, daemon)) for c in self.contenders}
            for server in servers.values():
                server.warm(range(NAMES))
                server.asker = stack.enter_context(OnDemand(
                    self.bench.tools, server.link.client_ns, "--client", server.link.client, "--sequence", self.sequence,
                    "--port", server.port, "--window", WINDOW[self.kind], "--queries", self.queries))
            wait_until(daemon.resolver_ready, 20, f"{self.kind}'s plugin to register with hydnsd")
            yield servers

    def subject(self, contender, port, zone, daemon):
        what = self.bench, self.links[contender in ("attached", "plugin")], self.kind, port, zone
        if contender != "plugin":
            return Patched(*what, threads=self.threads)
        return (Offering if self.load == "offered" else Resting)(*what, threads=self.threads, daemon=daemon)

    def take(self, server):
        if self.load != "cached":
            self.next += self.queries
        return one_turn(server, self.polling, 0 if self.load == "cached" else self.next, self.load)

    def block(self, rounds, rng):
        """Starts the servers; returns what in_turns() does."""
        with self.servers() as servers:
            return in_turns(servers, self.take, rounds, rng)


def one_turn(server, polling, first, load, others=()):
    """(replies a second, microseconds of the resolver for a reply, of resolver and polling threads) of one run of the server's
    asker from this name on. others: processes that count as the resolver's."""
    pids = [server.program.pid, *others]
    resolver, polled = cpu_ns(pids), cpu_ns(polling)
    run = server.asker.run(first)
    if run["replies"] < 0.99 * run["sent"] or run["answers"] < run["replies"]:
        raise HarnessError(f"{server.kind} of {server.link.label}, port {server.port}, {load}: {run['sent']} queries, "
                           f"{run['replies']} replies, {run['answers']} of them answers; the end of its log:\n{tail(server.program.log)}")
    resolver = (cpu_ns(pids) - resolver) / 1e3 / run["replies"]
    polled = (cpu_ns(polling) - polled) / 1e3 / run["replies"]
    return run["per_second"], resolver, resolver + polled


def in_turns(servers, take, rounds, rng):
    """{contender: [the means of its two turns in each round]}, of servers that have just started."""
    runs = {c: [] for c in servers}
    for server in servers.values():
        take(server)          # fills the caches; not counted
    for _ in range(rounds):
        order = rng.sample(list(servers), len(servers))
        turns = {c: [] for c in order}
        for contender in order + order[::-1]:
            turns[contender].append(take(servers[contender]))
        for contender, two in turns.items():
            runs[contender].append([statistics.mean(figures) for figures in zip(*two)])
    return runs


def against(blocks, base, contender, what):
    """(ratio to base, half of its 95 % interval): geometric means over the rounds that count, and then over the blocks."""
    each = []
    for runs in blocks:
        rounds = sorted(math.log(a[what] / b[what]) for a, b in zip(runs[contender], runs[base]))
        ends = len(rounds) // LEFT_OUT
        each.append(statistics.mean(rounds[ends:len(rounds) - ends]))
    return ratio_of(each)


def ratio_of(logarithms):
    """(geometric mean, half of its 95 % interval) of ratios, given as logarithms, two at least."""
    student = STUDENT[min(len(logarithms) - 1, len(STUDENT)) - 1]
    ratio = math.exp(statistics.mean(logarithms))
    return ratio, ratio * student * statistics.stdev(logarithms) / len(logarithms) ** 0.5


def add_point(result, resolver, load, contender, blocks):
    turns = [turn for runs in blocks for turn in runs[contender]]
    point = result.add(contender, [t[0] for t in turns], "replies_per_second", resolver=resolver, load=load)
    point["cpu_us_of_resolver"] = round(statistics.median(t[1] for t in turns), 3)
    point["cpu_us_in_all"] = round(statistics.median(t[2] for t in turns), 3)
    point["processor_busy"] = round(statistics.median(t[0] * t[2] for t in turns) / 1e6, 3)
    if contender != "alone":
        for i, name in enumerate(("replies", "cpu_of_resolver", "cpu_in_all")):
            ratio, half = against(blocks, "alone", contender, i)
            point[f"{name}_to_alone"], point[f"{name}_to_alone_95"] = round(ratio, 4), round(half, 4)
    return point


def in_words(point):
    if point["contender"] == "alone":
        return (f"{point['replies_per_second']:,.0f} replies/s alone, {point['cpu_us_of_resolver']:.2f} us of the resolver, "
                f"{point['cpu_us_in_all']:.2f} us in all, {point['processor_busy']:.2f} of the processor")
    ratios = [f"{point[f'{name}_to_alone']:.4f} +- {point[f'{name}_to_alone_95']:.4f} times {text}" for name, text in
              (("replies", "the replies"), ("cpu_of_resolver", "the resolver's CPU"), ("cpu_in_all", "all CPU"))]
    return f"{TEXTS[point['contender']]}: {', '.join(ratios)}"


def add_goals(result, point):
    resolver, load, contender = point["resolver"], point["load"], point["contender"]
    what = f"of {resolver} alone, {load} names, {TEXTS[contender]}"
    result.goals.append(Goal(f"times the CPU {what}", MOST, point["cpu_in_all_to_alone"], least=False,
                             why=f"+- {point['cpu_in_all_to_alone_95']:.3f}"))
    if contender == "plugin" and load == "unique":
        result.goals.append(Goal(f"times the replies/s {what}", LEAST, point["replies_to_alone"],
                                 why=f"+- {point['replies_to_alone_95']:.3f}"))


def report(result, resolver, load, blocks):
    for contender in blocks[0]:
        point = add_point(result, resolver, load, contender, blocks)
        say(f"overhead: {resolver}, {load}: {in_words(point)}")
        if contender in ("attached", "plugin") and load != "offered":
            add_goals(result, point)


def polled_links(bench):
    """Returns {is the program attached there?: link}, and the threads that poll them."""
    links = {False: bench.overhead_link, True: bench.overhead_attached_link}
    return links, [pid for link in links.values() for pid in poll_by_thread(link, cpus.RESOLVER[0])]


def run(bench, result):
    links = polled_links(bench)
    rng = random.Random(bench.settings.seed)
    for resolver in bench.settings.choose(QUICK, RESOLVERS):
        for load in bench.settings.choose(("cached",), LOADS[resolver]):
            turns = Turns(bench, links, resolver, load)
            blocks = [turns.block(ROUNDS[load], rng) for _ in range(bench.settings.choose(*BLOCKS[load]))]
            report(result, resolver, load, blocks)
