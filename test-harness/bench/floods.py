# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The frames of `flood`: of good clients, and of each flood. pace.c's `beside` sends them (read_frame() in kernel/beside.c), and
fills in what differs from one to the next: the first label, the id of good queries, and the source address."""

import ipaddress
import struct
import time
from collections import namedtuple
from dataclasses import dataclass

import dns.edns
import dns.message
from lab.cookies import CLIENT_LEN, cookie
from lab.unusual_frames import Template, ones_sum

from . import peers
from .pace import RoutedLink

ETHERNET, UDP = 14, 8
IP_HEADER = {4: 20, 6: 40}
IP_CHECK_AT = ETHERNET + 10
# A field of the source address: an IPv4 address; of an IPv6 address what numbers its network of 64 bits, or its host.
SOURCE_AT, HOST_AT = ETHERNET + 12, ETHERNET + 20
LABEL = 8                                # octets, zeros until the generator fills them in
LABEL_AT = 12 + 1                        # of the message
GOOD_PORT, FLOOD_PORT = 40001, 40002     # by which the generator's sink tells their replies apart
HOPS = 55
MORE_FRAGMENTS, FRAGMENT_OCTETS = 0x2000, 8

CLIENTS = 100                            # good ones
HOT = 100                                # names that they ask again and again
NEW_EVERY = 10                           # queries, of which one asks a name that nobody has asked: the resolver's
SECRET = bytes(range(16))                # of all servers' cookies
ATTACKED, BIG = f"attacked.{peers.ZONE}", f"big.{peers.ZONE}"
TEXTS = 5                                # of 220 octets, in the TXT record of BIG
HOT_NAME = f"{peers.label(0)}.{peers.ZONE}"
SERVICE = {4: RoutedLink.SERVICE, 6: "2001:db8:2::53"}

Sources = namedtuple("Sources", "first count stride at", defaults=(SOURCE_AT,))
"""Addresses: the first, how many, how far it is from one to the next, and which field of the header counts."""
# For each IPv4 and IPv6; where a stride leaves the prefix of 24 or 56 bits, limits by prefix are limits by address.
GOOD = Sources("172.16.1.1", CLIENTS // 2, 257), Sources("2001:db8:a000::1", CLIENTS // 2, 256)
BOTS = Sources("10.1.0.1", 10, 257), Sources("2001:db8:a100::1", 10, 256)
PREFIX = Sources("10.2.2.1", 250, 1), Sources("2001:db8:a200::1", 250, 1, HOST_AT)
SPOOFED = Sources("10.0.0.1", 50_000, 331), Sources("2001:db8:c000::1", 50_000, 256)
VICTIMS = Sources("10.3.3.1", 8, 1), Sources("2001:db8:a300::1", 8, 1, HOST_AT)
SENDERS = Sources("10.4.0.1", 500, 257), Sources("2001:db8:a400::1", 500, 256)
NETWORKS = "10.0.0.0/8", "172.16.0.0/12", "2001:db8:8000::/33"      # that hold all of these


def write_zone(path):
    """Any name exists in the zone, but none below ATTACKED; BIG has an answer just within what a resolver sends by UDP."""
    peers.write_zone(path, None)
    with path.open("a") as zone:
        zone.write("attacked A 203.0.113.2\nbig A 203.0.113.3\nbig TXT " + " ".join(f'"{"t" * 220}"' for _ in range(TEXTS)) + "\n")


@dataclass
class Frame:
    """A line of the file for the generator: octets, where its fields are (0: it has none, or it stays), and its sources."""
    octets: bytes
    sources: Sources
    label_at: int = 0
    id_at: int = 0
    udp_check_at: int = 0

    def line(self, kind):
        ip_check_at = IP_CHECK_AT if version(self.sources) == 4 else 0
        return (f"{kind} {self.label_at} {self.id_at} {self.sources.at} {ip_check_at} {self.udp_check_at} {self.sources.count} "
                f"{self.sources.stride} {self.octets.hex()}\n")


def version(sources):
    return ipaddress.ip_address(sources.first).version


def frame(message, sources, port=FLOOD_PORT, *, labelled=False, numbered=False):
    """A Frame with correct lengths and checksums. labelled, numbered: its first label, its id is filled in."""
    family = version(sources)
    macs = b"".join(bytes.fromhex(RoutedLink.MACS[end].replace(":", "")) for end in ("server", "client"))
    addresses = ipaddress.ip_address(sources.first).packed + ipaddress.ip_address(SERVICE[family]).packed
    ip = b"\x08\0" + struct.pack("!BBHHHBBH", 0x45, 0, 0, 0, 0, HOPS, 17, 0) if family == 4 else \
        b"\x86\xdd" + struct.pack("!IHBB", 6 << 28, 0, 17, HOPS)
    octets = Template(macs + ip + addresses + struct.pack("!HHHH", port, 53, 0, 0)).frame(message)
    udp = ETHERNET + IP_HEADER[family]
    return Frame(octets, sources, label_at=udp + UDP + LABEL_AT if labelled else 0, id_at=udp + UDP if numbered else 0,
                 udp_check_at=udp + 6)


def query(name, rdtype="A", **options):
    return dns.message.make_query(name, rdtype, **{"use_edns": False, "id": 0} | options).to_wire()


def unlabelled(zone, **options):
    """A query for a name whose first label is still to be filled in."""
    wire = bytearray(query(f"{'a' * LABEL}.{zone}", **options))
    wire[LABEL_AT:LABEL_AT + LABEL] = bytes(LABEL)
    return bytes(wire)


def addresses(sources):
    """Each of them, as text."""
    first, bits = ipaddress.ip_address(sources.first), 64 if ":" in sources.first else 0
    return [str(first + (i * sources.stride << bits)) for i in range(sources.count)]


def good_frames(with_cookies):
    """One a client, in its address; with a valid cookie of its own."""
    frames = []
    for i, address in enumerate(address for sources in GOOD for address in addresses(sources)):
        options = {}
        if with_cookies:
            whole = cookie(SECRET, i.to_bytes(CLIENT_LEN, "big"), address, time.time())
            options = {"use_edns": 0, "payload": 1232, "options": [dns.edns.GenericOption(dns.edns.COOKIE, whole)]}
        frames.append(frame(unlabelled(peers.ZONE, **options), Sources(address, 1, 0), GOOD_PORT, labelled=True, numbered=True))
    return frames


def flood_of(*messages, sources, labelled=False):
    return [frame(message, each, labelled=labelled) for message in messages for each in sources]


def fragments(message, sources):
    """Both halves of a query, as IPv4 fragments."""
    whole = frame(message, sources).octets
    for offset in (MORE_FRAGMENTS, FRAGMENT_OCTETS):
        octets = bytearray(whole)
        struct.pack_into("!HHH", octets, IP_CHECK_AT - 4, offset, octets[IP_CHECK_AT - 2] << 8 | octets[IP_CHECK_AT - 1], 0)
        struct.pack_into("!H", octets, IP_CHECK_AT, 0xffff - ones_sum(bytes(octets[ETHERNET:ETHERNET + IP_HEADER[4]])))
        yield Frame(bytes(octets), sources)


def fragment6(message, sources):
    """The first half of a query, by IPv6."""
    octets = frame(message, sources).octets
    head, rest = bytearray(octets[:ETHERNET + IP_HEADER[6]]), octets[ETHERNET + IP_HEADER[6]:]
    extension = bytes((head[ETHERNET + 6], 0)) + struct.pack("!HI", 1, 4711)
    struct.pack_into("!HB", head, ETHERNET + 4, len(extension) + len(rest), 44)
    return Frame(bytes(head) + extension + rest, sources)


def malformed():
    """DNS messages that are none, a wrong checksum, and fragments."""
    right = query(HOT_NAME)
    header, rest = right[:12], right[12:]
    messages = (
        header[:4] + b"\0\0" + header[6:] + rest,                       # no question
        header[:2] + b"\x80\0" + header[4:] + rest,                     # a response
        header[:2] + b"\x38\0" + header[4:] + rest,                     # an operation that nobody knows
        right[:20],                                                     # cut off in the name
        header + b"\x3f" + rest[1:],                                    # a label that is longer than the message
        header + b"\xc0\x0c\0\1\0\1",                                   # a name that points at itself
        right[:10] + b"\0\2" + rest + b"\0\0\x29\xff\xff" + bytes(6),   # one record of two
    )
    frames = flood_of(*messages, sources=SENDERS)
    for wrong in flood_of(right, sources=SENDERS):
        at = wrong.udp_check_at
        wrong.octets = wrong.octets[:at] + bytes(octet ^ 0xff for octet in wrong.octets[at:at + 2]) + wrong.octets[at + 2:]
        frames.append(wrong)
    return [*frames, *fragments(right, SENDERS[0]), fragment6(right, SENDERS[1])]


@dataclass
class Flood:
    """load: of which names the resolver's capacity is what it is measured in, "hot" or "new". cookies: of good clients. told: by
    what the kernel can tell it from good queries, or serve both. guard: the resolvers whose own limits can't tell it."""
    frames: list
    told: str
    load: str = "hot"
    cookies: bool = False
    guard: tuple = ()

    def write(self, path):
        path.write_text("".join([f.line("good") for f in good_frames(self.cookies)] + [f.line("flood") for f in self.frames]))


PARTS = {
    # BIND's rate-limit counts responses, and these need a recursion each
    "subdomains": Flood(flood_of(unlabelled(ATTACKED), sources=BOTS, labelled=True), "the limit of an address", load="new",
                        guard=("BIND",)),
    "prefix": Flood(flood_of(query(HOT_NAME), sources=PREFIX), "the limit of an address"),
    "spoofed": Flood(flood_of(query(HOT_NAME), sources=SPOOFED), "the rule, which answers it"),
    "amplification": Flood(flood_of(query(BIG, "TXT", use_edns=0, payload=4096), query(BIG, "ANY", use_edns=0, payload=4096),
                                    sources=VICTIMS), "the limit of an address", guard=("BIND",)),     # ANY has no rules
    "malformed": Flood(malformed(), "the limit of an address", guard=("Unbound", "BIND")),
    "cookies": Flood(flood_of(query(HOT_NAME), sources=GOOD), "the cookie, which it lacks", cookies=True),
}
