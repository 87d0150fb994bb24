# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Forwarded zones: an NSD that has one, name servers that answer as a test says, and the resolver's forward zones."""

import socket
import time
from collections import Counter, namedtuple
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

from .servers import Nsd
from .thread_server import ThreadServer

ZONE = "forwarded.example."
SERVERS = ("10.53.6.53", "fd53:6::53")
MANY = 200               # hosts

RECORDS = f"""$ORIGIN {ZONE}
$TTL 300
@ IN SOA ns.{ZONE} hostmaster.{ZONE} 1 3600 900 604800 120
@ IN NS ns
@ IN MX 10 mail
@ IN MX 20 mail.elsewhere.example.
@ IN TXT "apex"
ns IN A 10.53.6.53
ns IN AAAA fd53:6::53
mail IN A 192.0.2.25
www IN A 192.0.2.80
www IN AAAA 2001:db8::80
one IN A 192.0.2.1
four IN A 192.0.2.1
four IN A 192.0.2.2
four IN A 192.0.2.3
four IN A 192.0.2.4
text IN TXT "some text" "and more"
text IN TXT "{'x' * 200}"
alias IN CNAME www
alias2 IN CNAME alias
outside IN CNAME www.elsewhere.example.
dangling IN CNAME nothing
sub.deep.below IN A 192.0.2.9
*.wild IN A 192.0.2.99
service IN SRV 1 2 443 www
service IN HTTPS 1 . alpn=h2
ptr IN PTR www
pointers IN PTR a.shared
pointers IN PTR b.shared
pointers IN PTR shared
caa IN CAA 0 issue "ca.example"
short 60 IN A 192.0.2.60
never 0 IN A 192.0.2.61
day 86400 IN A 192.0.2.62
long 604800 IN A 192.0.2.62
longer 604801 IN A 192.0.2.62
delegated IN NS ns.delegated
ns.delegated IN A 192.0.2.53
""" + "".join(f"host{i} IN A 198.51.100.{i}\n" for i in range(MANY)) + \
    "".join(f"big IN A 203.0.113.{i}\n" for i in range(1, 120))


@contextmanager
def nsd(world):
    """An NSD that serves the zone at SERVERS."""
    directory = world.run.dir / "forwarded-zone"
    directory.mkdir(exist_ok=True)
    (directory / "zone").write_text(RECORDS)
    clause = f'zone:\n    name: "{ZONE}"\n    zonefile: "zone"\n'
    try:
        with Nsd(world, world.network.authoritative, "nsd-forwarded", clause, directory, ZONE, SERVERS) as server:
            yield server
    finally:
        for address in SERVERS:
            world.network.authoritative.remove_address("lo", f"{address}/{128 if ':' in address else 32}")


def forward_zone(*servers, zone=ZONE, forward=True, more=()):
    """Lines of unbound.conf. forward: hydns-forward: yes."""
    return ["forward-zone:", f'name: "{zone}"', *(f"forward-addr: {a}" for a in servers), *more,
            *(["hydns-forward: yes"] if forward else [])]


def bind_zone(*servers, more=()):
    """The body of named.conf's zone clause."""
    return " ".join(("type forward;", "forward only;", f"forwarders {{ {' '.join(f'{a};' for a in servers)} }};", *more))


def bind_forwards(zone=ZONE):
    """The line of the plugin's braces for such a zone."""
    return f'hydns-forward {{ "{zone}"; }};'


def of_resolvers(daemon):
    """Its status of forwarding, of each resolver that is ready."""
    status = daemon.try_call({"cmd": "status"})
    return [r["forwarding"] for r in status["resolvers"] if r["state"] == "ready"] if status else []


def is_ready(daemon):
    """Whether zones are forwarded in the kernel, and all of their servers may be asked."""
    return any(f["zones"] and all(u["usable"] for u in f["upstreams"]) for f in of_resolvers(daemon))


Asked = namedtuple("Asked", "at port wire client")


def answer(query, *rrsets, rcode=dns.rcode.NOERROR, authority=(), flags=dns.flags.AA | dns.flags.RA):
    """A reply to the query, as octets. rrsets: (TTL, type, data, ...), or with the owner name first."""
    reply = dns.message.make_response(query)
    reply.flags |= flags
    reply.set_rcode(rcode)
    for section, sets in ((reply.answer, rrsets), (reply.authority, authority)):
        for one in sets:
            owner, rest = (query.question[0].name, one) if isinstance(one[0], int) else (one[0], one[1:])
            section.append(dns.rrset.from_text(owner, rest[0], "IN", *rest[1:]))
    return reply.to_wire()


class Upstream(ThreadServer):
    """A name server that answers as reply (a function of a query) says: octets, a list of them, or None for silence. Context
    manager; reply and delay (seconds) may be changed at any time. asked: what came (Asked), answered: of how many the answers have
    left, ports: how often each port asked."""

    def __init__(self, ns, address, reply=lambda query: answer(query, (300, "A", "192.0.2.7"))):
        super().__init__(ns, "upstream")
        self.address, self.reply, self.delay, self.asked, self.answered = address, reply, 0.0, [], 0
        ns.address("lo", f"{address}/{128 if ':' in address else 32}")
        self.front = self.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        self.front.bind((address, 53))

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.ns.remove_address("lo", f"{self.address}/{128 if ':' in self.address else 32}")

    @property
    def ports(self):
        return Counter(a.port for a in list(self.asked))

    def names(self):
        """How often each name was asked for, in lower case."""
        return Counter(str(dns.message.from_wire(a.wire).question[0].name).lower() for a in list(self.asked))

    def serve(self):
        while self.ready(None) is not None:
            wire, client = self.front.recvfrom(65535)
            self.asked.append(Asked(time.monotonic(), client[1], wire, client))
            if self.delay:
                time.sleep(self.delay)
            replies = self.reply(dns.message.from_wire(wire))
            for octets in replies if isinstance(replies, list) else [replies]:
                if octets is not None:
                    self.front.sendto(octets, client)
            self.answered += 1
