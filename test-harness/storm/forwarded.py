# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""As parked.py, with a forwarded zone: the queries wait for an upstream server that the kernel has asked. Also reloads the resolver, and
the server's data change with each round: once the flush has returned, no client may get the data of a round before. After each round no
request is open, neither in hydnsd nor in the kernel, and no port is taken."""

import dns.message
import dns.rcode
import dns.rdata
import dns.rdatatype

from lab import pinned
from lab.forwarding import bind_forwards, bind_zone, forward_zone, is_ready, of_resolvers
from lab.layouts import number
from lab.network import CLIENT_LINKS
from lab.run import SOON, HarnessError, wait_until
from lab.servers import EVERY_CLIENT_WAITS

from .parked import BOUND, HYDNSD, NO_QUERY, PATIENCE, RESOLVER, UPSTREAM, Parked

RELOAD = "reload"
ZONE = "lab.example."
UPSTREAM_LINK = "ra"
DEVICE = number("HYDNS_FORWARD_DEVICE")


def _device(word):
    """HYDNS_PORT_DEVICE() of include/hydns/queue.h."""
    return word >> 10 & 63


class Forwarded(Parked):
    """Unbound drops the queries that it has read when it reloads; named goes on with them."""

    LINKS = (*CLIENT_LINKS, UPSTREAM_LINK)
    NO_QUERY = (*NO_QUERY, "FORWARDED", "UPSTREAM_ANSWER", "UPSTREAM_FALSE")
    VICTIMS = {HYDNSD: (RESOLVER, UPSTREAM, RELOAD), RESOLVER: (HYDNSD, UPSTREAM, RELOAD)}
    PATIENCE = {**PATIENCE, RELOAD: 2.0}

    def __init__(self, kind, *args):
        super().__init__(kind, *args)
        self.takes_along = (RESOLVER, RELOAD) if kind == "unbound" else (RESOLVER,)
        self.from_upstream = 0           # datagrams that came to the host's sockets

    def _make(self):
        """Answers to the resolver's own queries come by sockets, where they can be counted: the program counts them as it does a query
        for no service."""
        if self.kind == "unbound":
            return self.world.unbound(self.daemon, server=forward_zone(self.relay.address, zone=ZONE),
                                      clause=(f"hydns-pending-max: {BOUND}", "hydns-queue-upstream: no"))
        return self.world.named(self.daemon, options=(EVERY_CLIENT_WAITS,), zones={ZONE: bind_zone(self.relay.address)},
                                clause=(f"hydns-pending-max {BOUND};", "hydns-queue-upstream no;", bind_forwards(ZONE)))

    @property
    def address(self):
        """Of all names in this round."""
        return f"192.0.2.{self.asked % 250 + 1}"

    def _with_address(self, wire):
        reply = dns.message.from_wire(wire)
        for rrset in reply.answer:
            if rrset.rdtype == dns.rdatatype.A:
                rrset.clear()
                rrset.add(dns.rdata.from_text("IN", "A", self.address), 300)
        return reply.to_wire()

    def _prepare(self):
        self.relay.change = self._with_address

    def _wait_ready(self):
        super()._wait_ready()
        wait_until(lambda: is_ready(self.daemon), SOON, "the zone to be forwarded")

    def _end_process(self, victim, away):
        if victim == RELOAD:
            self.resolver.control("reload")
            self.resolver.control("status")      # Unbound acknowledges reload before it reloads, and this afterwards
        else:
            super()._end_process(victim, away)

    def ends(self):
        """A forwarded query waits, like a parked one."""
        ends = super().ends()
        self.from_upstream += self.others.take_udp(UPSTREAM_LINK)
        return ends._replace(queries=ends.queries - self.from_upstream, parked=ends.parked + self._sent())

    def _sent(self):
        return self.daemon.reasons()["FORWARDED"]

    def _tables(self):
        return (*super()._tables(), ("requests open", lambda: sum(r["open"] for r in of_resolvers(self.daemon))),
                ("questions open in the kernel", lambda: pinned.entries(self.daemon.pins / "hydns_fwd_open")),
                ("octets unread in hydns_answered", lambda: pinned.unread(self.daemon.pins / "hydns_answered")),
                ("ports taken by requests", self._ports))

    def _ports(self):
        with pinned.writable(self.daemon.pins / "hydns_ports") as memory:
            if not any(memory[:]):
                return 0
            return sum(_device(int.from_bytes(memory[at:at + 8], "little")) == DEVICE for at in range(0, len(memory), 8)
                       if any(memory[at:at + 8]))

    def _judge_answers(self, where, crowd):
        """Who gets no failure gets this round's data."""
        wanted = bytes(int(n) for n in self.address.split(".")).hex()
        for _, rcode, rdata in crowd.answers:
            if rcode not in (dns.rcode.NOERROR, dns.rcode.SERVFAIL) or rcode == dns.rcode.NOERROR and rdata != wanted:
                self._wrong(f"{where}: a client got {dns.rcode.to_text(rcode)} {rdata}, not {wanted}")

    def run(self, rounds):
        result = super().run(rounds)
        if rounds >= 8 and not self.forwarded:
            raise HarnessError("no query was forwarded: the run says nothing")
        return result
