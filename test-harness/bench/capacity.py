# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Replies a second of the kernel path, compared with a program that only sends the same frames back."""

from lab import cpus

from .pace import options_of, pace, sequence
from .result import Goal, say

HELP = "replies per second against the link's limit, by number of rules and kind of query"
ZIPF = 1.0
UNIFORM = (1, 10_000, 100_000, 1_000_000)
KINDS = (
    {"octets": 60}, {"octets": 255}, {"type": "AAAA"}, {"records": 8}, {"records": 30, "edns": True},
    {"ipv6": True}, {"edns": True}, {"cookie": True}, {"ipv6": True, "cookie": True},
)
KINDS_RULES = 10_000
SCALING = (1, 100_000)       # rules for the comparison of one and two processors
GOALS = {(1, None): 0.95, (10_000, None): 0.95, (100_000, ZIPF): 0.95, (100_000, None): 0.8, (1_000_000, None): 0.6}


def points(settings):
    """(rules, zipf exponent or None, other parameters)"""
    rules = UNIFORM if settings.quick else (1, 10, 100, 1000, 10_000, 100_000, 1_000_000)
    for n in rules:
        yield n, None, {}
    for n in (100_000,) if settings.quick else (10_000, 100_000, 1_000_000):
        yield n, ZIPF, {}
    for parameters in KINDS:
        yield KINDS_RULES, None, parameters
    yield KINDS_RULES, None, {"capacity": 1_000_000}


def measure(bench, result, rules, zipf, parameters):
    """Adds the points of echo and hydns; returns the latter."""
    lines = pace(bench.tools, bench.link.ns, "capacity", *bench.link.options, "--rules", rules, "--sequence",
                 sequence(bench.run.dir, rules, zipf, bench.settings.seed), "--queries",
                 bench.settings.choose(1_000_000, 4_000_000), "--rounds", bench.settings.choose(3, 5),
                 *options_of(parameters))
    runs = {c: [line for line in lines if line.get("contender") == c] for c in ("echo", "hydns")}
    about = {"rules": rules, "zipf": zipf, **parameters}
    echo = result.add("echo", [r["per_second"] for r in runs["echo"]], "replies_per_second", **about)
    hydns = result.add("hydns", [r["per_second"] for r in runs["hydns"]], "replies_per_second", **about)
    hydns["answered_share"] = round(sum(r["answers"] for r in runs["hydns"]) / sum(r["sent"] for r in runs["hydns"]), 6)
    hydns["ratio_to_echo"] = round(hydns["replies_per_second"] / echo["replies_per_second"], 4)
    return hydns


def label(rules, zipf, parameters):
    kind = ", ".join(name if value is True else f"{name} {value}" for name, value in parameters.items())
    return f"{rules:,} rules, " + (f"Zipf {zipf}" if zipf else "uniform") + (f", {kind}" if kind else "")


def scaled(result, contender, processors, rules, runs):
    point = result.add(contender, [r["per_second"] for r in runs], "replies_per_second", rules=rules, zipf=None,
                       processors=processors)
    if contender == "hydns":
        point["answered_share"] = round(sum(r["answers"] for r in runs) / sum(r["replies"] for r in runs), 6)
    return point


def scale(bench, result, rules):
    """What the program gains when a second processor answers from the same store."""
    lines = pace(bench.tools, bench.double_link.ns, "scaling", *bench.double_link.options, "--rules", rules, "--sequence",
                 sequence(bench.run.dir, rules, None, bench.settings.seed), "--seconds", bench.settings.choose(0.3, 1.5),
                 "--rounds", bench.settings.choose(3, 7), cpu=",".join(map(str, cpus.ALL[:2])))
    gained = {}
    for contender in ("echo", "hydns"):
        one, two = (scaled(result, contender, n, rules, [line for line in lines if line.get("contender") == contender
                                                         and line["processors"] == n]) for n in (1, 2))
        gained[contender] = two["ratio_to_one_processor"] = round(two["replies_per_second"] / one["replies_per_second"], 4)
    say(f"capacity: {rules:,} rules on two processors: {two['replies_per_second'] / 1e6:.2f} M/s, {gained['hydns']:.2f} "
        f"times those of one (echo {gained['echo']:.2f})")


def run(bench, result):
    for rules, zipf, parameters in points(bench.settings):
        p = measure(bench, result, rules, zipf, parameters)
        text = label(rules, zipf, parameters)
        say(f"capacity: {text}: {p['replies_per_second'] / 1e6:.2f} M/s, {p['ratio_to_echo']:.2f} of echo")
        if not parameters and (rules, zipf) in GOALS:
            result.goals.append(Goal(f"share of the echo program's replies, {text}", GOALS[rules, zipf],
                                     p["ratio_to_echo"]))
    if len(cpus.ALL) < 2:
        result.absent.append({"contender": "hydns on two processors", "why": "this machine has one"})
        return
    for rules in SCALING:
        scale(bench, result, rules)
