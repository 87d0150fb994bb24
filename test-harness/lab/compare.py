# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Are two replies the same? They must be the same octets, but for the id, TTLs a second apart, and rotated RRsets.
Compression, letter case and the order of RRsets count too. Rotation may change where names are compressed, so the records of
a rotated reply are compared with their names written out."""

from collections import namedtuple

OPT, RRSIG = 41, 46
COOKIE = 10
# Names in the rdata of types that a server may compress (RFC 3597 section 4): {type: (octets before the first name, number of
# names)}
NAMES_IN = {2: (0, 1), 3: (0, 1), 4: (0, 1), 5: (0, 1), 6: (0, 2), 7: (0, 1), 8: (0, 1), 9: (0, 1), 12: (0, 1), 14: (0, 2),
            15: (2, 1), 39: (0, 1)}

Record = namedtuple("Record", "section owner rtype rclass ttl rdata at")
"""One record as received; at: offset of its rdata in the message."""


class Unreadable(Exception):
    """Not a DNS message that this reader understands."""


class Difference(str):
    """What differs, in words; kind: the same in one or two words, for counting."""

    def __new__(cls, kind, text):
        self = super().__new__(cls, f"{kind}: {text}")
        self.kind = kind
        return self


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


def whole_name(wire, at):
    """The name at an offset without compression; keeps letter case."""
    labels, left = [], len(wire)
    while True:
        length = wire[at] if at < len(wire) else -1
        left -= 1
        if length < 0 or left < 0:
            raise Unreadable("a name leaves the message or points at itself")
        if length >= 0xC0:
            at = _u16(wire, at) & 0x3FFF
            continue
        labels.append(wire[at:at + 1 + length])
        if length == 0:
            return b"".join(labels)
        at += 1 + length


def split(wire):
    """Returns (header without id, question octets, records, octets after the last record)."""
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
                                  int.from_bytes(wire[end + 4:end + 8], "big"), wire[end + 10:end + 10 + length],
                                  end + 10))
            at = end + 10 + length
    return wire[2:12], question, records, wire[at:]


def _whole_rdata(wire, record, fold):
    if record.rtype not in NAMES_IN:
        return record.rdata
    before, names = NAMES_IN[record.rtype]
    at = record.at + before
    parts = [wire[record.at:at]]
    for _ in range(names):
        parts.append(fold(whole_name(wire, at)))
        at = _name_end(wire, at)
    return b"".join(parts) + wire[at:record.at + len(record.rdata)]


def _as_is(name):
    return name


def rrsets(wire, fold=_as_is):
    """[(key, [rdata], [ttl])] in the order of the message, names written out and folded; RRSIGs are grouped by the type that
    they cover."""
    groups, last = [], None
    _, question, records, _ = split(wire)
    asked_for = int.from_bytes(question[-4:-2], "big")
    for r in records:
        owner_at = r.at - 10 - len(r.owner)
        # when the query is for type RRSIG, the RRSIGs are one RRset
        covered = r.rdata[:2] if r.rtype == RRSIG != asked_for else b""
        key = (r.section, fold(whole_name(wire, owner_at)), r.rtype, r.rclass, covered)
        if key != last:
            groups.append((key, [], []))
            last = key
        groups[-1][1].append(_whole_rdata(wire, r, fold))
        groups[-1][2].append(r.ttl)
    return groups


def ttls(wire):
    """The TTLs of all records but OPT, in their order."""
    return [r.ttl for r in split(wire)[2] if r.rtype != OPT]


def opt_options(rdata):
    """[(code, data)] from an OPT record's rdata."""
    options, at = [], 0
    while at < len(rdata):
        length = _u16(rdata, at + 2)
        if at + 4 + length > len(rdata):
            raise Unreadable("an EDNS option leaves its record")
        options.append((_u16(rdata, at), rdata[at + 4:at + 4 + length]))
        at += 4 + length
    return options


def without_cookie(wire):
    """Returns the message with the data of its COOKIE option zeroed, and that data (b"" if there is none)."""
    cookie = b""
    for r in split(wire)[2]:
        at = r.at
        for code, data in opt_options(r.rdata) if r.rtype == OPT else ():
            if code == COOKIE:
                cookie = data
                wire = wire[:at + 4] + bytes(len(data)) + wire[at + 4 + len(data):]
            at += 4 + len(data)
    return wire, cookie


def _ttl_difference(a, b, slack):
    """The Difference between the TTLs a and b of records in the same order, or None."""
    if slack is None:
        return None
    below, above = slack if isinstance(slack, tuple) else (slack, slack)
    if all(-below <= x - y <= above for x, y in zip(a, b)):
        return None
    older = all(x <= y + above for x, y in zip(a, b))
    return Difference("older TTL" if older else "TTL", f"{a} and {b}")


def _is_rotation(a, b):
    return len(a) == len(b) and any(a[i:] + a[:i] == b for i in range(len(a)))


def _rotated_difference(a, b, slack, shuffled):
    """The Difference between messages whose records differ in order, or None when RRsets are only rotated, or shuffled."""
    sets_a, sets_b = rrsets(a), rrsets(b)
    if [k for k, _, _ in sets_a] != [k for k, _, _ in sets_b]:
        return Difference("RRsets", f"{[k for k, _, _ in sets_a]} and {[k for k, _, _ in sets_b]}")
    rotated = False
    for (key, data_a, ttls_a), (_, data_b, ttls_b) in zip(sets_a, sets_b):
        if sorted(data_a) != sorted(data_b):
            return Difference("data", f"{key}: {[d.hex() for d in data_a]} and {[d.hex() for d in data_b]}")
        if key[4] and data_a != data_b:
            return Difference("order", f"of the signatures {key}")
        if not shuffled and not _is_rotation(data_a, data_b):
            return Difference("order", f"{key}: {[d.hex() for d in data_a]} and {[d.hex() for d in data_b]}")
        rotated = rotated or data_a != data_b
        # record by record: Unbound sends the TTLs of an RRset as it received them
        found = _ttl_difference(*([ttl for _, ttl in sorted(zip(*pair))] for pair in
                                  ((data_a, ttls_a), (data_b, ttls_b))), slack)
        if found:
            return found
    return None if rotated else Difference("compression", "same records, other octets")


def difference(a, b, ttl_slack=1, shuffled=False):
    """None when the replies are the same, else a Difference. A reply of None is silence. ttl_slack: seconds by which TTLs may
    differ, or (seconds that a's may be below b's, seconds above), or None for any number. shuffled: an RRset's records may come
    in any order, as from named by default (rrset-order random), and not only rotated."""
    if a is None or b is None:
        return None if a is b else \
            Difference("silence", f"{'silence' if a is None else 'a reply'} and {'silence' if b is None else 'a reply'}")
    if a[2:] == b[2:]:
        return None
    try:
        (head_a, question_a, records_a, rest_a), (head_b, question_b, records_b, rest_b) = split(a), split(b)
        if head_a != head_b:
            return Difference("header", f"{head_a.hex()} and {head_b.hex()}")
        if question_a != question_b:
            return Difference("question", f"{question_a.hex()} and {question_b.hex()}")
        if rest_a != rest_b:
            return Difference("rest", "octets after the last record")
        opt_a, opt_b = ([r for r in records if r.rtype == OPT] for records in (records_a, records_b))
        if [r._replace(at=0) for r in opt_a] != [r._replace(at=0) for r in opt_b]:
            return Difference("OPT", f"{opt_a} and {opt_b}")
        if [r._replace(ttl=0) for r in records_a] == [r._replace(ttl=0) for r in records_b]:
            return _ttl_difference([r.ttl for r in records_a], [r.ttl for r in records_b], ttl_slack)
        return _rotated_difference(a, b, ttl_slack, shuffled)
    except Unreadable as why:
        return Difference("unreadable", f"not the same octets, and: {why}")
