# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Zones whose authoritative servers are slow, silent, or silent now and then: their records, and the questions that crowds of
clients ask about them. Most names come from wildcards, so that there are as many as a run wants to ask for the first time.

slowN    answers after 50 to 400 ms; slow0 is signed
fickleN   the same, and is silent for some seconds now and then
deadN    never answers"""

import dns.name
import dns.rdatatype

SLOW, FICKLE, DEAD = (tuple(f"{kind}{n}.example." for n in range(count))
                      for kind, count in (("slow", 5), ("fickle", 3), ("dead", 2)))
ORIGINS = SLOW + FICKLE + DEAD
SIGNED = (SLOW[0],)
DATA = "10.53.4.10"                  # of the server that has the zones; resolvers do not know it
SERVER = {origin: f"10.53.4.{20 + n}" for n, origin in enumerate(ORIGINS)}
TTLS = (0, 1, 2, 5, 60)
BRIEF_TTLS = (1, 2, 3)               # of names that are asked again and again, and expire meanwhile
BRIEF = 8                            # of these names in each zone
NEGATIVE_TTL = 3
# How often a crowd asks for a name of each kind: a wildcard's, by its TTL; one of a wildcard's that has no such type; a wildcard's
# alias, into the same zone and into another; one that does not exist; one that expires all the time; a longer answer.
KINDS = {"ttl": 40, "nodata": 6, "alias": 10, "across": 8, "missing": 12, "brief": 18, "many": 6}
# Of the zones: most crowds ask names that will be answered.
WEIGHTS = {origin: weight for origins, weight in ((SLOW, 12), (FICKLE, 10), (DEAD, 3)) for origin in origins}

_WIRE = {dns.name.from_text(origin).to_wire(): origin for origin in ORIGINS}


def other(origin):
    """The zone to which aliases "across" lead from this one; it has another server."""
    return ORIGINS[(ORIGINS.index(origin) + 4) % len(ORIGINS)]


def lines(origin):
    """All records, as zone.py has them."""
    out = [f"{origin} 3600 IN SOA ns.{origin} hostmaster.{origin} 1 3600 900 604800 {NEGATIVE_TTL}",
           f"{origin} 3600 IN NS ns.{origin}", f"ns.{origin} 3600 IN A {SERVER[origin]}",
           f"target.{origin} 4 IN A 192.0.2.20", f"target.{origin} 4 IN AAAA 2001:db8::20",
           f"*.alias.{origin} 30 IN CNAME target.{origin}", f"*.across.{origin} 30 IN CNAME target.{other(origin)}",
           *(f"*.many.{origin} 30 IN A 198.51.100.{i}" for i in range(1, 14)),
           f'*.many.{origin} 30 IN TXT "{"m" * 200}" "{"n" * 200}"']
    for ttl in TTLS:
        out += [f"*.ttl{ttl}.{origin} {ttl} IN A 192.0.2.{ttl + 1}", f"*.ttl{ttl}.{origin} {ttl} IN A 192.0.2.{ttl + 101}",
                f"*.ttl{ttl}.{origin} {ttl} IN AAAA 2001:db8::{ttl:x}", f'*.ttl{ttl}.{origin} {ttl} IN TXT "{ttl} seconds"']
    for n in range(BRIEF):
        out.append(f"brief{n}.{origin} {BRIEF_TTLS[n % len(BRIEF_TTLS)]} IN A 192.0.2.{n + 200}")
    return out


def draw(rng):
    """(name in wire format, type) of a crowd's question."""
    origin, = rng.choices(ORIGINS, [WEIGHTS[o] for o in ORIGINS])
    kind, = rng.choices(list(KINDS), list(KINDS.values()))
    label = f"{rng.getrandbits(40):x}"
    if kind == "brief":
        return _wire(f"brief{rng.randrange(BRIEF)}", origin), 1
    if kind == "missing":
        return _wire(label, origin), rng.choice((1, 28))
    if kind == "nodata":
        return _wire(f"{label}.ttl5", origin), rng.choice((15, 33, 65))
    if kind == "ttl":
        return _wire(f"{label}.ttl{rng.choice(TTLS)}", origin), rng.choice((1, 1, 28, 16))
    return _wire(f"{label}.{kind}", origin), rng.choice((1, 28 if kind != "many" else 16))


def _wire(labels, origin):
    return dns.name.from_text(f"{labels}.{origin}").to_wire()


def question_of(wire):
    """(name in lower case, type) of a message, or None when it has no question that can be read."""
    at = 12
    while at < len(wire) and 0 < wire[at] < 64:
        at += 1 + wire[at]
    if at + 5 > len(wire) or wire[at]:
        return None
    return wire[12:at + 1].lower(), int.from_bytes(wire[at + 1:at + 3], "big")


def zone_of(name):
    """The zone of a name in wire format and lower case, or None when it is in none of these."""
    return next((_WIRE[name[at:]] for at in _label_starts(name) if name[at:] in _WIRE), None)


def _label_starts(name):
    at = 0
    while at < len(name) and name[at]:
        yield at
        at += 1 + name[at]


def zones_behind(name):
    """The zones whose servers must answer for a name to be resolved."""
    origin = zone_of(name)
    return [] if not origin else [origin, other(origin)] if b"\x06across" in name else [origin]
