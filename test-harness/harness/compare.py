# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Are two replies the same? Octet for octet, but for the id, TTLs a second apart, and the order of records
within an RRset. Works on the wire, so that compression, letter case and section order count too."""

from collections import namedtuple

OPT = 41
Record = namedtuple("Record", "section owner rtype rclass ttl rdata")


class Unreadable(Exception):
    """Not a DNS message as far as this reader goes."""


def _u16(wire, at):
    if at + 2 > len(wire):
        raise Unreadable(f"ends at octet {len(wire)}")
    return wire[at] << 8 | wire[at + 1]


def _name_end(wire, at):
    while at < len(wire):
        if wire[at] == 0:
            return at + 1
        if wire[at] >= 0xC0:
            return at + 2
        at += 1 + wire[at]
    raise Unreadable("a name leaves the message")


def split(wire):
    """(header without id, question octets, records, octets after the last record)"""
    if len(wire) < 12:
        raise Unreadable("shorter than a header")
    counts = [_u16(wire, at) for at in (4, 6, 8, 10)]
    at = 12
    for _ in range(counts[0]):
        at = _name_end(wire, at) + 4
    question, records = wire[12:at], []
    for section, count in enumerate(counts[1:]):
        for _ in range(count):
            end = _name_end(wire, at)
            length = _u16(wire, end + 8)
            if end + 10 + length > len(wire):
                raise Unreadable("a record leaves the message")
            records.append(Record(section, wire[at:end], _u16(wire, end), _u16(wire, end + 2),
                                  int.from_bytes(wire[end + 4:end + 8], "big"), wire[end + 10:end + 10 + length]))
            at = end + 10 + length
    return wire[2:12], question, records, wire[at:]


def _groups(records):
    """Runs of records of one RRset."""
    groups, last = [], None
    for r in records:
        key = (r.section, r.owner, r.rtype, r.rclass)
        if key != last:
            groups.append((key, []))
            last = key
        groups[-1][1].append(r)
    return groups


def ttls(wire):
    """Of all records but OPT, in their order."""
    return [r.ttl for r in split(wire)[2] if r.rtype != OPT]


def difference(a, b, ttl_slack=1):
    """None when the replies are the same, else what differs in words. None for a reply means silence."""
    if a is None or b is None:
        return None if a is b else f"{'silence' if a is None else 'a reply'} and {'silence' if b is None else 'a reply'}"
    if a[2:] == b[2:]:
        return None
    try:
        head_a, question_a, records_a, rest_a = split(a)
        head_b, question_b, records_b, rest_b = split(b)
    except Unreadable as why:
        return f"not the same octets, and not readable: {why}"
    if head_a != head_b:
        return f"header {head_a.hex()} and {head_b.hex()}"
    if question_a != question_b:
        return f"question {question_a.hex()} and {question_b.hex()}"
    if rest_a != rest_b:
        return "octets after the last record"
    groups_a, groups_b = _groups(records_a), _groups(records_b)
    if [k for k, _ in groups_a] != [k for k, _ in groups_b]:
        return f"RRsets {groups_a} and {groups_b}"
    for (key, set_a), (_, set_b) in zip(groups_a, groups_b):
        if sorted(r.rdata for r in set_a) != sorted(r.rdata for r in set_b):
            return f"data of {key}: {[r.rdata.hex() for r in set_a]} and {[r.rdata.hex() for r in set_b]}"
        slack = 0 if key[2] == OPT else ttl_slack
        # record by record: Unbound sends the TTLs of an RRset as it got them
        pairs = zip(*(sorted((r.rdata, r.ttl) for r in s) for s in (set_a, set_b)))
        if any(abs(a[1] - b[1]) > slack for a, b in pairs):
            return f"TTLs of {key}: {[r.ttl for r in set_a]} and {[r.ttl for r in set_b]}"
    return None
