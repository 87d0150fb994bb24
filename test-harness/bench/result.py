# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Points, goals, and the options of every measurement. Arranges figures; measures nothing."""

import json
import statistics
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field

STARTED = time.monotonic()
SILENCE = 2.0            # seconds
_said = STARTED


def say(text):
    """Prints progress to standard error; standard output is for results."""
    global _said
    _said = time.monotonic()
    print(f"[{_said - STARTED:4.0f}s] {text}", file=sys.stderr, flush=True)


@contextmanager
def going_on(text):
    """Says this and for how long, whenever nothing else was said for a moment within the block."""
    over, begun = threading.Event(), time.monotonic()

    def tell():
        while not over.wait(SILENCE / 4):
            if time.monotonic() - _said > SILENCE:
                say(f"{text}, {time.monotonic() - begun:.0f} s")
    teller = threading.Thread(target=tell, name="progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


@dataclass
class Settings:
    """quick: fewer and shorter runs of the same kind. only: the parts of the question that are wanted; none: all."""
    seed: int
    quick: bool
    only: tuple = ()

    def choose(self, quick, full):
        return quick if self.quick else full


@dataclass
class Goal:
    text: str
    wanted: float
    measured: float | None   # None: could not be measured, for the reason in why
    least: bool = True       # measured must be at least wanted; False: at most
    why: str = ""

    @property
    def met(self):
        if self.measured is None:
            return False
        return self.measured >= self.wanted if self.least else self.measured <= self.wanted

    def as_json(self):
        return {"goal": self.text, "wanted": self.wanted, "at": "least" if self.least else "most",
                "measured": self.measured, "met": self.met, **({"why": self.why} if self.why else {})}


@dataclass
class Result:
    bench: str
    points: list = field(default_factory=list)   # dictionaries, as in the JSON
    goals: list = field(default_factory=list)
    absent: list = field(default_factory=list)   # contenders that could not run: {"contender", "why"}
    stopped: str = ""                            # why it stopped before its end

    def add(self, contender, runs, unit, **parameters):
        """Adds a point; the median of its runs is under the unit's name."""
        point = {"bench": self.bench, "contender": contender, **parameters,
                 unit: statistics.median(runs), "runs": [round(r, 3) for r in runs]}
        point[unit] = round(point[unit], 3)
        self.points.append(point)
        return point


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 10 else f"{value:.1f}"


def goal_lines(goals):
    if not goals:
        return ["  no goal is set for this question"]
    lines = [f"  {'goal':72}{'wanted':>14}{'measured':>14}  met"]
    for g in goals:
        bound = ("at least " if g.least else "at most ") + number(g.wanted)
        lines.append(f"  {g.text[:71]:72}{bound:>14}{number(g.measured):>14}  {'yes' if g.met else 'NO'}"
                     + (f"  ({g.why})" if g.why else ""))
    return lines


def write_json(file, name, settings, environment, results):
    """Writes the JSON that hydns-bench(1) describes; other programs read it."""
    file.write_text(json.dumps({
        "bench": name, "environment": environment, "seed": settings.seed, "quick": settings.quick,
        "points": [p for r in results for p in r.points],
        "absent": [{"bench": r.bench, **a} for r in results for a in r.absent],
        "stopped": [{"bench": r.bench, "why": r.stopped} for r in results if r.stopped],
        "goals": [{"bench": r.bench, **g.as_json()} for r in results for g in r.goals],
    }, indent=1) + "\n")
