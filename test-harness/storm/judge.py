# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Is a reply right? Judges by the ledger, not by comparison with another server."""

from bisect import bisect_left, bisect_right
from collections import namedtuple
from functools import cache

import dns.rcode

from lab.network import DEFAULT_HOPS, RESOLVER_HOPS

from . import zone
from .clients import PATIENCE
from .ledger import SECOND, LastFlush, last_at
from .zone import SOA

# The most time from the authoritative server to the resolver's cache. What was sent a moment before a flush may come into the
# cache after it, and its TTL begins to count down then.
IN_FLIGHT = 1 * SECOND
# A resolver that kept a client waiting for so long had no time to read an authoritative server's reply either.
BUSY = SECOND // 2
GIVEN_UP = int(PATIENCE * SECOND)
# So many regimes may stand while a query has no reply.
LATEST = 3
# For so long a resolver remembers a failure (Unbound 5 s, named 1 s), and a second more that it waits for a processor.
REMEMBERED = 6 * SECOND
# TTLs count whole seconds.
ROUNDING = 1 * SECOND
# How much later the end of the same RRset may be: the resolver reads its clock now and then, and a TTL update of one second
# is not announced (doc/coherence.md, "TTL update").
GROWTH = 2 * ROUNDING + SECOND // 2

Wrong = namedtuple("Wrong", "kind text")
CONFIGURATION = "not of the configuration"
ERROR = "error from the kernel"
HOMELESS = "answered at an address that the host does not have"


class Spans:
    """Finds the Span that a query lies in. At most LOOK_BACK of them overlap."""

    LOOK_BACK = 4

    def __init__(self, spans, before=0, after=0):
        self.spans = sorted(spans, key=lambda span: span.begin)
        self._begins = [span.begin - before for span in self.spans]
        self.after = after

    def around(self, begin, end):
        """The first Span that began before begin and lasted until after end, or None."""
        index = bisect_left(self._begins, begin)
        near = self.spans[max(0, index - self.LOOK_BACK):index]
        return next((span for span in near if span.end + self.after > end), None)


class Waits:
    """Times for which clients waited for the resolver, added in the order of their begins."""

    def __init__(self):
        self._begins, self._ends = [], []      # _ends: the latest end so far
        self._given_up = []                    # begins of those without a reply

    def add(self, begin, end):
        self._begins.append(begin)
        self._ends.append(max(end, self._ends[-1] if self._ends else end))

    def give_up(self, begin):
        """Without a reply, after PATIENCE. The resolver may have been at it for longer."""
        self._given_up.append(begin)
        self.add(begin, begin + GIVEN_UP)

    def end(self, at):
        """When the last client that was waiting at this time had its reply, or the last that was waiting when one of those gave up, and
        so on; the time itself if none was waiting."""
        while True:
            index = bisect_right(self._begins, at)
            end = max(at, self._ends[index - 1]) if index else at
            latest = bisect_right(self._given_up, at)
            if end == at or not latest or self._given_up[latest - 1] + GIVEN_UP <= at:
                return end
            at = end


class Judge:
    """A subclass knows what its servers may send. Call of() in the order of the queries."""

    def __init__(self, ledger):
        self.ledger = ledger
        self._mute = Spans(ledger.mute)
        self._failures = {}       # question -> when the resolver was last seen to fail at it
        self._changes = [regime.changing for regime in ledger.regimes]
        self._homeless = {family: Spans(span for span in ledger.homeless if span.family == family) for family in (4, 6)}

    def _regimes(self, client, question, sent, received):
        """Those that stood at some time between these and concern the client and question."""
        index = bisect_right(self._changes, received)
        return [r for r in self.ledger.regimes[max(0, index - LATEST):index]
                if r.end >= sent and r.link in (None, client.link) and r.family in (None, client.family) and r.concerns(question)]

    def lost(self, answer):
        """For a query without a reply though the resolver was there. In the order of the queries, with of()."""

    def of(self, client, question, answer):
        """A Wrong, or None. The answer must not be a lost one."""
        received = answer.sent + answer.latency
        if answer.hops not in (RESOLVER_HOPS, DEFAULT_HOPS):
            return Wrong("hop limit", f"{answer.hops}: neither the resolver's nor the kernel's")
        kernel = answer.hops == DEFAULT_HOPS
        span = kernel and self._mute.around(answer.sent, received)
        if span:
            return Wrong("answered in the kernel", f"while {span.why}")
        if kernel and self._homeless[client.family].around(answer.sent, received):
            return Wrong(HOMELESS, "it was removed more than a moment before")
        regimes = self._regimes(client, question, answer.sent, received)
        if any(r.gives(question, answer) for r in regimes):
            return None
        if answer.rcode == -1:
            return Wrong("question", "the reply has another one")
        stands = next((r for r in regimes if r.begin <= answer.sent and received <= r.ending), None)
        if stands and answer.rcode != dns.rcode.SERVFAIL:
            return Wrong(CONFIGURATION, f"while this stands: {stands.why}")
        if answer.rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
            return self._error(kernel, question, answer, received)
        return self._denial(question, answer, received) if answer.first_ttl is None else \
            self._data(question, answer, received)

    def _error(self, kernel, question, answer, received):
        """The kernel may repeat a failure that the resolver remembers, no longer than it and not from before a flush."""
        if not kernel:
            if answer.rcode == dns.rcode.SERVFAIL:
                self._failures[question] = received
            return None
        failed = self._failures.get(question, -REMEMBERED) if answer.rcode == dns.rcode.SERVFAIL else -REMEMBERED
        if answer.sent > failed + REMEMBERED:
            return Wrong(ERROR, dns.rcode.to_text(answer.rcode))
        flush = LastFlush(self.ledger.flushes, question.key, True).before(answer.sent)
        return Wrong(ERROR, f"of before {flush.what}") if flush and failed < flush.begun else None

    def _data(self, question, answer, received):
        stamp = zone.stamp_of(answer.rdata)
        datum = self.ledger.data.get(stamp)
        if not datum or datum.key != question.target or not datum.present:
            return Wrong("data", f"{answer.rdata} was never the data of {question.target}")
        if answer.rcode != dns.rcode.NOERROR:
            return Wrong("data", f"{dns.rcode.to_text(answer.rcode)} with an answer")
        wrong = self._version(datum, answer, received)
        if not wrong and question.alias:
            alias = self.ledger.versions.get(question.alias)
            wrong = self._ttl(question.alias, alias and alias[0], answer.first_ttl, answer, received)
        return wrong

    def _denial(self, question, answer, received):
        key = question.target
        datum = self.ledger.data.get(zone.stamp_of(answer.rdata))
        if not datum or datum.key != SOA:
            return Wrong("data", f"a denial of {key} with a SOA of serial {answer.rdata}, which never existed")
        named = zone.NOTHING in key.owner or key in zone.GHOSTS
        if (answer.rcode == dns.rcode.NXDOMAIN) != named:
            return Wrong("data", f"{dns.rcode.to_text(answer.rcode)} for {key}")
        return self._denied(key, answer, received) or self._version(datum, answer, received)

    def _version(self, datum, answer, received):
        """A Wrong when this version must not be sent, or not with this TTL."""
        raise NotImplementedError

    def _denied(self, key, answer, received):
        """A Wrong when the data existed, or the denial is too old."""
        raise NotImplementedError

    def _ttl(self, key, datum, ttl, answer, received):
        """A Wrong when the TTL of an RRset in the reply is wrong."""
        raise NotImplementedError


class OfResolver(Judge):
    """Right are data that the authoritative server sent, no longer ago than their TTL and not before the last flush."""

    AHEAD = 0                # seconds above the zone's TTL that the resolver's own replies may have

    def __init__(self, ledger):
        super().__init__(ledger)
        self._stopped = Spans(ledger.stopped, before=IN_FLIGHT)
        self._seen = {}           # id of a Datum -> when it was first received
        self._ends = {}           # id of a Datum -> [number of its fetches, the earliest end by the replies since the last one]
        self._flushes = cache(lambda key, denied: LastFlush(ledger.flushes, key, denied))
        self._waits = Waits()

    def lost(self, answer):
        self._waits.give_up(answer.sent)

    def of(self, client, question, answer):
        if answer.hops == RESOLVER_HOPS and answer.latency > BUSY:
            self._waits.add(answer.sent, answer.sent + answer.latency)
        return super().of(client, question, answer)

    def _cached(self, fetch):
        """The latest time by which data fetched at a time were in the resolver's cache, by the clients' waits so far."""
        sent = self.ledger.sent.get(fetch, fetch)
        stopped = self._stopped.around(sent, sent)
        return max(stopped.end if stopped else sent, self._waits.end(sent)) + IN_FLIGHT

    def _version(self, datum, answer, received):
        wrong = self._ttl(datum.key, datum, answer.ttl, answer, received)
        fetch = last_at(datum.fetches, received)
        if not wrong and datum.key != SOA:
            known = datum.key in zone.FRESH and self._seen.setdefault(id(datum), received)
            wrong = self._flushed(datum.key, False, fetch, known, answer.sent)
        return wrong

    def _flushed(self, key, denied, fetch, known, sent):
        """A Wrong when a flush returned after the fetch and before the query. known: when the data were first seen, if no other
        fetch brought the same."""
        flush = self._flushes(key, denied).before(sent)
        if flush and fetch < flush.begun and (self._cached(fetch) < flush.begun or known and known < flush.begun):
            return Wrong("flushed", f"{key} was fetched {(flush.begun - fetch) / SECOND:.3f} s before {flush.what}, which "
                         f"returned {(sent - flush.returned) / SECOND:.3f} s before the query")
        return None

    def _denied(self, key, answer, received):
        fetch = last_at(self.ledger.denials.get(key, ()), received)
        if fetch is None:
            return Wrong("data", f"the authoritative server never denied {key}")
        late = answer.sent - self._cached(fetch) - zone.NEGATIVE_TTL * SECOND - ROUNDING
        if late > 0:
            return Wrong("expired", f"the denial of {key} ended {late / SECOND:.3f} s before")
        return self._flushed(key, True, fetch, None, answer.sent)

    def _ttl(self, key, datum, ttl, answer, received):
        fetch, sent = last_at(datum.fetches, received) if datum else None, answer.sent
        if fetch is None:
            return Wrong("data", f"{key} before anybody had fetched it")
        whole, end = zone.ttl(key), sent + ttl * SECOND
        if ttl > whole + (0 if answer.hops == DEFAULT_HOPS else self.AHEAD):
            return Wrong("TTL", f"{ttl} for {key}, above the zone's {whole}")
        late = end - self._cached(fetch) - whole * SECOND - ROUNDING
        if late > 0:
            return Wrong("TTL" if ttl else "expired",
                         f"{ttl} for {key}, fetched {(sent - fetch) / SECOND:.3f} s before with {whole}")
        return self._grown(datum, ttl, sent, received)

    def _grown(self, datum, ttl, sent, received):
        """A Wrong when the end is later than before without a new fetch. Judged only when the fetch before the last has expired
        everywhere, so that one end is left: a lower TTL may come from a rule older than the resolver's data."""
        key, whole = datum.key, zone.ttl(datum.key) * SECOND
        index = bisect_right(datum.fetches, received)
        shown, latest = self._ends.get(id(datum)), received + ttl * SECOND
        if shown and shown[0] == index:
            if sent + ttl * SECOND > shown[1] + GROWTH:
                return Wrong("TTL", f"{ttl} for {key}, {(sent + ttl * SECOND - shown[1]) / SECOND:.3f} s more than before, "
                             "without new data")
            shown[1] = min(shown[1], latest)
        elif sent > self._cached(datum.fetches[index - 1]) and (
                index == 1 or sent > self._cached(datum.fetches[index - 2]) + whole + ROUNDING):
            self._ends[id(datum)] = [index, latest]
        return None


class OfNamed(OfResolver):
    """A thread of named takes the time of a query, and may then wait for a processor until another thread has data of a later second."""

    AHEAD = 1


class OfZone(Judge):
    """Right are the zone's current data: an update's from its sending on, and no older ones from its acknowledgement on."""

    def __init__(self, ledger):
        super().__init__(ledger)
        self._acknowledged = cache(self._history)

    def _history(self, key):
        """(times of acknowledgements, version numbers), both ascending."""
        done = sorted((d.acknowledged, d.version) for d in self.ledger.versions[key] if d.acknowledged is not None)
        return [at for at, _ in done], [version for _, version in done]

    def _least(self, key, sent):
        """The version that was acknowledged before the query was sent."""
        times, versions = self._acknowledged(key)
        index = bisect_left(times, sent)
        return versions[index - 1] if index else 0

    def _version(self, datum, answer, received):
        least = self._least(datum.key, answer.sent)
        if not least <= datum.version or datum.begun > received:
            return Wrong("outdated", f"{datum.key} of version {datum.version}, when {least} had been acknowledged")
        return self._ttl(datum.key, datum, answer.ttl, answer, received)

    def _denied(self, key, answer, received):
        versions = self.ledger.versions.get(key)
        if versions and all(d.present for d in versions[self._least(key, answer.sent):] if d.begun <= received):
            return Wrong("data", f"denied {key}, which existed")
        return None

    def _ttl(self, key, datum, ttl, answer, received):
        whole = zone.ttl(key)
        return None if ttl == whole else Wrong("TTL", f"{ttl} for {key}, where the zone has {whole}")
