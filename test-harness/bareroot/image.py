# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A bare Debian root of this machine's release, made once by mmdebstrap and kept in the cache."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(TOP / "resolver-build"))

from resolver_build import Failure, archive_entries, content_key  # noqa: E402

LIMIT = 600       # seconds for making a root, most of them for the network


class NoRoot(Exception):
    """A bare root can't be had on this machine; says why."""


def cache():
    return Path(os.environ.get("HYDNS_CACHE") or Path.home() / ".cache" / "hydns") / "bare-root"


def codename():
    for line in Path("/etc/os-release").read_text().splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.partition("=")[2].strip('"')
    raise NoRoot("/etc/os-release names no Debian release")


def archives():
    """Where downloaded packages are kept between runs."""
    folder = cache() / "archives"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def bare_root():
    """The folder of the root, which is only ever read; NoRoot if it can't be made."""
    if shutil.which("mmdebstrap") is None:
        raise NoRoot("mmdebstrap is not installed")
    try:
        sources = archive_entries(codename(), "deb")
    except Failure as e:
        raise NoRoot(str(e)) from e
    root = cache() / f"{codename()}-{content_key([sources])}"
    archives()
    with open(cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            _make(root, sources)
    return root


def _make(root, sources):
    for old in (*cache().glob(f"{codename()}-*"), *cache().glob("making-*")):
        shutil.rmtree(old)
    making, listed = cache() / "making-root", cache() / "making.sources"
    listed.write_text(sources)
    # What debootstrap installs: a machine as Debian's installer leaves it without any task, less the kernel.
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=important", "--format=directory", codename(), making, listed]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e:
        raise NoRoot(f"mmdebstrap was not done within {LIMIT} s") from e
    if done.returncode != 0:
        raise NoRoot(f"mmdebstrap failed: {done.stderr.strip().splitlines()[-1:]}")
    making.rename(root)
