# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Zones and workload for a run, made by their generators."""

import subprocess
import sys
from collections import namedtuple

from .run import HarnessError
from .tools import TOP


def _generate(argv):
    done = subprocess.run([sys.executable, "-B", *map(str, argv)], capture_output=True, text=True)
    if done.returncode != 0:
        raise HarnessError(f"{' '.join(map(str, argv))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def tree(directory, addresses, seed):
    """Writes the zones for a name server with these addresses."""
    _generate([TOP / "zones" / "generate", directory, "--seed", seed, *(f"--address={a}" for a in addresses)])
