# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What becomes of queries that the kernel has no answer to, while the resolver is at work on them or can't answer them either.

In five parts, of Unbound and BIND: crowds that ask what is under way (coalescing), authoritative servers that fall silent (outage),
bounds of what may be parked (threshold), rules with parking and packet rings by the number of queries under way
(concurrency), and names in a zone that the kernel forwards (forwarding)."""

import subprocess

from lab.run import HarnessError

from . import coalescing, concurrency, forwarding, outage, threshold
from .result import say

HELP = "crowds, silent authoritative servers, bounds of parking, all ways of a miss by concurrency, forwarded zones"
PARTS = {"coalescing": coalescing, "outage": outage, "threshold": threshold, "concurrency": concurrency, "forwarding": forwarding}


def run(bench, result):
    in_parts(PARTS, bench, result)


def in_parts(parts, bench, result):
    """A part that stops half way does not keep the others from being measured."""
    stopped = []
    for name in (bench.settings.only or parts):
        try:
            parts[name].run(bench, result)
        except (HarnessError, OSError, subprocess.SubprocessError) as error:
            stopped.append(f"{name}: {error}")
            say(f"{name} stopped: {error}")
    if stopped:
        raise HarnessError("; ".join(stopped))
