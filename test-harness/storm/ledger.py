# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What was served, changed, flushed and out of service, and when: all that the judge knows besides the replies. Times are
monotonic ns."""

import threading
import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field

from .zone import FIRST_STAMP, LAST_STAMP, Key

SECOND = 10**9


@dataclass
class Datum:
    """A version of an RRset."""
    key: Key
    version: int
    begun: int                    # not visible before
    present: bool = True          # False: from then on there is no such RRset
    acknowledged: int | None = None     # of an update: earlier versions are over; None: never
    fetches: list = field(default_factory=list)     # when the authoritative server sent it, ascending


@dataclass(frozen=True)
class Flush:
    """What was in the cache when it began must not be sent after it returned."""
    what: str
    begun: int
    returned: int
    covers: object                # covers(key, denied): does it remove this RRset, or its denial?


@dataclass(frozen=True)
class Span:
    """A time, for the clients that it concerns: link "r1", "r2" or None for both; family 4, 6 or None for both."""
    why: str
    begin: int
    end: int
    link: str | None = None
    family: int | None = None


@dataclass(frozen=True)
class Regime:
    """A configuration that stands for a time: what it gives to clients (as of a Span) that ask what it concerns. From begin to ending
    nothing else is right; between changing and begin, and between ending and end, a command is at work."""
    why: str
    changing: int
    begin: int
    ending: int
    end: int
    link: str | None
    family: int | None
    concerns: object              # concerns(question)
    gives: object                 # gives(question, answer)


@dataclass(frozen=True)
class Event:
    number: int                   # by which the seed draws what happens in it
    kind: str
    begin: int
    end: int                      # when all that it disturbed was back
    detail: str


class Ledger:
    def __init__(self):
        self.begun = time.monotonic_ns()
        self.data = {}            # stamp -> Datum
        self.versions = defaultdict(list)     # key -> its Datums
        self.denials = defaultdict(list)      # key -> when the authoritative server denied it
        self.sent = {}            # time of a fetch or denial -> when the authoritative server had sent the reply
        self.events, self.flushes = [], []
        self.down = []            # Spans in which a query may get no answer
        self.mute = []            # Spans in which the kernel must not answer
        self.homeless = []        # Spans in which the host did not have the address, without their first moment
        self.stopped = []         # Spans in which the resolver was stopped: messages to it waited
        self.lossy = []           # Spans in which packets were dropped at a link; why: how many
        self.doubled = []         # Spans in which a query may get two replies
        self.parked = 0           # queries that a killed hydnsd had in its memory
        self.regimes = []         # one after the other
        self._last = FIRST_STAMP - 1
        self._lock = threading.Lock()

    def seconds(self, at):
        """A time in seconds since the run began."""
        return (at - self.begun) / SECOND

    def new(self, key, *, present=True):
        """(stamp, Datum) of a new version, which begins now."""
        with self._lock:
            now = time.monotonic_ns()
            self._last = max(self._last + 1, FIRST_STAMP + (now - self.begun) // 10**6)
            if self._last > LAST_STAMP:
                raise OverflowError("the run is too long for its stamps")
            datum = Datum(key, len(self.versions[key]), now, present)
            self.data[self._last] = datum
            self.versions[key].append(datum)
            return self._last, datum

    @contextmanager
    def span(self, spans, why, *, link=None, family=None):
        """Context manager: adds the block's time to one of the lists of Spans."""
        begin = time.monotonic_ns()
        try:
            yield
        finally:
            spans.append(Span(why, begin, time.monotonic_ns(), link, family))


class LastFlush:
    """For one RRset, or its denial: the last flush that had returned by a time."""

    def __init__(self, flushes, key, denied):
        self._returned, self._latest = [], []
        for flush in sorted((f for f in flushes if f.covers(key, denied)), key=lambda f: f.returned):
            self._returned.append(flush.returned)
            latest = self._latest[-1] if self._latest else flush
            self._latest.append(max(latest, flush, key=lambda f: f.begun))

    def before(self, at):
        """Of the Flushes that returned before this time, the one that began last, or None."""
        index = bisect_left(self._returned, at)
        return self._latest[index - 1] if index else None


def last_at(times, at):
    """The last of the ascending times that is at or before at, or None."""
    index = bisect_right(times, at)
    return times[index - 1] if index else None
