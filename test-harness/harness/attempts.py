# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""For tests of what must happen within a few seconds, which a machine that stands still for so long takes away from program and
test alike: such a test measures how long it was kept from looking, and when that was too long it tries again."""

import time

from .run import HarnessError

TRIES = 5


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


def until_conclusive(attempt, longest=float("inf")):
    """Returns what attempt(number, pace) returns, number counting from 0. It is called again when it is Inconclusive, or fails
    and has had more than longest seconds between two calls of pace.look(), which it makes all the time; at most TRIES times in
    all. What fails without such a gap fails at once."""
    for number in range(TRIES):
        pace = Pace()
        try:
            return attempt(number, pace)
        except Inconclusive as e:
            why = str(e)
        except (AssertionError, HarnessError) as e:
            pace.look()
            if pace.longest <= longest:
                raise
            why = f"the machine has stood still for {pace.longest:.1f} s, so this says nothing: {e}"
        print(f"attempt {number + 1} of {TRIES}: {why}")
    raise HarnessError(f"none of {TRIES} attempts has shown anything; the last: {why}")
