# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What may differ between replies to one query, and what may not.

The kernel path's reply must equal one of the two replies of the same resolver past it, the one before or the one after: the
cache may have changed in between. TTLs count down between two replies, by seconds when client or server waits for a processor.

The reference has a cache of its own, and the order in which the two resolvers ask the authoritative server is random. So its
reply may differ in what that order decides: TTLs (but none above the zone's); the order within an RRset, and of the RRsets in
the sections after the answer; the letter case of names in records, which is that of the first question that fetched them; and
the DNAME before the CNAME synthesized from it, since Unbound answers with a cached CNAME alone. Rules lists what else may
differ in the reference's reply; the judge counts how often each of its rules has let a reply pass. Authoritative servers have
no cache, and must send the same.

The kernel fetches a forwarded answer for itself (--forward): it must equal one of the resolver's two replies as the reference's would,
and no RRset may be older than the last flush of its zone that had returned."""

from collections import Counter
from dataclasses import dataclass

from lab.compare import OPT, RRSIG, Difference, Unreadable, difference, opt_options, rrsets, split, ttls

from . import clocks, cookies
from .questions import to_wire
from .slow_zones import question_of
from .asking import AGAIN, DIFFERS_KERNEL, DIFFERS_REFERENCE, DIRECT, KERNEL, REFERENCE_ASKED

SOA, DNAME, NSEC = 6, 39, 47
ANSWER, AUTHORITY, ADDITIONAL = range(3)
RD, TC = 0x01, 0x02  # in the first octet of the flags
RCODE, NOERROR, SERVFAIL, NXDOMAIN = 0x0F, 0, 2, 3
# Why a reference's reply passed although it differs from the kernel path's; the figures count by these.
CUT, UNCHECKED, UNRESOLVED = "cut short, or one of them", "AD or extended error of what was not to be checked", "neither could resolve"
ADDED, ORDERED = "additional or authority section, as a cache holds it", "order or letters after the answer"
UNTRUE = "untrue"                    # kind of a difference: no server can be the source of the reply
LOST = "lost"                        # kind of a difference: only the kernel path gave no reply
BOTH_TRUE = "a failure and an answer, both true of its authoritative server"
LETTERS = "letters of another client's question"
FORWARDED = "a forwarded answer, of its own time"
REMEMBERED = "the extended error of a failure, which a remembered one lacks"
OWN_WAYS = "the extended error of a failure, from what each resolver has tried"
EXTENDED_ERROR = 15                  # EDNS option
OUTLIVED = "older than a flush"      # kind of a difference
OLDER_NS = 2 * 10**9                 # a TTL says its RRset's age to two seconds
WILDCARD = "a wildcard's NSEC, at a name that was asked for"
NOT_RECURSED, BY_TYPE = "RD clear", "types from what a cache holds"     # why the reference was not asked
AD, CD = 0x20, 0x10  # in the second octet
CLOCK_READ_NS = 10**7                # the greatest age of a resolver's or the kernel's coarse reading of the clock
# How long a named with an empty cache under load sends SERVFAIL after it found the name of the TLDs' servers in a loop of
# fetches (servers._resolves): ten seconds and the time of the fetches.
UNRESOLVED_NS = 15 * 10**9


@dataclass(frozen=True)
class Rules:
    """How the replies of the compared servers may differ; the defaults are Unbound's."""
    shuffled: bool = False           # records of an RRset come in any order, not only rotated
    # The sections after the answer depend on what the cache holds (also the proof of a wildcard's RRset). Whether all
    # records have room depends on letter case, since names are compressed only when their case is the same.
    added_by_history: bool = False
    unrecursed_by_history: bool = False      # queries without RD are answered from what the cache happens to hold
    gives_up: bool = False           # one may fail to resolve while the other succeeds
    failures: bool = True            # it may offer failures that it remembers, which have no records
    # a thread sends BADVERS, as other errors for queries that it does not take, only so often in a second
    limits_badvers: bool = False
    cached: bool = True              # answers come from a cache: TTLs count down, and no two caches are the same
    # Types answered from whatever the cache happens to hold at the name: RRSIG, NSEC, NSEC3, ANY, which stand beside a
    # CNAME, cached or not
    by_history: tuple = (46, 47, 50, 255)


def _of_one_server(a, b, rules, used=None, earlier=0, later=0):
    """difference(); but of truncated replies with shuffled records, any records may be left. used: counts those. earlier,
    later: whole seconds by which b may have been sent before a, or after it."""
    found = difference(a, b, (1 + earlier, 1 + later) if rules.cached else 0, rules.shuffled)
    cut = found and rules.shuffled and a and b and a[2] & b[2] & TC
    if not cut or split(a)[:2] != split(b)[:2]:
        return found
    if used is not None:
        used[CUT] += 1
    return None


def _failed(wire):
    return bool(wire) and wire[3] & RCODE == SERVFAIL


def _gets_badvers(query):
    """By its EDNS version: the header of a reply with BADVERS says NOERROR, and an OPT record has no room in each."""
    try:
        return any(record.rtype == OPT and record.ttl >> 16 & 0xFF for record in split(query)[2])
    except Unreadable:
        return False


def _opt(record):
    """An OPT record, and its options but for extended errors."""
    return record._replace(rdata=b"", at=0), [o for o in opt_options(record.rdata) if o[0] != EXTENDED_ERROR]


def _without_extended_error(wire):
    """What may be compared of two failures."""
    header, question, records, rest = split(wire)
    return header, question, rest, [_opt(r) if r.rtype == OPT else r._replace(at=0) for r in records]


def _opts(wire):
    return [_opt(r) for r in split(wire)[2] if r.rtype == OPT]


def _passed(flow, first, second):
    """The most whole seconds from the reply of the first place to that of the second, which was asked later."""
    return max(0, flow.got[second] - flow.sent[first]) // 10**9


def between(kernel, before, after, rules=Rules(), since=0, until=0, meanwhile=0):
    """None when the kernel path's reply equals one of the two others, else how it differs from the nearer one. "silence" when
    one of them did not come: then it is unknown what the reply must equal. since, until: seconds that may have passed from the
    reply before to the kernel's, and from that to the reply after; meanwhile: from the kernel's to the reply "before", when all
    places were asked together."""
    found = _of_one_server(kernel, before, rules, earlier=since, later=meanwhile)
    if found is None:
        return None
    later = _of_one_server(kernel, after, rules, later=until)
    if later is None:
        return None
    if kernel and not (before and after):       # the other reply does not show whether the cache changed in between
        return Difference("silence", f"one of the replies past it did not come, and {found if before else later}")
    return later if later.kind in ("older TTL", "TTL") else found


def _content(wire, of_wildcards=False):
    """The sections [answer, authority, additional] as RRsets without TTLs and OPT, the last two sorted. of_wildcards: NSEC records
    expanded from a wildcard get the wildcard's name."""
    sections = [[], [], []]
    groups = rrsets(wire, bytes.lower)
    wildcards = _wildcards(groups) if of_wildcards else {}
    for (section, owner, rtype, rclass, covered), data, _ in groups:
        if rtype not in (DNAME, OPT) and covered != DNAME.to_bytes(2, "big"):
            if section == AUTHORITY and NSEC in (rtype, int.from_bytes(covered, "big")):
                owner = wildcards.get(owner, owner)
            sections[section].append(((owner, rtype, rclass, covered), sorted(data)))
    return [sections[ANSWER], sorted(sections[AUTHORITY]), sorted(sections[ADDITIONAL])]


def _wildcards(groups):
    """{owner name of an NSEC RRset in the authority section: its wildcard}, by the label count of the signature."""
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
    """Names of the sections of two _content() that must be the same; the authority section only without an answer."""
    if not rules.added_by_history:
        return "answer", "authority", "additional"
    return ("answer",) if mine[ANSWER] and theirs[ANSWER] else ("answer", "authority")


def from_reference(kernel, reference, rules=Rules(), used=None):
    """None when the reference's reply differs only in what depends on a cache's history. used: a Counter of what that was."""
    used = Counter() if used is None else used
    if not rules.cached:
        return _of_one_server(kernel, reference, rules, used)
    found = difference(kernel, reference, None, rules.shuffled)
    # as AD below: whether somebody had the data of a query with CD validated shows in the extended error "DNSSEC Bogus", too
    errors = found is not None and found.kind == "OPT" and kernel[3] & reference[3] & CD and \
        _opts(kernel) == _opts(reference)
    if found is None or found.kind in ("silence", "unreadable", "question", "OPT", "rest") and not errors:
        return found
    cut = TC if rules.added_by_history and (kernel[2] | reference[2]) & TC else 0
    # AD in a reply to a query with CD depends on whether another client's question had the data validated
    unchecked = AD if reference[3] & CD or cut else 0
    if (kernel[2] ^ reference[2]) & ~cut or (kernel[3] ^ reference[3]) & ~unchecked:
        return Difference("header", f"{kernel[2:4].hex()} and {reference[2:4].hex()}")
    if split(kernel)[0][2:4] != split(reference)[0][2:4]:
        return Difference("header", "QDCOUNT")
    short = cut or kernel[2] & TC
    if short or kernel[3] & RCODE == SERVFAIL:
        used[CUT if short else UNRESOLVED] += 1
        return None          # truncated: the order of the records decides which are left; SERVFAIL: nothing to compare
    mine_all, theirs_all = _content(kernel), _content(reference)
    if rules.added_by_history and mine_all[AUTHORITY] != theirs_all[AUTHORITY]:
        # named sends a cached NSEC of any owner name, also of a name for which a client asked for NSEC
        as_cached, (mine_all, theirs_all) = mine_all, (_content(kernel, True), _content(reference, True))
        used[WILDCARD] += as_cached != mine_all or _content(reference) != theirs_all
    for name, mine, theirs in zip(_compared(mine_all, theirs_all, rules), mine_all, theirs_all):
        if mine != theirs:
            return Difference(name, f"{mine} and {theirs}")
    if kernel[3] != reference[3] or errors:
        used[UNCHECKED] += 1
    used[ORDERED if mine_all == theirs_all else ADDED] += 1
    return None


def of_a_moment(flow, found, rules=Rules()):
    """May the difference come from the time that a TTL update takes to reach the kernel (doc/coherence.md, "TTL update")? Then
    the kernel's reply has the same data as the resolver's, and no higher TTL."""
    if not flow.by_kernel or found.kind not in ("older TTL", "TTL", "data", "RRsets", "order", "compression"):
        return False
    replies, _ = cookies.taken_out(flow)
    until = _passed(flow, KERNEL, AGAIN)
    if found.kind == "TTL":
        return _made_anew(*(replies[place] for place in (KERNEL, DIRECT, AGAIN)), rules, until)
    same_server = Rules(shuffled=rules.shuffled)
    return any(from_reference(replies[KERNEL], replies[place], same_server) is None and
               _none_higher(replies[KERNEL], replies[place], passed) for place, passed in ((DIRECT, 0), (AGAIN, until)))


def _made_anew(kernel, before, after, rules, until):
    """Did the resolver make the answer anew just then? named fetches it again, for a client's question in other letters: it sends
    those to all clients that waited for the fetch; its cache, and so the kernel, keep the first letters, with the new TTLs.
    Unbound makes a denial of cached NSEC RRsets, which come before the SOA then; the kernel keeps the order of the server that
    was asked, with the new TTLs."""
    if not before or not after or not (rules.added_by_history or _same_letters(kernel, after)):
        return False
    return (difference(kernel, before, None, rules.shuffled) is None and
            from_reference(kernel, after, Rules(shuffled=rules.shuffled)) is None and
            _none_higher(kernel, after, until) and _none_higher(after, kernel))


def taken_back(flow, found):
    """Has the resolver just taken back a later end, so that its own replies are the kernel's but for lower TTLs? The kernel may
    send the former ones until hydnsd has acted upon the change (doc/coherence.md, "Change"), which takes milliseconds."""
    if not flow.by_kernel or found.kind != "TTL":
        return False
    replies, _ = cookies.taken_out(flow)
    kernel, before, after = (replies[place] for place in (KERNEL, DIRECT, AGAIN))
    return (before and after and all(difference(kernel, reply, None) is None for reply in (before, after)) and
            _none_higher(before, kernel) and _none_higher(after, kernel))


def _same_letters(a, b):
    """Do two replies have the same records, in any order, in the same letters?"""
    mine, theirs = (sorted((key, sorted(data)) for key, data, _ in rrsets(wire)) for wire in (a, b))
    return mine == theirs


def _none_higher(kernel, direct, passed=0):
    """No TTL of an RRset is more than a second, plus the seconds passed, above the other's."""
    highest = {key: max(ttls) for key, _, ttls in rrsets(direct, bytes.lower)}
    return all(max(ttls) <= highest.get(key, 0) + 1 + passed for key, _, ttls in rrsets(kernel, bytes.lower) if key[2] != OPT)


def asks_by_history(wire, rules=Rules()):
    """Why the answer depends on earlier queries to the cache, "" if it does not."""
    at = 12
    while at < len(wire) and 0 < wire[at] < 64:
        at += 1 + wire[at]
    if rules.unrecursed_by_history and len(wire) > 2 and not wire[2] & RD:
        return NOT_RECURSED
    return BY_TYPE if int.from_bytes(wire[at + 1:at + 3], "big") in rules.by_history else ""


def above_zone(data, wire, slack=0):
    """A Difference when a record's TTL is more than slack seconds above its zone's. Not for other response codes: FORMERR and
    others repeat the query's octets, which may look like a record."""
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
    """Did the wall clock's second change while this was asked, or so shortly before that an older reading of the clock may
    still have been in use?"""
    apart = clocks.to_wall()
    return (flow.sent[DIRECT] + apart - CLOCK_READ_NS) // 10**9 < (max(flow.got) + apart) // 10**9


def a_second_off(flow, replies, rules=Rules()):
    """Do the kernel's TTLs, which passed, differ by a second from those of both the resolver's replies? "": no. "clock": yes,
    and the wall clock's second changed while they were asked for; the resolver reads its clock once for all packets that it
    finds waiting. "end": yes, and the second did not change. An RRset's end that moved by one second would explain that:
    plugin/changes/rrset_ends.c does not announce it. But nothing proves this cause."""
    kernel = replies[KERNEL]
    if not flow.by_kernel or not kernel:
        return ""
    if any(replies[place] and difference(kernel, replies[place], 0, rules.shuffled) is None for place in (DIRECT, AGAIN)):
        return ""
    return "clock" if second_turned(flow) else "end"


class Forwarded:
    """The zone that the kernel forwards. flushed: (begin, end) of each flush of all of it, monotonic ns; longest: of its TTLs, but for
    records that its parent has, too."""

    def __init__(self, origin, flushed, longest):
        self.wire, self.flushed, self.longest = to_wire(origin), flushed, longest

    def has(self, flow):
        """May the reply be of an answer that was forwarded?"""
        question = question_of(flow.wire)
        return flow.by_kernel and bool(question) and question[0].endswith(self.wire)

    def outlived(self, flow, wire, data):
        """A Difference when an RRset in the answer is from before a flush that had returned when it was asked for."""
        begun = max((begin for begin, end in list(self.flushed) if end <= flow.sent[KERNEL]), default=None)
        for (section, owner, rtype, _, _), _, ttls in rrsets(wire) if begun else ():
            limit = data.limit(owner, rtype)
            if section == ANSWER and limit and limit <= self.longest and owner.lower().endswith(self.wire) and \
                    flow.got[KERNEL] - (limit - max(ttls)) * 10**9 + OLDER_NS < begun:
                return Difference(OUTLIVED, f"{owner} type {rtype}: TTL {max(ttls)} of {limit}, and the flush began "
                                  f"{(flow.got[KERNEL] - begun) / 1e9:.1f} s before")
        return None


class Judge:
    """forwarded: a Forwarded, or None. strict: "end" of a_second_off() is a difference. control: the replies in the kernel's place are the resolver's own, which
    may be truncated or errors. emptied: when the server under test lost its cache, monotonic ns. ledger: of the servers that are
    silent now and then, or None.

    second_off counts the results of a_second_off(); used: how often each rule has let a reply pass; gave_up: how often only one
    of the two servers failed to resolve, by which; "emptied" where the server under test had lost its cache shortly before.
    Whether it fails past the kernel path as well is judged before."""

    def __init__(self, data, strict=False, rules=Rules(), emptied=(), control=False, ledger=None, forwarded=None):
        self.ledger, self.forwarded = ledger, forwarded
        self.data, self.strict, self.rules, self.emptied, self.control = data, strict, rules, emptied, control
        self.second_off, self.gave_up, self.used = Counter(), Counter(), Counter()

    def _may_be_offered(self, reply):
        failed = reply[3] & RCODE == SERVFAIL
        try:
            return not reply[2] & TC and (not failed or self.rules.failures and not ttls(reply))
        except Unreadable:
            return False

    def of(self, flow):
        """None, or the Difference that the flow shows."""
        replies, wrong = cookies.taken_out(flow)
        if wrong:
            return wrong
        kernel, reference = replies[KERNEL], replies[REFERENCE_ASKED]
        if not kernel and self.ledger and self.ledger.knows(flow.wire):
            return self._without_reply(flow, replies)
        if flow.by_kernel and not self.control and kernel and not self._may_be_offered(kernel):
            return Difference("never the kernel's", f"flags {kernel[2:4].hex()}")
        of_its_own = bool(self.forwarded) and self.forwarded.has(flow)
        if of_its_own and kernel and between(kernel, replies[DIRECT], replies[AGAIN], self.rules) and \
                (found := self.forwarded.outlived(flow, kernel, self.data)):
            return found           # what the resolver itself gives is as old as it says
        if of_its_own and flow.differs & DIFFERS_KERNEL and any(
                from_reference(kernel, replies[place], self.rules) is None for place in (DIRECT, AGAIN) if replies[place]):
            self.used[FORWARDED] += 1
        elif flow.differs & DIFFERS_KERNEL:
            found = between(kernel, replies[DIRECT], replies[AGAIN], self.rules, _passed(flow, DIRECT, KERNEL),
                            _passed(flow, KERNEL, AGAIN), _passed(flow, KERNEL, DIRECT))
            if found and not self._other_letters(flow, replies) and not self._both_true(flow, replies, KERNEL, DIRECT, AGAIN) and \
                    not self._is_remembered(replies):
                return found
            why = a_second_off(flow, replies, self.rules)
            if why:
                self.second_off[why] += 1
                if self.strict and why == "end":
                    return Difference("a second", "off from both replies, and the clock's second did not change")
        # one thread of a resolver may store before the clock's second changes, and another reply after it
        slack = 1 if second_turned(flow) else 0
        if kernel and self.ledger and not self._fails_without_cache(flow, kernel) and \
                self.ledger.disproves(flow.wire, kernel, flow.sent[KERNEL], flow.got[KERNEL], slack):
            return Difference(UNTRUE, "its authoritative server has sent nothing like it, or not then")
        if flow.differs & DIFFERS_REFERENCE and not self._one_gave_up(flow, kernel, reference) and \
                not self._both_true(flow, replies, KERNEL, REFERENCE_ASKED):
            found = from_reference(kernel, reference, self.rules, self.used)
            if found and not self._failed_in_their_own_ways(flow, kernel, reference):
                return Difference(f"reference, {found.kind}", found)
        return self._limits(kernel, slack) or self._limits(reference, slack)

    def _without_reply(self, flow, replies):
        """However slow or silent a server is, there is an answer or a failure in the end. LOST: its resolver answers others. It may
        leave queries unanswered that it can't read or does not take, which it says to others."""
        direct = replies[DIRECT]
        refused = self.rules.limits_badvers and _gets_badvers(flow.wire)
        if direct and direct[3] & RCODE in (NOERROR, NXDOMAIN, SERVFAIL) and not refused:
            return Difference(LOST, "no reply, and past the kernel path there is one")
        return Difference("silence", "a reply" if direct or replies[AGAIN] else "at all places of the resolver")

    def _other_letters(self, flow, replies):
        """Did the resolver itself send the same again, with the letters of another client's question? Each question that it
        resolves brings its own letters into the cache."""
        others = (self.rules.added_by_history and not flow.by_kernel and replies[KERNEL] and
                  any(replies[place] and replies[place] != replies[KERNEL] and
                      replies[place].lower() == replies[KERNEL].lower() for place in (DIRECT, AGAIN)))
        self.used[LETTERS] += bool(others)
        return others

    def _is_remembered(self, replies):
        """Is it a failure that differs from named's in its extended error alone? named sends that to those who wait for the fetch, and
        none to those who ask while it remembers the failure (ns__query_sfcache() in its query.c)."""
        kernel = replies[KERNEL]
        remembered = self.rules.gives_up and _failed(kernel) and any(
            _failed(replies[place]) and _without_extended_error(kernel) == _without_extended_error(replies[place])
            for place in (DIRECT, AGAIN))
        self.used[REMEMBERED] += bool(remembered)
        return remembered

    def _failed_in_their_own_ways(self, flow, kernel, reference):
        """Did both fail at a slow or silent server, so that an extended error says what each had tried? (What the resolver itself sends
        past the kernel path has been compared before.)"""
        own_ways = bool(self.ledger) and self.ledger.knows(flow.wire) and _failed(kernel) and _failed(reference) and \
            _without_extended_error(kernel) == _without_extended_error(reference)
        self.used[OWN_WAYS] += own_ways
        return own_ways

    def _both_true(self, flow, replies, *places):
        """Did a server fall silent or come back meanwhile, so that a failure at one place and an answer at another are true?"""
        true = bool(self.ledger) and self.ledger.both_true(flow.wire, [(replies[place], flow.sent[place], flow.got[place])
                                                                        for place in places if flow.sent[place]])
        self.used[BOTH_TRUE] += true
        return true

    def _one_gave_up(self, flow, kernel, reference):
        """Is the difference that only one of the two could not resolve? Counts by which one. A ledger judges what it knows, but for
        a server under test that has lost its cache."""
        failed = [_failed(wire) for wire in (kernel, reference)]
        if not self.rules.gives_up or failed[0] == failed[1]:
            return False
        if self.ledger and self.ledger.knows(flow.wire) and not self._fails_without_cache(flow, kernel):
            return False
        self.gave_up["reference" if failed[1] else "under test, emptied" if self._is_cold(flow) else "under test"] += 1
        return True

    def _is_cold(self, flow):
        """Had the server under test lost its cache shortly before?"""
        return any(0 <= max(flow.got) - when < UNRESOLVED_NS for when in self.emptied)

    def _fails_without_cache(self, flow, kernel):
        """Does it fail because the server under test has lost its cache? named without hyDNS fails then, for what it is at work on
        and for what is asked next, whatever the authoritative server does (doc/notebook/parking.md). Whether it fails past the
        kernel path as well is judged before."""
        return self.rules.gives_up and _failed(kernel) and self._is_cold(flow)

    def _limits(self, wire, slack):
        try:
            return above_zone(self.data, wire, slack) if wire else None
        except Unreadable:
            return None          # equals the others, or was judged before
