# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Fixtures of tests on a bare root."""

import pytest

from lab.run import Run

from . import image


@pytest.fixture(scope="module")
def run():
    with Run() as r:
        yield r


@pytest.fixture(scope="session", autouse=True)
def root():
    try:
        return image.bare_root()
    except image.NoRoot as e:
        pytest.skip(f"no bare root: {e}")
