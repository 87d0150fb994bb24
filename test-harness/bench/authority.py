# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What BIND with hydns-preload shows beside replies a second: memory and the kernel's share by the kind of the zone, updates of the
zone while it is asked, and floods of names that do not exist."""

from . import authority_flood, authority_kinds, authority_updates
from .misses import in_parts

HELP = "zones of several kinds, preloaded: time, memory and the kernel's share; updates while clients ask; random names as a flood"
PARTS = {"kinds": authority_kinds, "updates": authority_updates, "flood": authority_flood}


def run(bench, result):
    in_parts(PARTS, bench, result)
