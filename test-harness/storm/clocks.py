# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Disruptions of the resolver's wall clock: steps both ways, and one that stands still. The machine's clock is not touched: libfaketime
gives the resolver's process another one. hydnsd and the program have no wall clock, and nobody can set the monotonic one.

A resolver whose clock goes back, or stands still, gives data for longer than their TTL, alone as well. So what it gives is not judged
until it has been flushed, or the clock goes on; from then on nothing of that time may be left in the kernel."""

import time
from contextlib import contextmanager
from pathlib import Path

from lab.run import SOON, HarnessError, wait_until

from .ledger import Regime

LIBRARY = "faketime/libfaketimeMT.so.1"
PLACES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu")
STEPS = (-45, -5, 5, 45)          # seconds; rndc and named may be a minute apart
AWAY = 2.0                        # seconds at most that a clock is wrong
SEEN = "the wall clock was set by"      # what the plugin logs, which compares the clocks a few times a second


class Clock:
    """The resolver's. environment: words NAME=VALUE that a process needs to have it."""

    def __init__(self, directory):
        self.file = directory / "clock"
        found = [path for place in PLACES if (path := Path(place, LIBRARY)).exists()]
        if not found:
            raise HarnessError(f"{LIBRARY} is not there: apt-get install libfaketime")
        self.environment = (f"LD_PRELOAD={found[0]}", f"FAKETIME_TIMESTAMP_FILE={self.file}", "FAKETIME_NO_CACHE=1",
                            "FAKETIME_DONT_FAKE_MONOTONIC=1", "DONT_FAKE_MONOTONIC=1")
        self.set("+0")

    def set(self, text):
        """Takes effect when the process next reads its clock."""
        new = self.file.with_suffix(".new")
        new.write_text(text + "\n")
        new.chmod(0o644)
        new.rename(self.file)


@contextmanager
def _seen(d):
    """Waits after the block until the plugin has seen that the clock was set: then no rule of before is left."""
    def times():
        return d.resolver.program.log.read_text(errors="replace").count(SEEN)
    before = times()
    yield
    wait_until(lambda: times() > before, SOON, "the plugin to see that the clock was set")


@contextmanager
def _unjudged(d, why):
    """Whatever is sent in the block is right."""
    begin = time.monotonic_ns()
    yield
    end = time.monotonic_ns()
    d.ledger.regimes.append(Regime(why, begin, end, end, end, None, None, lambda question: True, lambda question, answer: True))


def _step(d, seconds):
    """To so many seconds before or after the machine's clock."""
    if seconds > d.clock_ahead:
        with _seen(d):
            d.clock.set(f"{seconds:+}")
    else:
        with _unjudged(d, "the clock went back"):
            with _seen(d):
                d.clock.set(f"{seconds:+}")
            d.flush_all()
    d.clock_ahead = seconds


def clock_stepped(d):
    step = d.rng.choice(STEPS)
    d.detail = f"{step:+} s"
    _step(d, step)
    d.wait(AWAY)
    _step(d, 0)


def clock_stopped(d):
    with _unjudged(d, "the clock stands still"):
        with _seen(d):
            d.clock.set(time.strftime("%Y-%m-%d %H:%M:%S"))
        d.wait(AWAY)
        with _seen(d):
            d.clock.set("+0")


KINDS = {
    "clock stepped": clock_stepped,
    "clock stopped": clock_stopped,
}
