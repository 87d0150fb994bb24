# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Crowds: several clients that ask one question of slow_zones.py while its resolution is under way, so that they are parked; and
how many were."""

import time
from dataclasses import dataclass, field

from . import slow_zones
from .queries import opt

SHARE = 0.3              # of all queries that crowds ask
ABREAST = 8              # crowds that ask at a time
LEAST, MOST = 3, 120     # queries of a crowd
TURNS = 4                # of a large crowd, so that each lasts about as long as a resolution
ODD = 0.25               # share of a crowd's queries that are not like its others: each variant waits for itself
LOOK_SECONDS = 0.5       # between two looks at hydnsd's counters
COUNTS = ("parked", "replayed", "answered", "passed", "timed_out", "discarded", "refused", "lost")
FORWARD_COUNTS = ("sent", "joined", "answers", "mismatched", "relayed", "rejected", "timed_out", "again", "ended", "late")


@dataclass
class _Crowd:
    question: tuple
    opt: tuple               # of most of its queries, as queries._plain_opt() draws it
    left: int                # queries, and how many a turn
    at_once: int


class Crowds:
    """Draws the queries of crowds, in turn those of ABREAST crowds. patience_ms: after which such a query counts as unanswered."""

    def __init__(self, rng, queries, patience_ms):
        self.rng, self.queries, self.patience_ms = rng, queries, patience_ms
        self.crowds = []

    def _new(self):
        common = self.rng.choice(((b"", 0), (b"", 0), (opt(1232), 1), (opt(1232, 0x8000), 1)))
        size = round(LEAST * (MOST / LEAST) ** self.rng.random())
        return _Crowd(slow_zones.draw(self.rng), common, size, 1 + size // TURNS)

    def batch(self, style, count):
        """A list of count (octets with id 0, timeout in ms)."""
        found = []
        while len(found) < count:
            self.crowds += [self._new() for _ in range(ABREAST - len(self.crowds))]
            crowd = self.crowds.pop(0)
            asked = min(crowd.at_once, crowd.left, count - len(found))
            found += [self._query(style, crowd) for _ in range(asked)]
            crowd.left -= asked
            self.crowds += [crowd] * bool(crowd.left)
        return found

    def _query(self, style, crowd):
        wire = self.queries.one(style, crowd.question, None if self.rng.random() < ODD else crowd.opt)
        return wire, self.patience_ms

    def asks(self):
        """A question that is asked now: (name in wire format, type)."""
        crowds = list(self.crowds)
        return self.rng.choice(crowds).question if crowds else None


@dataclass
class Counts:
    """Sums of hydnsd's counters of parking, or of forwarding, which begin anew whenever the resolver registers."""
    daemon: object
    part: str = "parking"
    names: tuple = COUNTS
    sums: dict = field(default_factory=dict)
    most: int = 0            # queries parked at once, as seen

    def __post_init__(self):
        self._last, self._due = {}, 0.0
        self.sums = dict.fromkeys(self.names, 0)
        self.look()
        self.sums = dict.fromkeys(self.names, 0)

    def look_now_and_then(self):
        if time.monotonic() >= self._due:
            self.look()

    def look(self):
        self._due = time.monotonic() + LOOK_SECONDS
        stats, status = (self.daemon.try_call({"cmd": cmd}) for cmd in ("stats", "status"))
        for resolver in (stats or {"resolvers": ()})["resolvers"]:
            counts = resolver[self.part]
            again = any(counts[name] < self._last.get(name, 0) for name in self.names)
            for name in self.names:
                self.sums[name] += counts[name] - (0 if again else self._last.get(name, 0))
            self._last = {name: counts[name] for name in self.names}
        waiting = [r["parking"]["waiting"] for r in (status or {"resolvers": ()})["resolvers"] if r.get("parking")]
        self.most = max([self.most, *waiting])
