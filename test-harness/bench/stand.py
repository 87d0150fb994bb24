# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Hosts with a resolver each, between clients and an authoritative server, for contenders that take turns.

Every host has a namespace, a link to its clients, and one to the namespace of the authoritative server, which all share. Kernel
threads on the resolver's processor poll the host's ends, one on another processor the authoritative server's. So driver,
program and stack are charged to the side that they work for. Without a thread there, a resolver would do the authoritative
server's part in its own system calls. At the clients' end it does: there a sink takes the replies, and hands their memory back
to the processor that it came from, as a network card does."""

from contextlib import ExitStack
from pathlib import Path

from lab import cpus
from lab.network import UPSTREAM_PORTS, Namespace, poll, veth
from lab.process import run_tool
from lab.run import wait_until
from lab.servers import Hydnsd

from . import peers, released_unbound
from .overhead import COLD, Patched, WithPlugin
from .pace import RoutedLink, poll_device_by_thread

AUTHORITATIVE = "203.0.113.53"
DEVICES = 2                       # of a host: to its clients, to upstream
# Parts of the rings that a contender uses: (clients', upstream); None: no module, no hydnsd.
RELEASED = "released"
RINGS = {"alone": None, "sockets": ("no", "no"), "clients": ("yes", "no"), "rings": ("yes", "yes")}


class Authoritative:
    """The namespace of an NSD with the generator's names, and the NSD's place for peers.Peer."""
    SERVICE = AUTHORITATIVE

    def __init__(self, run, bench):
        self.label = f"{bench}-upstream"
        self.ns = Namespace(run, self.label)
        self.ns.address("lo", f"{AUTHORITATIVE}/32")

    def server(self, bench, zone):
        return peers.Peer(bench, self, "NSD", peers.BACKEND, zone, processors=cpus.OTHERS)


class Host(RoutedLink):
    """The links of one contender of a bench. polling: the threads that poll the host's ends."""
    upstream = "u0"

    def __init__(self, run, number, bench, contender, authoritative):
        super().__init__(run, f"{bench}-{contender}")
        far = f"u{number + 1}"
        veth(self.ns, self.upstream, authoritative.ns, far)
        self.ns.address(self.upstream, f"10.77.{number}.1/24")
        authoritative.ns.address(far, f"10.77.{number}.2/24")
        self.ns.route(f"10.77.{number}.2", f"{AUTHORITATIVE}/32")
        with self.ns.entered():
            Path("/proc/sys/net/ipv4/ip_local_reserved_ports").write_text(UPSTREAM_PORTS)
        poll(self.ns, self.server)
        self.polling = poll_device_by_thread(self.ns, self.server, cpus.RESOLVER[0])
        self.polling += poll_all(self.ns, self.upstream, cpus.RESOLVER[0])
        poll_all(authoritative.ns, far, cpus.OTHERS[0])


def poll_all(ns, device, processor):
    """Makes threads there poll the device also for packets of sockets; returns them. A veth whose other end could send segments
    to be cut by a card hands such packets over on the sender's processor."""
    poll(ns, device)
    run_tool(ns, ["ethtool", "-K", device, "tso", "off"])
    return poll_device_by_thread(ns, device, processor)


class Alone(Patched):
    """A resolver that asks the authoritative server."""

    def configure(self, peer):
        text = super().configure(peer)
        for between in ("@", " port "):       # of Unbound, of BIND
            text = text.replace(f"127.0.0.1{between}{peers.BACKEND}", f"{AUTHORITATIVE}{between}{peers.BACKEND}")
        return text


class Released(Alone):
    """Unbound as it was released, without a patch."""

    def command(self):
        return released_unbound.command()


class WithRings(Alone, WithPlugin):
    """The same with module and hydnsd, with rings or without. admission: as WithPlugin.admission."""

    def __init__(self, *arguments, rings, admission, **options):
        super().__init__(*arguments, **options)
        self.rings, self.admission = rings, admission

    def lanes(self):
        return len(self.daemon.call({"cmd": "status"})["resolvers"][0]["lanes"])

    def carried(self):
        """What its packet rings have carried, as hydnsctl stats has it."""
        return self.daemon.call({"cmd": "stats"})["resolvers"][0]["packet_rings"]


class Hosts:
    """The hosts of all contenders, and their servers, which may be started anew."""

    def __init__(self, bench):
        self.bench = bench
        self.authoritative = Authoritative(bench.run, "queue")
        self.host = {c: Host(bench.run, i, "queue", c, self.authoritative) for i, c in enumerate((*RINGS, RELEASED))}
        self.zone = bench.run.dir / "queue.zone"
        peers.write_zone(self.zone, None)

    def start(self, stack, contenders, threads=1, admission=COLD):
        """Enters the servers of these contenders into the stack; returns {contender: Unbound}. admission: COLD, so that nothing is
        offered; None for the default."""
        self.nsd = stack.enter_context(self.authoritative.server(self.bench, self.zone))
        return {c: self._unbound(stack, c, threads, admission) for c in contenders}

    def _unbound(self, stack, contender, threads, admission):
        what, rings = (self.bench, self.host[contender], "Unbound", 53, self.zone), RINGS.get(contender)
        if rings is None:
            return stack.enter_context((Released if contender == RELEASED else Alone)(*what, threads=threads))
        host = self.host[contender]
        links = host.server, host.upstream
        daemon = stack.enter_context(Hydnsd(self.bench.world_like, host.ns, links, name=host.label))
        cpus.keep_from_resolver(daemon.program)
        server = stack.enter_context(WithRings(*what, rings=rings, admission=admission, threads=threads, daemon=daemon))
        wait_until(daemon.resolver_ready, 20, f"Unbound's module to register with hydnsd ({contender})")
        wait_until(lambda: server.lanes() == (DEVICES if "yes" in rings else 0), 20, f"the lanes of {contender}")
        return server
