# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Zones with every kind of answer: all types, unusual names, alias chains, wildcards, DNAMEs, signed and bogus zones.

They are below example., beside lab.example.; k. is a top-level zone, for a name with as many labels as a name can have.
Their data never change. signed.example. and signed3.example. are islands of security (RFC 4033): a resolver validates them
with their trust anchors. bogus.example. is an island whose anchor is for another key.
"""

import sys

from .tools import TOP

sys.path.insert(0, str(TOP / "zones"))

from hydnszones.sign import Key, sign  # noqa: E402

SERVER = {4: "10.53.4.5", 6: "fd53:4::5"}
SEED = 1

MANY = 32                # the most records that an answer in the kernel can have
TTL_MOST = (1 << 31) - 1


def _name(suffix, octets):
    """A name of so many octets on the wire that ends in suffix, with labels as long as possible."""
    left = octets - 1 - sum(1 + len(label) for label in suffix.split("."))
    labels = []
    while left > 0:
        label = min(63, left - 1)
        if left - 1 - label == 1:    # a label needs two octets
            label -= 1
        labels.append("n" * label)
        left -= 1 + label
    return ".".join(labels + [suffix])


LONGEST = _name("kinds.example", 255)
DEEPEST = "a." * 126 + "k"           # 127 labels, 255 octets
LONG_TARGET = _name("other.example", 250)

# {owner name, relative to kinds.example.: records without class}
UNSIGNED = {
    "a": ["300 A 192.0.2.1"],
    "a3": [f"300 A 192.0.2.{i}" for i in range(1, 4)],
    "aaaa": ["300 AAAA 2001:db8::1"],
    "mx": ["300 MX 10 mail", "300 MX 20 mail.other.example."],
    "meta": ["300 A 192.0.2.21"],
    "unequal": ["300 A 192.0.2.22", "200 A 192.0.2.23"],      # TTLs differ, against RFC 2181 section 5.2
    # for the resolver's local zones
    "a.transparent": ["300 A 192.0.2.70"],
    "b.transparent": ["300 A 192.0.2.71"],
    "typed": ["300 A 192.0.2.72", '300 TXT "typed"'],
    "always": ["300 A 192.0.2.73"],
    "blocked": ["300 A 192.0.2.74", "300 AAAA 2001:db8::74"],
    "informed": ["300 A 192.0.2.75"],
    "mail": ["600 A 192.0.2.25", "600 AAAA 2001:db8::25"],
    "txt": ['300 TXT "one" "two"'],
    "txt-empty": ['300 TXT "" "x" ""'],
    "txt-big": [f'300 TXT "{letter * 217}"' for letter in "abcde"],       # a reply of 1,200 octets
    "srv": ["300 SRV 0 5 5060 a"],
    "https": ["300 HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.80"],
    "svcb": ["300 SVCB 1 a port=853"],
    "caa": ['300 CAA 0 issue "ca.example"'],
    "naptr": ['300 NAPTR 100 50 "s" "SIP+D2U" "" srv'],
    "ptr": ["300 PTR a"],
    "hinfo": ['300 HINFO "RISC" "Linux"'],
    "rp": ["300 RP a txt"],
    "afsdb": ["300 AFSDB 1 a"],
    "rt": ["300 RT 10 a"],
    "mb": ["300 MB a"],
    "mg": ["300 MG a", "300 MG mail"],
    "x25": ['300 X25 "311061700956"'],
    "tlsa": ["300 TLSA 3 1 1 " + "ab" * 32],
    "loc": ["300 LOC 52 22 23.000 N 4 53 32.000 E -2.00m 0.00m 10000m 10m"],
    "sshfp": ["300 SSHFP 1 1 " + "cd" * 20],
    "dnskey": ["300 DNSKEY 256 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4="],
    "cert": ["300 CERT 1 12345 8 q83v"],
    "uri": ['300 URI 10 1 "https://example/"'],
    "eui48": ["300 EUI48 00-00-5e-00-53-2a"],
    "apl": ["300 APL 1:192.0.2.0/24 !1:192.0.2.1/32"],
    "apl-empty": ["300 APL"],
    "unknown": [r"300 TYPE65400 \# 4 01020304", r"300 TYPE65400 \# 0"],
    "private": [r"300 TYPE65534 \# 3 c00c00"],      # looks like a compression pointer
    "many32": [f"300 A 198.51.100.{i}" for i in range(1, MANY + 1)],
    "many33": [f"300 A 198.51.100.{i}" for i in range(1, MANY + 2)],
    "ttl0": ["0 A 192.0.2.2"],
    "ttl-most": [f"{TTL_MOST} A 192.0.2.3"],
    "ttl-day": ["86400 A 192.0.2.4"],
    "ttl-short": ["5 A 192.0.2.5"],
    "c1": ["300 CNAME a"],
    "c2": ["250 CNAME c1"],
    "c3": ["3600 CNAME c2"],
    "across": ["300 CNAME back.other.example."],     # -> over.kinds -> a.other
    "over": ["240 CNAME a.other.example."],
    "to-missing": ["300 CNAME missing"],
    "to-missing-across": ["300 CNAME missing.other.example."],
    "to-nothing": ["300 CNAME txt"],                # a name without addresses
    "to-wild": ["300 CNAME x.wild"],
    "to-dname": ["300 CNAME a.tree"],
    "loop": ["300 CNAME loop2"],
    "loop2": ["300 CNAME loop"],
    "*.wild": ["300 A 192.0.2.6", '300 TXT "wild"'],
    "*.wildalias": ["300 CNAME a"],
    "a.b.ent": ["300 A 192.0.2.7"],
    "tree": ["300 DNAME other.example."],
    "long-tree": [f"300 DNAME {LONG_TARGET}."],
    # names with any octet
    r"\000": ["300 A 192.0.2.8"],
    r"a\000b": ["300 A 192.0.2.9"],
    r"a\.b": ["300 A 192.0.2.10"],
    r"\255\254": ["300 A 192.0.2.11"],
    r"\064": ["300 A 192.0.2.12"],
    r"\096": ["300 A 192.0.2.13"],
    r"\091": ["300 A 192.0.2.14"],
    r"\123": ["300 A 192.0.2.15"],
    r"\193\218": ["300 A 192.0.2.16"],
    r"\225\250": ["300 A 192.0.2.17"],
    "MiXeD": ["300 CNAME MixedTarget"],
    "MixedTarget": ["300 A 192.0.2.18"],
    LONGEST + ".": ["300 A 192.0.2.19"],
}
# 11 aliases, the most that Unbound follows
for _i in range(1, 12):
    UNSIGNED[f"step{_i}"] = [f"300 CNAME step{_i + 1}"]
UNSIGNED["step12"] = ["300 A 192.0.2.20"]

OTHER = {
    "a": ["300 A 192.0.2.40"],
    "back": ["3600 CNAME over.kinds.example."],
    "mail": ["600 A 192.0.2.41"],
    LONG_TARGET + ".": ["300 A 192.0.2.42"],
}
SIGNED = {
    "a": ["300 A 192.0.2.50"],
    "a3": [f"300 A 192.0.2.{i}" for i in range(50, 53)],
    "alias": ["300 CNAME a"],
    "out": ["300 CNAME a.kinds.example."],
    "to-missing": ["300 CNAME missing"],
    "*.wild": ["300 A 192.0.2.53"],
    "*.wildalias": ["300 CNAME a"],
    "a.ent": ["300 A 192.0.2.54"],
    "tree": ["300 DNAME below"],
    "a.below": ["300 A 192.0.2.55"],
    "brief": ["6 A 192.0.2.56"],
    "to-brief": ["300 CNAME brief"],
    "plain": ["NS ns.plain"],                        # a delegation without DS
    "ns.plain": [f"A {SERVER[4]}"],
    "lenient": ["NS ns.lenient"],                    # a delegation with DS, which the resolver is configured to ignore
    "ns.lenient": [f"A {SERVER[4]}"],
}
BELOW = {"a": ["300 A 192.0.2.60"]}

_SOA = "{ttl} SOA ns hostmaster 1 3600 900 604800 {minimum}"
# {zone: (records, the SOA's TTL, its minimum)}; a negative answer's TTL is the lesser of the two
ZONES = {
    "kinds.example": (UNSIGNED, 3600, 300),
    "other.example": (OTHER, 200, 900),
    "k": ({DEEPEST + ".": ["300 A 192.0.2.30"]}, 3600, 300),
    "signed.example": (SIGNED, 3600, 300),
    "plain.signed.example": (BELOW, 3600, 300),
    "lenient.signed.example": (BELOW, 3600, 300),
    "signed3.example": (SIGNED, 3600, 300),
    "plain.signed3.example": (BELOW, 3600, 300),
    "lenient.signed3.example": (BELOW, 3600, 300),
    "bogus.example": (BELOW, 3600, 300),
    # no zone delegates these: the resolver's configuration names them
    **{f"{label}.example": (BELOW, 3600, 300) for label in ("stub", "forward", "auth-up", "auth-down")},
}
APART = ("stub.example", "forward.example", "auth-up.example", "auth-down.example")
# the zones delegated by example.
TOPS = [zone for zone in ZONES if zone.count(".") == 1 and zone not in APART]
# more options of ldns-signzone
SIGNING = {"signed.example": (), "lenient.signed.example": (), "bogus.example": (),
           "signed3.example": ("-n", "-p"), "lenient.signed3.example": ("-n",)}
ANCHORS = ("signed.example", "signed3.example")
LENIENT = ("lenient.signed.example", "lenient.signed3.example")


def delegation(zone):
    """Lines for the parent zone; names relative to the root."""
    return "".join(f"{line}\n" for line in (
        f"{zone}. NS ns.{zone}.", *(f"ns.{zone}. {t} {SERVER[f]}" for t, f in (("A", 4), ("AAAA", 6)))))


def nsd_zones():
    return "".join(f'zone:\n    name: "{zone}."\n    zonefile: {zone}.zone\n' for zone in ZONES)


def _zone_text(zone):
    records, ttl, minimum = ZONES[zone]
    lines = [f"$ORIGIN {zone}.", "$TTL 3600", "@ " + _SOA.format(ttl=ttl, minimum=minimum), "@ NS ns",
             f"ns A {SERVER[4]}", f"ns AAAA {SERVER[6]}"]
    lines += [f"{owner} {rr}" for owner, rrs in records.items() for rr in rrs]
    for child in SIGNING:
        if child.endswith("." + zone):
            lines.append(f"{child}. 3600 DS {Key(child, SEED).ds()}")
    return "\n".join(lines) + "\n"


def write(directory):
    """Writes the zone files and the file of trust anchors, and returns the path of the latter."""
    keys = directory / "keys"
    keys.mkdir(exist_ok=True)
    for zone in ZONES:
        path = directory / f"{zone}.zone"
        path.write_text(_zone_text(zone))
        if zone in SIGNING:
            sign(Key(zone, SEED), path, keys, SIGNING[zone])
    anchors = directory / "anchors"
    anchors.write_text("".join(f"{zone}. DS {key.ds()}\n" for zone, key in (
        *((zone, Key(zone, SEED)) for zone in ANCHORS), ("bogus.example", Key("bogus.example", SEED + 1)))))
    return anchors
