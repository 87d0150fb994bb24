# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with a zone of `authority`, alone or with the plugin that has preloaded the zone, on a host with a link to clients."""

from contextlib import contextmanager
from pathlib import Path

from lab import cpus
from lab import preloaded as preloaded_zones
from lab.client import ask
from lab.network import RESOLVER_HOPS
from lab.run import replaced, wait_until
from lab.servers import Hydnsd

from . import zone_servers
from .cost import anonymous, memory_of
from .pace import RoutedLink

ALONE = 5303                   # port of BIND alone
GLUE = "    minimal-responses yes;\n    preferred-glue A;\n"     # else answers with glue of both families pass


class Host(RoutedLink):
    """Its clients have sockets. The hop limit of a reply tells who has sent it."""

    def __init__(self, bench, label):
        super().__init__(bench.run, label)
        self.take_xdp_replies(bench.tools.pass_object)
        with self.ns.entered():
            Path("/proc/sys/net/ipv4/ip_default_ttl").write_text(str(RESOLVER_HOPS))


class OfAnyKind:
    """A server of zone_servers whose zone has an origin of its own. more: for the zone's clause. service6: an IPv6 address where it
    listens, too."""

    def __init__(self, *arguments, origin, more="", service6=None, **options):
        super().__init__(*arguments, **options)
        self.origin, self.more, self.service6 = origin, more, service6 or "none"

    def configure(self, peer):
        text = replaced(super().configure(peer), "    minimal-responses yes;\n", GLUE)
        return replaced(text, "listen-on-v6 { none; }", f"listen-on-v6 {{ {self.service6}; }}")

    def answers(self):
        reply = ask(self.link.ns, self.address, self.origin, "SOA", rd=False, timeout=0.3, port=self.port)
        return reply and reply.answer


class Alone(OfAnyKind, zone_servers.Authoritative):
    pass


class Preloaded(OfAnyKind, zone_servers.Preloaded):
    def wait_until_all_is_there(self):
        """The zone's note says that it is preloaded, and names that it does not have answered."""
        def done():
            self.program.must_run()
            return preloaded_zones.is_done(self.daemon)
        wait_until(done, 60, "names that do not exist to be answered")
        wait_until(self.daemon.resolver_ready, 20, "the program to have all its parts")


@contextmanager
def alone(bench, link, zone, port=ALONE, **options):
    with Alone(bench, link, "BIND", port, zone.path, origin=zone.origin, **options) as server:
        yield server


@contextmanager
def preloaded(bench, link, zone, **options):
    """The server; its .found says how the zone was preloaded, {figure: value}."""
    expected = preloaded_zones.estimate(bench.tools, zone)
    capacity = max(zone_servers.CAPACITY, expected["capacity"])
    with Hydnsd(bench.world_like, link.ns, (link.server,), capacity=capacity, name=link.label) as daemon:
        cpus.give_to_resolver(daemon.program)
        with Preloaded(bench, link, "BIND", 53, zone.path, origin=zone.origin, daemon=daemon, **options) as server:
            server.found = {**server.wait_preloaded(len(zone.names)), "capacity": capacity, "unkept": expected["unkept"]}
            server.wait_until_all_is_there()
            server.found["rules"] = daemon.call({"cmd": "status"})["rules"]
            yield server


def octets(server, without):
    """All memory that the kernel path takes. without: of a named alone with the same zone."""
    return {**memory_of(server.daemon), "resolver_bytes": max(0, anonymous(server.program.pid) - without)}
