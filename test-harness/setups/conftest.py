# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Each test has a time limit, and says at once why it failed: the machine may end before its last test."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.limits import pytest_configure, time_limit  # noqa: E402,F401
from setups.machine import machine  # noqa: E402,F401


def pytest_runtest_logreport(report):
    if report.failed:
        print(f"\n{report.longreprtext}", flush=True)
