# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Where the programs are: our own in the build tree, the patched Unbound in its prefix, the rest installed."""

import os
import shutil
from pathlib import Path

from .run import HarnessError

TOP = Path(__file__).resolve().parent.parent.parent


def build_tree():
    return Path(os.environ.get("HYDNS_BUILD") or TOP / "build").resolve()


def built(path):
    """A program of the build tree."""
    path = build_tree() / path
    if not path.exists():
        raise HarnessError(f"{path} is not there: build first (./quickstart build), or set HYDNS_BUILD to the build tree")
    return path


class Tools:
    """Paths of all programs, checked at once: a run must not fail half way for a missing one."""

    def __init__(self):
        build = build_tree()
        unbound = Path(os.environ.get("HYDNS_UNBOUND") or build / "unbound-root/usr/lib/hydns/unbound").resolve()
        self.build = build
        self.hydnsd = built("hydnsd/hydnsd")
        self.hydnsctl = built("hydnsd/hydnsctl")
        self.asker = built("test-harness/asker")
        self.twins = built("test-harness/twins")
        self.pass_object = built("hydns-kern/pass.bpf.o")
        self.unbound = self._unbound(unbound / "sbin" / "unbound")
        self.unbound_control = self._unbound(unbound / "sbin" / "unbound-control")
        self.unbound_checkconf = self._unbound(unbound / "sbin" / "unbound-checkconf")
        self._bind = Path(os.environ.get("HYDNS_BIND") or build / "bind-root/usr/lib/hydns/bind").resolve()
        self.nsd = self._installed("nsd", "nsd")
        self.nsd_control = self._installed("nsd-control", "nsd")
        self.dnsperf = self._installed("dnsperf", "dnsperf")

    def built(self, path):
        """A program of the build tree that only some need."""
        return built(path)

    def bind(self, name):
        """The beginning of a command of the patched BIND, such as sbin/named, asked for when it is needed: a run with
        Unbound needs no BIND. Staged below the build tree, it must be told where its libraries are."""
        return ["env", f"LD_LIBRARY_PATH={self._bind / 'lib'}", self._of_bind(name)]

    @property
    def bind_plugin(self):
        return self._of_bind("lib/bind/hydns.so")

    def stock_bind(self, name):
        """The beginning of a command of the distribution's own BIND."""
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
