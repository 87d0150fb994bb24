# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Questions for names of the zone that the kernel forwards: by wildcards, aliases and denials, many of them asked for the first time,
others again when their answers have expired."""

import dns.name

from . import zone
from .queries import ORDINARY_MS

SHARE = 0.2              # of all queries
LABELS = 10              # bits of a label that others ask for, too; else of one that nobody does
KINDS = {"wild": 40, "starred": 20, "": 25, "sub": 5, "brief": 10}     # as in zone.lines()
BRIEF = tuple(f"t{ttl}x{n}" for ttl in (1, 2, 3, 4, 5) for n in range(3))


def draw(rng):
    """(name in wire format, type)."""
    kind, = rng.choices(list(KINDS), list(KINDS.values()))
    label = f"{rng.getrandbits(LABELS):x}" if rng.random() < 0.5 else f"n{rng.getrandbits(40):x}"
    first = rng.choice(BRIEF) if kind == "brief" else label if not kind else f"{label}.{kind}"
    return dns.name.from_text(f"{first}.{zone.PLAIN}").to_wire(), rng.choice((1, 1, 1, 28, 16))


def batch(rng, queries, style, count):
    """A list of count (octets with id 0, timeout in ms)."""
    return [(queries.one(style, draw(rng)), ORDINARY_MS) for _ in range(count)]
