# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Many queries at once, in frames as long as a NIC's buffers.

A veth gives the XDP program a query in a buffer that is hardly longer than the query: a long reply has no room in it.
A NIC's buffers are as long as the longest frame. So Wire appends octets to the IP packet, which all receivers ignore, and a
query comes in such a buffer.
"""

import select
import socket
import struct
import time

WINDOW = 16              # queries under way: each reply may charge a driver's whole buffer to the socket
FRAME = 1514             # Ethernet header and an MTU of 1500


def _sum16(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Wire:
    """A client's link: sends a query as the socket that takes the reply would, but in a longer frame."""

    def __init__(self, ns, link, peer_ns, peer_link):
        self.ns, self.link = ns, link
        self.ethernet = self._mac(peer_ns, peer_link) + self._mac(ns, link)

    @staticmethod
    def _mac(ns, link):
        with ns.netlink() as ip:
            text = ip.get_links(ip.link_lookup(ifname=link)[0])[0].get_attr("IFLA_ADDRESS")
        return bytes.fromhex(text.replace(":", ""))

    def open(self):
        with self.ns.entered():
            s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        s.bind((self.link, 0))
        return s

    def frame(self, source, target, payload):
        """The payload in a UDP packet, padded to FRAME octets. source, target: (address, port)."""
        family = socket.AF_INET6 if ":" in source[0] else socket.AF_INET
        addresses = socket.inet_pton(family, source[0]) + socket.inet_pton(family, target[0])
        length = 8 + len(payload)
        udp = struct.pack("!HHHH", source[1], target[1], length, 0) + payload
        check = 0xFFFF ^ _sum16(addresses + struct.pack("!HH", 17, length) + udp)
        udp = udp[:6] + struct.pack("!H", check or 0xFFFF) + payload
        if family == socket.AF_INET6:
            packet = struct.pack("!IHBB", 6 << 28, length, 17, 64) + addresses + udp
            proto = b"\x86\xdd"
        else:
            head = struct.pack("!BBHHHBB", 0x45, 0, 20 + length, 0, 0x4000, 64, 17)
            packet = head + struct.pack("!H", 0xFFFF ^ _sum16(head + addresses)) + addresses + udp
            proto = b"\x08\x00"
        return (self.ethernet + proto + packet).ljust(FRAME, b"\0")


def exchange_all(ns, server, wires, *, link=None, local=None, timeout=2.0):
    """Sends the queries and returns their replies in the same order, None for silence. Each query's id is its number. link: the
    Wire to send by, None for an ordinary socket; local: the source address, None for the route's."""
    replies, next_one, waiting = [None] * len(wires), 0, set()
    with ns.entered():
        s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    raw = link.open() if link else None
    try:
        if local:
            s.bind((local, 0))
        s.connect((server, 53))
        source = s.getsockname()
        last = time.monotonic()
        while next_one < len(wires) or waiting:
            while next_one < len(wires) and len(waiting) < WINDOW:
                query = next_one.to_bytes(2, "big") + wires[next_one][2:]
                if raw:
                    raw.send(link.frame(source, (server, 53), query))
                else:
                    s.send(query)
                waiting.add(next_one)
                next_one += 1
            if not select.select([s], [], [], max(0.0, last + timeout - time.monotonic()))[0]:
                waiting.clear()      # count them as lost
                last = time.monotonic()
                continue
            reply = s.recv(65535)
            number = int.from_bytes(reply[:2], "big")
            if number in waiting:
                waiting.discard(number)
                replies[number] = reply
                last = time.monotonic()
    finally:
        s.close()
        if raw:
            raw.close()
    return replies
