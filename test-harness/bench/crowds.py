# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Crowds of clients that ask resolvers behind a slow authoritative server: the servers, and one crowd. Used by coalescing.py and
threshold.py."""

from contextlib import ExitStack

import dns.rcode
from lab import cpus
from lab.crowd import gather
from lab.relay import Relay
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from . import peers
from .overhead import Patched, WithPluginAsItComes

SECONDS = 0.1                  # within which a crowd asks
TIMEOUT = 3.0                  # seconds after which a client counts as lost
KINDS = ("Unbound", "BIND")
RELAY = "127.0.0.54"
# Of what waits for one client's address or one question, and in all: by default Unbound drops 9 of 10 of such a crowd, named nearly
# all.
NO_LIMITS = (("    num-threads: 1\n", "    num-threads: 1\n    wait-limit: 0\n    num-queries-per-thread: 16384\n"),
             ("    minimal-responses yes;\n", "    minimal-responses yes;\n    clients-per-query 0;\n    max-clients-per-query 0;\n"
              "    recursive-clients 20000;\n"))
RIGHT = bytes((203, 0, 113, 1)).hex()


class Unlimited:
    """A resolver that lets all clients wait."""

    def configure(self, peer):
        text = super().configure(peer)
        for former, own in NO_LIMITS:
            text = text.replace(former, own)
        return text


class Late(Unlimited):
    """The same, which asks the slow authoritative server."""

    def configure(self, peer):
        text = super().configure(peer)
        for former, own in ((f"127.0.0.1@{peers.BACKEND}", f"{RELAY}@53"), (f"127.0.0.1 port {peers.BACKEND}", f"{RELAY} port 53")):
            text = text.replace(former, own)
        return text


class Alone(Late, Patched):
    pass


class Parking(Late, WithPluginAsItComes):
    """By sockets: of the resolvers on a receive queue only one has packet rings, and contenders differ in parking alone. most:
    hydns-pending-max; None for the default."""
    rings = "no", "no"

    def __init__(self, *arguments, most=None, **options):
        super().__init__(*arguments, **options)
        self.most = most

    def clause(self, line):
        return super().clause(line) + (line.format("hydns-pending-max", self.most) if self.most is not None else "")


class Stand:
    """Context manager: a link with hydnsd and one without, each with an authoritative server that answers late (seconds)."""

    def __init__(self, bench, late):
        self.bench, self.late = bench, late
        self.zone = bench.run.dir / "crowds.zone"
        self._stack = ExitStack()

    def __enter__(self):
        enter, self._relays = self._stack.enter_context, {}
        peers.write_zone(self.zone, None)
        for link in (self.bench.plain_link, self.bench.routed_link):
            enter(peers.Peer(self.bench, link, "NSD", peers.BACKEND, self.zone, address="127.0.0.1", processors=cpus.ALL))
            self._relays[link] = enter(Relay(link.ns, RELAY, "127.0.0.1", port=peers.BACKEND))
            self._relays[link].delay = self.late
        self.daemon = enter(Hydnsd(self.bench.world_like, self.bench.routed_link.ns, (self.bench.routed_link.server,)))
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def alone(self, stack, kind, link, port):
        return stack.enter_context(Alone(self.bench, link, kind, port, self.zone, cpus.ALL))

    def parking(self, stack, kind, port, most=None):
        return stack.enter_context(Parking(self.bench, self.bench.routed_link, kind, port, self.zone, cpus.ALL, daemon=self.daemon,
                                           most=most))

    def wait_ready(self, count):
        wait_until(lambda: self.daemon.resolvers_ready() >= count, 20, f"{count} resolvers to register with hydnsd")

    def crowd(self, server, clients, numbers):
        """(what the server's crowd got that asked for the names of these numbers, how many queries came to the authoritative
        server)."""
        relay = self._relays[server.link]
        relay.asked.clear()
        questions = [(f"{peers.label(n)}.{peers.ZONE}", "A") for n in numbers]
        crowd = gather(self.bench.world_like, server.link.client_ns, server.link.SERVICE, questions, clients, SECONDS,
                       timeout=TIMEOUT, port=server.port)
        wrong = [data for _, rcode, data in crowd.answers if (rcode, data) != (dns.rcode.NOERROR, RIGHT)]
        if crowd.twice or crowd.strays or wrong:
            raise HarnessError(f"{server.kind} at port {server.port}: wrong replies: {wrong}, {crowd}")
        return crowd, len(relay.asked)
