# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Paths of the programs: our own in the build tree, the patched resolvers in their prefixes, the others installed."""

import functools
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from .run import HarnessError

TOP = Path(__file__).resolve().parent.parent.parent
UNBOUND_UNIT = TOP / "packaging" / "hydns-unbound.service.in"


def build_tree():
    return Path(os.environ.get("HYDNS_BUILD") or TOP / "build").resolve()


def built(path):
    """A program of the build tree."""
    path = build_tree() / path
    if not path.exists():
        raise HarnessError(f"{path} is not there: build first (./quickstart build), or set HYDNS_BUILD to the build tree")
    return path


def unbound_prefix():
    """Of the patched Unbound: as it is staged below the build tree, or another."""
    return Path(os.environ.get("HYDNS_UNBOUND") or build_tree() / "unbound-root/usr/lib/hydns/unbound").resolve()


@functools.cache
def unbound_release(prefix=None):
    """(major, minor) of the patched Unbound, of that prefix or where the tests find it; (0, 0) when there is none."""
    program = (prefix or unbound_prefix()) / "sbin/unbound"
    said = subprocess.run([program, "-V"], capture_output=True, text=True, check=False).stdout if program.is_file() else ""
    found = re.search(r"^Version (\d+)\.(\d+)\.", said, re.M)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def unbound_has_fast_reload():
    """Unbound has that command from 1.23 on. False also when there is no Unbound."""
    return unbound_release() >= (1, 23)


def unit_environment(unit):
    """What a unit's Environment= lines set, as words NAME=VALUE."""
    values = (line.partition("=")[2] for line in unit.read_text().splitlines() if line.startswith("Environment="))
    return [word for value in values for word in shlex.split(value)]


class Tools:
    """Paths of all programs, checked at once, so that a run does not fail half way for a missing one."""

    def __init__(self):
        build = build_tree()
        unbound = unbound_prefix()
        self.build = build
        self.hydnsd = built("hydnsd/hydnsd")
        self.hydnsctl = built("hydnsd/hydnsctl")
        self.asker = built("test-harness/asker")
        self.twins = built("test-harness/twins")
        self.pass_object = built("hydns-kern/pass.bpf.o")
        self.room_object = built("test-harness/lab/room.bpf.o")
        self.weather_object = built("test-harness/storm/weather.bpf.o")
        self.unbound = self._unbound(unbound / "sbin" / "unbound")
        self.unbound_control = self._unbound(unbound / "sbin" / "unbound-control")
        self.unbound_checkconf = self._unbound(unbound / "sbin" / "unbound-checkconf")
        self._bind = Path(os.environ.get("HYDNS_BIND") or build / "bind-root/usr/lib/hydns/bind").resolve()
        self.nsd = self._installed("nsd", "nsd")
        self.nsd_control = self._installed("nsd-control", "nsd")
        self.dnsperf = self._installed("dnsperf", "dnsperf")

    def built(self, path):
        """Path of a program of the build tree that only some tests need."""
        return built(path)

    def unbound_with_plugin(self):
        """The first words of the command that starts Unbound with the plugin, in the environment that its unit gives it. Unbound
        alone starts without."""
        return ["env", *unit_environment(UNBOUND_UNIT), self.unbound]

    def bind(self, name):
        """The first words of a command of the patched BIND, such as sbin/named. Looked up on use: a run with Unbound needs no
        BIND. BIND is staged below the build tree, so LD_LIBRARY_PATH names its libraries."""
        return ["env", f"LD_LIBRARY_PATH={self._bind / 'lib'}", self._of_bind(name)]

    @property
    def bind_plugin(self):
        return self._of_bind("lib/bind/hydns.so")

    def stock_bind(self, name):
        """The first words of a command of the distribution's BIND."""
        return [self._installed(Path(name).name, "bind9")]

    @property
    def stock_bind_plugin(self):
        return self.built("bind-patches/hydns-stock.so")

    def _of_bind(self, name):
        path = self._bind / name
        if not path.exists():
            raise HarnessError(f"{path} is not there: ./quickstart build makes the patched BIND, or set HYDNS_BIND to "
                               "its prefix")
        return path

    @staticmethod
    def _unbound(path):
        if not path.exists():
            raise HarnessError(f"{path} is not there: ./quickstart build makes the patched Unbound, or set "
                               "HYDNS_UNBOUND to its prefix")
        return path

    @staticmethod
    def _installed(name, package):
        path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if path is None:
            raise HarnessError(f"{name} is not installed (Debian package {package})")
        return Path(path)
