# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Names that a preloaded zone of BIND's with NSEC3 does not have, asked with DO: the kernel finds the proof by the name's hash, and says
what named says; whatever the zone's salt and iterations, with opt-out, and while names and chains come and go."""

import itertools
import random
from types import SimpleNamespace

import dns.rdatatype
import pytest
from test_bind_names import answers, ask_once, ask_until_answered, asked, text, wait_for
from test_bind_preload import preloads
from test_bind_zone_versions import CLIENTS, RECORDS, is_signed, make

from lab import zones
from lab.batch import Wire
from lab.client import ask
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import wait_until

POLICIES = tuple(f"dnssec-policy {name} {{ keys {{ csk lifetime unlimited algorithm ecdsap256sha256; }}; nsec3param iterations 0 optout {optout}; }};"
                 for name, optout in (("hashed", "no"), ("optout", "yes")))
PLAIN, OPTOUT, SALTED, MANY = (f"{name}.n3.test" for name in ("plain", "optout", "salted", "many"))
POLICY = {PLAIN: "dnssec-policy hashed;", OPTOUT: "dnssec-policy optout;"}
# By dnssec-signzone: named's policies have no iterations. The last has more than the program computes.
SALTS = {SALTED: ("ab12cd34ef", 5), MANY: ("-", 17)}
HASHED = (PLAIN, OPTOUT, SALTED)
# The last names without data exist by a delegation alone, which is not signed: with opt-out they have no NSEC3 record.
MORE = "x.y.host A 192.0.2.30\nfar.only NS ns.elsewhere.test.\nfar.two.rows NS ns.elsewhere.test.\n"
DIGEST = "1 13 2 " + "ab" * 32
DENIED = ("nowhere", "a.longer.name.that.is.not.there", "x.www", "y.x.www", "x.a.b", "c.b", "x.deep.a.b", "z.y.host", "z.x.y.host", "\\255", "x" * 31,
          "x" * 33, "y" * 63, "y" * 63 + ".www")


def sign(world, directory, zone, salt, iterations):
    """Replaces the file by the signed zone, by one key, which stays for named."""
    file = directory / f"{zone}.zone"
    run_tool(world.network.resolver, [*world.tools.bind("bin/dnssec-keygen"), "-q", "-K", directory, "-a", "ECDSAP256SHA256", "-f", "KSK", zone])
    run_tool(world.network.resolver, [*world.tools.bind("bin/dnssec-signzone"), "-q", "-S", "-z", "-P", "-K", directory, "-d", directory,
                                      "-3", salt, "-H", str(iterations), "-o", zone, "-f", file, file])


@pytest.fixture(scope="module")
def auth(world):
    daemon = world.hydnsd()
    served = {zone: f'type primary; file "{zone}.zone"; allow-update {{ {CLIENTS} }}; {POLICY.get(zone, "")}' for zone in (*HASHED, MANY)}
    named = world.named(daemon, recursion=False, zones=served, statements=POLICIES, clause=(*preloads(*served), "hydns-admission 1000;"))
    for zone in served:
        (named.dir / f"{zone}.zone").write_text(zones.text(RECORDS + MORE, origin=zone))
        if zone in SALTS:
            sign(world, named.dir, zone, *SALTS[zone])
    with daemon, named:
        wait_until(daemon.resolver_ready, 10, "BIND's plugin to register with hydnsd")
        for zone in served:
            wait_until(lambda zone=zone: is_signed(world, zone), 20, f"{zone} to be signed")
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network,
                              wire=Wire(world.network.client1, "c1", world.network.resolver, "r1"))


def proof(auth, name, zone):
    """The NSEC3 RRsets of named's answer."""
    reply = ask(auth.network.resolver, SERVICE[4], f"{name}.{zone}", rd=False, dnssec=True, payload=1232)
    return [rrset for rrset in reply.authority if rrset.rdtype == dns.rdatatype.NSEC3]


def shows(auth, zone, salt):
    return {rrset[0].salt for rrset in proof(auth, "nowhere", zone)} == {bytes.fromhex(salt)}


@pytest.mark.parametrize("zone", HASHED)
def test_names_that_do_not_exist(auth, zone):
    wait_for(auth, zone, ("nowhere",))
    for name in DENIED:
        ask_once(auth, zone, name)
        for rdtype in ("A", "TXT", "DS", "ANY", "TYPE65"):
            for rd in (False, True):
                assert asked(auth, zone, name, rdtype, rd, True), (name, rdtype, rd)


@pytest.mark.parametrize("parent", ("", ".www"))
@pytest.mark.parametrize("zone", HASHED)
def test_one_template_for_names_between_two_hashes(auth, zone, parent):
    rng, missed, names = random.Random(zone), 0, 300
    links = RECORDS.count("\n") + MORE.count("\n") + 10       # more than the chain has
    wait_for(auth, zone, ("nowhere",))
    for _ in range(names):
        name = "".join(rng.choices("abcdefghijk-", k=rng.choice((1, 2, 8, 20, 40, 63)))) + ".x" * rng.randrange(2) + parent
        if not asked(auth, zone, name, "A", False, True):
            missed += 1
            wait_until(lambda name=name: answers(auth, zone, name, do=True), 10, f"the kernel to deny {name} of {zone} with its proof")
    assert missed <= links


@pytest.mark.parametrize("zone", HASHED)
def test_others_are_nameds(auth, zone):
    """Names that answers show; without DO they are denied."""
    wait_for(auth, zone, ("nowhere",))
    for rrset in proof(auth, "nowhere", zone):
        owner = rrset.name.to_text().split(".")[0].lower()
        for name in (owner, f"x.{owner}"):
            for _ in range(2):
                assert not asked(auth, zone, name, "A", False, True)
            assert asked(auth, zone, name, "A", False, False)


@pytest.mark.parametrize("zone", HASHED)
def test_an_encloser_without_a_record(auth, zone):
    """With opt-out named proves the name above it to be the encloser."""
    wait_for(auth, zone, ("nowhere",))
    for name, below in (("x.only", "y.x.only"), ("x.two.rows", "z.x.two.rows"), ("x.rows", "y.x.rows"), ("rows", ""), ("two.rows", "")):
        ask_once(auth, zone, name)
        for of, rd in itertools.product((name, below or name), (False, True)):
            assert asked(auth, zone, of, "A", rd, True), (of, rd)


def test_enclosers_that_get_and_lose_records(auth):
    """With opt-out, by a signed delegation below them. All around is asked for again and again, before the kernel knows and after."""
    zone, rng = OPTOUT, random.Random("records")
    cuts, signed = ("far.only", "far.two.rows", "new.only", "new.rows"), set()
    names = [f"x.{name}" for name in ("only", "rows", "two.rows", "far.only", "nowhere")] + ["only", "rows", "two.rows"]
    wait_for(auth, zone, ("nowhere",))
    for _ in range(ROUNDS):
        cut = rng.choice(cuts)
        make(auth, zone, [("delete", cut, "DS"), *([("delete", cut)] if cut.startswith("new") else [])] if cut in signed else
             [("add", cut, 300, "NS", "ns.elsewhere.test."), ("add", cut, 300, "DS", DIGEST)])
        signed ^= {cut}
        for name in rng.sample(names, len(names)):
            asked(auth, zone, name, "A", False, True)
        wait_until(lambda: answers(auth, zone, "nowhere"), 10, "the names of the version")
        ask_until_answered(auth, zone, rng.choice(("x.only", "x.two.rows")))
        for name in rng.sample(names, len(names)):
            asked(auth, zone, name, "A", False, True)
    make(auth, zone, [("delete", cut, "DS") for cut in cuts] + [("delete", "new.only"), ("delete", "new.rows")])
    ask_until_answered(auth, zone, "x.rows")


@pytest.mark.parametrize("zone", HASHED)
def test_below_delegations_without_signatures(auth, zone):
    wait_for(auth, zone, ("x.far.only", "x.far.two.rows"), do=True)
    for name, rdtype, rd in itertools.product(("x.far.only", "x.far.two.rows"), ("A", "TXT", "DS"), (False, True)):
        assert asked(auth, zone, name, rdtype, rd, True), (name, rdtype, rd)


def test_more_iterations_than_the_program_computes(auth):
    wait_for(auth, MANY, ("nowhere",))
    for _ in range(3):
        assert not asked(auth, MANY, "nowhere", "A", False, True)


ROUNDS = 40


@pytest.mark.parametrize("zone", HASHED)
def test_while_names_come_and_go(auth, zone):
    """A name that comes between two hashes divides what one answer was for. Names all around are asked for again and again, so that the
    template of the former version, or one of the new version for too many names, would be seen."""
    rng, there = random.Random(zone), set()
    names = [f"{label}{parent}" for label in "abcdefgh" for parent in ("", ".row", ".b.row")]
    others = [f"n{i}{parent}" for i in range(12) for parent in ("", ".row", ".www")]
    wait_for(auth, zone, ("nowhere",))
    for _ in range(ROUNDS):
        turned = rng.sample(names, rng.choice((1, 1, 2, 6)))
        ask_until_answered(auth, zone, rng.choice(others))
        make(auth, zone, [("delete", name) if name in there else text(name) for name in turned])
        there ^= set(turned)
        for name in rng.sample(names, 3) + turned + rng.sample(others, 4):
            for of in (name, f"x.{name}"):
                asked(auth, zone, of, rng.choice(("A", "TXT")), False, True)
    if there:
        make(auth, zone, [("delete", name) for name in there])
    ask_until_answered(auth, zone, "nowhere")


def test_another_chain(auth):
    """Which named makes in several versions, beside the former one. Names are asked for all the while."""
    zone, salt = SALTED, "0102030405060708"
    ask_until_answered(auth, zone, "nowhere")
    auth.named.control("signing", "-nsec3param", "1", "0", "1", salt, zone)

    def changed():
        for name in DENIED:
            asked(auth, zone, name, "A", False, True)
        return shows(auth, zone, salt)
    wait_until(changed, 20, "the chain of another salt")
    ask_until_answered(auth, zone, "nowhere")
    for name in DENIED:
        ask_until_answered(auth, zone, name)
    make(auth, zone, [text("nowhere"), text("x.www")])
    for name in (*DENIED, "x.nowhere", "z.x.www"):
        asked(auth, zone, name, "A", False, True)
    make(auth, zone, [("delete", "nowhere"), ("delete", "x.www")])
    ask_until_answered(auth, zone, "nowhere")


def test_key_rollover(auth):
    """Signs all of the zone's records by another key."""
    zone = PLAIN
    ask_until_answered(auth, zone, "nowhere")
    before = ask(auth.network.resolver, SERVICE[4], zone, "DNSKEY", rd=False)
    tag, = {rrsig.key_tag for rrset in ask(auth.network.resolver, SERVICE[4], f"nowhere.{zone}", rd=False, dnssec=True, payload=1232).authority
            if rrset.rdtype == dns.rdatatype.RRSIG for rrsig in rrset}
    auth.named.control("dnssec", "-rollover", "-key", str(tag), zone)

    def changed():
        for name in DENIED:
            asked(auth, zone, name, "A", False, True)
        return ask(auth.network.resolver, SERVICE[4], zone, "DNSKEY", rd=False).answer != before.answer
    wait_until(changed, 20, "another DNSKEY RRset")
    for name in DENIED:
        ask_until_answered(auth, zone, name)
