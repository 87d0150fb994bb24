# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The cache of built resolvers: one build runs at a time, also after a killed build that left processes."""

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

from lab.run import SOON, wait_until

BUILD = Path(__file__).resolve().parent.parent.parent / "resolver-build"
SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from resolver_build import locked, run
folder = Path(sys.argv[2])
with locked(folder / "lock"):
    run(["sh", "-c", f"echo $$ >{folder}/pid.new; mv {folder}/pid.new {folder}/pid; exec sleep 1000"], folder / "log", "")
"""


def is_free(lock):
    with open(lock) as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def test_lock_outlives_a_killed_build(tmp_path):
    with subprocess.Popen([sys.executable, "-B", "-c", SCRIPT, BUILD, tmp_path]) as build:
        wait_until((tmp_path / "pid").exists, SOON, "the build to start something")
        build.kill()
    left = int((tmp_path / "pid").read_text())
    free = is_free(tmp_path / "lock")
    os.kill(left, signal.SIGKILL)
    assert not free
    wait_until(lambda: is_free(tmp_path / "lock"), SOON, "the lock to be free")
