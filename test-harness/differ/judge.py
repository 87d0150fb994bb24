# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What may differ between replies to one query, and what may not.

The kernel path's reply must equal one of the two that the same resolver gave past it, the one before or the one
after: its cache may have been renewed in between. The reference has a cache of its own, and there is no order
in which two resolvers' questions reach their authority; so its reply may differ in what that order decides:
TTLs (but none above the zone's), the order within an RRset and of the RRsets in the sections after the answer,
the letter case of names in records, which is that of the first question that fetched them, and whether the DNAME
stands before the CNAME made from it, which Unbound also answers with alone when it has it in its cache."""

from harness.compare import OPT, Difference, Unreadable, difference, rrsets, split

from .asking import AGAIN, DIFFERS_KERNEL, DIFFERS_REFERENCE, DIRECT, KERNEL, REFERENCE_ASKED

SOA, DNAME = 6, 39
ANSWER, AUTHORITY, ADDITIONAL = range(3)
# Unbound answers these from whatever its cache happens to hold at the name
BY_HISTORY = (46, 47, 255)           # RRSIG, NSEC, ANY


def between(kernel, before, after):
    """None when the kernel path's reply is one of the two others', else how it differs from the nearer one."""
    found = difference(kernel, before)
    if found is None:
        return None
    later = difference(kernel, after)
    if later is None:
        return None
    return later if later.kind in ("older TTL", "TTL") or found.kind == "silence" else found


def _content(wire):
    """[answer, authority, additional] of RRsets without TTLs, the last two without order."""
    sections = [[], [], []]
    for key, data, _ in rrsets(wire, bytes.lower):
        if key[2] != DNAME and key[4] != DNAME.to_bytes(2, "big"):
            sections[key[0]].append((key[1:], sorted(data)))
    return [sections[ANSWER], sorted(sections[AUTHORITY]), sorted(sections[ADDITIONAL])]


def from_reference(kernel, reference):
    """None when the reference's reply is the same but for what may depend on a cache's history."""
    found = difference(kernel, reference, None)
    if found is None or found.kind in ("silence", "unreadable", "question", "OPT", "rest"):
        return found
    if kernel[2:4] != reference[2:4]:
        return Difference("header", f"{kernel[2:4].hex()} and {reference[2:4].hex()}")
    if split(kernel)[0][2:4] != split(reference)[0][2:4]:
        return Difference("header", "QDCOUNT")
    for name, mine, theirs in zip(("answer", "authority", "additional"), _content(kernel), _content(reference)):
        if mine != theirs:
            return Difference(name, f"{mine} and {theirs}")
    return None


def asks_by_history(wire):
    """Is this a question whose answer depends on what the cache was asked before?"""
    at = 12
    while at < len(wire) and 0 < wire[at] < 64:
        at += 1 + wire[at]
    return int.from_bytes(wire[at + 1:at + 3], "big") in BY_HISTORY


def above_zone(data, wire):
    """A Difference when a record has more TTL than its zone gives it."""
    for (section, owner, rtype, _, covered), _, ttls in rrsets(wire):
        kind = int.from_bytes(covered, "big") if covered else rtype
        if kind == SOA and section == AUTHORITY:
            kind = "negative"
        limit = data.limit(owner, kind)
        if rtype != OPT and limit is not None and max(ttls) > limit:
            return Difference("TTL above the zone's", f"{owner} type {rtype}: {max(ttls)}, not {limit}")
    return None


class Judge:
    def __init__(self, data):
        self.data = data

    def of(self, flow):
        """None, or the Difference that the flow shows."""
        kernel, reference = flow.replies[KERNEL], flow.replies[REFERENCE_ASKED]
        if flow.differs & DIFFERS_KERNEL:
            found = between(kernel, flow.replies[DIRECT], flow.replies[AGAIN])
            if found:
                return found
        if flow.differs & DIFFERS_REFERENCE:
            found = from_reference(kernel, reference)
            if found:
                return Difference(f"reference, {found.kind}", found)
        return self._limits(kernel) or self._limits(reference)

    def _limits(self, wire):
        try:
            return above_zone(self.data, wire) if wire else None
        except Unreadable:
            return None          # equal to the others, or judged before
