# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Where the measurements take place: a run of the harness, and on it what each of them asks for."""

import platform
import subprocess
from contextlib import ExitStack
from functools import cached_property
from types import SimpleNamespace

from harness import cpus, report
from harness.run import Run
from harness.tools import Tools

from .pace import GENERATOR, Link, RoutedLink


class Setting:
    """Context manager. What a crashed one has left is removed by the next run of the harness."""

    def __init__(self, settings):
        self.settings = settings
        self.tools = Tools()
        self._stack = ExitStack()

    def __enter__(self):
        self.run = self._stack.enter_context(Run())
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    @cached_property
    def link(self):
        return Link(self.run)

    @cached_property
    def routed_link(self):
        return RoutedLink(self.run, self.tools.pass_object)

    @property
    def world_like(self):
        """As much of a harness.world.World as its servers look at."""
        return SimpleNamespace(run=self.run, tools=self.tools)

    def environment(self):
        with open("/proc/version") as f:
            compiled = f.read().strip()
        clang = subprocess.run(["clang", "--version"], capture_output=True, text=True).stdout.splitlines()
        return {**report.environment(self.tools), "kernel_build": compiled, "python": platform.python_version(),
                "clang": clang[0] if clang else "unknown",
                "cpus": {"resolver": cpus.RESOLVER, "others": cpus.OTHERS, "generator": GENERATOR}}
