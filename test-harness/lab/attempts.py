# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Repeated attempts, for tests of what must happen within a few seconds. When the machine stands still for that long, program
and test both miss the moment. So such a test measures how long it was held up, and tries again when that was too long."""

import threading
import time
import warnings

from .run import HarnessError

TRIES = 5
TICK = 0.02              # seconds
HELD_UP = 0.1            # seconds; a tick that is later shows that the machine stood still, or that programs wait for longer


class Inconclusive(Exception):
    """An attempt that has shown nothing; the text says why."""


class Pace:
    """The longest time between two looks. A look that asks a program includes the time that it waited for a processor."""

    def __init__(self):
        self.last, self.longest = None, 0.0

    def look(self):
        now = time.monotonic()
        if self.last is not None:
            self.longest = max(self.longest, now - self.last)
        self.last = now


class Ticks:
    """Context manager: a thread that wakes up every TICK and asks no program. Only the machine can hold it up, not a program
    under test."""

    def __init__(self):
        self.late = []                   # (monotonic time when it ran, seconds that it was held up)
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._tick, name="ticks", daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.over.set()
        self.thread.join()

    def _tick(self):
        last = time.monotonic()
        while not self.over.wait(TICK):
            now = time.monotonic()
            self.late.append((now, now - last - TICK))
            last = now

    def longest(self, since=0.0):
        """The longest time that it was held up, of those that ended after this monotonic time."""
        return max((seconds for when, seconds in list(self.late) if when > since), default=0.0)


def until_conclusive(attempt, longest=float("inf")):
    """Calls attempt(number, pace), number from 0, and returns what it returns. Calls it again, TRIES times at most, when it
    raises Inconclusive, or when it fails and the machine was held up: more than longest seconds lie between two of its
    calls of pace.look(), which it makes all the time, and Ticks was late as well. Any other failure is raised at once. Warns of
    each attempt that has shown nothing, so that pytest's summary lists it."""
    for number in range(TRIES):
        pace = Pace()
        with Ticks() as ticks:
            try:
                return attempt(number, pace)
            except Inconclusive as e:
                why = str(e)
            except (AssertionError, HarnessError) as e:
                pace.look()
                if pace.longest <= longest or ticks.longest() <= HELD_UP:
                    raise
                why = f"the machine has stood still for {pace.longest:.1f} s, so this says nothing: {e}"
        warnings.warn(f"attempt {number + 1} of {TRIES}: {why}", stacklevel=2)
    raise HarnessError(f"none of {TRIES} attempts has shown anything; the last: {why}")
