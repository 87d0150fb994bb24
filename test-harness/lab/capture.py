#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Captures DNS over UDP on a link, with the kernel's timestamps, and reads such a file. As a program: capture.py LINK FILE."""

import socket
import struct
import sys
from collections import namedtuple
from pathlib import Path

ETH_P_ALL, IPV6, UDP = 0x0003, 0x86DD, 17
SO_TIMESTAMPNS = 35      # linux/asm-generic/socket.h; Python has no name for it
PORT = 53
HEAD = struct.Struct("=qH")

Message = namedtuple("Message", "at source to wire")
"""at: wall clock, ns; source, to: (address, port); wire: the DNS message."""


def _udp(family, packet):
    """(source, destination, payload), or None when it is no whole UDP packet from or to port 53."""
    v6 = family == IPV6
    at = 40 if v6 else 4 * (packet[0] & 15)
    if packet[6 if v6 else 9] != UDP or len(packet) < at + 8 or (not v6 and packet[6] & 0x3F):
        return None
    ports = struct.unpack_from("!HH", packet, at)
    if PORT not in ports:
        return None
    kind, addresses, size = (socket.AF_INET6, packet[8:40], 16) if v6 else (socket.AF_INET, packet[12:20], 4)
    names = [socket.inet_ntop(kind, addresses[n:n + size]) for n in (0, size)]
    return (names[0], ports[0]), (names[1], ports[1]), packet[at + 8:]


def messages(path):
    """Yields the messages of a capture file, up to the last whole one."""
    data, at = path.read_bytes(), 0
    while at + HEAD.size <= len(data):
        when, length = HEAD.unpack_from(data, at)
        at += HEAD.size
        packet, at = data[at + 2:at + length], at + length
        found = _udp(int.from_bytes(data[at - length:at - length + 2], "big"), packet) if at <= len(data) else None
        if found:
            yield Message(when, *found)


def main(link, path):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
    s.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind((link, ETH_P_ALL))
    with open(path, "wb") as out:
        while True:
            packet, ancillary, _, address = s.recvmsg(4096, 64)
            seconds, ns = struct.unpack("=qq", ancillary[0][2])
            out.write(HEAD.pack(seconds * 10**9 + ns, 2 + len(packet)) + struct.pack("!H", address[1]) + packet)
            out.flush()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
