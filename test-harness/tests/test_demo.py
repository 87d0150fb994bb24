# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The demo itself, short: its figures' keys are an interface, and it leaves nothing behind."""

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lab.report import KEYS
from lab.run import remains

DEMO = Path(__file__).resolve().parent.parent / "demo"


@pytest.fixture
def run_id():
    """The id of the demo's run, of which nothing may be left after the test."""
    chosen = secrets.token_hex(3)
    yield chosen
    assert not remains(chosen)


def heed_interrupts():
    """A shell starts what it runs in the background with SIGINT ignored, and what that starts inherits it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def with_id(run_id):
    """The environment of a program whose run has this id."""
    return {**os.environ, "HYDNS_RUN_ID": run_id}


def short_demo(tmp_path, run_id, *words, seconds=4, **options):
    return subprocess.Popen([sys.executable, DEMO, "--seconds", str(seconds), "--rate", "5000", "--cold", *words,
                             "--json", tmp_path / "demo.json", "--plot", tmp_path / "demo.png"],
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=with_id(run_id),
                            preexec_fn=heed_interrupts, **options)


def assert_load_answered(figures, text):
    """The server alone answers all of it, then server and kernel do; only full socket buffers may lose queries."""
    for half in ("off", "on"):
        assert figures[half]["lost"] <= sum(figures["details"][half]["socket_overflows"].values()), text
    assert figures["off"]["kernel_share"] == 0 < figures["on"]["kernel_share"]


@pytest.mark.limit(300)
def test_short_demo(tmp_path, run_id):
    with short_demo(tmp_path, run_id) as demo:
        text = demo.communicate()[0]
    assert demo.returncode == 0, text
    figures = json.loads((tmp_path / "demo.json").read_text())
    for half in ("off", "on"):
        assert tuple(figures[half]) == KEYS
        busy = figures["details"][half]["processors_busy"]
        assert set(busy) == {"machine", "resolver", "others"} and all(0 < share < 1.1 for share in busy.values()), busy
    assert_load_answered(figures, text)
    assert figures["details"]["off"]["recursion_cpu_seconds"] > 0
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "top ten names" in text and "processors busy: the resolver's" in text
    rows = [tuple(line.split()[:3]) for line in text.partition("top ten names\n")[2].splitlines()[1:11]]
    assert len(rows) == 10 == len(set(rows)), "rows that nothing tells apart"


@pytest.mark.limit(300)
@pytest.mark.parametrize("role, says", (("recursive", "replies that needed recursion"),
                                        ("authoritative", "10 dynamic updates")))
def test_short_demo_of_bind(tmp_path, run_id, role, says):
    with short_demo(tmp_path, run_id, "--server", "bind", "--role", role, "--no-rings", "--poll", seconds=2) as demo:
        text = demo.communicate()[0]
    assert demo.returncode == 0, text
    figures = json.loads((tmp_path / "demo.json").read_text())
    assert_load_answered(figures, text)
    assert says in text and "BIND alone" in text
    updates = figures["details"]["on"].get("updates")
    assert role == "recursive" or (updates["outdated"] == 0 and updates["versions"] > 0)


@pytest.mark.limit(300)
def test_queries_used_up(tmp_path, run_id):
    """The run ends early, says so, and its figures are those of the time that it took."""
    words = ("--server", "bind", "--role", "authoritative", "--queries", "15000")
    with short_demo(tmp_path, run_id, *words, seconds=6) as demo:
        text = demo.communicate()[0]
    assert demo.returncode == 0, text
    assert text.count("queries were used up after") == 2 and "--queries " in text
    details = json.loads((tmp_path / "demo.json").read_text())["details"]
    for half in ("off", "on"):
        assert details[half]["ended_early"] and details[half]["seconds"] < 6
        assert 0 < details[half]["queries"] <= 15000


@pytest.mark.limit(300)
@pytest.mark.parametrize("queries", ("1", "400"))
def test_too_few_queries(tmp_path, run_id, queries):
    with short_demo(tmp_path, run_id, "--queries", queries, seconds=20) as demo:
        text = demo.communicate()[0]
    assert demo.returncode == 1 and "--queries" in text.splitlines()[-1], text


@pytest.mark.limit(300)
def test_nothing_is_asked_twice(tmp_path, run_id):
    """Every name is new, so there is nothing to warm the cache with."""
    demo = subprocess.run([sys.executable, DEMO, "--fresh", "1", "--seconds", "2", "--rate", "1000", "--json",
                           tmp_path / "demo.json", "--plot", tmp_path / "demo.png"], capture_output=True, text=True, env=with_id(run_id))
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert "cache warmed with 0 questions" in demo.stdout
    assert json.loads((tmp_path / "demo.json").read_text())["off"]["lost"] == 0


@pytest.mark.limit(300)
def test_interrupted_demo(tmp_path, run_id):
    """Ctrl-C while the load runs."""
    with short_demo(tmp_path, run_id, start_new_session=True) as demo:
        for line in demo.stdout:
            if "of load" in line:
                break
        there = remains(run_id)
        os.killpg(demo.pid, signal.SIGINT)
        rest = demo.communicate(timeout=120)[0]
    assert demo.returncode == 130, rest
    assert len(there) > 1, "a directory and namespaces"


@pytest.mark.parametrize("words", (["--seconds", "0"], ["--rate", "many"], ["--no-such-option"]), ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([sys.executable, DEMO, *words], capture_output=True, text=True)
    assert done.returncode == 2 and words[0] in done.stderr
