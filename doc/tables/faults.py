# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The table of doc/contributing.md: what was seen of the faults that test-harness/mutate puts in."""

import sys
from pathlib import Path

from . import table

sys.path.append(str(Path(__file__).resolve().parent.parent.parent / "test-harness" / "mutations"))
import catalogue  # noqa: E402
import record  # noqa: E402

PLOTTED = ()


def faults(_):
    every, seen = catalogue.read(), record.read()
    tried = [(f.part, seen[f.name]["by"], seen[f.name]["seconds"]) for f in every if f.name in seen]
    return table(["part", "faults, all killed", "by a unit", "by the whole path", "seconds each (median)"],
                 [(part, count, units, whole, round(seconds)) for part, count, units, whole, _, seconds in record.sums(tried)])


TABLES = {"faults": faults}
