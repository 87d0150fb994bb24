# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-bench runs and writes what its man page says. Figures are not judged here: the machine is shared."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parent.parent / "hydns-bench"


@pytest.mark.limit(120)
def test_cost_quick(tmp_path):
    done = subprocess.run([sys.executable, BENCH, "cost", "--quick", "--json", tmp_path / "cost.json", "--plot",
                           tmp_path / "cost.png"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "cost.json").read_text())
    assert (figures["bench"], figures["seed"], figures["quick"]) == ("cost", 1, True)
    assert figures["environment"]["kernel"] and figures["environment"]["hydnsd"]
    ways = {p["way"]: p["nanoseconds"] for p in figures["points"] if p.get("query") == "A"}
    assert ways["answered"] > ways["no rule"] > ways["not a service"] > 0
    assert any(p.get("verified_instructions", 0) > 0 for p in figures["points"])
    assert {g["goal"] for g in figures["goals"] if g["met"] in (True, False)}
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("words", ([], ["speed"], ["cost", "--seed", "x"]), ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([sys.executable, BENCH, *words], capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
