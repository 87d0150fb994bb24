# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The table of README.md: the figures of doc/performance.md and of the demo that matter most."""

import re

from . import number, table
from .performance import points

PLOTTED = ()


def one(results, name, **wanted):
    """The point, and there is only one."""
    (point,) = points(results, name, **wanted)
    return point


def of_demo(results):
    off, on = results["demo"]["off"], results["demo"]["on"]
    cpu = on["resolver_cpu_seconds_per_million"] / off["resolver_cpu_seconds_per_million"]
    return ("demo, Unbound: replies/s; CPU per reply", f"{off['replies_per_second']:,.0f}; 100%",
            f"{on['replies_per_second']:,.0f}; {cpu:.0%}", "`./quickstart demo`")


def of_mixed(results):
    """Where the store holds all names."""
    names = max(p["capacity"] for p in points(results, "mixed"))
    alone, hydns = (one(results, "mixed", contender=c, names=names, capacity=names)["replies_per_second"] for c in ("resolver", "hydns"))
    return "Unbound, all names in both caches: replies/s", f"{alone:,.0f}", f"{hydns:,.0f}", "`hydns-bench mixed`"


def of_latency(results):
    alone, hydns = (one(results, "latency", contender=c, concurrency=32)["latency_us"]["p50"] for c in ("resolver", "hydns"))
    return "median latency, 32 under way", f"{alone:.0f}us", f"{hydns:.0f}us", "`hydns-bench latency`"


def of_versus(results):
    times = "; ".join(number(one(results, "versus", contender=c)["hydns_times"]) for c in ("Unbound", "BIND"))
    return "one hot name, times the replies of Unbound; BIND", "1", times, "`hydns-bench versus`"


def of_overhead(results):
    cpu = "; ".join(f"{one(results, 'overhead', resolver=r, contender='plugin')['cpu_in_all_to_alone']:.0%}" for r in ("Unbound", "BIND"))
    return "nothing hot, by sockets: CPU, Unbound; BIND", "100%", cpu, "`hydns-bench overhead`"


def of_queue(results):
    alone, rings = (one(results, "queue", contender=c, load="unique", concurrency=None) for c in ("alone", "rings"))
    return ("new names, Unbound: replies/s; CPU", f"{alone['replies_per_second']:,.0f}; 100%",
            f"{rings['replies_per_second']:,.0f}; {rings['cpu_us_in_all'] / alone['cpu_us_in_all']:.0%}", "`hydns-bench queue`")


def measured(results):
    """Without blanks beside the bars: README.md is short."""
    lines = table(("measured", "alone", "with hyDNS", "command"),
                  [row(results) for row in (of_demo, of_queue, of_mixed, of_latency, of_versus, of_overhead)])
    return [re.sub(r" *\| *", "|", line) for line in lines]


TABLES = {"measured": measured}
