# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What may differ between replies to one query, and what may not.

The kernel path's reply must equal one of the two that the same resolver gave past it, the one before or the one
after: its cache may have been renewed in between. TTLs count down in the time that passes between two replies, which
is seconds when whoever asks or answers waits for a processor. The reference has a cache of its own, and there is no order
in which two resolvers' questions reach their authority; so its reply may differ in what that order decides:
TTLs (but none above the zone's), the order within an RRset and of the RRsets in the sections after the answer,
the letter case of names in records, which is that of the first question that fetched them, and whether the DNAME
stands before the CNAME made from it, which Unbound also answers with alone when it has it in its cache. Rules says
what else a server may do, to the reference's reply alone; the judge counts how often each of its rules has let one
pass. Authoritative servers have no cache, and must say the same."""

import time
from collections import Counter
from dataclasses import dataclass

from lab.compare import OPT, RRSIG, Difference, Unreadable, difference, rrsets, split

from . import cookies
from .asking import AGAIN, DIFFERS_KERNEL, DIFFERS_REFERENCE, DIRECT, KERNEL, REFERENCE_ASKED

SOA, DNAME, NSEC = 6, 39, 47
ANSWER, AUTHORITY, ADDITIONAL = range(3)
RD, TC = 0x01, 0x02  # in the first octet of the flags
RCODE, NOERROR, SERVFAIL, NXDOMAIN = 0x0F, 0, 2, 3
# What has let a reference's reply pass that is another than the kernel path's; figures count by these.
CUT, UNCHECKED, UNRESOLVED = "cut short, or one of them", "AD of what was not to be checked", "neither could resolve"
ADDED, ORDERED = "additional or authority, as a cache holds them", "order or letters after the answer"
LETTERS = "letters of another client's question"
WILDCARD = "a wildcard's NSEC, at a name that was asked for"
NOT_RECURSED, BY_TYPE = "RD clear", "types from what a cache holds"     # and these were not asked there
AD, CD = 0x20, 0x10  # in the second
CLOCK_READ_NS = 10**7                # oldest that a resolver's or the kernel's coarse reading of the clock is
# A named that finds the servers of all TLDs in a loop of fetches (servers._resolves), as with an empty cache under load,
# says SERVFAIL for so long: ten seconds, and those of the fetches.
UNRESOLVED_NS = 15 * 10**9


@dataclass(frozen=True)
class Rules:
    """What the servers may do that are compared; the defaults are Unbound's."""
    shuffled: bool = False           # records of an RRset come in any order, not only rotated
    # What is added to an answer in the sections after it depends on what the cache holds (of an RRset that a wildcard
    # made, the proof, too); and whether all has room, on letter case, which compression heeds.
    added_by_history: bool = False
    unrecursed_by_history: bool = False      # queries without RD are answered from what the cache happens to hold
    gives_up: bool = False           # the one may fail to resolve in a moment in which the other does
    cached: bool = True              # answers come from a cache: TTLs count down, and no two caches are the same
    # Types answered from whatever the cache happens to hold at the name: RRSIG, NSEC, NSEC3, ANY, which stand beside a
    # CNAME, cached or not
    by_history: tuple = (46, 47, 50, 255)


def _of_one_server(a, b, rules, used=None, earlier=0, later=0):
    """difference(), and of replies cut short whose records come in any order, any may be left. used: counts that.
    earlier, later: whole seconds that b may have been sent before a, and after it."""
    found = difference(a, b, (1 + earlier, 1 + later) if rules.cached else 0, rules.shuffled)
    cut = found and rules.shuffled and a and b and a[2] & b[2] & TC
    if not cut or split(a)[:2] != split(b)[:2]:
        return found
    if used is not None:
        used[CUT] += 1
    return None


def _passed(flow, first, second):
    """Most whole seconds from one place's reply to that of another, which was asked later."""
    return max(0, flow.got[second] - flow.sent[first]) // 10**9


def between(kernel, before, after, rules=Rules(), since=0, until=0):
    """None when the kernel path's reply is one of the two others', else how it differs from the nearer one; "silence" when
    one of them did not come, for then what it must equal is not known. since, until: seconds that may have passed from the one
    before to the kernel's, and from that to the one after."""
    found = _of_one_server(kernel, before, rules, earlier=since)
    if found is None:
        return None
    later = _of_one_server(kernel, after, rules, later=until)
    if later is None:
        return None
    if kernel and not (before and after):       # of a renewal in between the other reply says nothing
        return Difference("silence", f"one of the replies past it did not come, and {found if before else later}")
    return later if later.kind in ("older TTL", "TTL") else found


def _content(wire, of_wildcards=False):
    """[answer, authority, additional] of RRsets without TTLs, the last two without order. of_wildcards: NSEC records that
    a wildcard made count as its own."""
    sections = [[], [], []]
    groups = rrsets(wire, bytes.lower)
    wildcards = _wildcards(groups) if of_wildcards else {}
    for (section, owner, rtype, rclass, covered), data, _ in groups:
        if rtype != DNAME and covered != DNAME.to_bytes(2, "big"):
            if section == AUTHORITY and NSEC in (rtype, int.from_bytes(covered, "big")):
                owner = wildcards.get(owner, owner)
            sections[section].append(((owner, rtype, rclass, covered), sorted(data)))
    return [sections[ANSWER], sorted(sections[AUTHORITY]), sorted(sections[ADDITIONAL])]


def _wildcards(groups):
    """{owner of an NSEC RRset in the authority section: the wildcard that made it, by the labels its signature counts}"""
    found = {}
    for (section, owner, rtype, _, covered), data, _ in groups:
        if section == AUTHORITY and rtype == RRSIG and covered == NSEC.to_bytes(2, "big"):
            suffix, left = owner, _label_count(owner) - data[0][3]
            for _ in range(left):
                suffix = suffix[1 + suffix[0]:]
            if left > 0:
                found[owner] = b"\x01*" + suffix
    return found


def _label_count(name):
    count, at = 0, 0
    while name[at]:
        count, at = count + 1, at + 1 + name[at]
    return count


def _compared(mine, theirs, rules):
    """Names of the sections, of two _content(), that must be the same; the authority's when it is the answer."""
    if not rules.added_by_history:
        return "answer", "authority", "additional"
    return ("answer",) if mine[ANSWER] and theirs[ANSWER] else ("answer", "authority")


def from_reference(kernel, reference, rules=Rules(), used=None):
    """None when the reference's reply is the same but for what may depend on a cache's history. used: a Counter of
    what that was."""
    used = Counter() if used is None else used
    if not rules.cached:
        return _of_one_server(kernel, reference, rules, used)
    found = difference(kernel, reference, None, rules.shuffled)
    if found is None or found.kind in ("silence", "unreadable", "question", "OPT", "rest"):
        return found
    cut = TC if rules.added_by_history and (kernel[2] | reference[2]) & TC else 0
    # a client that wants no checking gets what another client's question has had checked, or has not
    unchecked = AD if reference[3] & CD or cut else 0
    if (kernel[2] ^ reference[2]) & ~cut or (kernel[3] ^ reference[3]) & ~unchecked:
        return Difference("header", f"{kernel[2:4].hex()} and {reference[2:4].hex()}")
    if split(kernel)[0][2:4] != split(reference)[0][2:4]:
        return Difference("header", "QDCOUNT")
    short = cut or kernel[2] & TC
    if short or kernel[3] & RCODE == SERVFAIL:
        used[CUT if short else UNRESOLVED] += 1
        return None          # the order of the records decides which are left; nothing, or what was found so far
    mine_all, theirs_all = _content(kernel), _content(reference)
    if rules.added_by_history and mine_all[AUTHORITY] != theirs_all[AUTHORITY]:
        # named shows a cached NSEC of whatever owner: also of a name for which somebody asked for NSEC itself
        as_cached, (mine_all, theirs_all) = mine_all, (_content(kernel, True), _content(reference, True))
        used[WILDCARD] += as_cached != mine_all or _content(reference) != theirs_all
    for name, mine, theirs in zip(_compared(mine_all, theirs_all, rules), mine_all, theirs_all):
        if mine != theirs:
            return Difference(name, f"{mine} and {theirs}")
    if kernel[3] != reference[3]:
        used[UNCHECKED] += 1
    used[ORDERED if mine_all == theirs_all else ADDED] += 1
    return None


def of_a_moment(flow, found, rules=Rules()):
    """May the difference be the time that news of a TTL update takes to reach the kernel (doc/coherence.md,
    "TTL update")? The kernel's reply must then hold the same data as the resolver's, no TTL higher."""
    if not flow.by_kernel or found.kind not in ("older TTL", "TTL", "data", "RRsets", "order", "compression"):
        return False
    replies, _ = cookies.taken_out(flow)
    until = _passed(flow, KERNEL, AGAIN)
    if found.kind == "TTL":
        return _renewed_in_other_letters(*(replies[place] for place in (KERNEL, DIRECT, AGAIN)), rules, until)
    same_server = Rules(shuffled=rules.shuffled)
    return any(from_reference(replies[KERNEL], replies[place], same_server) is None and
               _none_higher(replies[KERNEL], replies[place], passed) for place, passed in ((DIRECT, 0), (AGAIN, until)))


def _renewed_in_other_letters(kernel, before, after, rules, until):
    """Has a client's question in other letters renewed what the resolver's cache holds? named gives those letters to all
    who waited for that fetch; its cache, and so the kernel, keep the first ones, with the new TTLs."""
    if not rules.added_by_history or not before or not after:
        return False
    return (difference(kernel, before, None, rules.shuffled) is None and
            from_reference(kernel, after, Rules(shuffled=rules.shuffled)) is None and
            _none_higher(kernel, after, until) and _none_higher(after, kernel))


def _none_higher(kernel, direct, passed=0):
    """No TTL of an RRset is more than a second, and those that have passed meanwhile, above the other's."""
    highest = {key: max(ttls) for key, _, ttls in rrsets(direct, bytes.lower)}
    return all(max(ttls) <= highest.get(key, 0) + 1 + passed for key, _, ttls in rrsets(kernel, bytes.lower) if key[2] != OPT)


def asks_by_history(wire, rules=Rules()):
    """Why the answer depends on what the cache was asked before, "" if it does not."""
    at = 12
    while at < len(wire) and 0 < wire[at] < 64:
        at += 1 + wire[at]
    if rules.unrecursed_by_history and len(wire) > 2 and not wire[2] & RD:
        return NOT_RECURSED
    return BY_TYPE if int.from_bytes(wire[at + 1:at + 3], "big") in rules.by_history else ""


def above_zone(data, wire, slack=0):
    """A Difference when a record has more TTL than its zone gives it and slack seconds. FORMERR and its like hold what
    the query held, whose octets may look like a record."""
    groups = rrsets(wire)
    if wire[3] & RCODE not in (NOERROR, NXDOMAIN):
        return None
    for (section, owner, rtype, _, covered), _, ttls in groups:
        kind = int.from_bytes(covered, "big") if covered else rtype
        if kind == SOA and section == AUTHORITY:
            kind = "negative"
        limit = data.limit(owner, kind)
        if rtype != OPT and limit is not None and max(ttls) > limit + slack:
            return Difference("TTL above the zone's", f"{owner} type {rtype}: {max(ttls)}, not {limit}")
    return None


def second_turned(flow):
    """Did the wall clock's second turn while this was asked, or did readings of the clock that may still be in use
    lie before it?"""
    to_wall = time.time_ns() - time.monotonic_ns()
    return (flow.sent[DIRECT] + to_wall - CLOCK_READ_NS) // 10**9 < (max(flow.got) + to_wall) // 10**9


def a_second_off(flow, replies, rules=Rules()):
    """Are the kernel's TTLs, on which the judge found nothing, a second off from those of both the resolver's
    replies? "clock": yes, and the wall clock's second turned while they were asked for, and the resolver reads its
    clock once for all packets it finds waiting; "end": yes, and it did not turn, as when an RRset's end has moved
    by one second, which plugin/changes/rrset_ends.c does not tell; that this was the cause is not proved. "": no."""
    kernel = replies[KERNEL]
    if not flow.by_kernel or not kernel:
        return ""
    if any(replies[place] and difference(kernel, replies[place], 0, rules.shuffled) is None for place in (DIRECT, AGAIN)):
        return ""
    return "clock" if second_turned(flow) else "end"


class Judge:
    """second_off counts what a_second_off() says; strict: what it says "end" of is a difference. control: what counts as the
    kernel's is the resolver's own, which may be cut short or an error. used: how often each rule
    has let a reply pass; gave_up: how often one alone could not resolve, by which, and apart what a cache emptied a
    moment before explains (emptied: list of when the server under test lost its own, monotonic ns); that the server
    under test says so past the kernel path, too, has been judged before."""

    def __init__(self, data, strict=False, rules=Rules(), emptied=(), control=False):
        self.data, self.strict, self.rules, self.emptied, self.control = data, strict, rules, emptied, control
        self.second_off, self.gave_up, self.used = Counter(), Counter(), Counter()

    def of(self, flow):
        """None, or the Difference that the flow shows."""
        replies, wrong = cookies.taken_out(flow)
        if wrong:
            return wrong
        kernel, reference = replies[KERNEL], replies[REFERENCE_ASKED]
        if flow.by_kernel and not self.control and kernel and (kernel[2] & TC or kernel[3] & RCODE == SERVFAIL):
            return Difference("never the kernel's", f"flags {kernel[2:4].hex()}")
        if flow.differs & DIFFERS_KERNEL:
            found = between(kernel, replies[DIRECT], replies[AGAIN], self.rules, _passed(flow, DIRECT, KERNEL),
                            _passed(flow, KERNEL, AGAIN))
            if found and not self._other_letters(flow, replies):
                return found
            why = a_second_off(flow, replies, self.rules)
            if why:
                self.second_off[why] += 1
                if self.strict and why == "end":
                    return Difference("a second", "off from both replies, and no second has turned")
        if flow.differs & DIFFERS_REFERENCE and not self._one_gave_up(flow, kernel, reference):
            found = from_reference(kernel, reference, self.rules, self.used)
            if found:
                return Difference(f"reference, {found.kind}", found)
        # two threads of a resolver may read the clock on either side of its turn: one stores, the other replies
        slack = 1 if second_turned(flow) else 0
        return self._limits(kernel, slack) or self._limits(reference, slack)

    def _other_letters(self, flow, replies):
        """Has the resolver itself said the same again, with the letters of another client's question? Each that has it
        ask brings its own into the cache."""
        others = (self.rules.added_by_history and not flow.by_kernel and replies[KERNEL] and
                  any(replies[place] and replies[place] != replies[KERNEL] and
                      replies[place].lower() == replies[KERNEL].lower() for place in (DIRECT, AGAIN)))
        self.used[LETTERS] += bool(others)
        return others

    def _one_gave_up(self, flow, kernel, reference):
        """Is the difference that one resolver could not resolve what the other could? Counted by which."""
        failed = [bool(wire) and wire[3] & RCODE == SERVFAIL for wire in (kernel, reference)]
        if not self.rules.gives_up or failed[0] == failed[1]:
            return False
        cold = any(0 <= max(flow.got) - when < UNRESOLVED_NS for when in self.emptied)
        self.gave_up["reference" if failed[1] else "under test, emptied" if cold else "under test"] += 1
        return True

    def _limits(self, wire, slack):
        try:
            return above_zone(self.data, wire, slack) if wire else None
        except Unreadable:
            return None          # equal to the others, or judged before
