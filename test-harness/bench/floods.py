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
from lab.unusual_frames import Template

from . import peers
from .pace import RoutedLink

ETHERNET, IP, UDP = 14, 20, 8
SOURCE_AT, IP_CHECK_AT = ETHERNET + 12, ETHERNET + 10      # the whole IPv4 address
UDP_AT = ETHERNET + IP
UDP_CHECK_AT, DNS_AT = UDP_AT + 6, UDP_AT + UDP
LABEL_AT = DNS_AT + 12 + 1
LABEL = 8                                # octets, zeros until the generator fills them in
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

Sources = namedtuple("Sources", "first count stride")
"""IPv4 addresses: the first, how many, and how far it is from one to the next."""
GOOD = Sources("172.16.1.1", CLIENTS, 257)           # each in a prefix of its own
BOTS = Sources("10.1.0.1", 50, 257)
PREFIX = Sources("10.2.2.1", 254, 1)
SPOOFED = Sources("10.0.0.1", 100_000, 167)          # some 65,000 prefixes of 24 bits
VICTIMS = Sources("10.3.3.1", 16, 1)
SENDERS = Sources("10.4.0.1", 1000, 257)
NETWORKS = "10.0.0.0/8", "172.16.0.0/12"             # that hold all of these


def write_zone(path):
    """Any name exists in the zone, but none below ATTACKED; BIG has an answer just within what a resolver sends by UDP."""
    peers.write_zone(path, None)
    with path.open("a") as zone:
        zone.write("attacked A 203.0.113.2\nbig A 203.0.113.3\nbig TXT " + " ".join(f'"{"t" * 220}"' for _ in range(TEXTS)) + "\n")


@dataclass
class Frame:
    """A line of the file for the generator: octets, and where its fields are (0: it has none, or it stays)."""
    octets: bytes
    sources: Sources
    label_at: int = 0
    id_at: int = 0
    udp_check_at: int = UDP_CHECK_AT

    def line(self, kind):
        return (f"{kind} {self.label_at} {self.id_at} {SOURCE_AT} {IP_CHECK_AT} {self.udp_check_at} {self.sources.count} "
                f"{self.sources.stride} {self.octets.hex()}\n")


def octets_of(message, sources, port):
    """The frame with correct lengths and checksums."""
    macs = b"".join(bytes.fromhex(RoutedLink.MACS[end].replace(":", "")) for end in ("server", "client"))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 0, 0, 0, HOPS, 17, 0, ipaddress.ip_address(sources.first).packed,
                     ipaddress.ip_address(RoutedLink.SERVICE).packed)
    head = macs + b"\x08\0" + ip + struct.pack("!HHHH", port, 53, 0, 0)
    return Template(head).frame(message)


def query(name, rdtype="A", **options):
    return dns.message.make_query(name, rdtype, **{"use_edns": False, "id": 0} | options).to_wire()


def unlabelled(zone, **options):
    """A query for a name whose first label is still to be filled in."""
    wire = bytearray(query(f"{'a' * LABEL}.{zone}", **options))
    wire[LABEL_AT - DNS_AT:LABEL_AT - DNS_AT + LABEL] = bytes(LABEL)
    return bytes(wire)


def good_frames(with_cookies):
    """One a client, in its address; with a valid cookie of its own."""
    first, frames = ipaddress.ip_address(GOOD.first), []
    for i in range(GOOD.count):
        address, options = str(first + i * GOOD.stride), {}
        if with_cookies:
            whole = cookie(SECRET, i.to_bytes(CLIENT_LEN, "big"), address, time.time())
            options = {"use_edns": 0, "payload": 1232, "options": [dns.edns.GenericOption(dns.edns.COOKIE, whole)]}
        frames.append(Frame(octets_of(unlabelled(peers.ZONE, **options), Sources(address, 1, 0), GOOD_PORT), Sources(address, 1, 0),
                            label_at=LABEL_AT, id_at=DNS_AT))
    return frames


def flood_of(*messages, sources, **fields):
    return [Frame(octets_of(m, sources, FLOOD_PORT), sources, **fields) for m in messages]


def fragment(octets, offset, more):
    """The frame as an IP fragment; offset: in units of 8 octets."""
    frame = bytearray(octets)
    struct.pack_into("!H", frame, ETHERNET + 6, offset | (MORE_FRAGMENTS if more else 0))
    check = Template(bytes(frame)).frame(bytes(frame[DNS_AT:]))[IP_CHECK_AT:IP_CHECK_AT + 2]
    frame[IP_CHECK_AT:IP_CHECK_AT + 2] = check
    return bytes(frame)


def malformed():
    """DNS messages that are none, a wrong checksum, and both halves of a fragmented query."""
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
    whole = octets_of(right, SENDERS, FLOOD_PORT)
    wrong = whole[:UDP_CHECK_AT] + bytes(octet ^ 0xff for octet in whole[UDP_CHECK_AT:DNS_AT]) + whole[DNS_AT:]
    frames.append(Frame(wrong, SENDERS))
    frames.append(Frame(fragment(whole, 0, True), SENDERS))
    frames.append(Frame(fragment(whole, FRAGMENT_OCTETS, False), SENDERS, udp_check_at=0))
    return frames


@dataclass
class Flood:
    """load: of which names the resolver's capacity is what it is measured in, "hot" or "new". cookies: of good clients. told: by
    what the kernel can tell it from good queries, or serve both."""
    frames: list
    told: str
    load: str = "hot"
    cookies: bool = False

    def write(self, path):
        path.write_text("".join([f.line("good") for f in good_frames(self.cookies)] + [f.line("flood") for f in self.frames]))


PARTS = {
    "subdomains": Flood(flood_of(unlabelled(ATTACKED), sources=BOTS, label_at=LABEL_AT), "the limit of an address", load="new"),
    "prefix": Flood(flood_of(query(HOT_NAME), sources=PREFIX), "the limit of an address"),
    "spoofed": Flood(flood_of(query(HOT_NAME), sources=SPOOFED), "the rule, which answers it"),
    "amplification": Flood(flood_of(query(BIG, "TXT", use_edns=0, payload=4096), query(BIG, "ANY", use_edns=0, payload=4096),
                                    sources=VICTIMS), "the limit of an address"),
    "malformed": Flood(malformed(), "its form"),
    "cookies": Flood(flood_of(query(HOT_NAME), sources=GOOD), "the cookie, which it lacks", cookies=True),
}
