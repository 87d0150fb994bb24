# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the resolver's own answers cost more when the program is attached, and with the plugin, and nothing is offloaded.

A fixed rate of queries, well below what the resolver can answer; CPU time over replies. The server's end of the link is
polled by a kernel thread on the resolver's processor, whose time counts with the resolver's: driver, XDP program, sockets
and resolver, as on a host whose network card interrupts the processors of the resolver."""

import os
from contextlib import ExitStack
from pathlib import Path

from harness import cpus
from harness.run import HarnessError, wait_until
from harness.servers import Hydnsd

from . import peers
from .pace import pace, poll_by_thread, sequence
from .result import Goal, say

HELP = "the resolver's own answers with the program attached, and with the plugin, nothing offloaded"
NAMES, RATE = 1000, 40_000
MOST = 1.02
PORTS = {"alone": 5310, "plugin": 5311}
COLD = 1_000_000                # sightings before a name is hot: more than a run has of one


def cpu_ns(pids):
    """Time on a processor of all threads of these processes, as the scheduler counts it."""
    return sum(int(stat.read_text().split()[0]) for pid in pids for stat in Path(f"/proc/{pid}/task").glob("*/schedstat"))


class WithPlugin(peers.Peer):
    """Unbound with module and daemon, and names that never become hot."""
    ADMISSION = COLD

    def __init__(self, *arguments, daemon, **options):
        super().__init__(*arguments, **options)
        self.daemon, self.make_config = daemon, self.configure

    def configure(self, peer):
        text = peers.unbound_config(peer).replace('module-config: "iterator"', 'module-config: "hydns iterator"')
        return text + f'hydns:\n    hydns-socket: "{self.daemon.plugin_socket}"\n    hydns-admission: {self.ADMISSION}\n'


def cost_per_reply(bench, link, seq, peer, polling):
    """CPU microseconds per reply."""
    pids = [peer.program.pid, *polling]
    before = cpu_ns(pids)
    lines = pace(bench.tools, link.client_ns, "flood", "--client", link.client, "--sequence", seq, "--port", peer.port,
                 "--rounds", 1, "--rate", RATE, "--queries", int(RATE * bench.settings.choose(1.5, 5)))
    run = lines[-1]
    if run["replies"] < 0.99 * run["sent"]:
        raise HarnessError(f"{run['sent']} queries at {RATE} per second brought {run['replies']} replies: the machine is "
                           "too busy or too slow for this measurement")
    return (cpu_ns(pids) - before) / 1e3 / run["replies"]


def measure(bench, link, seq, daemon, alone, plugin, polling):
    """hydnsd attaches when it starts and detaches when it stops."""
    runs = {"alone": [], "attached": [], "plugin": []}
    for _ in range(bench.settings.choose(5, 11)):
        daemon.stop()
        runs["alone"].append(cost_per_reply(bench, link, seq, alone, polling))
        daemon.start()
        cpus.give_to_resolver(daemon.program)
        wait_until(daemon.resolver_ready, 20, "Unbound's module to register with hydnsd")
        runs["attached"].append(cost_per_reply(bench, link, seq, alone, polling))
        runs["plugin"].append(cost_per_reply(bench, link, seq, plugin, polling))
    return runs


def run(bench, result):
    link, seq = bench.overhead_link, sequence(bench.run.dir, NAMES, None, bench.settings.seed)
    polling = poll_by_thread(link, cpus.RESOLVER[0])
    zone = bench.run.dir / "overhead.zone"
    peers.write_zone(zone, NAMES)
    with ExitStack() as stack:
        stack.enter_context(peers.Peer(bench, link, "NSD", peers.BACKEND, zone, address="127.0.0.1"))
        daemon = stack.enter_context(Hydnsd(bench.world_like, link.ns, (link.server,)))
        alone = stack.enter_context(peers.Peer(bench, link, "Unbound", PORTS["alone"], zone))
        plugin = stack.enter_context(WithPlugin(bench, link, "Unbound", PORTS["plugin"], zone, daemon=daemon))
        for peer in (alone, plugin):
            peer.warm(range(NAMES))
        runs = measure(bench, link, seq, daemon, alone, plugin, polling)
    points = {c: result.add(c, r, "cpu_us_per_reply", names=NAMES, queries_per_second=RATE) for c, r in runs.items()}
    for contender, text in (("attached", "with the program attached"), ("plugin", "with program and plugin, nothing hot")):
        each = sorted(b / a for a, b in zip(runs["alone"], runs[contender]))
        ratio = points[contender]["ratio_to_alone"] = round(each[len(each) // 2], 4)
        say(f"overhead: {points[contender]['cpu_us_per_reply']:.2f} us per reply {text}, {ratio:.3f} times alone "
            f"({points['alone']['cpu_us_per_reply']:.2f} us)")
        result.goals.append(Goal(f"times the CPU of the resolver alone, {text}", MOST, ratio, least=False))
