# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Each test has a time limit. HYDNS_PACKAGES: the folder that check-packages has put the packages in."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "test-harness"))

from bareroot.fixtures import root, run  # noqa: E402,F401
from lab.limits import pytest_configure, time_limit  # noqa: E402,F401


@pytest.fixture(scope="session")
def packages():
    """Two folders of packages: of a version, and of a higher one."""
    folder = Path(os.environ["HYDNS_PACKAGES"])
    return folder / "old", folder / "new"
