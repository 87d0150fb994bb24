# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the servers of slow_zones.py have sent, and when they were silent. It says whether a reply was true: two replies to one
question may differ when one is a failure and the other an answer, if both are true. A failure is when a server that must answer
for the name was silent so shortly before that the resolver may still fail for it. An answer is when the server has sent each of
its RRsets with these data at the time that its TTL tells."""

import threading
from collections import defaultdict

from lab.compare import Unreadable, rrsets

from .slow_zones import NEGATIVE_TTL, SIGNED, question_of, zone_of, zones_behind

SECOND = 10**9
# By how much the time that a TTL tells may be off: resolvers count whole seconds, the kernel path may be one off, and a resolver that
# waits for a processor counts from when it reads the reply.
BEFORE, AFTER = 3 * SECOND, 2 * SECOND
CNAME, SOA = 5, 6
RD, TC = 0x01, 0x02      # in the first octet of the flags
NOERROR, SERVFAIL, NXDOMAIN = 0, 2, 3
RCODE = 0x0F


def failed(wire):
    return bool(wire) and wire[3] & RCODE == SERVFAIL


def _sets(wire):
    """{(owner, type, type that is covered): (sorted data, TTL)} of a reply's answer, and the SOA of a denial."""
    found = {}
    for (section, owner, rtype, _, covered), data, ttls in rrsets(wire, bytes.lower):
        if section == 0 or section == 1 and SOA in (rtype, int.from_bytes(covered, "big")):
            found[owner, rtype, covered] = sorted(data), max(ttls)
    return found


def _denial(name, rtype, rcode):
    """What a denial is about: a name, whatever the type that was asked for, or one of its types."""
    return name, None if rcode == NXDOMAIN else rtype, rcode


class Ledger:
    """remembered: the most seconds from the end of a server's silence to the last failure that a resolver sends for it."""

    def __init__(self, remembered):
        self.remembered = remembered * SECOND
        self._lock = threading.Lock()
        self._silences = defaultdict(list)       # zone: [begin, end] of when its server was silent; end None: it still is
        self._sent = defaultdict(list)           # key of _sets(): [(when, data, TTL)]
        self._denied = defaultdict(list)         # _denial(): when

    def falls_silent(self, zone, at):
        with self._lock:
            self._silences[zone].append([at, None])

    def comes_back(self, zone, at):
        with self._lock:
            self._silences[zone][-1][1] = at

    def was_late(self, zone, begin, end):
        """It was silent from begin to end, as far as those could tell who had asked."""
        with self._lock:
            self._silences[zone].insert(0, [begin, end])

    def was_sent(self, wire, at):
        with self._lock:
            for key, (data, ttl) in _sets(wire).items():
                self._sent[key].append((at, data, ttl))
            question = question_of(wire)
            if question:
                self._denied[_denial(*question, wire[3] & RCODE)].append(at)

    def knows(self, wire):
        """Is the question about one of these zones?"""
        question = question_of(wire)
        return bool(question and zone_of(question[0]))

    def both_true(self, question, replies):
        """Are some of the replies failures and others answers, and all of them true? question: the query; replies: [(octets, when
        the query was sent, when the reply came)], those to the same question."""
        states = {failed(wire) for wire, _, _ in replies}
        return states == {True, False} and all(self.is_true(question, *reply) for reply in replies)

    def disproves(self, query, wire, sent, got, slack=0):
        """Is the reply an answer or a failure that these servers can't have caused? A resolver makes some of a signed zone's. slack:
        seconds by which a TTL may exceed its RRset's."""
        question = question_of(query)
        if not question or not query[2] & RD or wire[2] & TC or wire[3] & RCODE not in (NOERROR, SERVFAIL, NXDOMAIN):
            return False
        zones = zones_behind(question[0])
        return self._says(wire) and bool(zones) and not set(zones) & set(SIGNED) and \
            not self.is_true(query, wire, sent, got, slack)

    @staticmethod
    def _says(wire):
        """Is it a failure, or has it any data? (BADVERS has none, and by its header it is no error.)"""
        try:
            return failed(wire) or bool(_sets(wire))
        except Unreadable:
            return False

    def is_true(self, query, wire, sent, got, slack=0):
        """May a resolver have sent that reply between these times?"""
        question = question_of(query)
        if not question or not wire or not zone_of(question[0]):
            return False
        with self._lock:
            if failed(wire):
                return any(self._was_silent(zone, sent - self.remembered, got) for zone in zones_behind(question[0]))
            try:
                return self._has_sent_all(question, wire, sent, got, slack)
            except Unreadable:
                return False

    def _was_silent(self, zone, begin, end):
        return any(first <= end and (last is None or last >= begin) for first, last in self._silences[zone])

    def _has_sent_all(self, question, wire, sent, got, slack):
        rcode, sets = wire[3] & RCODE, _sets(wire)
        if rcode not in (NOERROR, NXDOMAIN) or not sets:
            return False
        denied = any(rtype == SOA and rtype != question[1] for _, rtype, _ in sets)
        if denied and not self._has_denied(question, wire, rcode, sent, got):
            return False
        return all(self._has_sent(key, data, ttl, sent, got, slack) for key, (data, ttl) in sets.items())

    def _has_sent(self, key, data, ttl, sent, got, slack):
        """Was the RRset sent, with these data, so long ago as its TTL has come down?"""
        for at, sent_data, whole in self._sent.get(key, ()):
            since = (whole - ttl) * SECOND
            if sent_data == data and since >= -slack * SECOND and sent - since - BEFORE <= at <= got - since + AFTER:
                return True
        return False

    def _has_denied(self, question, wire, rcode, sent, got):
        """Has the server said that the name, or an alias's target, does not exist or has no such type, no longer ago than that is
        remembered? (The SOA's own TTL may be that of another denial.)"""
        names = [question[0]] + [data[0] for (section, _, rtype, _, _), data, _ in rrsets(wire, bytes.lower)
                                 if section == 0 and rtype == CNAME]
        return any(sent - NEGATIVE_TTL * SECOND - BEFORE <= at <= got
                   for name in names for at in self._denied.get(_denial(name, question[1], rcode), ()))
