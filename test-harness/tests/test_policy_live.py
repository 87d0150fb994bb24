# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The simulator agrees with the running programs: its counts and the kernel's, on the same queries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

POLICY_LIVE = Path(__file__).resolve().parent.parent / "policy-live"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: namespaces and BPF")
def test_kernel_and_simulator_agree(tmp_path):
    """At one time of a few: offers that wait for a processor come to the store later than in the simulation."""
    for _ in range(3):
        done = subprocess.run([sys.executable, POLICY_LIVE, "--capacities", "300", "--seconds", "8", "--rate", "1500", "--json",
                               tmp_path / "live.json"], capture_output=True, text=True)
        if done.returncode == 0:
            break
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "live.json").read_text())
    point, = figures["points"]
    live, simulated = point["live"], point["simulated"]
    assert abs(live["answered"] / live["queries"] - simulated["hits"] / simulated["requests"]) <= figures["within"]
    # the store was full, so that the policy had to choose, and a good part was answered
    assert live["offers"]["evicted"] > 100 and live["answered"] > 1000


def test_wrong_usage():
    done = subprocess.run([sys.executable, POLICY_LIVE, "--capacities", "0"], capture_output=True, text=True)
    assert done.returncode == 2 and "whole numbers" in done.stderr
