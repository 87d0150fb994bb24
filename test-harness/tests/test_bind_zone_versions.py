# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A version of a zone of BIND's takes the answers from the kernel that it makes wrong, also where these do not show the name that
it changes, and leaves the others."""

import itertools
import random
from types import SimpleNamespace

import pytest

from lab import zones
from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import SERVICE
from lab.run import wait_until

CLIENTS = "10.53.0.0/16;"
POLICY = ('dnssec-policy nsec3 { keys { csk lifetime unlimited algorithm ecdsap256sha256; }; nsec3param iterations 0; };',)
KINDS = {"unsigned.test": "", "nsec.test": "dnssec-policy default;", "nsec3.test": "dnssec-policy nsec3;"}
RECORDS = """\
@ NS ns
@ MX 10 host
ns A 192.0.2.1
www A 192.0.2.10
other A 192.0.2.11
deep.a.b A 192.0.2.12
*.wild A 192.0.2.13
left.wild A 192.0.2.14
mx MX 10 host
alias CNAME www
tree DNAME elsewhere.test.
cut NS ns.cut
ns.cut A 192.0.2.15
last A 192.0.2.16
"""
POSITIVE = ("www A", "other A", "deep.a.b A", "y.wild A", "x.y.wild A", "left.wild A", "mx MX", "@ MX", "alias A", "x.tree A", "x.cut A",
            "last A")
NEGATIVE = ("b A", "a.b A", "x.b A", "nothing A", "x.nothing A", "other AAAA", "x.www A", "x.last A", "@ SOA")
QUESTIONS = POSITIVE + NEGATIVE


def changes(*of):
    return of


def a(name, octet):
    return ("replace", name, 300, "A", f"192.0.2.{octet}")


# What is done, what undoes it, and what becomes of which answers: those of POSITIVE that go with it from an unsigned zone.
VERSIONS = {
    "an address": (changes(a("www", 110)), changes(a("www", 10)), {"www A", "alias A"}),
    "an address that others point to comes": (changes(a("host", 111)), changes(("delete", "host")), {"mx MX", "@ MX"}),
    "a name that did not exist": (changes(a("nothing", 112)), changes(("delete", "nothing")), set()),
    "a name below one that did not exist": (changes(a("z.nothing", 113)), changes(("delete", "z.nothing")), set()),
    "a name below a name": (changes(a("x.www", 113)), changes(("delete", "x.www")), set()),
    "a name beside one below names without data": (changes(a("z.a.b", 118)), changes(("delete", "z.a.b")), set()),
    "a name without names beside it": (changes(a("z.y.b", 119)), changes(("delete", "z.y.b")), set()),
    "a name that a wildcard stood for": (changes(a("y.wild", 114)), changes(("delete", "y.wild")), {"y.wild A", "x.y.wild A"}),
    "a name below one that a wildcard stood for": (changes(a("z.y.wild", 115)), changes(("delete", "z.y.wild")), {"y.wild A", "x.y.wild A"}),
    "a name with names above it that have no data": (changes(("delete", "deep.a.b")), changes(a("deep.a.b", 12)), {"deep.a.b A"}),
    "a wildcard": (changes(a("*.wild", 116)), changes(a("*.wild", 13)), {"y.wild A", "x.y.wild A", "left.wild A"}),
    "a wildcard of the whole zone": (changes(a("*", 117)), changes(("delete", "*")), set(POSITIVE)),
    "a delegation comes": (changes(("add", "last", 300, "NS", "ns.elsewhere.test.")), changes(("delete", "last", "NS")), {"last A"}),
    "a delegation goes": (changes(("delete", "cut", "NS")), changes(("add", "cut", 300, "NS", "ns.cut")), {"x.cut A"}),
    "a delegation's address": (changes(a("ns.cut", 118)), changes(a("ns.cut", 15)), {"x.cut A"}),
    "a DNAME comes": (changes(("add", "last", 300, "DNAME", "elsewhere.test.")), changes(("delete", "last", "DNAME")), {"last A"}),
    "a DNAME": (changes(("replace", "tree", 300, "DNAME", "away.test.")), changes(("replace", "tree", 300, "DNAME", "elsewhere.test.")),
                {"x.tree A"}),
    "data of the origin": (changes(("replace", "@", 300, "TXT", "new")), changes(("delete", "@", "TXT")), {"@ MX"}),
    "servers of the origin": (changes(("replace", "@", 3600, "NS", "ns")), changes(("replace", "@", 300, "NS", "ns")),
                              set(POSITIVE) - {"x.cut A", "x.tree A"}),
}
KEPT_ALWAYS = ("other A", "last A")      # also from a signed zone, by versions of names far from theirs


@pytest.fixture(scope="module")
def auth(world):
    daemon = world.hydnsd()
    served = {zone: f'type primary; file "{zone}.zone"; allow-update {{ {CLIENTS} }}; {more}' for zone, more in KINDS.items()}
    named = world.named(daemon, recursion=False, zones=served, statements=POLICY, options=("allow-new-zones yes;",))
    for zone in KINDS:
        (named.dir / f"{zone}.zone").write_text(zones.text(RECORDS, origin=zone))
    with daemon, named:
        def ready():
            ask(world.network.client1, SERVICE[4], "www.unsigned.test")
            return daemon.resolver_ready()
        wait_until(ready, 10, "BIND's plugin to register with hydnsd")
        wait_signed(world, KINDS)
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)


def is_signed(world, zone):
    """Whole, with its proofs."""
    reply = ask(world.network.resolver, SERVICE[4], f"nothing.{zone}", rd=False, dnssec=True)
    return any(rrset.rdtype in (47, 50) for rrset in reply.authority) and \
        ask(world.network.resolver, SERVICE[4], f"last.{zone}", rd=False, dnssec=True).answer[1:]


def wait_signed(world, kinds):
    """Until each {zone: more of its statement} is signed that is to be."""
    for zone, more in kinds.items():
        wait_until(lambda zone=zone, more=more: not more or is_signed(world, zone), 20, f"{zone} to be signed")


def parts(question, zone):
    name, rdtype = question.split()
    return f"{name}.{zone}".removeprefix("@."), rdtype


def serial(auth, zone):
    return ask(auth.network.resolver, SERVICE[4], zone, "SOA", rd=False).answer[0][0].serial


def heat(auth, zone, **options):
    for question in QUESTIONS:
        name, rdtype = parts(question, zone)
        auth.world.heat(auth.daemon, name, rdtype, rd=False, **options)


def in_kernel(auth, zone, questions, dnssec=False):
    found = set()
    for question in questions:
        name, rdtype = parts(question, zone)
        if auth.daemon.explain(name, rdtype, do=dnssec, norec=True)["where"] == "kernel":
            found.add(question)
    return found


def difference_from_named(auth, zone, wire):
    """None while the version is one and the same and the client gets what named says."""
    while True:
        before = serial(auth, zone)
        replies = [exchange(ns, SERVICE[4], wire) for ns in (auth.network.client1, auth.network.resolver)]
        found = difference(*replies, 0, shuffled=True)
        if found is None or serial(auth, zone) == before:
            return found


def differs(auth, zone, question, **options):
    name, rdtype = parts(question, zone)
    return difference_from_named(auth, zone, query(name, rdtype, rd=False, **options).to_wire())


def make(auth, zone, version):
    """named signs a change after it has acknowledged it."""
    former = serial(auth, zone)
    zones.update(auth.named, zone, *version)
    wait_until(lambda: serial(auth, zone) > former, 10, "the new version")


@pytest.mark.parametrize("what", VERSIONS)
@pytest.mark.parametrize("zone", KINDS)
def test_answers_are_those_of_the_version(auth, zone, what):
    done, undone, goes = VERSIONS[what]
    options = {"dnssec": True, "payload": 1232} if KINDS[zone] else {}
    heat(auth, zone, **options)
    for version in (done, undone):
        make(auth, zone, version)
        if version is done and not KINDS[zone]:
            assert in_kernel(auth, zone, POSITIVE) == set(POSITIVE) - goes
        assert {question: differs(auth, zone, question, **options) for question in QUESTIONS} == dict.fromkeys(QUESTIONS)


@pytest.mark.parametrize("zone", KINDS)
def test_other_names_stay_in_the_kernel(auth, zone):
    """Also where each version has other signatures."""
    options = {"dnssec": True, "payload": 1232} if KINDS[zone] else {}
    heat(auth, zone, **options)
    for octet in (120, 121, 10):
        make(auth, zone, changes(a("www", octet)))
    assert in_kernel(auth, zone, KEPT_ALWAYS, dnssec=bool(KINDS[zone])) == set(KEPT_ALWAYS)


def test_a_zone_that_becomes_signed(auth):
    """Its answers get signatures and proofs, those of names that have not changed, too."""
    zone = "later.test"
    (auth.named.dir / "later.zone").write_text(zones.text(RECORDS, origin=zone))
    clause = 'type primary; file "later.zone"; allow-update { ' + CLIENTS + ' };'
    auth.named.control("addzone", zone, "{ " + clause + " };")
    heat(auth, zone, dnssec=True, payload=1232)
    auth.named.control("modzone", zone, "{ " + clause + " dnssec-policy default; inline-signing no; };")
    auth.named.control("loadkeys", zone)      # makes them, and signs with them
    wait_until(lambda: is_signed(auth.world, zone), 20, "the zone to be signed")
    assert {question: differs(auth, zone, question, dnssec=True, payload=1232) for question in QUESTIONS} == dict.fromkeys(QUESTIONS)


ROUNDS = 120


@pytest.mark.limit(300)
@pytest.mark.parametrize("zone", ("unsigned.test", "nsec.test"))
def test_names_with_names_above_them(auth, zone):
    """Names come and go in one subtree, with those above them that have no data, and with what wildcards stand for."""
    rng = random.Random(5)
    options = {"dnssec": True, "payload": 1232} if KINDS[zone] else {}
    names = [".".join((first, *labels, "storm")) for depth in (0, 1, 2) for first in ("p", "q", "*")
             for labels in itertools.product("pq", repeat=depth)]
    there, answered = set(), 0
    for _ in range(ROUNDS):
        hot = [f"{rng.choice((name, f'x.{name}', name.replace('*', 'n'), name.partition('.')[2]))} A" for name in rng.sample(names, 6)]
        for question in hot:
            auth.world.heat(auth.daemon, *parts(question, zone), rd=False, **options)
        turned = rng.sample(names, rng.choice((1, 1, 2)))
        make(auth, zone, [("delete", name) if name in there else a(name, rng.randrange(1, 250)) for name in turned])
        there ^= set(turned)
        answered += len(in_kernel(auth, zone, hot, dnssec=bool(options)))
        assert {question: differs(auth, zone, question, **options) for question in hot} == dict.fromkeys(hot), turned
    assert answered
    make(auth, zone, [("delete", name) for name in there])
