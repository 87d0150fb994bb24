# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Holding a thread (src/hold.c) leaves the program as it was: on one of our own, whose threads come and go all the time
(src/held.c)."""

import os
import signal
import subprocess
from types import SimpleNamespace

import pytest

from lab.hold import Hold
from lab.run import HarnessError
from lab.tools import built

SIGNALS = 300
WORLD = SimpleNamespace(tools=SimpleNamespace(built=built))


@pytest.fixture
def held():
    with subprocess.Popen([built("test-harness/held")], stdout=subprocess.PIPE) as popen:
        assert popen.stdout.readline() == b"ready\n"
        yield popen
        popen.kill()


def ended(popen):
    """How many signals it has counted."""
    popen.send_signal(signal.SIGTERM)
    output, _ = popen.communicate(timeout=30)
    assert popen.returncode == 0, f"it has ended with status {popen.returncode}"
    return int(output)


def test_threads_that_come_meanwhile_are_traced(held):
    """An untraced thread would end the program at the breakpoint."""
    for _ in range(20):
        with Hold(WORLD, held.pid, built("test-harness/held"), "thread_place") as hold:
            hold.until_held(lambda: None)
            assert hold.thread != held.pid and held.poll() is None
    ended(held)


def test_no_signal_is_lost_at_a_place_that_is_passed(held):
    with Hold(WORLD, held.pid, built("test-harness/held"), "main_place", other=True):
        for _ in range(SIGNALS):
            os.kill(held.pid, signal.SIGRTMIN)
    assert ended(held) == SIGNALS


def test_nobody_comes(held):
    """The tracer has gone, and says why."""
    with pytest.raises(HarnessError, match="no such function"):
        Hold(WORLD, held.pid, built("test-harness/held"), "no_place").__enter__()
    ended(held)
