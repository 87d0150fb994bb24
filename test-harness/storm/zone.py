# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The names of storm.example., and the questions about them.

The data of an RRset are a stamp: the milliseconds from the run's begin to the data's, as an IPv4 address 10.x.y.z, as the end
of an IPv6 address, or as the serial of a SOA. The ledger knows all stamps.
"""

from dataclasses import dataclass
from functools import cached_property

ZONE = "storm.example."
TTLS = (4, 8, 15, 30)
ALIAS_TTL = 20
NEGATIVE_TTL = 6                  # TTL and minimum of the SOA
FIRST_STAMP = 10 << 24
LAST_STAMP = (11 << 24) - 1       # 4.6 hours
NOTHING = "nothing"               # first label of names that never exist; the other labels are below


@dataclass(frozen=True)
class Key:
    """An RRset; with type SOA also the SOA in denials."""
    owner: str
    rdtype: str

    def __str__(self):
        return f"{self.owner} {self.rdtype}"


@dataclass(frozen=True)
class Question:
    key: Key
    target: Key                   # the RRset at the alias's target, or the key

    @cached_property
    def alias(self):
        """The CNAME RRset that leads to the target, or None."""
        return Key(self.key.owner, "CNAME") if self.target != self.key else None


SOA = Key(ZONE, "SOA")


def name(label):
    return f"{label}.{ZONE}"


def ttl(key):
    """The zone's TTL of the RRset."""
    if key == SOA:
        return NEGATIVE_TTL
    if key.rdtype == "CNAME":
        return ALIAS_TTL
    return TTLS[int("".join(c for c in key.owner.partition(".")[0] if c.isdigit())) % len(TTLS)]


# FRESH: other data at each fetch of a resolver; STEADY: other data in each version; GHOSTS: each version has data or none.
FRESH = [Key(name(f"fresh{i}"), t) for i in range(12) for t in ("A", "AAAA")]
STEADY = [Key(name(f"steady{i}"), t) for i in range(12) for t in ("A", "AAAA")]
GHOSTS = [Key(name(f"ghost{i}"), "A") for i in range(4)]
ALIASES = {Key(name(f"alias{i}"), "CNAME"): name(f"steady{i}") for i in range(4)}
RECORDS = FRESH + STEADY + GHOSTS
CHANGING = STEADY + GHOSTS

QUESTIONS = [Question(key, key) for key in RECORDS]
QUESTIONS += [Question(Key(alias.owner, t), Key(target, t)) for alias, target in ALIASES.items() for t in ("A", "AAAA")]
QUESTIONS += [Question(key, key) for key in (
    *(Key(name(f"{NOTHING}{i}"), "A") for i in range(4)), *(Key(name(f"steady{i}"), "TXT") for i in range(4)))]


# All names below this one have these data, which take much room.
LARGE = Key(name("large"), "TXT")
LARGE_TTL, LARGE_RDATA = 30, " ".join([f'"{"x" * 200}"'] * 4)


def rdata(key, stamp):
    """Presentation form of the data."""
    if key.rdtype == "A":
        return ".".join(str(octet) for octet in stamp.to_bytes(4, "big"))
    if key.rdtype == "AAAA":
        return f"2001:db8::{stamp >> 16:x}:{stamp & 0xffff:x}"
    if key == SOA:
        return f"ns.{ZONE} hostmaster.{ZONE} {stamp} 3600 900 604800 {NEGATIVE_TTL}"
    return ALIASES[key]


def stamp_of(data):
    """The stamp in the rdata (hex), or None when the zone never has such data."""
    octets = bytes.fromhex(data or "")
    if len(octets) == 16 and octets[:12] == bytes.fromhex("20010db8" + 8 * "00"):
        octets = octets[12:]
    return int.from_bytes(octets, "big") if len(octets) == 4 else None
