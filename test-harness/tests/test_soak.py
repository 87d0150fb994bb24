# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The demo's load for hours (test-harness/soak): a few seconds of it, and what it says of servers that grow."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab.run import kept_runs
from storm.growth import HYDNSD, RESOLVER
from storm.soak import MEMORY_MOST, grown_memory

SOAK = Path(__file__).resolve().parent.parent / "soak"


def samples(name, octets):
    other = RESOLVER if name == HYDNSD else HYDNSD
    return [{name: n, other: 1 << 20} for n in octets]


@pytest.mark.parametrize("name", (HYDNSD, RESOLVER))
def test_memory_that_grows(name):
    """Of 32 samples the middles of the quarters that are compared are 12 samples apart."""
    may = MEMORY_MOST[name] // 12
    assert not list(grown_memory(samples(name, [n * may for n in range(32)])))
    assert [line for line in grown_memory(samples(name, [n * (may + 1) for n in range(32)])) if name in line]


def test_caches_that_fill():
    filled = [n << 24 for n in range(20)] + 20 * [20 << 24]
    assert not list(grown_memory(samples(RESOLVER, filled)))


def test_a_short_run(tmp_path):
    figures = tmp_path / "figures"
    done = subprocess.run([sys.executable, SOAK, "--seconds", "8", "--every", "2", "--rate", "1000", "--json", figures],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(figures.read_text())
    assert [sample["seconds"] for sample in found["series"]] == [2, 4, 6, 8]
    assert found["sent"] >= 8 * 1000 and found["held"]["BPF maps"]["last"] > 0
    assert not kept_runs()


@pytest.mark.parametrize("words, says", ((("--seconds", "6", "--every", "2"), "fewer samples say nothing"),
                                         (("--role", "authoritative"), "Unbound is no authoritative server here")))
def test_wrong_usage(words, says):
    done = subprocess.run([sys.executable, SOAK, *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and says in done.stderr
