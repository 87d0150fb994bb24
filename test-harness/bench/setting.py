# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Where the measurements take place: a run of the harness, with links and servers on request."""

import datetime
import os
import platform
import subprocess
from contextlib import ExitStack
from functools import cached_property
from types import SimpleNamespace

from lab import cpus, report
from lab.run import HarnessError, Run
from lab.tools import Tools

from .pace import GENERATOR, DoubleLink, Link, RoutedLink, take_live_frames


class Setting:
    """Context manager. The next run of the harness removes what a crashed one left."""

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
        """A link for clients with a socket, answered by the kernel."""
        link = RoutedLink(self.run, "sockets")
        link.take_xdp_replies(self.tools.pass_object)
        return link

    @cached_property
    def second_link(self):
        """As link, polled even without an attached program."""
        link = Link(self.run, "bench2")
        take_live_frames(link)
        return link

    @cached_property
    def double_link(self):
        """A link for two generators, each on a processor of its own."""
        return DoubleLink(self.run, "double")

    def _live(self, label):
        link = RoutedLink(self.run, label)
        take_live_frames(link)
        return link

    @cached_property
    def peer_link(self):
        """A link for the generator, answered by sockets."""
        return self._live("peers")

    @cached_property
    def overhead_link(self):
        """As peer_link; a measurement may choose the processor that polls it."""
        return self._live("overhead")

    @cached_property
    def overhead_attached_link(self):
        """As overhead_link, for servers with an attached program."""
        return self._live("attached")

    @cached_property
    def mixed_link(self):
        """A link for the generator, answered by sockets and by the kernel."""
        return self._live("mixed")

    @cached_property
    def plain_link(self):
        """A link for clients with a socket, answered by sockets, without any program."""
        return RoutedLink(self.run, "plain")

    @property
    def world_like(self):
        """The attributes of a lab.world.World that lab/servers.py uses."""
        return SimpleNamespace(run=self.run, tools=self.tools)

    def _with_bind(self):
        """Most questions need no BIND."""
        try:
            return report.environment(self.tools, "bind")
        except HarnessError:
            return {}

    def environment(self):
        with open("/proc/version") as f:
            compiled = f.read().strip()
        clang = subprocess.run(["clang", "--version"], capture_output=True, text=True).stdout.splitlines()
        return {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                "load_average": [round(load, 2) for load in os.getloadavg()],
                **self._with_bind(), **report.environment(self.tools, "unbound"), "kernel_build": compiled,
                "python": platform.python_version(),
                "clang": clang[0] if clang else "unknown",
                "cpus": {"resolver": cpus.RESOLVER, "others": cpus.OTHERS, "generator": GENERATOR}}
