# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The table of doc/contributing.md: what was seen of the faults that test-harness/mutate puts in."""

import statistics
import sys
from pathlib import Path

from . import table

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "test-harness" / "mutations"))
import catalogue  # noqa: E402
import record  # noqa: E402

PLOTTED = ()


def faults(_):
    every, seen, rows = catalogue.read(), record.read(), []
    for part in [*dict.fromkeys(f.part for f in every), None]:
        own = [seen[f.name] for f in every if part in (f.part, None) and f.name in seen]
        units = sum(record.is_unit(s["by"]) for s in own)
        rows.append([part or "all", len(own), units, len(own) - units, round(statistics.median(s["seconds"] for s in own))])
    return table(["part", "faults, all killed", "by a unit", "by the whole path", "seconds each (median)"], rows)


TABLES = {"faults": faults}
