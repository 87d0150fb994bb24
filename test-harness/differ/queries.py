# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Whole queries, drawn from one seed: letter case, header flags, EDNS and its options, and damage.

An Unbound thread sends FORMERR and NOTIMP at most 100 times a second and drops the rest. So damage is rare, or the rate low."""

import struct
from dataclasses import dataclass, replace

from . import questions

# Ages in seconds of the server cookies (RFC 9018) that clients send back: fresh, due for a new one, too old, from a clock
# ahead, and too far ahead.
AGES = (0, 5, 600, 1790, 1810, 3590, 3700, 86400, -60, -290, -400)
PAYLOADS = (0, 100, 511, 512, 513, 600, 1220, 1231, 1232, 1233, 1400, 1452, 4096, 65535)
COOKIE, NSID, ECS, EXPIRE, KEEPALIVE, PADDING, CHAIN, EDE = 10, 3, 8, 9, 11, 12, 13, 15
RD, AD, CD = 0x0100, 0x0020, 0x0010
ORDINARY_MS, UNUSUAL_MS = 700, 300       # without a reply, after which a query counts as unanswered; see twins.c
MOST_OCTETS = 1400                   # of a query: one packet on every link here


@dataclass
class Style:
    """How a phase asks: shares of the pools (the rest is cold), of ordinary flags and EDNS, and of damage; weights of ordinary OPT
    records, as ORDINARY_OPTS has them, then of those with a cookie."""
    hot: float = 0.9
    brief: float = 0.06
    changing: float = 0.0
    plain: float = 0.95
    any_type: float = 0.01
    damage: float = 0.0015
    rate: int = 0            # most queries per second, 0: any number
    opts: tuple = (38, 26, 20, 4, 4, 8)


def option(code, data):
    return struct.pack("!HH", code, len(data)) + data


def opt(payload=1232, flags=0, options=b"", version=0, rcode=0, owner=b"\0"):
    return owner + struct.pack("!HHBBHH", 41, payload, rcode, version, flags, len(options)) + options


def _unusual_option(rng):
    kind = rng.randrange(12)
    if kind < 3:
        return option(COOKIE, rng.randbytes(rng.choice((8, 24))))
    if kind == 3:
        return option(COOKIE, rng.randbytes(rng.choice((1, 7, 9, 15, 16, 24, 32, 40, 41))))
    if kind == 4:
        return option(NSID, b"")
    if kind == 5:
        bits = rng.choice((0, 8, 24, 32))
        return option(ECS, struct.pack("!HBB", 1, bits, 0) + rng.randbytes(bits // 8))
    if kind == 6:
        return option(ECS, rng.randbytes(rng.randrange(8)))
    if kind == 7:
        return option(KEEPALIVE, rng.choice((b"", b"\0\1", b"\0")))
    if kind == 8:
        return option(PADDING, bytes(rng.choice((0, 1, 16, 128, 300))))
    if kind == 9:
        return option(CHAIN, questions.to_wire("example."))
    if kind == 10:
        return option(rng.choice((EXPIRE, EDE, 5, 6, 7, 14, 16, 17, 18, 20292)), rng.randbytes(rng.randrange(6)))
    return option(rng.randrange(65536), rng.randbytes(rng.randrange(40)))


def _unusual_opt(rng):
    """The octets of an OPT record of any kind, and 1, the number of records."""
    kind = rng.random()
    payload, flags = rng.choice(PAYLOADS), rng.choice((0, 0x8000))
    if kind < 0.35:
        return opt(payload, flags), 1
    if kind < 0.70:
        return opt(payload, flags, b"".join(_unusual_option(rng) for _ in range(rng.choice((1, 1, 1, 2, 3, 6))))), 1
    if kind < 0.80:
        return opt(payload, rng.randrange(65536)), 1
    if kind < 0.87:
        return opt(payload, flags, version=rng.choice((1, 2, 255))), 1
    if kind < 0.91:
        return opt(payload, flags, rcode=rng.randrange(1, 256)), 1
    if kind < 0.94:
        return opt(payload, flags, owner=rng.choice((b"\x01a\0", b"\xc0\x0c"))), 1
    if kind < 0.98:
        return opt(payload, flags, option(COOKIE, rng.randbytes(8))[:rng.randrange(1, 12)]), 1
    return opt(payload, flags, struct.pack("!HH", rng.choice((COOKIE, PADDING, 65001)), 200) + b"short"), 1


ORDINARY_OPTS = [(b"", 0), (opt(1232), 1), (opt(1232, 0x8000), 1), (opt(4096), 1), (opt(512), 1)]      # octets, and number


def _plain_opt(rng, style, count):
    """OPT records as most clients send them, for so many queries."""
    drawn = rng.choices([*ORDINARY_OPTS, None], style.opts, k=count)
    return [d or (opt(1232, 0, option(COOKIE, rng.randbytes(rng.choice((8, 24))))), 1) for d in drawn]


def mixed_case(rng, name):
    """Random letter case (draft-vixie-dnsext-dns0x20). A label's length is below any letter's code."""
    mask = bytes(0x20 if 65 <= c & 0xDF <= 90 else 0 for c in name)
    bits = int.from_bytes(mask, "big") & rng.getrandbits(8 * len(name))
    return (int.from_bytes(name, "big") ^ bits).to_bytes(len(name), "big")


def damaged(rng, wire):
    """The query damaged or made unusual in one place."""
    wire = bytearray(wire)
    kind = rng.randrange(11)
    if kind == 0:
        wire[2] ^= rng.choice((0x08, 0x10, 0x20, 0x40))          # opcode
    elif kind == 1:
        wire[2] ^= rng.choice((0x80, 0x04, 0x02))                # QR, AA, TC
    elif kind == 2:
        wire[3] ^= rng.choice((0x80, 0x40, 0x0F))                # RA, Z, RCODE
    elif kind == 3:
        struct.pack_into("!H", wire, rng.choice((4, 6, 8, 10)), rng.choice((0, 2, 3)))   # counts
    elif kind == 4:
        wire += rng.randbytes(rng.randrange(1, 20))              # octets after the message
    elif kind == 5:
        wire = wire[:rng.randrange(1, len(wire))]                # cut off
    elif kind == 6:
        wire[12] = rng.choice((0, 64, 0xC0, 255))                # first label's length
    elif kind == 7:
        wire += bytes(rng.choice((100, 400, 513, 900)))          # longer than any query need be
    elif kind == 8:
        wire[11] += 1
        wire += opt(1232, rng.choice((0, 0x8000)))               # one OPT too many, or the only one
    elif kind == 9:
        end = 12
        while end < len(wire) and wire[end]:
            end += 1 + wire[end]
        struct.pack_into("!H", wire, end + 3, rng.choice((0, 2, 3, 4, 254, 255)))   # class
    else:
        at = rng.randrange(12, len(wire))
        wire[at] ^= 1 << rng.randrange(8)                        # one bit
    return bytes(wire[:MOST_OCTETS])


def with_cookie(rng, wire, make):
    """The query, with the whole cookie that it ends in, if any, replaced by make(client cookie, age); a fifth keep theirs,
    which is forged."""
    at = len(wire) - 24
    if at < 12 or wire[at - 4:at] != struct.pack("!HH", COOKIE, 24) or rng.random() < 0.2:
        return wire
    return wire[:at] + make(wire[at:at + 8], rng.choice(AGES))


def _wire(name, rdtype, flags, additional):
    """additional: octets of the OPT records, and their number."""
    extra, count = additional
    return struct.pack("!HHHHHH", 0, flags, 1, 0, 0, count) + name + struct.pack("!HH", rdtype, 1) + extra


class Queries:
    """Draws batches; recursion_desired: share of plain queries with RD. Equal seeds and equal calls give equal queries."""

    def __init__(self, rng, asked, recursion_desired=1.0):
        self.rng, self.asked, self.recursion_desired = rng, asked, recursion_desired

    def batch(self, style, count):
        """A list of count (octets with id 0, timeout in ms)."""
        rng = self.rng
        pools, shares, mixed = zip(*self.asked.pools(style))
        drawn = rng.choices(range(len(pools)), shares, k=count)
        iterators = [iter(rng.choices(p.questions, cum_weights=p.weights, k=drawn.count(i))) for i, p in enumerate(pools)]
        opts = _plain_opt(rng, style, count)
        return [self._one(style, next(iterators[i]), o, mixed[i]) for i, o in zip(drawn, opts)]

    def one(self, style, question, plain=None):
        """One query for a question: as most clients ask, with that OPT record (octets, number); None: as the style says, but not
        damaged."""
        if plain:
            return _wire(*question, RD, plain)
        return self._one(replace(style, damage=0.0), question, *_plain_opt(self.rng, style, 1), questions.MIXED)[0]

    def _one(self, style, question, plain, mixed):
        rng = self.rng
        name, rdtype = question
        extra, count = plain
        flags = RD if rng.random() < self.recursion_desired else 0
        kind = rng.random()
        if kind >= style.plain:
            flags = rng.choice((RD, RD, RD, RD | AD, RD | AD, RD | CD, RD | AD | CD, 0, AD, CD, 0))
            if rng.random() < 0.7:
                extra, count = _unusual_opt(rng)
        elif kind < 0.1:
            flags |= AD
        if rng.random() < style.any_type:
            rdtype = questions.any_type(rng)
        if rng.random() < mixed:
            name = mixed_case(rng, name)
        wire = _wire(name, rdtype, flags, (extra, count))
        if rng.random() < style.damage:
            return damaged(rng, wire), UNUSUAL_MS
        return wire[:MOST_OCTETS], ORDINARY_MS
