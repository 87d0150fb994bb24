# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part of `misses` with names that nobody has asked before, in a forwarded zone: sent on by the kernel beside Unbound and beside
BIND, and by Unbound, BIND and dnsdist alone.

Each contender has a host of its own (stand.py), between its clients and an NSD that serves the zone. By a closed loop in short turns:
replies, time to reply, and CPU, with hydnsd's and that of the threads that poll the host's links."""

import statistics
from contextlib import ExitStack

from lab import cpus
from lab.measure import percentile
from lab.network import pass_everything
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from . import peers
from .latency import PERCENTILES, closed_loop, distribution
from .overhead import cpu_ns
from .result import Goal, say
from .stand import Alone, Authoritative, Host, WithRings

FORWARDED, BIND_FORWARDED = "forwarded", "BIND-forwarded"
CONTENDERS = {FORWARDED: "Unbound", "alone": "Unbound", BIND_FORWARDED: "BIND", "BIND": "BIND", "dnsdist": "dnsdist"}
BASE = "alone"
TURNS, TURN_SECONDS = (2, 6), (0.5, 1)       # (with --quick, without)
CONCURRENCY = 1, 32, 192
NAMES_A_SECOND = 200_000        # more than are asked: the client would begin again with the first name
CAPACITY = 2_000_000            # rules: as many as are made
FIRST = 10_000_000
RATES, P50, TAIL = 5, 0.5, 1    # wanted, of Unbound alone: replies/s of a processor, p50, p99.9


class Forwarding(WithRings):
    """Unbound or BIND whose kernel path forwards the zone."""

    def configure(self, peer):
        text = super().configure(peer).replace('    name: "."\n', '    name: "."\n    hydns-forward: yes\n')
        return text.replace("    hydns-socket ", '    hydns-forward { "."; };\n    hydns-socket ')      # BIND's

    def state(self):
        return self.daemon.call({"cmd": "status"})["resolvers"][0]["forwarding"]

    def counts(self):
        return self.daemon.call({"cmd": "stats"})["resolvers"][0]["forwarding"]

    def usable(self):
        return self.state()["zones"] and all(u["usable"] for u in self.state()["upstreams"])


class Dnsdist(peers.Peer):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        made = self.make_config
        self.make_config = lambda peer: made(peer).replace(f"127.0.0.1:{peers.BACKEND}",
                                                           f"{Authoritative.SERVICE}:{peers.BACKEND}")


class Hosts:
    """The hosts of all contenders; start() enters their servers into the stack."""

    def __init__(self, bench):
        self.bench, self.authoritative = bench, Authoritative(bench.run, "fwd")
        self.host = {c: Host(bench.run, i, "fwd", c, self.authoritative) for i, c in enumerate(CONTENDERS)}
        for i in range(len(CONTENDERS)):    # what XDP sends to a veth arrives where a program is at its other end
            pass_everything(self.authoritative.ns, f"u{i + 1}", bench.tools.pass_object)
        for host in self.host.values():
            pass_everything(host.client_ns, host.client, bench.tools.pass_object)
        self.zone = bench.run.dir / "forwarding.zone"
        peers.write_zone(self.zone, None)

    def start(self, stack):
        stack.enter_context(self.authoritative.server(self.bench, self.zone))
        servers = {c: self._server(stack, c) for c in CONTENDERS}
        return {c: server for c, server in servers.items() if server}

    def _server(self, stack, contender):
        host, kind = self.host[contender], CONTENDERS[contender]
        what = self.bench, host, kind, 53, self.zone
        if contender in (FORWARDED, BIND_FORWARDED):
            daemon = stack.enter_context(Hydnsd(self.bench.world_like, host.ns, (host.server, host.upstream), name=host.label,
                                                capacity=CAPACITY))
            cpus.keep_from_resolver(daemon.program)
            server = stack.enter_context(Forwarding(*what, rings=("no", "no"), admission=None, daemon=daemon))
            wait_until(daemon.resolver_ready, 20, f"{kind}'s plugin to register with hydnsd")
            wait_until(server.usable, 20, "the upstream server to be usable")
            return server
        if kind == "dnsdist":
            server = Dnsdist(*what)
            if not server.command():
                say("forwarding: dnsdist is not installed (bench/install-peers): left out")
                return None
            return stack.enter_context(server)
        return stack.enter_context(Alone(*what))


def turn(bench, contender, server, file, seconds, concurrency):
    """(latencies, summary, CPU in microseconds a reply of the resolver's processes, the same with the threads that poll its links)."""
    pids = [server.program.pid] + ([server.daemon.program.pid] if isinstance(server, Forwarding) else [])
    own, polled = cpu_ns(pids), cpu_ns(server.link.polling)
    taken, summary = closed_loop(bench, server.link, file, seconds, concurrency)
    own, polled = (cpu_ns(pids) - own) / 1e3 / len(taken), (cpu_ns(server.link.polling) - polled) / 1e3 / len(taken)
    if summary["lost"]:
        raise HarnessError(f"{contender}: {summary['lost']} queries lost")
    return taken, summary, own, own + polled


def measure(bench, result, servers, concurrency):
    seconds, turns = bench.settings.choose(*TURN_SECONDS), bench.settings.choose(*TURNS)
    file, taken = bench.run.dir / "forwarding-questions", {c: [] for c in servers}
    for i in range(turns):
        number = FIRST * 10 + (i + 1) * 10**8 + concurrency * 10**6
        file.write_text("".join(f"{peers.label(number + n)}.{peers.ZONE} A\n" for n in range(int(NAMES_A_SECOND * seconds))))
        for contender, server in servers.items():
            taken[contender].append(turn(bench, contender, server, file, seconds, concurrency))
    points = {}
    for contender, each in taken.items():
        p = points[contender] = result.add(contender, [s["completed"] / s["seconds"] for _, s, *_ in each], "replies_per_second",
                                           part="forwarding", concurrency=concurrency)
        p["latency_us"] = {name: round(statistics.median(percentile(t, share) for t, *_ in each), 1)
                           for name, share in PERCENTILES.items()}
        p["distribution_us"] = distribution(sorted(us for t, *_ in each for us in t))
        p["cpu_us_of_resolver"], p["cpu_us_in_all"] = (round(statistics.median(t[i] for t in each), 3) for i in (2, 3))
        say(f"forwarding: {contender}, {concurrency} under way: {p['replies_per_second']:,.0f} replies/s, p50 "
            f"{p['latency_us']['p50']:.0f} us, p99.9 {p['latency_us']['p99.9']:.0f} us, CPU {p['cpu_us_of_resolver']:.2f} us a reply, "
            f"{p['cpu_us_in_all']:.2f} with the links")
    result.goals.append(Goal(f"times the replies of a processor's time of Unbound alone, {concurrency} under way", RATES,
                             round(points[BASE]["cpu_us_in_all"] / points[FORWARDED]["cpu_us_in_all"], 2)))
    ours, base = (points[c]["latency_us"] for c in (FORWARDED, BASE))
    for name, wanted in (("p50", P50), ("p99.9", TAIL)):
        result.goals.append(Goal(f"times the {name} of Unbound alone, {concurrency} under way", wanted,
                                 round(ours[name] / base[name], 2), least=False))


def run(bench, result):
    hosts = Hosts(bench)
    with ExitStack() as stack:
        servers = hosts.start(stack)
        for concurrency in CONCURRENCY:
            measure(bench, result, servers, concurrency)
        for contender in (FORWARDED, BIND_FORWARDED):
            counts = servers[contender].counts()
            if counts["relayed"] < 0.9 * counts["sent"]:
                raise HarnessError(f"{contender}: too few of the forwarded queries were answered in the kernel: {counts}")
