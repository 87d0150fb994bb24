# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unusual DNS queries and frames, made with dnspython and then damaged; every choice comes from one random generator."""

import struct

import dns.edns
import dns.flags
import dns.message
import dns.rdataclass
import dns.rrset
import dns.tsig

OPT_RECORD = bytes.fromhex("00 0029 04d0 00000000 0000")
KEY = dns.tsig.Key("key.example.", b"0123456789abcdef", "hmac-sha256")
POOL = 600           # undamaged messages at a time; each is used about REUSE times, with other damage
REUSE = 16
# Octets with a meaning somewhere in a message: counts, types, label lengths and label types, pointers.
MEANINGFUL = bytes((0, 1, 2, 10, 12, 41, 53, 63, 64, 0x7f, 0x80, 0xbf, 0xc0, 0xff))


def letter_case(rng, name):
    return "".join(c.upper() if rng.random() < 0.5 else c for c in name)


def ask(rng, question, **how):
    """An ordinary query for a rule's question (name, type, DO, RD), in letters of either case."""
    name, rdtype, do, rd = question
    return dns.message.make_query(letter_case(rng, name), rdtype, want_dnssec=do, id=rng.randrange(65536),
                                  flags=dns.flags.RD if rd else 0, **how)


# --- messages: each returns octets --------------------------------------------------------------------
def plain(rng, question):
    how = {} if question[2] or rng.random() < 0.5 else {"use_edns": False}
    return ask(rng, question, payload=rng.choice((512, 1232, 4096, rng.randrange(65536))), **how).to_wire()


def with_options(rng, question):
    options = [rng.choice((
        dns.edns.ECSOption("192.0.2.0", rng.randrange(33)), dns.edns.ECSOption("2001:db8::", rng.randrange(129)),
        dns.edns.GenericOption(dns.edns.NSID, b""), dns.edns.GenericOption(dns.edns.PADDING, bytes(rng.randrange(64))),
        dns.edns.GenericOption(10, rng.randbytes(rng.choice((8, 16, 24, 40, rng.randrange(48))))),
        dns.edns.GenericOption(11, rng.randbytes(rng.randrange(4))),
        dns.edns.GenericOption(rng.randrange(65536), rng.randbytes(rng.randrange(20))),
    )) for _ in range(rng.randrange(1, 6))]
    return ask(rng, question, use_edns=0, options=options).to_wire()


def with_flags(rng, question):
    q = ask(rng, question)
    q.flags ^= 1 << rng.randrange(16)
    return q.to_wire()


def with_edns_header(rng, question):
    q = ask(rng, question, use_edns=0)
    q.ednsflags ^= 1 << rng.randrange(32)
    return q.to_wire()


def of_other_class(rng, question):
    return ask(rng, question, rdclass=rng.choice((dns.rdataclass.CH, dns.rdataclass.ANY, dns.rdataclass.NONE,
                                                  rng.randrange(1, 65536)))).to_wire()


def of_other_type(rng, question):
    other = rng.choice((0, 41, 249, 251, 252, 255, rng.randrange(65536)))
    return ask(rng, (question[0], other, *question[2:])).to_wire()


def with_records(rng, question):
    q = ask(rng, question)
    for section in rng.sample((q.question, q.answer, q.authority, q.additional), rng.randrange(1, 3)):
        section.append(dns.rrset.from_text(question[0], 60, "IN", "A", "192.0.2.1"))
    return q.to_wire()


def signed(rng, question):
    q = ask(rng, question)
    q.use_tsig(KEY)
    return q.to_wire()


def with_two_opts(rng, question):
    wire = ask(rng, question, use_edns=0).to_wire() + OPT_RECORD
    return wire[:10] + b"\0" + bytes((rng.choice((1, 2)),)) + wire[12:]


def with_owner_of_opt(rng, question):
    wire = ask(rng, question, use_edns=False).to_wire()
    return wire[:10] + b"\0\1" + wire[12:] + rng.choice((b"\1a", b"\xc0\x0c")) + OPT_RECORD


def with_long_name(rng, question):
    """A name at or around the limits: 255 octets, 127 labels, 63 octets a label."""
    labels, left = [], rng.choice((253, 254, 255, 256, 300))
    while left > 1:
        n = min(left - 1, rng.choice((1, 1, 63, 64 if rng.random() < 0.1 else 63, rng.randrange(1, 63))))
        labels.append(bytes((n & 0xff,)) + rng.randbytes(n))
        left -= n + 1
    return struct.pack("!HHHHHH", rng.randrange(65536), 0x0100, 1, 0, 0, 0) + b"".join(labels) + b"\0\0\1\0\1"


def with_pointer(rng, question):
    """A question with a compression pointer: to itself, forward, into the header, into its own labels."""
    wire = ask(rng, question, use_edns=rng.choice((False, 0))).to_wire()
    end = wire.index(b"\0", 12)
    return wire[:end] + struct.pack("!H", 0xc000 | rng.choice((0, 4, 11, 12, end, end + 2, rng.randrange(64)))) + wire[end + 1:]


def with_tail(rng, question):
    return ask(rng, question).to_wire() + rng.choice((b"\0", OPT_RECORD, rng.randbytes(rng.randrange(1, 80))))


def with_counts(rng, question):
    wire = bytearray(ask(rng, question, use_edns=rng.choice((False, 0))).to_wire())
    wire[4 + rng.randrange(8)] = rng.choice((0, 1, 2, 255))
    return bytes(wire)


def with_bad_option_length(rng, question):
    q = ask(rng, question, use_edns=0, options=[dns.edns.GenericOption(10, rng.randbytes(8))])
    wire = bytearray(q.to_wire())
    wire[rng.choice((-14, -13, -10, -9))] = rng.randrange(32)     # the record's length, or the option's
    return bytes(wire)


UNUSUAL = (with_options, with_flags, with_edns_header, of_other_class, of_other_type, with_records, signed, with_two_opts,
       with_owner_of_opt, with_long_name, with_pointer, with_tail, with_counts, with_bad_option_length)


def damage(rng, octets, start=0):
    """Changes, inserts or removes a few octets from start on, or cuts the rest off."""
    octets = bytearray(octets)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(start, len(octets) + 1)
        what = rng.randrange(5)
        if what == 0 and at < len(octets):
            octets[at] ^= 1 << rng.randrange(8)
        elif what == 1 and at < len(octets):
            octets[at] = rng.choice(MEANINGFUL)
        elif what == 2:
            octets[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif what == 3:
            del octets[at:at + rng.randrange(1, 9)]
        elif at > start:
            del octets[at:]
    return bytes(octets)


# --- frames -------------------------------------------------------------------------------------------
def ones_sum(octets):
    """The ones' complement sum of RFC 1071, folded to 16 bits."""
    if len(octets) & 1:
        octets += b"\0"
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    return total % 0xffff or (0xffff if total else 0)


class Template:
    """The headers of a frame without VLAN tags that the kernel path answers; frame() puts other messages behind them."""

    def __init__(self, frame):
        self.ipv6 = frame[12:14] == b"\x86\xdd"
        self.udp = 14 + (40 if self.ipv6 else 20)
        self.head = frame[:self.udp + 8]

    def frame(self, message):
        """The message in a frame with correct lengths and checksums."""
        frame = bytearray(self.head + message)
        length = len(frame) - self.udp
        struct.pack_into("!HH", frame, self.udp + 4, length, 0)
        if self.ipv6:
            struct.pack_into("!H", frame, 18, length)
        else:
            struct.pack_into("!H", frame, 16, length + 20)
            struct.pack_into("!H", frame, 24, 0)
            struct.pack_into("!H", frame, 24, 0xffff - ones_sum(bytes(frame[14:34])))
        addresses = bytes(frame[22:54] if self.ipv6 else frame[26:34])
        total = ones_sum(addresses + struct.pack("!HH", 17, length) + bytes(frame[self.udp:]))
        struct.pack_into("!H", frame, self.udp + 6, 0xffff - total or 0xffff)
        return bytes(frame)


def frames(rng, questions, templates):
    """Yields (frame, ordinary) without end; ordinary: a query that the kernel path must answer."""
    while True:
        pool = [(rng.choice(UNUSUAL) if rng.random() < 0.6 else plain)(rng, rng.choice(questions)) for _ in range(POOL)]
        for _ in range(POOL * REUSE):
            template = rng.choice(templates)
            kind = rng.random()
            if kind < 0.05:
                yield template.frame(ask(rng, rng.choice(questions), use_edns=0).to_wire()), True
            elif kind < 0.35:
                yield template.frame(rng.choice(pool)), False
            elif kind < 0.9:
                yield template.frame(damage(rng, rng.choice(pool))), False
            else:
                yield damage(rng, template.frame(rng.choice(pool))), False
