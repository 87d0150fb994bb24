# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The fewest events of a storm after which a reply is still wrong: delta debugging (Zeller, Hildebrandt: Simplifying and Isolating
Failure-Inducing Input, 2002), bounded in time. Each attempt is a run of its own, with new servers."""

import time

TRIES = 2                         # runs of the same events: what hangs on the moment may not happen again


class Shrinker:
    """again(events): whether a run of these events has a wrong reply."""

    def __init__(self, again, seconds, say):
        self.again, self.say = again, say
        self.until = time.monotonic() + seconds
        self.without = set()      # events that have made none

    def _makes(self, events):
        """Whether these events make a wrong reply; False, too, when the time is over."""
        if tuple(events) in self.without:
            return False
        for _ in range(TRIES):
            if time.monotonic() > self.until:
                return False
            made = self.again(events)
            self.say(f"{len(events)} of the events: {'wrong' if made else 'nothing wrong'}")
            if made:
                return True
        self.without.add(tuple(events))
        return False

    def smallest(self, events):
        """The fewest events found, in their order; None when not even all make it again. The last alone is tried first."""
        if len(events) > 1 and self._makes(events[-1:]):
            return events[-1:]
        if not self._makes(events):
            return None
        parts = 2
        while len(events) > 1 and time.monotonic() < self.until:
            fewer = next(filter(self._makes, _without_a_part(events, parts)), None)
            if fewer:
                events, parts = fewer, max(parts - 1, 2)
            elif parts == len(events):
                break
            else:
                parts = min(2 * parts, len(events))
        return events


def _without_a_part(events, parts):
    """Yields the events without each of so many parts, without the first part first: what came long before has least to do with it."""
    bounds = [len(events) * n // parts for n in range(parts + 1)]
    for begin, end in zip(bounds, bounds[1:]):
        if end - begin < len(events):
            yield events[:begin] + events[end:]
