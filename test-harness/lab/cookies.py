# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""DNS cookies of RFC 9018, written from the RFC and independent of our C code: SipHash-2-4 (Aumasson and Bernstein) over client
cookie, version, reserved, time and address."""

import ipaddress
import struct

CLIENT_LEN, WHOLE_LEN = 8, 24
MASK = (1 << 64) - 1


def _rotated(x, bits):
    return (x << bits | x >> (64 - bits)) & MASK


def _round(v):
    v[0] = (v[0] + v[1]) & MASK
    v[2] = (v[2] + v[3]) & MASK
    v[1] = _rotated(v[1], 13) ^ v[0]
    v[3] = _rotated(v[3], 16) ^ v[2]
    v[0] = _rotated(v[0], 32)
    v[2] = (v[2] + v[1]) & MASK
    v[0] = (v[0] + v[3]) & MASK
    v[1] = _rotated(v[1], 17) ^ v[2]
    v[3] = _rotated(v[3], 21) ^ v[0]
    v[2] = _rotated(v[2], 32)


def siphash24(key, message):
    k = struct.unpack("<2Q", key)
    v = [k[i & 1] ^ c for i, c in enumerate((0x736f6d6570736575, 0x646f72616e646f6d, 0x6c7967656e657261,
                                             0x7465646279746573))]
    padded = message + bytes(7 - len(message) % 8) + bytes([len(message) & 0xff])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        _round(v)
        _round(v)
        v[0] ^= word
    v[2] ^= 0xff
    for _ in range(4):
        _round(v)
    return struct.pack("<Q", v[0] ^ v[1] ^ v[2] ^ v[3])


def cookie(secret, client, address, when, *, version=1, reserved=bytes(3)):
    """A whole cookie of 24 octets. client: the client cookie's 8 octets; address: the client's, as text; when: seconds, taken
    modulo 2^32."""
    head = client + bytes([version]) + reserved + struct.pack(">I", int(when) & 0xffffffff)
    return head + siphash24(secret, head + ipaddress.ip_address(address).packed)
