# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Debian roots of this machine's release, made once by mmdebstrap and kept in the cache: a bare one, and one of arm64.

Called with the names of Debian packages, prints the folder of a root of arm64 with them."""

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
    # What debootstrap installs: a machine as Debian's installer leaves it without any task, less the kernel.
    return _root(codename(), ["--variant=important"])


def arm64_root(packages):
    """The folder of a root of arm64 with these packages, and what they depend on, unpacked but not set up (that takes an arm64):
    to build for it, and to run its programs in a machine under emulation. NoRoot if it can't be made."""
    return _root(f"arm64-{codename()}", ["--variant=extract", "--architectures=arm64", f"--include={','.join(sorted(packages))}",
                                         "--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"], _set_up_arm64)


def _root(name, options, set_up=None):
    """What mmdebstrap makes with these options, once; the key in the folder's name changes with them."""
    if shutil.which("mmdebstrap") is None:
        raise NoRoot("mmdebstrap is not installed")
    try:
        sources = archive_entries(codename(), "deb")
    except Failure as e:
        raise NoRoot(str(e)) from e
    root = cache() / f"{name}-{content_key([sources, *options[1:]])}"
    archives()
    with open(cache() / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.is_dir():
            for old in (*cache().glob(f"{name}-*"), *cache().glob("making-*")):
                shutil.rmtree(old)
            making = _make(sources, options)
            if set_up:
                set_up(making)
            making.rename(root)
    return root


def _make(sources, options):
    making, listed = cache() / "making-root", cache() / "making.sources"
    listed.write_text(sources)
    command = ["mmdebstrap", "--quiet", "--mode=root", "--format=directory", *options, codename(), making, listed]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as e:
        raise NoRoot(f"mmdebstrap was not done within {LIMIT} s") from e
    if done.returncode != 0:
        raise NoRoot(f"mmdebstrap failed: {done.stderr.strip().splitlines()[-1:]}")
    return making


def _set_up_arm64(root):
    """What packages' own scripts would have done, as far as a linker and tests need it."""
    for link in (root / "usr/lib/aarch64-linux-gnu").glob("*.so"):
        if link.is_symlink() and os.path.isabs(os.readlink(link)):      # a linker would find this machine's library there
            target = os.path.basename(os.readlink(link))
            link.unlink()
            link.symlink_to(target)
    for name in ("passwd", "group"):
        shutil.copy(root / f"usr/share/base-passwd/{name}.master", root / "etc" / name)
    (root / "usr/bin/awk").symlink_to("mawk")
    for version in (root / "usr/lib/modules").iterdir():
        subprocess.run(["depmod", "-b", root, version.name], check=True)


if __name__ == "__main__":
    try:
        print(arm64_root(sys.argv[1:]))
    except NoRoot as e:
        sys.exit(f"no root of arm64: {e}")
