# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a reload of the resolver's configuration costs its clients: the resolver alone and with the kernel path, in turns.

A reloading resolver does not answer for a while. Queries wait in its sockets, and those that find them full are lost. So the
sockets have the system's default buffers here, which the documents recommend to raise. One flow asks for a few names at a
fixed rate. The silence is the longest time between two replies around the command, at the client. The command ends the
kernel's answers, so with the kernel path, too, all queries wait for the resolver meanwhile.
A veth with an XDP program delivers queries in larger buffers, of which a socket holds fewer. So a third contender is the
resolver alone with the program attached; it loses more in the same time. No process is bound to a processor: resolver, hydnsd
and client share the processors as on a host."""

import random
import statistics
import time
from contextlib import ExitStack

from lab import cpus
from lab.client import Asker
from lab.process import run_tool
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from . import peers
from .overhead import Patched, WithPluginAsItComes
from .result import Goal, say

HELP = "silence and lost queries of a reload, default socket buffers: the kernel path and the resolver alone"
NAMES = 50
RATE = 3000                    # queries a second
BEFORE, AFTER = 0.4, 0.6       # seconds of load around the command
TIMEOUT = 1.0                  # seconds after which a query is lost
MORE_MS = 5                    # milliseconds by which the silence may be longer
MOST = 1.1                     # times as many queries may be lost
PORTS = {"alone": 53, "attached": 5353, "plugin": 53}
KINDS = ("Unbound", "BIND")
BUFFERS = {"Unbound": ("so-rcvbuf: 4m", "so-rcvbuf: 0"), "BIND": ("    udp-receive-buffer 4194304;\n", "")}
SECRET = 'key rndc { algorithm hmac-sha256; secret "aHlkbnMgdGVzdCBrZXk="; };'


class Reloading:
    """A resolver with default socket buffers, and with a control channel for the reload."""

    def configure(self, peer):
        text = super().configure(peer).replace(*BUFFERS[self.kind])
        if self.kind == "Unbound":
            return text.replace("control-enable: no", 'control-enable: yes\n    control-use-cert: no\n'
                                f'    control-interface: "{self.dir}/control"')
        port = self.port + 900
        (self.dir / "rndc.conf").write_text(f"{SECRET}\noptions {{ default-key rndc; default-server {self.address}; "
                                            f"default-port {port}; }};\n")
        return text.replace("controls { };", f"{SECRET}\ncontrols {{ inet {self.address} port {port} allow {{ any; }} "
                            "keys { rndc; }; };")

    def control(self, word):
        if self.kind == "Unbound":
            argv = [self.bench.tools.unbound_control, "-c", self.dir / self.file, word]
        else:
            argv = [*self.bench.tools.bind("sbin/rndc"), "-c", self.dir / "rndc.conf", word]
        run_tool(self.link.ns, argv)


class Alone(Reloading, Patched):
    pass


class Hot(Reloading, WithPluginAsItComes):
    pass


def silence_ms(answers, begun, ended):
    """The longest time between two replies that begins or ends between the two moments."""
    replies = sorted(a.sent + a.latency for a in answers if a.latency is not None)
    gaps = [b - a for a, b in zip(replies, replies[1:]) if b > begun and a < ended]
    if not gaps:
        raise HarnessError("no query was answered around the reload")
    return max(gaps) / 1e6


def turn(bench, server, daemon):
    """(silence in ms, queries lost, queries sent, ms until the command returned) of one reload."""
    questions = [(f"{peers.label(n)}.{peers.ZONE}", "A") for n in range(NAMES)]
    with Asker(bench.world_like, server.link.client_ns, server.link.SERVICE, questions, RATE, timeout=TIMEOUT,
               port=server.port) as asker:
        time.sleep(BEFORE)
        if daemon:
            wait_until(lambda: daemon.call({"cmd": "status"})["rules"] >= NAMES, 20, f"{NAMES} names in the kernel")
        begun = time.monotonic_ns()
        server.control("reload")
        said = time.monotonic_ns()
        server.control("status")
        ended = time.monotonic_ns()
        time.sleep(AFTER)
        answers = asker.result()
    asker.output.unlink()
    return silence_ms(answers, begun, ended), sum(a.latency is None for a in answers), len(answers), (said - begun) / 1e6


def add_point(result, kind, contender, turns):
    silence, lost, asked, command = zip(*turns)
    point = result.add(contender, silence, "milliseconds", resolver=kind, rate=RATE)
    point.update(lost=sum(lost), lost_of=sum(asked), lost_runs=list(lost), command_ms=round(statistics.median(command), 1))
    say(f"reload: {kind}, {contender}: {point['milliseconds']:.0f} ms silence, {point['lost']:,} of {point['lost_of']:,} "
        f"queries lost in {len(lost)} reloads (median {statistics.median(lost):.0f}), command {point['command_ms']:.0f} ms")
    return point


def compare(bench, kind, servers, daemon, result):
    rng = random.Random(bench.settings.seed)
    turns = {c: [] for c in servers}
    for _ in range(bench.settings.choose(7, 25)):
        for contender in rng.sample(list(servers), len(servers)):
            turns[contender].append(turn(bench, servers[contender], daemon if contender == "plugin" else None))
    points = {c: add_point(result, kind, c, t) for c, t in turns.items()}
    result.goals.append(Goal(f"milliseconds that the silence of {kind} is longer with the plugin", MORE_MS,
                             round(points["plugin"]["milliseconds"] - points["alone"]["milliseconds"], 1), least=False))
    result.goals.append(Goal(f"times the queries that {kind} loses in a reload, program attached", MOST,
                             round(points["plugin"]["lost"] / max(1, points["attached"]["lost"]), 3), least=False))


def run(bench, result):
    zone = bench.run.dir / "reload.zone"
    peers.write_zone(zone, NAMES)
    plain, attached = bench.plain_link, bench.routed_link
    with ExitStack() as stack:
        for link in (plain, attached):
            stack.enter_context(peers.Peer(bench, link, "NSD", peers.BACKEND, zone, address="127.0.0.1", processors=cpus.ALL))
        daemon = stack.enter_context(Hydnsd(bench.world_like, attached.ns, (attached.server,)))
        for kind in KINDS:
            with ExitStack() as resolvers:
                servers = {c: resolvers.enter_context(Alone(bench, link, kind, PORTS[c], zone, cpus.ALL))
                           for c, link in (("alone", plain), ("attached", attached))}
                servers["plugin"] = resolvers.enter_context(Hot(bench, attached, kind, PORTS["plugin"], zone, cpus.ALL,
                                                                daemon=daemon))
                wait_until(daemon.resolver_ready, 20, f"{kind}'s plugin to register with hydnsd")
                compare(bench, kind, servers, daemon, result)
