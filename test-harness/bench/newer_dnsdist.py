# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""dnsdist with AF_XDP, which needs 1.9 or later. Debian 12 has an older one, so this fetches a newer Debian release's with all
its libraries, and unpacks them below the cache, where no other program finds them.

As a command it fetches them: python3 -m bench.newer_dnsdist"""

import shutil
import subprocess
import sys
from pathlib import Path

from lab.process import run_tool
from lab.tools import TOP

sys.path.insert(0, str(TOP / "resolver-build"))
import resolver_build  # noqa: E402

RELEASE = "trixie"
LIBRARIES = "usr/lib/x86_64-linux-gnu"
# dnsdist's own paths; a mount namespace that ends with dnsdist leaves no pin behind
PINS = "/sys/fs/bpf/dnsdist"
XSKMAP = f"{PINS}/xskmap"
DESTINATIONS = {"destinations_v4": "xsk-destinations-v4", "destinations_v6": "xsk-destinations-v6"}


def root():
    return Path(resolver_build.default_cache()) / f"dnsdist-{RELEASE}"


def command():
    """The command that starts it, without arguments; None when it was not fetched."""
    libraries, program = root() / LIBRARIES, root() / "usr/bin/dnsdist"
    if not program.exists():
        return None
    return [libraries / "ld-linux-x86-64.so.2", "--library-path", libraries, program]


def steered(tools, device, argv):
    """The command, after attaching the XDP program that redirects queries to dnsdist, as its documentation asks the operator
    to do."""
    names = " && ".join(f"mv {PINS}/{map_name} {PINS}/{name}" for map_name, name in DESTINATIONS.items())
    script = (f'mount -t bpf bpf /sys/fs/bpf && mkdir {PINS} && bpftool prog load "$1" {PINS}/steer pinmaps {PINS} && '
              f'{names} && bpftool net attach xdp pinned {PINS}/steer dev "$2" overwrite && shift 2 && exec "$@"')
    return ["unshare", "--mount", "sh", "-c", script, "sh", tools.built("test-harness/bench/steer.bpf.o"), device, *argv]


def unsteer(ns, device):
    run_tool(ns, ["bpftool", "net", "detach", "xdp", "dev", device])


def fetch():
    target = root()
    folder = target.with_suffix(".apt")
    folder.mkdir(parents=True, exist_ok=True)
    archive = resolver_build.Archive(folder, RELEASE, folder.with_suffix(".log"), types="deb")
    archive.update()
    unpacked = target.with_suffix(".new")
    unpacked.mkdir(parents=True, exist_ok=True)
    for package in archive.with_dependencies("dnsdist"):
        subprocess.run(["dpkg-deb", "-x", package, unpacked], check=True)
    unpacked.rename(target)
    shutil.rmtree(folder)


if __name__ == "__main__" and not command():
    fetch()
