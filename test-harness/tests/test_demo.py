# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The demo itself, short: its figures' keys are an interface, and it leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.report import KEYS
from harness.run import leftovers

DEMO = Path(__file__).resolve().parent.parent / "demo"


@pytest.fixture
def nothing_left():
    """What ended runs have left is after the test what it was before."""
    before = leftovers()
    yield
    assert leftovers() <= before


def heed_interrupts():
    """A shell starts what it runs in the background with SIGINT ignored, and what that starts inherits it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def short_demo(tmp_path, *words, seconds=4, **options):
    return subprocess.Popen([sys.executable, DEMO, "--seconds", str(seconds), "--rate", "5000", "--cold", *words,
                             "--json", tmp_path / "demo.json", "--plot", tmp_path / "demo.png"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            preexec_fn=heed_interrupts, **options)


def assert_load_answered(figures, text):
    """By the server alone, then by the kernel too; lost is at most what a socket's buffer had no room for."""
    for half in ("off", "on"):
        assert figures[half]["lost"] <= sum(figures["details"][half]["socket_overflows"].values()), text
    assert figures["off"]["kernel_share"] == 0 < figures["on"]["kernel_share"]


@pytest.mark.limit(300)
def test_short_demo(tmp_path, nothing_left):
    with short_demo(tmp_path) as demo:
        text = demo.communicate()[0]
    assert demo.returncode == 0, text
    figures = json.loads((tmp_path / "demo.json").read_text())
    for half in ("off", "on"):
        assert tuple(figures[half]) == KEYS
    assert_load_answered(figures, text)
    assert figures["details"]["off"]["recursion_cpu_seconds"] > 0
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "top ten names" in text


@pytest.mark.limit(300)
@pytest.mark.parametrize("role, says", (("recursive", "replies that needed recursion"),
                                        ("authoritative", "10 dynamic updates")))
def test_short_demo_of_bind(tmp_path, nothing_left, role, says):
    with short_demo(tmp_path, "--server", "bind", "--role", role, seconds=2) as demo:
        text = demo.communicate()[0]
    assert demo.returncode == 0, text
    figures = json.loads((tmp_path / "demo.json").read_text())
    assert_load_answered(figures, text)
    assert says in text and "BIND alone" in text
    updates = figures["details"]["on"].get("updates")
    assert role == "recursive" or (updates["outdated"] == 0 and updates["versions"] > 0)


@pytest.mark.limit(300)
def test_interrupted_demo(tmp_path, nothing_left):
    """Ctrl-C while the load runs."""
    with short_demo(tmp_path, start_new_session=True) as demo:
        for line in demo.stdout:
            if "of load" in line:
                break
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.communicate(timeout=120)[0]
    assert demo.returncode == 130, rest


@pytest.mark.parametrize("words", (["--seconds", "0"], ["--rate", "many"], ["--no-such-option"]), ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([sys.executable, DEMO, *words], capture_output=True, text=True)
    assert done.returncode == 2 and words[0] in done.stderr
