# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Holds one thread of a running program at a function while its other threads go on (src/hold.c)."""

import os
import select
import subprocess
import time

import pytest

from .run import HarnessError

SECONDS = 30             # bound of the wait for a thread, and of holding it
ELSEWHERE = 77           # hold's exit status on a machine where it can't hold threads


class Hold:
    """Context manager. file: the program or shared object with the function; other: hold any thread but the main one."""

    def __init__(self, world, pid, file, function, other=False):
        self.function = function
        self.argv = [world.tools.built("test-harness/hold"), str(pid), file, function, str(SECONDS)]
        self.argv += ["other"] if other else []
        self.thread, self.said, self.why = None, b"", ""

    def __enter__(self):
        self.popen = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if self._line(SECONDS) != "ready":
            self.release()
            if self.popen.returncode == ELSEWHERE:
                pytest.skip("no thread can be held on this kind of machine")
            raise HarnessError(f"cannot hold a thread at {self.function}: {self.why}")
        return self

    def __exit__(self, *exc):
        self.release()

    def _line(self, seconds):
        """The next whole line, or None when none came within these seconds or the output has ended."""
        end, fd = time.monotonic() + seconds, self.popen.stdout.fileno()
        while b"\n" not in self.said:
            ready, _, _ = select.select([fd], [], [], max(0.0, end - time.monotonic()))
            # os.read(), because select() does not see Python's own buffer
            data = os.read(fd, 4096) if ready else b""
            if not data:
                return None
            self.said += data
        line, _, self.said = self.said.partition(b"\n")
        return line.decode()

    def until_held(self, ask):
        """Calls ask(), which makes some thread call the function sooner or later, until one is held."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self.popen.poll() is None:
            ask()
            line = self._line(0.05)
            if line and line.startswith("held "):
                self.thread = int(line.split()[1])
                return
        self.release()
        raise HarnessError(f"no thread came to {self.function} {self.why}")

    def release(self):
        """Lets the thread go on; returns when no thread is traced any more."""
        if self.popen.stdin.closed:
            return
        self.popen.stdin.close()
        try:
            self.popen.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
        self.why = self.popen.stderr.read().decode()
        self.popen.stdout.close()
        self.popen.stderr.close()
