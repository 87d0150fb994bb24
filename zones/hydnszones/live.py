# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The zone whose data tests change while the resolver runs."""

from pathlib import Path

from . import model, zonefile

TTL = 5
ZONE = model.LIVE_ZONE
NEGATIVE_TTL = 5
# owner label, type, TTL, rdata
INITIAL = (
    ("five", "A", TTL, ("198.18.0.5",)),
    ("five", "AAAA", TTL, ("2001:db8::5",)),
    ("www", "A", 300, ("198.18.0.80",)),
    ("www", "AAAA", 300, ("2001:db8::80",)),
    ("www", "HTTPS", 300, ('1 . alpn="h2,h3"',)),
    ("alias", "CNAME", 300, (f"www.{ZONE}.",)),
    ("many", "A", 60, tuple(f"198.18.0.{i}" for i in range(101, 105))),
    ("text", "TXT", 300, ('"version 1"',)),
    ("a.sub", "A", 300, ("198.18.0.21",)),
    ("b.sub", "A", 300, ("198.18.0.22",)),
)


def zone():
    """Adds the zone to the model, so that the parent delegates it."""
    return model.Zone(ZONE, negative_ttl=NEGATIVE_TTL, hoster=ZONE)


def _owner(label):
    return ZONE + "." if label == "@" else f"{label}.{ZONE}."


def _rrset(owner, rrtype, ttl, rdata):
    return [f"{owner}\t{ttl}\tIN\t{rrtype}\t{item}" for item in rdata]


def initial(addresses):
    servers = zonefile.servers(zone())
    lines = _rrset(_owner("@"), "SOA", 3600, [f"{servers[0]}. hostmaster.{ZONE}. "
                                              f"1 7200 3600 1209600 {NEGATIVE_TTL}"])
    for server in servers:
        lines += _rrset(_owner("@"), "NS", model.INFRASTRUCTURE_TTL, [f"{server}."])
        for address in addresses:
            lines += _rrset(f"{server}.", zonefile.address_type(address), model.INFRASTRUCTURE_TTL, [address])
    for label, rrtype, ttl, rdata in INITIAL:
        lines += _rrset(_owner(label), rrtype, ttl, rdata)
    return "\n".join(lines) + "\n"


def _next_serial(line):
    fields = line.split(" ")
    fields[2] = str(int(fields[2]) + 1)
    return " ".join(fields)


def update(text, label, rrtype, ttl, rdata):
    """The zone's text with this RRset replaced (removed, when there is no rdata) and the next serial."""
    owner = _owner(label)
    kept = [line for line in text.splitlines() if (line.split("\t")[0], line.split("\t")[3]) != (owner, rrtype)]
    kept = [_next_serial(line) if line.split("\t")[3] == "SOA" else line for line in kept]
    return "\n".join(kept + _rrset(owner, rrtype, ttl, rdata)) + "\n"


def rewrite(output, label, rrtype, ttl, rdata):
    """Replaces the zone file of a generated tree atomically: a server sees the old file or the new one."""
    path = Path(output) / "zones" / zonefile.zone_file(ZONE)
    fresh = path.with_suffix(".new")
    fresh.write_text(update(path.read_text(), label, rrtype, ttl, rdata))
    fresh.replace(path)
