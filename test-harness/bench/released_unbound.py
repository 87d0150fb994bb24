# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unbound as it was released, from the source that the patched one is built from and by the same compiler flags: what an operator
runs without hyDNS. Built once, below the cache.

As a command it builds it: python3 -m bench.released_unbound"""

import argparse
import os
import shutil
import sys
from pathlib import Path

from lab.tools import TOP

sys.path.insert(0, str(TOP / "resolver-build"))
import resolver_build  # noqa: E402

BASE = resolver_build.Base("Unbound", TOP / "unbound-module/patches/1.22")
# As unbound-module/build-unbound, but for the random numbers, which are as its configure script chooses.
CONFIGURE = ("--disable-flto", "--with-libevent", "--with-pthreads", "--enable-subnet", "--enable-dnstap", "--with-chroot-dir=",
             "--with-username=", "--disable-shared")


def root():
    return Path(resolver_build.default_cache()) / f"released-unbound-{BASE.version}"


def command():
    """The command that starts it, without arguments; None when it was not built."""
    program = root() / "unbound"
    return [program] if program.exists() else None


def build():
    work = root().with_suffix(".new")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log, made = work / "build.log", work / "build"
    log.touch()
    made.mkdir()
    resolver_build.unpack(resolver_build.fetch(BASE, root().parent), BASE, work / "src", log)
    resolver_build.say(f"building Unbound {BASE.version} as it was released")
    resolver_build.run([work / "src/configure", *CONFIGURE, f"CFLAGS={resolver_build.CFLAGS}"], log, "the last lines say what is missing",
                       cwd=made)
    resolver_build.run(["make", f"-j{os.cpu_count() or 1}", "unbound"], log, "the last lines say where", cwd=made)
    shutil.copy(made / "unbound", work / "unbound")
    shutil.rmtree(made)
    shutil.rmtree(work / "src")
    work.rename(root())


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    if not command():
        build()
