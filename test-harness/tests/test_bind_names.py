# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Names and types that a preloaded zone of BIND's does not have, and names below its delegations: the kernel answers for them as named
does, and never for one that has just come."""

import itertools
import random
import signal

import dns.name
import pytest
from test_bind_preload import MISHAPS, VARIANTS, befall, preloading
from test_bind_zone_versions import KINDS, a, changes, make, parts, serial

from lab import zones
from lab.batch import exchange_all
from lab.client import SILENCE, exchange, query
from lab.compare import difference
from lab.network import SERVICE
from lab.preloaded import has_part_of_names
from lab.run import wait_until

# Below the apex, below names with data and without, below delegations, at several depths.
DENIED = ("nowhere", "n", "a.longer.name.that.is.not.there", "x.www", "y.x.www", "x.a.b", "c.b", "x.c.b", "x.deep.a.b", "x.mx", "x.left.wild", "x.alias")
REFERRED = ("x.cut", "y.x.cut", "another.name.below.cut")
# Wildcards, what a DNAME renames, and names that the answers themselves show.
PASSED = ("x.wild", "y.x.wild", "x.tree", "x.ns", "x.ns.cut")
# Types that names with data and without do not have, the origin too.
LACKING = ("www AAAA", "www TXT", "www TYPE65", "www NS", "mx A", "b A", "a.b AAAA", "deep.a.b TXT", "left.wild AAAA", "last TYPE1234", "@ AAAA")
# What is named's to say: below it are wildcards, or what a DNAME renames; it is an alias, or shown by the answer; questions that are
# answered in a way of their own.
LEFT_TO_NAMED = ("wild AAAA", "tree AAAA", "alias TXT", "cut KEY", "ns AAAA", "hostmaster A", "www SOA", "www DS", "@ DS", "www RRSIG", "www NSEC",
                 "www ANY")
TYPES = ("A", "AAAA", "TXT", "MX", "NS", "DS", "ANY", "RRSIG", "TYPE65", "TYPE1234")


@pytest.fixture(scope="module")
def auth(world):
    with preloading(world, KINDS, options=("allow-new-zones yes;",)) as path:
        yield path


def differs(auth, zone, question, rd, do):
    """None while the version is one and the same and the client gets what named says. Its frame has room for the longest reply."""
    name, rdtype = parts(question, zone)
    wire = b"\0\0" + query(name, rdtype, rd=rd, edns=True, dnssec=do, payload=1232).to_wire()[2:]
    while True:
        before = serial(auth, zone)
        reply, = exchange_all(auth.network.client1, SERVICE[4], [wire], link=auth.wire, timeout=SILENCE)
        found = difference(reply, exchange(auth.network.resolver, SERVICE[4], wire), 0, shuffled=True)
        if found is None or serial(auth, zone) == before:
            return found


def answers(auth, zone, name, rdtype="A", rd=False, do=False):
    """Whether the kernel would answer; not from a rule of the question's own, but that of a template."""
    found = auth.daemon.explain(*parts(f"{name} {rdtype}", zone), do=do, norec=not rd)
    is_template = "\\000." in name
    assert found["where"] != "kernel" or is_template or "has no such name or type, or has delegated the name" in found["text"]
    return found["where"] == "kernel"


def wait_for(auth, zone, names, do=False):
    wait_until(lambda: has_part_of_names(auth) and all(answers(auth, zone, name, rd=rd, do=do) for name in names for rd in (False, True)), 10,
               lambda: f"{[name for name in names if not answers(auth, zone, name, do=do)]} of {zone}")


def asked(auth, zone, name, rdtype, rd, do):
    """Asks, compares, and says whether the kernel has answered."""
    before = auth.daemon.reasons()
    assert differs(auth, zone, f"{name} {rdtype}", rd, do) is None, (name, rdtype, rd, do)
    after = auth.daemon.reasons()
    return after["ANSWERED"] != before["ANSWERED"]


def ask_once(auth, zone, name, rdtype="A", flags=(False, True)):
    """What named denies to a query with DO, and proves, is in the kernel once it has been asked for; again, where a version overtakes it."""
    for rd in flags:
        asked(auth, zone, name, rdtype, rd, True)
        wait_until(lambda rd=rd: answers(auth, zone, name, rdtype, rd, True) or asked(auth, zone, name, rdtype, rd, True), 10,
                   f"the kernel to deny {name} {rdtype} of {zone} with its proof")


def ask_until_answered(auth, zone, name, rdtype="A"):
    """After a version, when the program may not yet know the names, and those that ask do not miss anything."""
    wait_until(lambda: asked(auth, zone, name, rdtype, False, True), 10, f"the kernel to deny {name} {rdtype} of {zone} with its proof")


@pytest.mark.parametrize("zone", KINDS)
def test_names_that_do_not_exist(auth, zone):
    wait_for(auth, zone, DENIED)
    for name in DENIED:
        if KINDS[zone]:
            ask_once(auth, zone, name)
        for rdtype in TYPES:
            for rd, do in VARIANTS:
                assert asked(auth, zone, name, rdtype, rd, do), (name, rdtype, rd, do)


@pytest.mark.parametrize("zone", KINDS)
def test_types_that_do_not_exist(auth, zone):
    wait_for(auth, zone, DENIED)
    wait_until(lambda: answers(auth, zone, "www", "AAAA", rd=True) and answers(auth, zone, "www", "AAAA"), 10, "the template of types")
    for question in LACKING:
        name, rdtype = question.split()
        if KINDS[zone]:
            ask_once(auth, zone, name, rdtype)
        for rd, do in VARIANTS:
            assert asked(auth, zone, name, rdtype, rd, do), (question, rd, do)
    for question in LEFT_TO_NAMED:
        name, rdtype = question.split()
        for rd, do in VARIANTS:
            assert not asked(auth, zone, name, rdtype, rd, do), (question, rd, do)


def test_the_program_has_the_part(auth):
    wait_for(auth, "unsigned.test", DENIED)
    assert has_part_of_names(auth)


@pytest.mark.parametrize("name, counter", (("nowhere", "QryNXDOMAIN"), ("mx", "QryNxrrset")))
@pytest.mark.parametrize("zone, do", (("unsigned.test", False), ("nsec.test", True), ("nsec3.test", True)))
def test_named_counts_them_by_type(auth, zone, do, name, counter):
    asks = {"A": 3, "AAAA": 5, "TXT": 7}
    wait_for(auth, zone, DENIED)
    if do:
        ask_once(auth, zone, name, flags=(False,))
    wait_until(lambda: answers(auth, zone, name, do=do), 10, "the template")
    before, passed, answered = auth.named.query_types(), auth.named.stats().get(counter, 0), auth.daemon.reasons()["ANSWERED"]
    for rdtype, times in asks.items():
        wire = query(f"{name}.{zone}", rdtype, rd=False, edns=True, dnssec=do).to_wire()
        assert None not in exchange_all(auth.network.client1, SERVICE[4], [wire] * times, link=auth.wire, timeout=SILENCE)
    assert auth.daemon.reasons()["ANSWERED"] - answered == sum(asks.values())
    wait_until(lambda: auth.named.stats().get(counter, 0) == passed + sum(asks.values()), 10, "named to count the kernel's denials")
    after = auth.named.query_types()
    assert {rdtype: after.get(rdtype, 0) - before.get(rdtype, 0) for rdtype in asks} == asks


@pytest.mark.parametrize("zone", KINDS)
def test_names_below_delegations(auth, zone):
    wait_for(auth, zone, REFERRED)
    for name in REFERRED:
        for rdtype in TYPES:
            for rd, do in VARIANTS:
                assert asked(auth, zone, name, rdtype, rd, do), (name, rdtype, rd, do)


@pytest.mark.parametrize("zone", KINDS)
def test_types_of_delegations(auth, zone):
    """Of their names, too, which named delegates."""
    wait_for(auth, zone, REFERRED)
    for rdtype in ("TXT", "MX", "DNSKEY", "TYPE65", "TYPE1234"):
        for rd, do in VARIANTS:
            assert asked(auth, zone, "cut", rdtype, rd, do), (rdtype, rd, do)


@pytest.mark.parametrize("zone", KINDS)
def test_others_are_nameds(auth, zone):
    """What is answered in another way: names that exist, or that wildcards and a DNAME stand for; names that the answers show; SOA, to
    which named gives a TTL of its own."""
    wait_for(auth, zone, (*DENIED, *REFERRED))
    for name in PASSED:
        for rd, do in VARIANTS:
            assert not asked(auth, zone, name, "TXT", rd, do), (name, rd, do)
    for name in (*DENIED, *REFERRED):
        assert not asked(auth, zone, name, "SOA", False, False), name


# What is done, what undoes it, and names that it concerns: below them, and beside them.
VERSIONS = {
    "a name comes": (changes(a("nowhere", 20)), changes(("delete", "nowhere")), ("nowhere", "x.nowhere", "y.x.nowhere")),
    "a name comes below others": (changes(a("p.q.r", 21)), changes(("delete", "p.q.r")), ("r", "q.r", "p.q.r", "x.r", "x.q.r", "x.p.q.r")),
    "a name goes": (changes(("delete", "deep.a.b")), changes(a("deep.a.b", 12)), ("deep.a.b", "x.deep.a.b", "a.b", "x.a.b", "b", "x.b")),
    "a wildcard comes": (changes(a("*.www", 22)), changes(("delete", "*.www")), ("x.www", "y.x.www", "*.www")),
    "a wildcard comes where nothing is": (changes(a("*.v", 22)), changes(("delete", "*.v")), ("v", "x.v", "y.x.v", "*.v", "x.*.v")),
    "a wildcard goes": (changes(("delete", "*.wild")), changes(a("*.wild", 13)), ("x.wild", "wild", "x.left.wild", "y.x.wild")),
    "a delegation comes": (changes(("add", "www", 300, "NS", "ns.elsewhere.test.")), changes(("delete", "www", "NS")), ("x.www", "y.x.www")),
    "a delegation goes": (changes(("delete", "cut", "NS")), changes(("add", "cut", 300, "NS", "ns.cut")), ("x.cut", "ns.cut", "x.ns.cut")),
    "a DNAME comes": (changes(("add", "www", 300, "DNAME", "elsewhere.test.")), changes(("delete", "www", "DNAME")), ("x.www", "y.x.www")),
    "a DNAME goes": (changes(("delete", "tree", "DNAME")), changes(("add", "tree", 300, "DNAME", "elsewhere.test.")), ("tree", "x.tree")),
    "an address": (changes(a("www", 110)), changes(a("www", 10)), ("x.www",)),
    "a type comes": (changes(("add", "www", 300, "TXT", "x")), changes(("delete", "www", "TXT")), ("www", "x.www")),
    "a type comes where nothing is": (changes(("add", "a.b", 300, "TXT", "x")), changes(("delete", "a.b")), ("a.b", "b", "x.a.b", "deep.a.b")),
    "a type of the origin": (changes(("add", "@", 300, "TXT", "x")), changes(("delete", "@", "TXT")), ("@", "nowhere")),
    "an alias": (changes(("delete", "other"), ("add", "other", 300, "CNAME", "www")), changes(("delete", "other"), a("other", 11)), ("other",)),
    "another name in the SOA": (changes(("replace", "@", 300, "SOA", "m.n.o hostmaster 99 7200 600 86400 60")),
                                changes(("replace", "@", 300, "SOA", "ns hostmaster 199 7200 600 86400 60")),
                                ("o", "n.o", "m.n.o", "x.o", "x.n.o", "x.m.n.o")),
}


def ask_for_all(auth, zone, names):
    for name, rdtype, do in itertools.product((*names, "unchanged"), ("A", "TXT"), (False, True)):
        asked(auth, zone, name, rdtype, False, do)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("zone", KINDS)
def test_versions(auth, zone, version):
    """At once after the update, and when the kernel answers again; and the kernel does so."""
    done, undone, names = VERSIONS[version]
    wait_for(auth, zone, DENIED)
    for what in (done, undone):
        make(auth, zone, what)
        ask_for_all(auth, zone, names)
        wait_for(auth, zone, ("unchanged",))
        ask_for_all(auth, zone, names)
    wait_for(auth, zone, (*DENIED, *REFERRED))


@pytest.mark.parametrize("zone", ("below.unsigned.test", "www.unsigned.test", "x.left.wild.nsec.test"))
def test_another_zone_that_comes(auth, zone):
    """Below a preloaded one, which does not delegate it; and goes."""
    above = next(kind for kind in KINDS if zone.endswith(kind))
    name = zone.removesuffix(f".{above}")
    wait_for(auth, above, ("nowhere", f"x.{name}"))
    (auth.named.dir / f"{zone}.zone").write_text(zones.text("x A 192.0.2.99\n@ NS ns.elsewhere.test.", origin=zone))
    auth.named.control("addzone", zone, f'{{ type primary; file "{zone}.zone"; }};')
    try:
        for of in ("x", "y", "y.x"):
            asked(auth, above, f"{of}.{name}", "A", False, False)
        assert not answers(auth, above, f"x.{name}")
        wait_for(auth, above, ("nowhere",))          # the rest of the zone is answered for again
        for of in ("x", "y", "y.x"):
            assert not asked(auth, above, f"{of}.{name}", "A", False, False)
    finally:
        auth.named.control("delzone", zone)
    asked(auth, above, f"x.{name}", "A", False, False)


@pytest.mark.parametrize("how", MISHAPS)
def test_all_comes_back(auth, how):
    zone = "unsigned.test"
    wait_for(auth, zone, (*DENIED, *REFERRED))
    befall(auth, how)
    for other in KINDS:              # whose names are gathered one zone after the other
        for name in ("www", "last", "mx", "deep.a.b", "a.b"):
            asked(auth, other, name, "TXT", False, False)
    wait_for(auth, zone, (*DENIED, *REFERRED))
    for name in (*DENIED, *REFERRED, *PASSED):
        asked(auth, zone, name, "A", False, False)


def test_a_version_while_hydnsd_is_away(auth):
    """Its program goes on with what it knows: a name that comes meanwhile is not denied, then and afterwards."""
    zone = "unsigned.test"
    wait_for(auth, zone, DENIED)
    auth.daemon.stop(signal.SIGKILL)
    try:
        make(auth, zone, changes(a("nowhere", 33), a("*.www", 34)))
        for name in ("nowhere", "x.www", "n"):
            assert differs(auth, zone, f"{name} A", False, False) is None
    finally:
        auth.daemon.start()
        wait_until(auth.daemon.resolver_ready, 10, "BIND's plugin to register with hydnsd")
    wait_for(auth, zone, ("n", "c.b"))
    for name in ("nowhere", "x.www", "n"):
        asked(auth, zone, name, "A", False, False)
    make(auth, zone, changes(("delete", "nowhere"), ("delete", "*.www")))
    wait_for(auth, zone, DENIED)


# -- proofs of NSEC: one template for all names between two neighbours; those of NSEC3: test_bind_nsec3.py ----------------
X31 = "x" * 31
LABELS_OF_ALL_KINDS = ("\\000", "\\000\\000", "!", "-", "0", "a", "a\\000", "a\\000\\000", "a\\001", "a-", "aa", "b\\.c", "b\\032c", "_tcp", "wwv", "wwx",
                       "x" * 30, X31, X31 + "b", "x" * 30 + "y" * 33, "y" * 32, "y" * 63, "z", "\\200", "\\255", "\\255\\255")
KNOWN_OCTETS = 31        # of a label in the program's table


def text(name):
    """Of any name: addresses are for names of hosts alone."""
    return ("replace", name, 300, "TXT", "x")


def octets(label):
    return dns.name.from_text(label, None)[0]


def is_known(label, there):
    """Whether the program can tell the name before this label: it is whole in the table, and so is its place in the order."""
    former = max((octets(other) for other in there if octets(other) < octets(label)), default=b"")
    cut_off = {octets(other)[:KNOWN_OCTETS] for other in there if len(octets(other)) > KNOWN_OCTETS}
    return len(former) <= KNOWN_OCTETS and octets(label)[:KNOWN_OCTETS] not in cut_off


def near(label):
    """Labels before and behind it, and far from it."""
    own = octets(label)
    found = (own + b"\0", own + b"m", own[:-1] + b"\xff", own + b"\xff", b"\0" + own, b"k", b"xx", b"zzz")
    return {dns.name.Name([new]).to_text() for new in found if len(new) <= 63}


@pytest.mark.parametrize("parent", ("kinds", "deep.kinds.a.b"))
def test_names_between_labels_of_all_kinds(auth, parent):
    zone, there = "nsec.test", LABELS_OF_ALL_KINDS
    rng = random.Random(parent)
    make(auth, zone, [text(f"{'below.' if rng.random() < 0.3 else ''}{label}.{parent}") for label in there])
    wait_for(auth, zone, DENIED)
    missing = sorted(set().union(*map(near, there)) - set(there))
    for label in missing:
        name = f"{label}.{parent}"
        known = is_known(label, there)
        if known:
            ask_once(auth, zone, name, flags=(False,))
        for first, rdtype in itertools.product((name, f"x.y.{name}"), ("A", "MX")):
            assert asked(auth, zone, first, rdtype, False, True) == known, first
    make(auth, zone, [("delete", f"{below}{label}.{parent}") for label in there for below in ("", "below.")])


PROOF_ROUNDS = 50


@pytest.mark.parametrize("zone, seed", (("nsec.test", 0), ("nsec.test", 1), ("nsec3.test", 2)))
def test_proofs_while_names_come_and_go(auth, zone, seed):
    """A name that comes between two others divides what one answer was for. Names on either side are asked for again and again, so that
    the template of the former version, or one of the new version for too many names, would be seen."""
    rng, there = random.Random(seed), set()
    labels = ("a", "b", "c", "d", "d\\000", "e", X31, X31 + "a", "\\255")
    names = [f"{label}.{parent}" for label in labels for parent in ("row", "b.row", "c.b.row")]
    wait_for(auth, zone, DENIED)
    for _ in range(PROOF_ROUNDS):
        turned = rng.sample(names, rng.choice((1, 1, 2, 4)))
        ask_until_answered(auth, zone, rng.choice(("b-.row", "c-.row", "d-.row", "cc.b.row", "d-.c.b.row")))
        make(auth, zone, [("delete", name) if name in there else text(name) for name in turned])
        there ^= set(turned)
        for name in rng.sample(names, 3) + turned:
            label, _, parent = name.partition(".")
            for beside in (f"{label}-.{parent}", name, f"-.{parent}", f"x.{name}", f"zz.{parent}"):
                asked(auth, zone, beside, rng.choice(("A", "TXT")), False, True)
    if there:
        make(auth, zone, [("delete", name) for name in there])
    ask_until_answered(auth, zone, "x.row")


@pytest.mark.parametrize("zone", ("nsec.test", "nsec3.test"))
def test_a_version_changes_the_soa_of_proofs(auth, zone):
    """Of a name far from those that it changes, at once and later."""
    wait_for(auth, zone, DENIED)
    questions = (("n", "A"), ("x.mx", "A"), ("www", "AAAA"), ("b", "A"))
    for octet in (30, 11):
        for name, rdtype in questions:
            ask_until_answered(auth, zone, name, rdtype)
        zones.update(auth.named, zone, a("other", octet))
        for name, rdtype in questions:
            asked(auth, zone, name, rdtype, False, True)
    for name, rdtype in questions:
        ask_until_answered(auth, zone, name, rdtype)


def data_of(rng, name):
    return rng.choice((a(name, rng.randrange(1, 250)), ("replace", name, 300, "TXT", "x")))


ROUNDS = 150
LABELS = ("p", "q")


@pytest.mark.parametrize("zone", ("unsigned.test", "nsec.test", "nsec3.test"))
def test_names_that_come_and_go_in_a_hurry(auth, zone):
    """In one subtree, so that names share ancestors, and the last version is not settled when the next one comes."""
    rng = random.Random(7)
    names = [".".join((first, *labels, "storm")) for depth in (0, 1, 2) for first in (*LABELS, "*")
             for labels in itertools.product(LABELS, repeat=depth)]
    denied, there = 0, set()
    wait_for(auth, zone, DENIED)
    for _ in range(ROUNDS):
        turned = rng.sample(names, 2)
        make(auth, zone, [("delete", name) if name in there else data_of(rng, name) for name in turned])
        there ^= set(turned)
        for name in rng.sample(names, 3):
            name = rng.choice((name, f"x.{name}", name.replace("*", "n"), name.partition(".")[2]))
            denied += asked(auth, zone, name, rng.choice(("A", "TXT")), False, False)
    make(auth, zone, [("delete", name) for name in there])
    wait_for(auth, zone, ("storm", "p.storm", "q.p.storm"))
    assert denied
