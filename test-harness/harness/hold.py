# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A thread of a running program held at a function, while all its others go on (src/hold.c)."""

import select
import subprocess
import time

import pytest

from .run import HarnessError

SECONDS = 30             # for which a thread may be waited for, and held
ELSEWHERE = 77           # status on a machine that it can't be done on


class Hold:
    """Context manager. file: the program or shared object that has the function; other: the main thread is not held."""

    def __init__(self, world, pid, file, function, other=False):
        self.function = function
        self.argv = [world.tools.built("test-harness/hold"), str(pid), file, function, str(SECONDS)]
        self.argv += ["other"] if other else []
        self.thread = None

    def __enter__(self):
        self.popen = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                      text=True, bufsize=1)
        if self._line(SECONDS) != "ready":
            status, why = self.popen.wait(5), self.popen.stderr.read()
            if status == ELSEWHERE:
                pytest.skip("no thread can be held on this kind of machine")
            raise HarnessError(f"cannot hold a thread at {self.function}: {why}")
        return self

    def __exit__(self, *exc):
        self.release()

    def _line(self, seconds):
        ready, _, _ = select.select([self.popen.stdout], [], [], seconds)
        return self.popen.stdout.readline().strip() if ready else None

    def until_held(self, ask):
        """Calls ask(), which makes some thread call the function sooner or later, until one is held."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            ask()
            line = self._line(0.05)
            if line and line.startswith("held "):
                self.thread = int(line.split()[1])
                return
        raise HarnessError(f"no thread came to {self.function}")

    def release(self):
        """Returns when it goes on, and nobody is traced any more."""
        if self.popen.poll() is None:
            self.popen.stdin.close()
            self.popen.wait(5)
