# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Each test has a time limit. HYDNS_PACKAGES: the folder that check-packages has put the packages in."""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent / "test-harness"))

from bareroot import image  # noqa: E402
from lab.limits import pytest_configure, time_limit  # noqa: E402,F401
from lab.run import Run  # noqa: E402


@pytest.fixture(scope="module")
def run():
    with Run() as r:
        yield r


@pytest.fixture(scope="session")
def packages():
    """Two folders of packages: of a version, and of a higher one."""
    folder = Path(os.environ["HYDNS_PACKAGES"])
    return folder / "old", folder / "new"


@pytest.fixture(scope="session", autouse=True)
def root():
    try:
        return image.bare_root()
    except image.NoRoot as e:
        pytest.skip(f"no bare root: {e}")
