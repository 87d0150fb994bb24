# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""For tests of what must happen within a few seconds, which a machine that stands still for so long takes away from program and
test alike: such a test measures how long it was kept from looking, and when that was too long it tries again."""

import threading
import time
import warnings

from .run import HarnessError

TRIES = 5
TICK = 0.02              # seconds
HELD_UP = 0.1            # a tick later than this: the machine has stood still, or is so busy that programs wait for longer


class Inconclusive(Exception):
    """An attempt has shown nothing; says why."""


class Pace:
    """The longest time between two looks. A look that asks a program includes what that has waited for a processor."""

    def __init__(self):
        self.last, self.longest = None, 0.0

    def look(self):
        now = time.monotonic()
        if self.last is not None:
            self.longest = max(self.longest, now - self.last)
        self.last = now


class Ticks:
    """Context manager: a thread that asks nobody and wants to run all the time. What holds it up is the machine, and no program
    under test."""

    def __init__(self):
        self.late = []                   # (when it ran, in monotonic time; seconds that it was held up)
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
        """The longest time for which it was held up, of those that ended after a monotonic time."""
        return max((seconds for when, seconds in list(self.late) if when > since), default=0.0)


def until_conclusive(attempt, longest=float("inf")):
    """Returns what attempt(number, pace) returns, number counting from 0. It is called again when it is Inconclusive, or fails
    and has had more than longest seconds between two calls of pace.look(), which it makes all the time, and a thread that asks
    nobody was held up as well; at most TRIES times in all. What fails without such a gap fails at once. Each attempt that has
    shown nothing is a warning, which pytest's summary has."""
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
