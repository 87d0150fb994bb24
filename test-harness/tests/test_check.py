# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""test-harness/check counts every test of every run, runs a step beside others, and leaves no process."""

import os
import re
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from lab.run import SOON, start_time, wait_until
from lab.scripts import HARNESS, program_as_module

# As the units of a build tree: the second time a test fails. Says how many hogs the check has started.
MAKEFILE = """check:
	@echo >>times; ps --no-headers -o args= --ppid $$(ps --no-headers -o ppid= -p $$PPID) | grep -c sched_setaffinity >>hogs || true
	@echo "PASS: one"; echo "# PASS:  1"
	@if [ $$(wc -l <times) = 2 ]; then echo "FAIL: two"; echo "# FAIL:  1"; exit 1; fi
"""


def test_check_again_and_again(tmp_path):
    (tmp_path / "Makefile").write_text(MAKEFILE)
    done = subprocess.run([HARNESS / "check", "--times", "3", "--hogs", "1", tmp_path, "units"], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    table = done.stdout.rpartition("run  hogs")[2]
    rows = re.findall(r"^ +(\d+) +(yes|no) +(\d+) +(\d+) +\d+$", table, re.M)
    assert rows == [("1", "no", "1", "0"), ("2", "no", "1", "1"), ("3", "yes", "1", "0")]
    assert re.search(r"^ +2 .*\n +two\n", table, re.M) and done.stdout.splitlines()[-1] == "3 runs: 3 passed, 1 failed"
    assert all((tmp_path / "log" / f"run-{n}" / "check-units.log").exists() for n in (1, 2, 3))
    busy = (tmp_path / "hogs").read_text().split()
    assert busy[:2] == ["0", "0"] and int(busy[2]) > 0


def test_check_without_a_failure(tmp_path):
    (tmp_path / "Makefile").write_text('check:\n\t@echo "PASS: one"; echo "# PASS:  1"\n')
    done = subprocess.run([HARNESS / "check", "--times", "2", tmp_path, "units"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == "2 runs: 2 passed, 0 failed"


def test_check_says_how_long_processors_ran(tmp_path):
    """Also of a child's child; in all it may be more than the step took."""
    (tmp_path / "busy").write_text("while read -r _ _ _ _ _ _ _ _ _ _ _ _ _ ticks _ </proc/self/stat; [ $ticks -lt 120 ]; do :; done\n")
    (tmp_path / "Makefile").write_text('check:\n\t@sh busy; echo "# PASS:  1"\n')
    done = subprocess.run([HARNESS / "check", tmp_path, "units"], capture_output=True, text=True)
    ran, = re.findall(r"^units .* skipped +\d+ s +(\d+) s ", done.stdout, re.M)
    assert int(ran) >= 1, done.stdout


@pytest.mark.parametrize("said,name", (("FAILED tests/test_x.py::test_y - why", "tests/test_x.py::test_y"), ("", "units: status 2")))
def test_check_names_what_has_failed(tmp_path, said, name):
    """Also what automake does not count."""
    (tmp_path / "Makefile").write_text(f'check:\n\t@echo "{said}"; echo "# PASS:  1"; exit 1\n')
    done = subprocess.run([HARNESS / "check", tmp_path, "units"], capture_output=True, text=True)
    assert done.returncode == 1 and f"\nnot passed: {name}\n1 passed, 1 failed\n" in done.stdout


@pytest.fixture
def check():
    return program_as_module("check")


def test_check_names_faults_that_survive(check):
    """By mutate's last line."""
    count = check.mutation_count("[12/12] killed\n10 of 12 faults killed in 80 s; not: one-fault (survived), another (hung)\n")
    assert (count.passed, count.failed, count.names) == (10, 2, ["fault one-fault (survived)", "fault another (hung)"])
    count = check.mutation_count("12 of 12 faults killed in 80 s\n")
    assert (count.passed, count.failed, count.names) == (12, 0, [])


def test_check_counts_what_ran_on_another_kernel(check):
    """By pytest's summary."""
    count = check.summary_count("FAILED tests/test_x.py::test_y[a b] - why\n=== 1 failed, 4 passed, 2 skipped in 207.93s (0:03:27) ===\n")
    assert (count.passed, count.failed, count.skipped, count.names) == (4, 1, 2, ["tests/test_x.py::test_y[a b]"])
    assert check.summary_count("Kernel panic\n").passed == 0


def test_check_needs_no_more_memory_than_there_is(check):
    assert check.processes_at_once(2, 64 * check.WORLD_KIB) == 4
    assert check.processes_at_once(16, 4 * check.WORLD_KIB + 1) == 4
    assert check.processes_at_once(2, check.WORLD_KIB // 2) == 1
    assert check.available_kib() > 0


@pytest.mark.parametrize("words", (["--times", "0"], ["--hogs", "2"], ["--times", "x"]), ids=" ".join)
def test_wrong_usage_of_check(tmp_path, words):
    done = subprocess.run([HARNESS / "check", *words, tmp_path, "units"], capture_output=True, text=True)
    assert done.returncode == 2 and words[0] in done.stderr


def step(check, name, script, limit=10):
    return name, ["sh", "-c", script], limit, lambda line: True, lambda status, output: check.Count(int(status == 0))


HANGS = "exec tail -f /dev/null"


def test_one_step_runs_beside_others(check, tmp_path, capsys):
    """It prints at its place, and what it comes to is counted there. The two meet at a FIFO, or are over their limit."""
    os.mkfifo(door := tmp_path / "door")
    rows = check.run_steps([step(check, "first", f"read line <{door}"), step(check, check.BESIDE, f"echo said beside; echo >{door}"),
                            step(check, "last", "echo said last")], tmp_path, os.environ)
    assert [(row.step, row.count.passed, row.count.failed) for row in rows] == [("first", 1, 0), (check.BESIDE, 1, 0), ("last", 1, 0)]
    printed = capsys.readouterr().out
    assert re.findall(r"^(?:== ([^:]+)|    said (\w+))", printed, re.M) == [
        ("first", ""), (check.BESIDE, ""), ("", "beside"), ("last", ""), ("", "last")]


class AtOnce:
    """In place of a pool of threads: the order in which it is given work is that in which the work is done."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        pass

    def submit(self, work, *args):
        done = work(*args)
        return SimpleNamespace(result=lambda: done)


def test_the_step_beside_waits_for_the_units(check, tmp_path, monkeypatch):
    """They build what it runs."""
    monkeypatch.setattr(check, "ThreadPoolExecutor", AtOnce)
    order = tmp_path / "order"
    check.run_steps([step(check, name, f"echo {name} >>{order}") for name in (check.UNITS, "first", check.BESIDE)], tmp_path, os.environ)
    assert order.read_text().split() == [check.UNITS, check.BESIDE, "first"]


@pytest.mark.limit(30)
@pytest.mark.parametrize("name", ("BESIDE", "UNITS"))
def test_a_step_over_its_limit_has_failed(check, tmp_path, capsys, name):
    [row] = check.run_steps([step(check, getattr(check, name), HANGS, limit=1)], tmp_path, os.environ)
    assert (row.count.passed, row.count.failed) == (0, 1) and "over its time limit of 1 s" in capsys.readouterr().out


def test_an_interrupted_check_leaves_no_process(tmp_path):
    """Neither of the step that it waits for nor of the one beside."""
    script = tmp_path / "script.py"
    script.write_text(f"""import os, signal, sys
from pathlib import Path
sys.path.insert(0, {str(HARNESS)!r})
from lab.scripts import program_as_module
signal.signal(signal.SIGTERM, signal.default_int_handler)
check = program_as_module("check")
step = ["sh", "-c", "echo $$ >>{tmp_path}/pids; {HANGS}"], 60, lambda line: True, None
check.run_steps([("first", *step), (check.BESIDE, *step)], Path({str(tmp_path)!r}), os.environ)
""")
    pids = tmp_path / "pids"
    with subprocess.Popen([sys.executable, script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as runner:
        wait_until(lambda: pids.exists() and len(pids.read_text().split()) == 2, SOON, "both steps to begin")
        began = {int(pid): start_time(int(pid)) for pid in pids.read_text().split()}
        runner.send_signal(signal.SIGTERM)
        assert runner.wait(SOON) != 0
    assert all(began.values()) and all(start_time(pid) != when for pid, when in began.items())
