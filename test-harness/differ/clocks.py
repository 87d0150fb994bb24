# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The two clocks that replies are judged by."""

import time

HELD_UP_NS = 10**5       # between two readings: the thread has waited for a processor, or for the interpreter


def to_wall():
    """ns from the monotonic clock to the wall clock. Read together, for a thread that is held up between the two readings would take
    a reply at the change of a second for one before it."""
    while True:
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        if after - before <= HELD_UP_NS:
            return wall - before
