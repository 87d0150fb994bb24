# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every kind of answer: the kernel's is Unbound's, or the query passes, as the tables here say.

All questions of a resolver are made hot together; then each group is asked in every variant, over IPv4 and
IPv6, in mixed case, through the kernel path and by loopback, where the same Unbound answers without it."""

import itertools
import random
import time
from collections import namedtuple

import dns.flags
import dns.message
import dns.rdatatype
import pytest
from conftest import kernel_path

from lab import answer_zones
from lab.batch import Wire, exchange_all
from lab.client import query
from lab.compare import difference
from lab.network import SERVICE
from lab.run import SOON, wait_until
from lab.tools import unbound_release

# name below no origin; kernel: it is answered there
Question = namedtuple("Question", "name rdtype kernel")
VARIANTS = {"plain": {}, "edns": {"edns": True}, "ad": {"ad": True}, "do": {"dnssec": True},
            "do-ad": {"dnssec": True, "ad": True}}
TO_UNBOUND = {"cd": {"cd": True}, "cd-do": {"cd": True, "dnssec": True}, "no-rd": {"rd": False}}


def kernel(names, rdtype="A", zone="kinds.example"):
    return [Question(f"{name}.{zone}" if zone else name, rdtype, True) for name in names.split()]


def unbound(names, rdtype="A", zone="kinds.example"):
    return [q._replace(kernel=False) for q in kernel(names, rdtype, zone)]


def by_type(names):
    return [Question(f"{name}.kinds.example", rdtype, True)
            for name, rdtype in (item.split("/") for item in names.split())]


GROUPS = {
    "types": by_type("a/A a3/A aaaa/AAAA mx/MX txt/TXT srv/SRV https/HTTPS svcb/SVCB caa/CAA naptr/NAPTR ptr/PTR "
                     "hinfo/HINFO rp/RP afsdb/AFSDB rt/RT mb/MB mg/MG x25/X25 tlsa/TLSA loc/LOC sshfp/SSHFP "
                     "dnskey/DNSKEY cert/CERT uri/URI eui48/EUI48 apl/APL"),
    "unknown-types": by_type("unknown/TYPE65400 private/TYPE65534"),
    "empty-data": by_type("txt-empty/TXT apl-empty/APL"),
    "names": kernel(r"\000 a\000b a\.b \255\254 \064 \096 \091 \123 \193\218 \225\250 mixed mixedtarget")
    + kernel(f"{answer_zones.LONGEST} {answer_zones.DEEPEST}", zone=""),
    "root": kernel(".", "NS", zone="") + kernel(".", "SOA", zone="") + kernel(".", "A", zone="")
    + kernel("example k", "NS", zone=""),
    "chains": kernel("c1 c2 c3 across over to-wild to-dname step10 step6 step2 step1") + kernel("a", zone="other.example"),
    "negative": kernel("missing a.missing txt ent b.ent") + kernel("a", "AAAA") + kernel("missing", zone="other.example")
    + kernel("nowhere", zone=""),
    "negative-chains": kernel("to-missing to-missing-across to-nothing"),
    "wildcards": kernel("x.wild y.wild z.y.wild x.wildalias") + kernel("x.wild", "TXT") + kernel("x.wild", "MX"),
    "dname": kernel("a.tree missing.tree a.b.tree") + kernel("tree", "DNAME") + kernel("tree", "A"),
    "yxdomain": unbound("abcdefgh.long-tree"),
    "ttl": kernel("ttl-most ttl-day unequal") + unbound("ttl0"),
    "referral": kernel("plain.signed.example signed.example", "NS", zone="") + kernel("signed.example", "DS", zone=""),
    "signed": kernel("a a3 alias out to-missing missing x.wild x.wildalias ent a.ent a.tree", zone="signed.example")
    + kernel("a", "MX", zone="signed.example") + kernel("plain lenient", "DS", zone="signed.example")
    + kernel("signed.example", "DNSKEY", zone=""),
    "insecure": kernel("a.plain missing.plain a.lenient missing.lenient", zone="signed.example"),
    "signed3": kernel("a a3 alias out to-missing missing x.wild x.wildalias ent a.ent a.tree", zone="signed3.example")
    + kernel("a", "MX", zone="signed3.example") + kernel("plain lenient", "DS", zone="signed3.example"),
    "insecure3": kernel("a.plain missing.plain a.lenient missing.lenient", zone="signed3.example"),
    "bogus": kernel("a missing", zone="bogus.example"),
    "meta-types": [Question("meta.kinds.example", f"TYPE{n}", False) for n in (0, 41, 128, 192, *range(249, 256))],
    # RRSIG, NSEC, NSEC3: beside an alias the answer depends on the cache's history
    "all-types": [Question("a.kinds.example", f"TYPE{n}", n not in (46, 47, 50)) for n in
                  sorted({*range(2, 41), *range(42, 128), 256, 257, 258, 260, 32767, 32768, 32769, 65279, 65280, 65535,
                          *random.Random(1).sample(range(256, 65536), 40)})],
}
# what the resolver is configured to say by itself, or to learn elsewhere
LOCAL_GROUPS = {
    "local-data": unbound("a.static b.static static a.redirect any.redirect alias.redirect2 a.transparent typed nx nodata "
                          "refused refused2 blocked null") + unbound("typed", "MX"),
    "beside-local-data": kernel("b.transparent c.transparent always") + kernel("typed", "TXT")
    + kernel("blocked", "AAAA"),
    "logged": unbound("informed"),
    "special-use": unbound("localhost invalid test onion home.arpa 10.in-addr.arpa", zone="")
    + unbound("1.0.0.127.in-addr.arpa 1.0.168.192.in-addr.arpa", "PTR", zone=""),
    "stub-and-forward": kernel("a missing", zone="stub.example") + kernel("a missing", zone="forward.example"),
    "auth-zones": kernel("a missing", zone="auth-up.example") + kernel("a missing", zone="auth-down.example"),
}
LOCAL = """
local-zone: "static.kinds.example." static
local-data: "a.static.kinds.example. 300 A 203.0.113.1"
local-zone: "redirect.kinds.example." redirect
local-data: "redirect.kinds.example. 300 A 203.0.113.2"
local-zone: "redirect2.kinds.example." redirect
local-data: "redirect2.kinds.example. 300 CNAME a.kinds.example."
local-zone: "transparent.kinds.example." transparent
local-data: "a.transparent.kinds.example. 300 A 203.0.113.3"
local-zone: "typed.kinds.example." typetransparent
local-data: "typed.kinds.example. 300 A 203.0.113.4"
local-data: "typed.kinds.example. 300 MX 10 mail.kinds.example."
local-zone: "nx.kinds.example." always_nxdomain
local-zone: "nodata.kinds.example." always_nodata
local-zone: "refused.kinds.example." always_refuse
local-zone: "refused2.kinds.example." refuse
local-zone: "silent.kinds.example." deny
local-zone: "always.kinds.example." always_transparent
local-data: "always.kinds.example. 300 A 203.0.113.5"
local-zone: "blocked.kinds.example." block_a
local-zone: "null.kinds.example." always_null
local-zone: "informed.kinds.example." inform
stub-zone:
name: "stub.example."
stub-addr: 10.53.4.5
forward-zone:
name: "forward.example."
forward-addr: 10.53.4.5
auth-zone:
name: "auth-up.example."
zonefile: "{files}/auth-up.example.zone"
for-downstream: no
auth-zone:
name: "auth-down.example."
zonefile: "{files}/auth-down.example.zone"
for-upstream: no
"""
# what the questions of a group are about: so that nothing is compared that is not there
POSITIVE = ("types", "unknown-types", "empty-data", "names", "chains", "ttl")
SECURE = ("signed", "signed3")
INSECURE = ("insecure", "insecure3", "types")


def mixed_case(wire, rng):
    """The same query with the letters of its name in any case; lengths of labels are no letters."""
    wire, at = bytearray(wire), 12
    while wire[at]:
        for i in range(at + 1, at + 1 + wire[at]):
            if chr(wire[i]).isascii() and chr(wire[i]).isalpha() and rng.random() < 0.5:
                wire[i] ^= 0x20
        at += 1 + wire[at]
    return bytes(wire)


def wires_of(questions, options, rng):
    return [mixed_case(query(q.name, q.rdtype, **options).to_wire(), rng) for q in questions]


class Hot:
    """A kernel path and what to ask it."""

    def __init__(self, path):
        net = path.network
        self.path, self.rng = path, random.Random(3)
        self.link = Wire(net.client1, "c1", net.resolver, "r1")

    def answered(self):
        """Queries that found a rule: of some answered by the kernel one is let through, in the last part of the TTL."""
        reasons = self.path.daemon.reasons()
        return reasons["ANSWERED"] + reasons["REFRESH"]

    def ask(self, wires, family=4):
        return exchange_all(self.path.network.client1, SERVICE[family], wires, link=self.link)

    def ask_directly(self, wires, family=4):
        return exchange_all(self.path.network.resolver, SERVICE[family], wires)

    def count(self, wires, family=4):
        """(replies, how many of them the kernel gave)"""
        before = self.answered()
        replies = self.ask(wires, family)
        return replies, self.answered() - before

    def cold(self, wires):
        """The queries of these that the kernel does not answer, by halves."""
        if not wires or self.count(wires)[1] == len(wires):
            return []
        half = len(wires) // 2
        return wires if half == 0 else self.cold(wires[:half]) + self.cold(wires[half:])

    def heat(self, questions, variants=({}, {"dnssec": True}), seconds=SOON):
        """Asks until the kernel answers all that it should; what stays cold is for the tests to say."""
        left = [w for v in variants for w in wires_of([q for q in questions if q.kernel], v, self.rng)]
        others = [w for v in variants for w in wires_of([q for q in questions if not q.kernel], v, self.rng)]
        for _ in range(4):
            self.ask(left + others)
        end = time.monotonic() + seconds
        while left and time.monotonic() < end:
            left = self.cold(left)
        return [name_of(w) for w in left]

    def keep_hot(self, questions, variants=({}, {"dnssec": True})):
        """Makes names hot again whose rules have expired."""
        wires = [w for v in variants for w in wires_of([q for q in questions if q.kernel], v, self.rng)]
        assert not self.cold(wires) or not (left := self.heat(questions, variants)), f"does not become hot again: {left}"


def name_of(wire):
    return str(dns.message.from_wire(wire).question[0])


LOOKS = 3
REFUSED_AT_ONCE = 40         # questions, each asked twice: fewer than 100 errors, if one thread gets all of them


def assert_same(hot, questions, options, family, ttl_slack=1):
    """Kernel and Unbound give the same answers, and the kernel answered as many queries as it should. Data that Unbound
    refreshed between the two replies are older in the kernel's; at the next look they must be the same."""
    wires = wires_of(questions, options, hot.rng)
    for _ in range(LOOKS):
        ours, answered = hot.count(wires, family)
        theirs = hot.ask_directly(wires, family)
        different = [(w, why) for w, a, b in zip(wires, ours, theirs) if (why := difference(a, b, ttl_slack))]
        if {why.kind for _, why in different} != {"older TTL"}:
            break
    assert not different, "\n".join(f"{name_of(w)}: {why}" for w, why in different)
    assert answered == sum(q.kernel for q in questions), \
        f"{answered} answered in the kernel; not now: {[name_of(w) for w in hot.cold(wires)]}"
    return ours


def validating(world):
    """Lines of a server: clause."""
    return [f'trust-anchor-file: "{world.zones.anchors}"', *(f'domain-insecure: "{z}"' for z in answer_zones.LENIENT)]


@pytest.fixture(scope="module")
def hot(world):
    server = validating(world) + ["extended-statistics: yes"] + LOCAL.format(files=world.zones.directory).strip().splitlines()
    with kernel_path(world, unbound_options={"server": server}) as path:
        h = Hot(path)
        assert h.heat([q for group in (GROUPS | LOCAL_GROUPS).values() for q in group]) == []
        yield h


@pytest.mark.parametrize("group", [group for group in GROUPS | LOCAL_GROUPS if group != "meta-types"])
def test_same_answer(hot, group):
    questions = (GROUPS | LOCAL_GROUPS)[group]
    hot.keep_hot(questions)
    for options in VARIANTS.values():
        for family in (4, 6):
            assert_same(hot, questions, options, family)


def test_meta_types(hot):
    """A thread of Unbound's sends at most 100 errors a second. However fast these are asked, they are fewer: in each
    variant every third type."""
    for number, (options, family) in enumerate(itertools.product(VARIANTS.values(), (4, 6))):
        assert_same(hot, GROUPS["meta-types"][number % 3::3], options, family)


def test_answers_are_what_the_zones_hold(hot):
    def replies(group, **options):
        return [dns.message.from_wire(r) for r in hot.ask(wires_of(GROUPS[group], options, hot.rng))]
    assert not [str(r.question[0]) for group in POSITIVE for r in replies(group, dnssec=True) if not r.answer or r.rcode()]
    assert {r.rcode() for r in replies("negative")} == {0, 3}
    assert not [str(r) for r in replies("negative") if r.answer or not r.authority]
    assert all(r.answer and r.authority for r in replies("negative-chains"))
    assert {r.rcode() for r in replies("yxdomain")} == {6}
    assert {r.rcode() for r in replies("bogus")} == {2}
    for options, flag in (({}, 0), ({"ad": True}, dns.flags.AD), ({"dnssec": True}, dns.flags.AD)):
        assert {r.flags & dns.flags.AD for group in INSECURE for r in replies(group, **options)} == {0}
        for group in SECURE:
            # an alias out of the zone, and names in an opt-out span, are not secure
            got = [r.flags & dns.flags.AD for r in replies(group, **options)]
            assert set(got) <= {0, flag} and (not flag or got.count(flag) > len(got) / 2)


def new_second():
    """Waits until the clock's second changes: a thread of Unbound's then counts its errors anew."""
    begun = int(time.time())
    wait_until(lambda: int(time.time()) > begun, SOON, "the next second")


@pytest.mark.parametrize("variant", TO_UNBOUND)
def test_passed_variants(hot, variant):
    """Checking disabled, or no recursion desired: Unbound itself, for every question but errors'. It refuses those without
    RD, and since 1.26 these refusals are among the 100 errors that a thread sends in a second at most."""
    questions = [q._replace(kernel=False) for group in GROUPS
                 if group not in ("bogus", "yxdomain", "meta-types", "all-types") for q in GROUPS[group]]
    at_once = REFUSED_AT_ONCE if variant == "no-rd" and unbound_release() >= (1, 26) else len(questions)
    for family, begin in itertools.product((4, 6), range(0, len(questions), at_once)):
        if at_once < len(questions):
            new_second()
        # resolutions for CD change the TTLs of shared RRsets
        assert_same(hot, questions[begin:begin + at_once], TO_UNBOUND[variant], family, ttl_slack=60)



def test_sizes(hot):
    """The kernel sends answers up to the size that client, path and slot allow; Unbound truncates larger ones."""
    sizes = {"many32": {1232: True, 600: True, 512: False}, "txt-big": {1232: True, 1200: True, 1199: False},
             "many33": {1232: False, 512: False}}
    for name, by_payload in sizes.items():
        rdtype = "TXT" if name == "txt-big" else "A"
        hot.heat([Question(f"{name}.kinds.example", rdtype, any(by_payload.values()))],
                 variants=({"edns": True}, {"dnssec": True}))
        for payload, is_kernel in by_payload.items():
            question = Question(f"{name}.kinds.example", rdtype, is_kernel)
            for family in (4, 6):
                for options in ({"edns": True}, {"dnssec": True}):
                    [reply] = assert_same(hot, [question], {**options, "payload": payload}, family)
                    truncated = bool(dns.message.from_wire(reply, ignore_trailing=True).flags & dns.flags.TC)
                    assert truncated == (len(whole(hot, question)) > payload)
        assert_same(hot, [Question(f"{name}.kinds.example", rdtype, False)], {}, 4)


def whole(hot, question):
    return hot.ask_directly([query(question.name, question.rdtype, edns=True, payload=4096).to_wire()])[0]


def test_silence(hot):
    wire = query("silent.kinds.example", "A").to_wire()
    assert [exchange_all(ns, SERVICE[4], [wire] * 4, timeout=0.2)
            for ns in (hot.path.network.client1, hot.path.network.resolver)] == [[None] * 4] * 2


@pytest.mark.parametrize("group", ("types", "chains", "negative", "negative-chains", "wildcards", "dname", "signed",
                                   "signed3", "stub-and-forward", "auth-zones"))
def test_same_after_fresh_resolution(hot, group):
    """An answer that is hot when it is resolved is offered from the resolution, not from the cache."""
    questions = [q for q in (GROUPS | LOCAL_GROUPS)[group] if q.kernel]
    hot.path.unbound.control("flush_zone", ".")
    # An alias of a name that does not exist brings the proof for it, and from then on Unbound makes that name's answer from the
    # proof (aggressive-nsec), with TTL 0.
    for question in questions:
        if question.name.startswith("missing"):
            hot.ask(wires_of([question], {}, hot.rng))
    assert hot.heat(questions) == []
    for options in VARIANTS.values():
        assert_same(hot, questions, options, 4)


def synthesised(hot):
    """Questions whose answers Unbound makes of NSEC records in its cache (aggressive-nsec). In 1.22 these answers have TTL 0; since
    1.26 they have their records' TTL, and the kernel gives them, too."""
    hot.path.unbound.control("flush_zone", "signed.example")
    proven = kernel("synth0", zone="signed.example")                    # its proof is theirs as well
    # Alone first: of two queries at once, Unbound may make the later's answer of the former's proof, and forgets what it resolved.
    hot.ask_directly(wires_of(proven, {"dnssec": True}, hot.rng))
    assert hot.heat(proven) == []
    make = kernel if unbound_release() >= (1, 26) else unbound
    return make("synth1 synth2 synth3", zone="signed.example")


MADE = "num.query.aggressive.NXDOMAIN"


def test_answers_synthesised_from_nsec(hot):
    """Unbound makes these answers for each client that the kernel does not answer, without asking an authoritative server."""
    questions = synthesised(hot)
    before = hot.path.unbound.stats()[MADE]
    assert hot.heat(questions) == []
    for options in VARIANTS.values():
        assert_same(hot, questions, options, 4)
    assert hot.path.unbound.stats()[MADE] > before
    for question in (q for q in questions[:1] if q.kernel):
        flushes_of_its_proof(hot, question)


def flushes_of_its_proof(hot, question):
    """Without one of its records Unbound makes the answer no more: no rule is left when the flush has returned."""
    proof = left_out(hot, question)
    assert {rdtype for _, rdtype in proof} == {"NSEC"}
    for name, rdtype in proof:
        synthesised(hot)
        assert hot.heat([question]) == []
        hot.path.unbound.control("flush_type", name, rdtype)
        where = hot.path.daemon.explain(question.name, question.rdtype)["where"]
        assert where == "resolver", f"after the flush of {name} {rdtype}"
        before = hot.path.unbound.stats()[MADE]
        hot.ask_directly(wires_of([question], {}, hot.rng))
        assert hot.path.unbound.stats()[MADE] == before, f"Unbound makes the answer without {name} {rdtype}"


def depended_on(hot, questions):
    """{name: the questions, each with its options, whose answers hold the name as an owner or lead to it}"""
    names = {}
    for options in ({}, {"dnssec": True}):
        for question, reply in zip(questions, hot.ask(wires_of(questions, options, hot.rng))):
            message = dns.message.from_wire(reply)
            found = {rrset.name for section in message.sections[1:3] for rrset in section}
            found |= {rr.target for rrset in message.answer if rrset.rdtype == dns.rdatatype.CNAME for rr in rrset}
            for name in found:
                names.setdefault(str(name).lower(), []).append((question, options))
    return names


def test_flush_of_any_name_withdraws(hot):
    """Of aliases and their targets, the zone of a negative answer's SOA, a DNAME, an NSEC's owner: no rule whose
    answer depends on the name is there when the command has returned."""
    questions = kernel("c3 across to-missing to-missing-across to-nothing a.tree missing")
    questions += kernel("out x.wild x.wildalias", zone="signed.example")
    assert hot.heat(questions) == []
    names = depended_on(hot, questions)
    assert len(names) > 20
    for name, dependent in names.items():
        # else Unbound would make what was flushed from NSEC records, and offer nothing
        hot.path.unbound.control("flush_zone", "signed.example")
        assert hot.heat({q for q, _ in dependent}) == []
        hot.path.unbound.control("flush", name)
        stays = [(q.name, q.rdtype, o) for q, o in dependent
                 if hot.path.daemon.explain(q.name, q.rdtype, do=bool(o))["where"] == "kernel"]
        assert not stays, f"after the flush of {name}: {stays}"


def left_out(hot, question):
    """{(name, type) of RRsets of the cached answer that a plain query's reply leaves out}"""
    plain, full = (dns.message.from_wire(reply) for options in ({}, {"dnssec": True})
                   for reply in hot.ask_directly(wires_of([question], options, hot.rng)))
    shown = {rrset.name for section in plain.sections for rrset in section}
    found = {(rrset.name, rrset.rdtype) for rrset in full.authority if rrset.rdtype != dns.rdatatype.RRSIG}
    # additional data, which minimal-responses leaves out; the authoritative server sends them of its own zone
    found |= {(rr.exchange, dns.rdatatype.A) for rrset in plain.answer for rr in rrset
              if rrset.rdtype == dns.rdatatype.MX and rr.exchange.is_subdomain(rrset.name.parent())}
    return {(str(name).lower(), dns.rdatatype.to_text(rdtype)) for name, rdtype in found if name not in shown}


def test_flush_of_what_a_reply_leaves_out(hot):
    """Unbound resolves again when an RRset of a cached answer is gone, even a left-out one: so the rule is withdrawn."""
    questions = kernel("mx", "MX") + kernel("missing x.wild", zone="signed.example")
    questions += kernel("ent", "AAAA", zone="signed.example") + kernel("missing x.wild", zone="signed3.example")
    for question in questions:
        rests_on = left_out(hot, question)
        assert rests_on
        for name, rdtype in rests_on:
            # else Unbound would make what was flushed from NSEC records, and offer nothing
            hot.path.unbound.control("flush_zone", ".".join(question.name.split(".")[-2:]))
            assert hot.heat([question]) == []
            hot.path.unbound.control("flush_type", name, rdtype)
            where = hot.path.daemon.explain(question.name, question.rdtype)["where"]
            assert where == "resolver", f"{question.name} {question.rdtype} after the flush of {name} {rdtype}"
            misses = hot.path.unbound.stats()["total.num.cachemiss"]
            hot.ask_directly(wires_of([question], {}, hot.rng))
            assert hot.path.unbound.stats()["total.num.cachemiss"] == misses + 1, "Unbound had the answer still"


def logged(hot, name):
    return hot.path.unbound.program.log.read_text().count(f" {name}. A IN")


def test_logged_queries_are_all_logged(hot):
    """A local zone of type inform, or any with log-local-actions, logs each query; the kernel would keep some from it."""
    [notes] = [r["notes"] for r in hot.path.daemon.call({"cmd": "status"})["resolvers"]]
    assert [n for n in notes if "type inform" in n and "hydns-allow-unlogged" in n]
    covered = "b.transparent.kinds.example"
    assert hot.heat(kernel("b.transparent")) == []
    hot.path.unbound.control("set_option", "log-local-actions:", "yes")
    try:
        for name in ("informed.kinds.example", covered):
            before = logged(hot, name)
            replies, answered = hot.count([query(name, "A").to_wire()] * 50)
            assert answered == 0 and None not in replies and logged(hot, name) == before + 50
    finally:
        hot.path.unbound.control("set_option", "log-local-actions:", "no")
    assert hot.heat(kernel("b.transparent")) == []


def secure(reply):
    return bool(dns.message.from_wire(reply).flags & dns.flags.AD)


def test_no_longer_secure(hot):
    """A name is no longer validated: once Unbound has resolved it again, the kernel clears AD as well, also when the data are
    the same, and in the answer to an alias."""
    questions = kernel("brief to-brief", zone="signed.example")
    wires = [w for options in (VARIANTS["ad"], VARIANTS["do"]) for w in wires_of(questions, options, hot.rng)]
    hot.path.unbound.control("flush_zone", "signed.example")
    assert hot.heat(questions) == [] and all(map(secure, hot.ask(wires)))
    hot.path.unbound.control("insecure_add", questions[0].name)
    try:
        assert [hot.path.daemon.explain(q.name, q.rdtype)["where"] for q in questions] == ["resolver"] * 2
        kernel_answers = 0
        end = time.monotonic() + SOON
        while any(map(secure, hot.ask_directly(wires))):
            assert time.monotonic() < end, "Unbound resolves nothing again"
            replies, answered = hot.count(wires)
            kernel_answers += answered
            assert None not in replies
        assert kernel_answers
        wait_until(lambda: not any(map(secure, hot.ask(wires))), SOON, "the kernel path to clear AD")
        assert hot.heat(questions) == [] and not any(map(secure, hot.ask(wires)))
    finally:
        hot.path.unbound.control("insecure_remove", questions[0].name)
        hot.path.unbound.control("flush_zone", "signed.example")
