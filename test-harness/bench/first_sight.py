# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the program did with queries when it first saw them, and what became of those that it had parked."""

from dataclasses import astuple, dataclass

from lab.measure import NOT_OURS


@dataclass
class FirstSight:
    answered: int
    parked: int
    passed: int          # to the resolver, by rings or sockets
    passed_later: int    # the same, when they came again

    def __sub__(self, other):
        return FirstSight(*(a - b for a, b in zip(astuple(self), astuple(other))))


def first_sight(daemon):
    """The counts until now, of all resolvers."""
    stats = daemon.call({"cmd": "stats"})
    reasons, again = stats["reasons"], [r["parking"] for r in stats["resolvers"]]
    answered_later, passed_later = (sum(r[key] for r in again) for key in ("answered", "passed"))
    passed = sum(n for reason, n in reasons.items() if reason not in (*NOT_OURS, "ANSWERED", "PARKED"))
    return FirstSight(reasons["ANSWERED"] - answered_later, reasons["PARKED"], passed - passed_later, passed_later)
