# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The harness's programs as modules, for tests of their parts."""

import importlib.machinery
import importlib.util
from pathlib import Path

HARNESS = Path(__file__).resolve().parent.parent


def program_as_module(name):
    """A program of the harness as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(HARNESS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
