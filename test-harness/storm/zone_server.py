# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The authoritative server of storm.example. that a resolver asks: it logs each RRset that it sends, with the time."""

import random
import socket
import time

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import dns.rrset

from lab.changing_zones import STORM
from lab.thread_server import ThreadServer

from . import zone
from .zone import Key

CHANGES = 10                      # a second
SERVER = f"ns.{zone.ZONE}"
STATIC = {Key(zone.ZONE, "NS"): SERVER, Key(SERVER, "A"): STORM[4], Key(SERVER, "AAAA"): STORM[6]}
STATIC_OWNERS = {key.owner for key in STATIC}
STATIC_TTL = 3600


class ZoneServer(ThreadServer):
    """Context manager: a thread that answers on both addresses, and changes one RRset after the other from change() on, without
    notifying anybody."""

    def __init__(self, world, ledger, seed):
        super().__init__(world.network.authoritative, "zone-server")
        self.ledger = ledger
        self.rng = random.Random(f"changes {seed}")
        self.current = {}         # key -> (stamp, Datum)
        self.names = {key.owner for key in (*zone.RECORDS, *zone.ALIASES)}
        for key in (*zone.STEADY, *zone.GHOSTS):
            self.current[key] = ledger.new(key)
        for family, address in STORM.items():
            self.ns.address("lo", f"{address}/{32 if family == 4 else 128}")
            self.socket(socket.AF_INET if family == 4 else socket.AF_INET6).bind((address, 53))
        self._changing = False
        self._now = 0             # when the query was read that is being answered

    def change(self, changing=True):
        self._changing = changing

    def serve(self):
        due = time.monotonic()
        while (ready := self.ready(max(0.0, due - time.monotonic()))) is not None:
            for s in ready:
                wire, client = s.recvfrom(4096)
                self._now = time.monotonic_ns()
                try:
                    s.sendto(self._reply(dns.message.from_wire(wire)).to_wire(), client)
                    self.ledger.sent[self._now] = time.monotonic_ns()
                except (dns.exception.DNSException, OSError):     # not a query; or the link is down: the resolver asks again
                    continue
            if time.monotonic() >= due:
                due = time.monotonic() + 1 / CHANGES
                self._change_one()

    def _change_one(self):
        key = self.rng.choice(zone.CHANGING)
        if self._changing:
            present = key not in zone.GHOSTS or not self.current[key][1].present
            self.current[key] = self.ledger.new(key, present=present)

    def _reply(self, query):
        reply = dns.message.make_response(query)
        reply.flags |= dns.flags.AA
        question = query.question[0]
        key = Key(question.name.to_text().lower(), dns.rdatatype.to_text(question.rdtype))
        alias = Key(key.owner, "CNAME")
        if key in STATIC:
            reply.answer.append(dns.rrset.from_text(key.owner, STATIC_TTL, "IN", key.rdtype, STATIC[key]))
        elif key.owner.endswith(f".{zone.LARGE.owner}") and key.rdtype == zone.LARGE.rdtype:
            reply.answer.append(dns.rrset.from_text(key.owner, zone.LARGE_TTL, "IN", key.rdtype, zone.LARGE_RDATA))
        elif key == zone.SOA:
            reply.answer.append(self._set(key, *self.ledger.new(key)))
        elif alias in zone.ALIASES:
            self._add_alias(reply, alias, key.rdtype)
        elif not self._add(reply, key):
            self._deny(reply, key)
        return reply

    def _set(self, key, stamp, datum):
        datum.fetches.append(self._now)
        return dns.rrset.from_text(key.owner, zone.ttl(key), "IN", key.rdtype, zone.rdata(key, stamp))

    def _add(self, reply, key):
        """Adds the RRset to the answer; False when there is none."""
        fresh = key in zone.FRESH
        if not fresh and (key not in self.current or not self.current[key][1].present):
            return False
        reply.answer.append(self._set(key, *(self.ledger.new(key) if fresh else self.current[key])))
        return True

    def _add_alias(self, reply, alias, rdtype):
        if alias not in self.current:
            self.current[alias] = self.ledger.new(alias)
        reply.answer.append(self._set(alias, *self.current[alias]))
        target = Key(zone.ALIASES[alias], rdtype)
        if rdtype != "CNAME" and not self._add(reply, target):
            self._deny(reply, target)

    def _exists(self, owner):
        ghost = self.current.get(Key(owner, "A")) if Key(owner, "A") in zone.GHOSTS else None
        return ghost[1].present if ghost else owner in self.names or owner in STATIC_OWNERS

    def _deny(self, reply, key):
        if not self._exists(key.owner):
            reply.set_rcode(dns.rcode.NXDOMAIN)
        reply.authority.append(self._set(zone.SOA, *self.ledger.new(zone.SOA)))
        self.ledger.denials[key].append(self._now)
