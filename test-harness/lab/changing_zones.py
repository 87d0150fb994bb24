# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A small tree of zones: root, example. and lab.example., whose data tests change; and the zones of answer_zones.py.

lab.example. has a server of its own, so that no parent's server answers for it. The resolver reaches that server through
the relay, by which a test can delay replies and count queries. storm.example. is delegated to a server that only
test-harness/chaos starts (storm/zone_server.py).
"""

from . import answer_zones

ROOT = {4: "10.53.4.1", 6: "fd53:4::1"}
TLD = {4: "10.53.4.2", 6: "fd53:4::2"}
LAB = "10.53.4.3"        # NSD
RELAY = "10.53.4.4"      # in front of it; the delegation's address
STORM = {4: "10.53.4.6", 6: "fd53:4::6"}
LOWER_ADDRESSES = [LAB, *answer_zones.SERVER.values()]
UPPER_ADDRESSES = [*ROOT.values(), *TLD.values()]

ROOT_ZONE = f"""$TTL 86400
. SOA a.root.example. hostmaster.example. 1 3600 900 604800 300
. NS a.root.example.
a.root.example. A {ROOT[4]}
a.root.example. AAAA {ROOT[6]}
example. NS ns.example.
ns.example. A {TLD[4]}
ns.example. AAAA {TLD[6]}
{answer_zones.delegation("k")}"""
TLD_ZONE = f"""$ORIGIN example.
$TTL 86400
@ SOA ns hostmaster 1 3600 900 604800 300
@ NS ns
ns A {TLD[4]}
ns AAAA {TLD[6]}
a.root A {ROOT[4]}
a.root AAAA {ROOT[6]}
lab NS ns.lab
ns.lab A {RELAY}
{"".join(answer_zones.delegation(zone) for zone in answer_zones.TOPS)}"""
STORM_DELEGATION = f"""storm NS ns.storm
ns.storm A {STORM[4]}
ns.storm AAAA {STORM[6]}
"""
LAB_HEAD = f"""$ORIGIN lab.example.
$TTL 3600
@ SOA ns hostmaster {{serial}} 3600 900 604800 300
@ NS ns
ns A {RELAY}
"""
UPPER_ZONES = """zone:
    name: "."
    zonefile: root.zone
zone:
    name: "example."
    zonefile: example.zone
"""
LAB_ZONES = """zone:
    name: "lab.example."
    zonefile: lab.zone
    provide-xfr: 10.53.0.0/16 NOKEY
""" + answer_zones.nsd_zones()
SERIAL = "serial"        # label in lab.example. that World.rewrite_lab() adds
HINTS = f"""$TTL 86400
. NS a.root.example.
a.root.example. A {ROOT[4]}
a.root.example. AAAA {ROOT[6]}
"""


def records(generation=1):
    """{owner name: records} of lab.example.; generation: the last octet of the addresses that flush tests watch."""
    g = generation
    rr = {
        "www": [f"300 A 192.0.2.{g}", f"300 AAAA 2001:db8::{g:x}",
                f'300 TXT "generation {g}"', "300 MX 10 mail"],
        "mail": ["600 A 192.0.2.200"],
        "alias": ["300 CNAME www"],
        "chain": ["300 CNAME alias"],
        "many": [f"300 A 198.51.100.{i}" for i in range(1, 9)],
        "brief": [f"5 A 192.0.2.{g}"],
        "to-twenty": ["300 CNAME twenty"],
        "twenty": ["20 A 192.0.2.201"],
        "shift": ["300 CNAME shifted"],
        "shifted": [f"20 A 192.0.2.{g}"],
        "moment": [f"3 A 192.0.2.{g}"],
        "moments": ["3 CNAME moment"],
        "empty": ['300 TXT "no address"'],
        "svc": ["300 HTTPS 1 . alpn=h2,h3 ipv4hint=192.0.2.80"],
        "big": [f'300 TXT "{"x" * 200}{i}"' for i in range(4)],
    }
    for i in range(6):
        rr[f"hop{i}"] = ["300 CNAME www"]
        rr[f"way{i}"] = [f"300 CNAME hop{i}"]
    for i in range(200):
        rr[f"host{i}"] = [f"300 A 192.0.2.{i % 250 + 1}"]
    return rr


class Zones:
    """Writes the zone files; a change of lab.example. takes effect when the caller reloads NSD."""

    def __init__(self, directory, storm=True):
        """storm: whether storm.example. is delegated. Without its server each question about it takes a resolver's full time."""
        self.directory = directory
        self.serial = 0
        directory.mkdir(exist_ok=True)
        (directory / "root.zone").write_text(ROOT_ZONE)
        (directory / "example.zone").write_text(TLD_ZONE + STORM_DELEGATION * storm)
        (directory / "hints").write_text(HINTS)
        self.anchors = answer_zones.write(directory)
        self.write(records())

    def is_original(self):
        """Whether lab.example. has its first data, but for the label SERIAL."""
        return {owner: rrs for owner, rrs in self.content.items() if owner != SERIAL} == records()

    def write(self, content):
        self.serial += 1
        self.content = content
        lines = [LAB_HEAD.format(serial=self.serial)]
        lines += [f"{owner} {rr}" for owner, rrs in content.items() for rr in rrs]
        (self.directory / "lab.zone").write_text("\n".join(lines) + "\n")
