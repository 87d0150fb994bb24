# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The contenders of `zone`: servers that have a whole zone, all running at once, each on one processor.

hyDNS and Knot's XDP listener have links of their own, because each has its program on the interface."""

import datetime
import re
import subprocess

from lab import cpus
from lab.process import tail
from lab.run import replaced, wait_until
from lab.servers import Hydnsd

from . import peers, versus
from .cost import anonymous, memory_of
from .overhead import Patched, WithPluginAsItComes, cpu_ns
from .pace import RoutedLink, poll_by_thread, take_live_frames
from .result import going_on

HYDNS, BIND, DNSDIST = "hydns", "BIND", "dnsdist"
CONTENDERS = (HYDNS, "NSD", "Knot", "Knot, XDP", BIND, DNSDIST)
PORTS = {HYDNS: 53, "Knot, XDP": 53, "NSD": 5301, "Knot": 5302, BIND: 5303, DNSDIST: 5304}
APEX = 3                       # records beside the names: SOA and NS, and the address of the server
ANSWERS = 4                    # that a name and type has: with and without DO and RD
RESERVE = 4 / 3                # preloaded answers have three quarters of the capacity
CAPACITY = 1000                # at least
PRELOADED_LEAST = 3000         # names a second
FORWARDING = f"    forward only;\n    forwarders {{ 127.0.0.1 port {peers.BACKEND}; }};\n"
# What the plugin says in named's log of its one zone: that it begins, and that it is done or stops because there is no more room.
STAMP = r"^(\d\d-\w{3}-\d{4} [\d:.]+) .*preload: [^:]*"
BEGINS = re.compile(STAMP + r": 0 of (?P<questions>\d+) questions asked", re.M)
ENDS = re.compile(STAMP + r": (?:\d+ questions asked, the answers to|does not fit)", re.M)


class Authoritative(Patched):
    """BIND with the zone. more: for the zone's clause."""
    origin, more = peers.ZONE, ""

    def configure(self, peer):
        text = replaced(super().configure(peer), "    allow-recursion { any; };\n", "    recursion no;\n")
        return replaced(text, FORWARDING, "") + f'zone "{self.origin}" {{ type primary; file "{peer.zone}"; {self.more}}};\n'


class Preloaded(Authoritative, WithPluginAsItComes):
    """The same, whose zone is in the kernel before it is asked. It has a log for each zone."""

    def __init__(self, bench, link, kind, port, zone, **options):
        super().__init__(bench, link, kind, port, zone, **options)
        self.dir = bench.run.dir / f"preloaded-{zone.name}"

    def clause(self, line):
        return super().clause(line) + line.format("hydns-preload", f'{{ "{self.origin}"; }}')

    def wait_preloaded(self, names):
        """{figure: value} of preloading, once it is over."""
        def ended():
            log = self.program.log.read_text()
            return self.program.must_run() and ENDS.search(log) and (BEGINS.search(log), ENDS.search(log))
        began, end = wait_until(ended, 60 + names / PRELOADED_LEAST,
                                lambda: f"{names} names to be preloaded; the end of named's log: {tail(self.program.log, 3)}")
        return {"preload_seconds": round(moment(end) - moment(began), 3), "questions": int(began["questions"]),
                "kept": self.daemon.call({"cmd": "status"})["resolvers"][0]["preloaded"]}


def moment(line):
    return datetime.datetime.strptime(line[1], "%d-%b-%Y %H:%M:%S.%f").timestamp()


class Dnsdist(peers.Peer):
    """Before BIND alone, with room for the whole zone in its cache."""

    def __init__(self, *arguments, names, **options):
        super().__init__(*arguments, **options)
        self.names, self.make_config = names, self.configure

    def configure(self, peer):
        text = replaced(peers.dnsdist_config(peer), f"127.0.0.1:{peers.BACKEND}", f"{peer.address}:{PORTS[BIND]}")
        return replaced(text, "newPacketCache(100000", f"newPacketCache({max(100_000, 2 * self.names)}")


class Server:
    """One that is asked. behind: the peer that it asks; daemon: hydnsd, whose answers need another sink."""

    def __init__(self, peer, behind=None, daemon=None):
        self.peer, self.behind, self.daemon = peer, behind, daemon
        self.link, self.port, self.options = peer.link, peer.port, {"xdp-sink": bool(daemon)}
        self.preloading = {}

    def _parts(self):
        return [part.program for part in (self.peer, self.behind, self.daemon) if part]

    def must_run(self):
        for program in self._parts():
            program.must_run()

    def cpu_ns(self):
        """Of all that works for its clients."""
        return cpu_ns([pid for program in self._parts() for pid in program.processes()])

    def reasons(self):
        """What the program did with packets so far, {reason: number}; None without the kernel path."""
        return self.daemon and self.daemon.reasons()


class Host(RoutedLink):
    """Their end of the link is polled by a thread on their processor."""

    def __init__(self, run, label):
        super().__init__(run, label)
        take_live_frames(self)
        poll_by_thread(self, cpus.RESOLVER[0])


def hosts(run):
    """{contender: its host}"""
    sockets, own = Host(run, "zone-sockets"), {HYDNS: "zone-hydns", "Knot, XDP": "zone-xdp"}
    return {contender: Host(run, own[contender]) if contender in own else sockets for contender in CONTENDERS}


def capacity(tools, names):
    """Rules of hydnsd for the zone, as far as it takes so many."""
    said = subprocess.run([tools.hydnsd, "--help"], capture_output=True, text=True).stdout
    most = re.search(r"--capacity .*\(1\.\.(\d+);", said)
    return min(int(most[1]), max(CAPACITY, int(RESERVE * ANSWERS * (names + APEX)) + 1))


def start_hydns(bench, stack, host, names, zone):
    """It preloads while nothing else runs."""
    rules = capacity(bench.tools, names)
    daemon = stack.enter_context(Hydnsd(bench.world_like, host.ns, (host.server,), capacity=rules, name=host.label))
    cpus.give_to_resolver(daemon.program)
    server = Server(stack.enter_context(Preloaded(bench, host, BIND, PORTS[HYDNS], zone, daemon=daemon)), daemon=daemon)
    server.preloading = {**server.peer.wait_preloaded(names), "capacity": rules}
    return server


def other(bench, host, contender, names, zone):
    """Its server, not started yet."""
    about = bench, host, contender, PORTS[contender], zone
    if contender == DNSDIST:
        return Dnsdist(*about, names=names)
    return (Authoritative if contender == BIND else peers.Peer)(*about)


def start(bench, stack, at, names, result):
    """{contender: server} with a zone of so many names, of those that could run. at: hosts()."""
    zone, found = bench.run.dir / f"zone-{names}", {}
    peers.write_zone(zone, names)
    for contender, host in at.items():
        with going_on(f"zone: {names:,} names: {contender} starts"):
            if contender == HYDNS:
                found[HYDNS] = start_hydns(bench, stack, host, names, zone)
            elif peer := versus.start(stack, other(bench, host, contender, names, zone), names, result, caches=(DNSDIST,)):
                found[contender] = Server(peer, behind=found[BIND].peer if contender == DNSDIST else None)
    found[HYDNS].preloading.update(memory(found))
    return found


def memory(servers):
    """Octets: of hydnsd and its maps, and how much more named has with the plugin."""
    hydns, alone = servers[HYDNS], servers.get(BIND)
    more = alone and max(0, anonymous(hydns.peer.program.pid) - anonymous(alone.peer.program.pid))
    return {**memory_of(hydns.daemon), "resolver_bytes": more or 0}
