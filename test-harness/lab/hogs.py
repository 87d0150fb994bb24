# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A busy process on each processor, for tests that must hold on a busy machine."""

import os
import subprocess
import sys
from contextlib import contextmanager

# ends by itself when the process that started it ends
HOG = """import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.getppid() == int(sys.argv[2]):
    for _ in range(1000000):
        pass
"""


@contextmanager
def hogs():
    """Context manager: they run within the block."""
    running = []
    try:
        for processor in sorted(os.sched_getaffinity(0)):
            running.append(subprocess.Popen([sys.executable, "-c", HOG, str(processor), str(os.getpid())]))
        yield
        ended = [p.pid for p in running if p.poll() is not None]
        assert not ended, f"not busy to the end: {ended}"
    finally:
        for p in running:
            p.kill()
            p.wait()
