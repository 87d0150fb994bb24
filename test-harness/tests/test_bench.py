# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-bench runs and writes what its man page says. Figures are not judged here: the machine is shared."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.run import RUNS, is_alive, leftovers, processes
from test_demo import heed_interrupts

BENCH = Path(__file__).resolve().parent.parent / "hydns-bench"


@pytest.mark.limit(300)
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
    documented = set(re.findall(r"\w+", BENCH.parent.joinpath("bench", "hydns-bench.1").read_text()))
    assert not {key for point in figures["points"] for key in point} - documented
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


def test_interrupted():
    """Ctrl-C while resolvers, daemon and dnsperf run leaves nothing of them."""
    before = leftovers()
    with subprocess.Popen([sys.executable, BENCH, "latency", "--quick"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, preexec_fn=heed_interrupts) as bench:
        progress = next((line for line in bench.stderr if "concurrency 1" in line), None)
        started = [p for d in RUNS.iterdir() if (d / "owner").read_text().split()[0] == str(bench.pid) for p in processes(d)]
        bench.send_signal(signal.SIGINT)
        rest = bench.communicate()[1]
    assert progress and bench.returncode == 130, rest
    assert len(started) >= 5 and not any(is_alive(*p) for p in started)
    assert leftovers() <= before


@pytest.mark.parametrize("words", ([], ["speed"], ["cost", "--seed", "x"], ["cost", "--json", "/missing/cost.json"],
                                   ["cost", "--plot", "/tmp/cost.txt"]), ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([sys.executable, BENCH, *words], capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
