# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Auth-zones of Unbound: their files, their clauses, and what is asked of them."""

from . import zones
from .answer_zones import Key, sign
from .client import query

PLAIN, NSEC, NSEC3 = (f"{name}.auth.example" for name in ("plain", "nsec", "nsec3"))
OWN = "own.auth.example"             # whose content tests change
BY_FILE = (PLAIN, NSEC, NSEC3, OWN)
SIGNED = {NSEC: (), NSEC3: ("-n", "-p")}
RECORDS = zones.RECORDS + """\
long TXT "{0}" "{0}" "{0}" "{0}"
svc HTTPS 1 . alpn=h2
unknown TYPE65534 \\# 4 01020304
*.alias-wild CNAME www
""".format("x" * 200)
# a referral that is longer than 512 octets with its additional data, and shorter without
RECORDS += "".join(f"wide NS ns{i}.wide\nns{i}.wide A 192.0.2.{i}\nns{i}.wide AAAA 2001:db8::{i}\n" for i in range(10))


def zone_text(origin, serial=1, records=RECORDS, expire=604800):
    return zones.text(records, serial, origin).replace(" 604800 ", f" {expire} ")


def clause(zone, *lines, file=None):
    return ["auth-zone:", f'    name: "{zone}."', *([f'    zonefile: "{file}"'] if file else []), "    for-downstream: yes",
            *(f"    {line}" for line in lines)]


def by_file(directory, *more):
    """Writes the zones, and returns their clauses; more: lines for each."""
    directory.mkdir(exist_ok=True)
    lines = []
    for zone in BY_FILE:
        path = directory / f"{zone}.zone"
        path.write_text(zone_text(zone))
        if zone in SIGNED:
            sign(Key(zone, 1), path, directory, SIGNED[zone])
        lines += clause(zone, *(("zonemd-check: yes", "for-upstream: no") if zone == OWN else ("for-upstream: yes",)), *more, file=path)
    return lines


def full(question, zone):
    name, rdtype = question.split()
    return f"{name}.{zone}".removeprefix("@."), rdtype


def wire_of(zone, question, **options):
    return query(*full(question, zone), **options).to_wire()


def wires_of(zone, questions, **options):
    return [wire_of(zone, question, **options) for question in questions]
