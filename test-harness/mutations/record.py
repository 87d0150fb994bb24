# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Which test last failed for each fault: seen.json, and README.md's table, which is made from it."""
import json
import statistics
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEEN = HERE / "seen.json"
README = HERE / "README.md"
BEGIN = "| fault | file |"       # what stands before it in README.md is written by hand


def is_unit(test):
    return ".py::" not in test and not test.endswith("/run-tests")


def short(test, cases):
    """The test without what is the same for all, and of a unit the first cases that failed."""
    if not is_unit(test) or not cases:
        return test.removeprefix("test-harness/tests/")
    return f"{test}: {', '.join(cases[:2])}" + (f" and {len(cases) - 2} more" if len(cases) > 2 else "")


def sums(tried):
    """Rows by part and for all: faults, killed by a unit, by the whole path, not killed, seconds (median). tried: (part, the test
    that failed or "", seconds) of each fault."""
    rows = []
    for part in [*dict.fromkeys(part for part, _, _ in tried), None]:
        own = [(by, seconds) for p, by, seconds in tried if part in (p, None)]
        units = sum(bool(by) and is_unit(by) for by, _ in own)
        left = sum(not by for by, _ in own)
        rows.append((part or "all", len(own), units, len(own) - units - left, left, statistics.median(s for _, s in own)))
    return rows


def read():
    return json.loads(SEEN.read_text())


def _table(faults, seen):
    lines = ["| fault | file | what it does | seen by | seconds |", "| --- | --- | --- | --- | --- |"]
    for f in faults:
        s = seen[f.name]
        lines.append(f"| {f.name} | {f.file} | {f.effect} | {short(s['by'], s['cases'])} | {s['seconds']} |")
    return lines


def write(faults, results):
    """Puts the results of faults that were killed in the place of their former ones, and makes the table again."""
    seen = read()
    for r in results:
        if r["verdict"] == "killed":
            seen[r["name"]] = {"by": r["by"], "cases": r["cases"], "seconds": round(r["build_s"] + r["test_s"])}
    known = [f for f in faults if f.name in seen]
    seen = {f.name: seen[f.name] for f in known}
    SEEN.write_text("{\n" + ",\n".join(f'"{name}": {json.dumps(s)}' for name, s in seen.items()) + "\n}\n")
    README.write_text(_page(known, seen))


def _page(faults, seen):
    return README.read_text().partition(BEGIN)[0] + "\n".join(_table(faults, seen)) + "\n"


def missing(faults):
    """A line for each fault that none of its tests was ever seen to fail for, and one when README.md's table is another than
    seen.json's."""
    seen = read()
    lines = [f"{f.name}: no run is on record in which {' or '.join(f.seen_by)} fails: mutate --only {f.name} --record BUILD"
             for f in faults if f.name not in seen or seen[f.name]["by"] not in f.seen_by]
    if README.read_text() != _page([f for f in faults if f.name in seen], seen):
        lines.append("README.md: its table is not that of seen.json: mutate --only NAME --record BUILD, with any fault's name")
    return lines
