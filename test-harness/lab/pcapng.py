# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Reads pcap-ng files, strictly: whatever is not as the format says is a mistake of their writer."""

import struct
from collections import namedtuple
from pathlib import Path

SECTION, INTERFACE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 5, 6
COMMENT, IF_NAME, IF_TSRESOL, EPB_FLAGS, ISB_RECEIVED, ISB_DROPPED = 1, 2, 9, 2, 4, 5
ETHERNET, NANOSECONDS = 1, b"\x09"

Packet = namedtuple("Packet", "at link inbound frame whole comment")
"""at: wall clock, ns; link: the interface's name; whole: octets of the frame before it was cut."""
Capture = namedtuple("Capture", "packets received lost")
"""received, lost: of each interface, by name; empty for a file whose writer was killed."""


def _blocks(data):
    at = 0
    while at < len(data):
        kind, size = struct.unpack_from("=II", data, at)
        assert size % 4 == 0 and size >= 12 and struct.unpack_from("=I", data, at + size - 4)[0] == size
        yield kind, data[at + 8:at + size - 4]
        at += size


def _options(body):
    found, at = {}, 0
    while True:
        code, size = struct.unpack_from("=HH", body, at)
        if code == 0:
            assert size == 0 and at + 4 == len(body)
            return found
        found[code] = body[at + 4:at + 4 + size]
        at += 4 + (size + 3) // 4 * 4


def _packet(body, links):
    link, high, low, size, whole = struct.unpack_from("=IIIII", body)
    options = _options(body[20 + (size + 3) // 4 * 4:])
    direction = struct.unpack("=I", options[EPB_FLAGS])[0] & 3
    assert direction in (1, 2)
    return Packet(high << 32 | low, links[link], direction == 1, body[20:20 + size], whole, options[COMMENT].decode())


def read(path):
    links, packets, received, lost = [], [], {}, {}
    for n, (kind, body) in enumerate(_blocks(Path(path).read_bytes())):
        assert (kind == SECTION) == (n == 0)
        if kind == SECTION:
            assert struct.unpack_from("=IHHq", body) == (0x1A2B3C4D, 1, 0, -1)
            _options(body[16:])
        elif kind == INTERFACE:
            options = _options(body[8:])
            assert struct.unpack_from("=H", body) == (ETHERNET,) and options[IF_TSRESOL] == NANOSECONDS
            links.append(options[IF_NAME].decode())
        elif kind == PACKET:
            packets.append(_packet(body, links))
        else:
            assert kind == STATISTICS
            link, options = links[struct.unpack_from("=I", body)[0]], _options(body[12:])
            received[link], lost[link] = (struct.unpack("=Q", options[code])[0] for code in (ISB_RECEIVED, ISB_DROPPED))
    return Capture(packets, received, lost)
