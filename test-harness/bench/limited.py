# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The contenders of `flood`: servers with limits for each client, each on a host of its own with a link to clients and an
authoritative server. Their limits stand here, and nowhere else."""

import os
from contextlib import ExitStack
from pathlib import Path

from lab import cpus
from lab.losses import driver_count
from lab.network import RESOLVER_HOPS
from lab.run import HarnessError, replaced, wait_until
from lab.servers import Hydnsd

from . import floods, peers
from .overhead import Patched, WithPluginAsItComes
from .pace import GENERATOR, RoutedLink
from .stand import poll_all

LIMIT = 50                     # queries a second of a client
BLOCKED = 10                   # seconds, for which dnsdist blocks a client that was above the limit
FIRST = 1                      # real-time priority of what works on the generator's processor
BUFFER = 4 << 20               # octets of a socket that clients ask
SERVICE6 = floods.SERVICE[6]
BEHIND = 5301                  # port of the Unbound behind dnsdist
UNBOUND, GUARDED_UNBOUND, UNBOUND_ALONE, BIND, GUARDED_BIND, BIND_ALONE, DNSDIST, KRESD = CONTENDERS = (
    "Unbound with hyDNS", "Unbound with hyDNS and its guard", "Unbound", "BIND with hyDNS", "BIND with hyDNS and its guard", "BIND",
    "dnsdist", "Knot Resolver")
GUARDED = {UNBOUND: GUARDED_UNBOUND, BIND: GUARDED_BIND}
# By default Unbound answers one of ten queries above the limit: so a flood of ten times what it can take keeps it busy.
UNBOUND_LIMITS = f"""    ip-ratelimit: {LIMIT}
    ip-ratelimit-factor: 0
    answer-cookie: yes
    cookie-secret: "{floods.SECRET.hex()}"
"""
BIND_LIMITS = f"""    rate-limit {{ responses-per-second {LIMIT}; }};
    cookie-algorithm siphash24;
    cookie-secret "{floods.SECRET.hex()}";
    max-cache-size 256M;
"""
# By default named logs each response that it drops, which it must then see. Of a flood nobody wants that.
BIND_LOG = "logging { category query-errors { null; }; };\n"
# The analysis reads the last queries, of which there must be enough for a second.
DNSDIST_LIMITS = f"""setRingBuffersSize(1000000, 100)
setUDPSocketBufferSizes({BUFFER}, {BUFFER})
local limits = dynBlockRulesGroup()
limits:setQueryRate({LIMIT}, 1, "above the limit", {BLOCKED}, DNSAction.Drop)
function maintenance() limits:apply() end
"""
# Clients have the same limit; the suffix is guarded by order, since its server answers what does not exist, and soon.
GUARD = ["--guard", "enforce", "--guard-client-queries", LIMIT, "--guard-suffix", "manual"]
KRESD_FIRST = 6                # its first version with limits
KRESD_LIMITS = """local ffi = require("ffi")
assert(ffi.C.ratelimiting_init("{dir}/limits", 524288, {limit}, {limit}, 2, 0, false) == 0)
"""


class Limited:
    """A resolver with its limits, which serves IPv6, too."""

    def configure(self, peer):
        text = super().configure(peer)
        if self.kind == "BIND":
            return BIND_LOG + replaced(replaced(text, "    allow-query", BIND_LIMITS + "    allow-query"), "listen-on-v6 { none; }",
                            f"listen-on-v6 {{ {SERVICE6}; }}")
        return replaced(text, "server:\n", f"server:\n    interface: {SERVICE6}\n    access-control: ::/0 allow\n{UNBOUND_LIMITS}")


class Alone(Limited, Patched):
    pass


class Hydns(Limited, WithPluginAsItComes):
    pass


class Dnsdist(peers.Peer):
    """It asks an Unbound without limits, which would be those of one client."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.make_config = self.configure

    @staticmethod
    def configure(peer):
        # 1.7 knows no healthCheckMode: it asks for a name of the root, which no server here has
        text = replaced(peers.dnsdist_config(peer), f'"127.0.0.1:{peers.BACKEND}"', f'"127.0.0.1:{BEHIND}", checkName="{floods.HOT_NAME}."')
        return text + f'addLocal("[{SERVICE6}]:53")\naddACL("::/0")\n' + DNSDIST_LIMITS


class Kresd(peers.Peer):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.make_config = self.configure

    @staticmethod
    def configure(peer):
        listen = f'net.listen("{SERVICE6}", 53, {{ kind = "dns" }})\n'
        return listen + peers.kresd_config(peer) + KRESD_LIMITS.format(dir=peer.dir, limit=LIMIT)

    def __enter__(self):
        if self.command() and int(self.version().split(".")[0]) < KRESD_FIRST:
            raise HarnessError(f"{self.kind} {self.version()} has no limits for clients: {KRESD_FIRST} and later have")
        return super().__enter__()


class Authoritative(peers.Peer):
    """Whoever wakes by ordinary priority may wait for the generator until the next tick."""

    def command(self):
        return ["chrt", "--rr", FIRST, *super().command()]


class Host(RoutedLink):
    """The link, with IPv6, by which clients have the addresses of all sources. Replies of the host itself have another hop limit
    than those of the kernel path. Threads on the generator's processor poll both ends: otherwise the processor that happened to begin
    would go on as long as frames come, also the server's. They go first, as softirqs would."""
    SERVER6, CLIENT6 = "2001:db8:1::1", "2001:db8:1::7"

    def __init__(self, run, label):
        super().__init__(run, label)
        for ns, end in ((self.ns, self.server), (self.client_ns, self.client)):
            for thread in poll_all(ns, end, GENERATOR):
                os.sched_setscheduler(thread, os.SCHED_RR, os.sched_param(FIRST))
        self.ns.address(self.server, f"{self.SERVER6}/64")
        self.ns.address("lo", f"{SERVICE6}/128")
        self.client_ns.address(self.client, f"{self.CLIENT6}/64")
        for network in floods.NETWORKS:
            self.ns.route(self.CLIENT6 if ":" in network else self.CLIENT, network)
        with self.ns.entered():
            for file in ("ipv4/ip_default_ttl", f"ipv6/conf/{self.server}/hop_limit"):
                Path("/proc/sys/net", file).write_text(str(RESOLVER_HOPS))


def lost_on(link):
    """Frames so far that the link had no room for, in either direction."""
    return sum(driver_count(ns, end, r"tx_queue_\d+_xdp_xmit_errors|rx_queue_\d+_(?:drops|xdp_tx_errors)")
               for ns, end in ((link.ns, link.server), (link.client_ns, link.client)))


class Contender:
    """Context manager: the servers of one contender, on its host."""

    def __init__(self, bench, name, zone):
        self.bench, self.name, self.zone = bench, name, zone
        self.link = Host(bench.run, f"flood{CONTENDERS.index(name)}")
        self.daemon = None

    def __enter__(self):
        with ExitStack() as stack:
            stack.enter_context(self._peer(Authoritative, "NSD", peers.BACKEND, address="127.0.0.1", processors=cpus.OTHERS))
            self.servers = self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def _peer(self, make, kind, port=53, **options):
        return make(self.bench, self.link, kind, port, self.zone, **options)

    def unlimited(self):
        """Context manager: an Unbound alone on this host that has no limits, at another port."""
        return self._peer(Patched, "Unbound", BEHIND)

    def _start(self, stack):
        """Returns the servers, the one that clients ask first."""
        enter, kind = stack.enter_context, self.name.partition(" ")[0]
        guarded = self.name in GUARDED.values()
        if guarded or self.name in GUARDED:
            self.daemon = enter(Hydnsd(self.bench.world_like, self.link.ns, (self.link.server,), name=self.link.label,
                                       options=GUARD if guarded else ()))
            cpus.give_to_resolver(self.daemon.program)
            server = enter(self._peer(Hydns, kind, daemon=self.daemon))
            wait_until(self.daemon.resolver_ready, 20, f"{kind}'s plugin to register with hydnsd")
            if guarded:
                self.daemon.call({"cmd": "guard", "set": floods.ATTACKED, "seconds": 86400})
            return [server]
        if self.name == DNSDIST:
            behind = enter(self._peer(Patched, "Unbound", BEHIND, address="127.0.0.1"))
            return [enter(self._peer(Dnsdist, "dnsdist")), behind]
        return [enter(self._peer(Kresd, self.name) if self.name == KRESD else self._peer(Alone, kind))]

    def pids(self):
        """Of all that works for its clients."""
        return [part.program.pid for part in (*self.servers, self.daemon) if part]

    def must_run(self):
        for part in (*self.servers, self.daemon):
            if part:
                part.program.must_run()

    def lost_on_link(self):
        return lost_on(self.link)

    def reasons(self):
        """What the program did with packets so far, {reason: number}; none without the kernel path."""
        return self.daemon.reasons() if self.daemon else {}
