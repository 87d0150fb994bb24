# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tables and plot of doc/policy.md, from what hydns-sim/goals --json has written."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from . import table, yes

PLOT = Path(__file__).resolve().parent.parent.parent / "hydns-sim" / "hydns-sim-plot"
PLOTTED = ("policy",)
DAEMON_OPTIONS = ("min-hits",)
SHOWN_CAPACITY = "10,000 rules"     # of the scenarios; those of the rate have one capacity alone


def load(row):
    return row["zipf"], row["rate"]


def made(results):
    kept = results["policy"]
    return [f"Played {kept['date']} by `hydns-sim/goals {' '.join(kept['parts'])}`, {kept['hydns_sim']}: {kept['seconds']} s of load for "
            f"each row, {kept['requests']:,} queries for each scenario, seed {', '.join(map(str, kept['seeds']))}."]


def capacities(results):
    rows = results["policy"]["capacities"]
    sizes = sorted({r["capacity"] for r in rows})
    by_load = {load(r): {s["capacity"]: s for s in rows if load(s) == load(r)} for r in rows}
    return table(("Zipf exponent", "queries/s", *(f"{n:,} rules" for n in sizes)),
                 [(zipf, f"{rate:,}", *(f"{of[n]['hydns']:.1%}" for n in sizes)) for (zipf, rate), of in sorted(by_load.items())])


def contenders(results):
    """At the load of the plot."""
    rows = []
    for capacity in sorted({r["capacity"] for r in results["policy"]["runs"]}):
        of = {r["policy"]: r for r in results["policy"]["runs"] if r["capacity"] == capacity}
        other = max((r for r in of.values() if r["online"] and r["policy"] != "hydns"), key=lambda r: r["hit_rate"])
        rows.append((f"{capacity:,}", f"{of['hydns']['hit_rate']:.1%}", f"{other['hit_rate']:.1%} ({other['title']})",
                     f"{of['rates']['hit_rate']:.1%}", f"{of['hydns']['installs_per_second']:,.0f}"))
    return table(("rules", "hyDNS", "best other online policy", "exact rates", "installs/s of hyDNS"), rows)


def in_file(option):
    """As the resolver's plugin calls it, or hydnsd.conf(5)."""
    name = option.replace("_", "-")
    return name if name in DAEMON_OPTIONS else f"hydns-{name}"


def options(results):
    rows = results["policy"]["options"]
    sizes = sorted({r["capacity"] for r in rows})
    by_option = {}
    for r in rows:
        words = ", ".join(f"`{in_file(k)}: {v}`" for k, v in r["option"].items()) or "(defaults)"
        by_option.setdefault(words, {})[r["capacity"]] = r
    head = [f"{n:,} rules: {what}" for n in sizes for what in ("in the kernel", "installs/s")]
    return table(("in place of the default", *head), [(words, *(cell for n in sizes for cell in (
        f"{of[n]['hydns']:.1%}", f"{of[n]['installs_per_second']:,.0f}"))) for words, of in by_option.items()])


def scenarios(results):
    rows = results["policy"]["scenarios"]
    shown = [r for r in rows if f" {SHOWN_CAPACITY}" in f" {r['scenario']}" or r["scenario"].startswith("rate")]
    return [*table(("scenario", "goal", "measured", "met"), [(r["scenario"], r["goal"], r["measured"], yes(r["met"])) for r in shown]),
            "", f"Of all {len(rows)} scenarios, with 100 to 100,000 rules, {sum(r['met'] for r in rows)} meet their goal."]


TABLES = {t.__name__: t for t in (made, capacities, contenders, options, scenarios)}


def draw(results, file):
    """hydns-sim-plot draws the runs as it draws anybody's."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as runs:
        json.dump({"runs": results["policy"]["runs"]}, runs)
        runs.flush()
        if subprocess.run([sys.executable, PLOT, runs.name, file]).returncode:
            sys.exit(f"report: {PLOT} drew nothing")
