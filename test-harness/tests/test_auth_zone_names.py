# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Names and types that a preloaded auth-zone of Unbound's does not have, and names below its delegations: the kernel answers for them as
Unbound does, and never for one that has just come, or that a local zone answers for."""

import itertools
import random

import pytest
import test_bind_zone_versions as zone_versions
from conftest import kernel_path
from hydnszones.sign import Key, sign
from test_auth_zone_preload import befall

from lab import zones
from lab.auth_zones import clause, wire_of
from lab.client import ask, exchange
from lab.network import REFERENCE, SERVICE
from lab.preloaded import has_part_of_names, notes
from lab.run import wait_until

PLAIN, NSEC, NSEC3, BELOW, STRAY, STRAYS = (f"{name}.names.example" for name in ("plain", "nsec", "nsec3", "below.plain", "stray", "strays"))
TRANSFERRED, RESIGNED = "transferred.names.example", "resigned.names.example"
ZONES = (PLAIN, NSEC, NSEC3, TRANSFERRED)
SIGNED = {NSEC: (), NSEC3: ("-n", "-p"), STRAYS: ("-n", "-p")}
RECORDS = zone_versions.RECORDS + """\
deep.empty.wild A 192.0.2.14
left.cut A 192.0.2.17
local A 192.0.2.16
deep.local A 192.0.2.16
"""
# Below the apex, below names with data and without, at several depths.
DENIED = ("nowhere", "n", "a.longer.name.that.is.not.there", "x.www", "y.x.www", "x.a.b", "c.b", "x.c.b", "x.deep.a.b", "x.mx", "x.alias",
          "x.left.wild", "\\000.www", "w\\046w")
REFERRED = ("x.cut", "y.x.cut", "another.name.below.cut")
# Names below a delegation that the zone has data for; wildcards, also where an empty non-terminal is nearer, which Unbound passes over; what a DNAME renames, and names that answers show.
PASSED = ("x.wild", "y.x.wild", "empty.wild", "x.empty.wild", "x.tree", "x.ns", "x.ns.cut", "left.cut", "x.left.cut")
LACKING = ("www AAAA", "www TXT", "www TYPE65", "www NS", "mx A", "b A", "a.b AAAA", "deep.a.b TXT", "last TYPE1234", "@ AAAA")
LEFT_TO_UNBOUND = ("wild AAAA", "tree AAAA", "alias TXT", "cut KEY", "ns AAAA", "hostmaster A", "www SOA", "www DS", "@ DS", "www RRSIG",
                   "www NSEC", "www ANY")
TYPES = ("A", "AAAA", "TXT", "MX", "NS", "DS", "SOA", "ANY", "RRSIG", "TYPE65", "TYPE1234")
VARIANTS = tuple(itertools.product((True, False), (True, False)))
DENIAL = "has no such name or type, or has delegated the name"


def text(zone, serial=1, records=RECORDS):
    return zones.text(records, serial, zone)


def clauses(directory):
    directory.mkdir(exist_ok=True)
    lines = []
    for zone in (PLAIN, NSEC, NSEC3, BELOW, STRAY, STRAYS):
        path = directory / f"{zone}.zone"
        path.write_text(text(zone))
        if zone in SIGNED:
            sign(Key(zone, 1), path, directory, SIGNED[zone])
        if zone in (STRAY, STRAYS):
            path.write_text(f"{path.read_text()}www.{zone}. 300 IN NSEC zzz.{zone}. A NSEC\n")
        lines += clause(zone, *(("hydns-preload: yes",) if zone != BELOW else ()), file=path)
    for zone in (TRANSFERRED, RESIGNED):
        lines += clause(zone, f"primary: {REFERENCE[4]}", "allow-notify: 10.53.0.0/16", "hydns-preload: yes")
    return lines


@pytest.fixture(scope="module")
def primary(world):
    named = world.named_reference(recursion=False, options=("notify-source 10.53.0.54;", "serial-query-rate 1000;"), zones={
        zone: f'type primary; file "{zone}.zone"; allow-update {{ 10.53.0.0/16; }}; allow-transfer {{ any; }};'
              f"also-notify {{ {SERVICE[4]}; }}; notify explicit; notify-delay 0; {more}"
        for zone, more in ((TRANSFERRED, ""), (RESIGNED, "dnssec-policy default;"))})
    for zone in (TRANSFERRED, RESIGNED):
        (named.dir / f"{zone}.zone").write_text(text(zone))
    with named:
        yield named


@pytest.fixture(scope="module")
def auth(world, primary):
    server = ["rrset-roundrobin: no", "extended-statistics: yes", f'local-zone: "local.{PLAIN}." static', f'local-data: "x.local.{PLAIN}. A 192.0.2.77"']
    options = {"server": server, "others": clauses(world.run.dir / "names"), "clause": ["hydns-admission: 1000"]}
    with kernel_path(world, unbound_options=options) as path:
        path.file = world.run.dir / "names" / f"{PLAIN}.zone"
        path.primary = primary
        yield path


def answers(auth, zone, name, rdtype="A", rd=True, do=False):
    """Whether the kernel would answer from a template."""
    found = auth.daemon.explain(f"{name}.{zone}".removeprefix("@."), rdtype, do=do, norec=not rd)
    return found["where"] == "kernel" and DENIAL in found["text"]


def wait_for(auth, zone, names, rdtype="A"):
    """With DO, too, but for denials of signed zones, whose proofs have to be asked for."""
    wait_until(lambda: has_part_of_names(auth) and all(
        answers(auth, zone, name, rdtype, rd, do) for name in names for rd, do in VARIANTS
        if not do or zone not in SIGNED or name in REFERRED), 10,
               lambda: f"{[name for name in names if not answers(auth, zone, name, rdtype)]} of {zone}; {notes(auth)}")


def asked(auth, zone, question, rd=True, do=False):
    """Asks, compares, and says whether the kernel has answered, or would have but for the room of a veth's frame."""
    wire = wire_of(zone, question, rd=rd, edns=True, dnssec=do)
    before = auth.daemon.reasons()
    kernel, own = (exchange(ns, SERVICE[4], wire) for ns in (auth.network.client1, auth.network.resolver))
    assert kernel[2:] == own[2:], (question, zone, rd, do)
    after = auth.daemon.reasons()
    return any(after[reason] != before[reason] for reason in ("ANSWERED", "NO_ROOM"))


def ask_once(auth, zone, name, rdtype="A"):
    """What Unbound denies to a query with DO, and proves, is in the kernel once it has been asked for."""
    for rd in (True, False):
        asked(auth, zone, f"{name} {rdtype}", rd, True)
        wait_until(lambda rd=rd: auth.daemon.explain(f"{name}.{zone}".removeprefix("@."), rdtype, do=True, norec=not rd)["where"] == "kernel", 10,
                   f"the kernel to deny {name} {rdtype} of {zone} with its proof")


@pytest.mark.parametrize("zone", ZONES)
def test_names_that_do_not_exist(auth, zone):
    wait_for(auth, zone, DENIED)
    for name in DENIED if zone in SIGNED else ():
        ask_once(auth, zone, name)
    for name, rdtype, (rd, do) in itertools.product(DENIED, TYPES, VARIANTS):
        assert asked(auth, zone, f"{name} {rdtype}", rd, do) == (rdtype != "SOA"), (name, rdtype, rd, do)


@pytest.mark.parametrize("zone", ZONES)
def test_types_that_do_not_exist(auth, zone):
    wait_for(auth, zone, ("www",), "AAAA")
    for question in LACKING if zone in SIGNED else ():
        ask_once(auth, zone, *question.split())
    for question, (rd, do) in itertools.product(LACKING, VARIANTS):
        assert asked(auth, zone, question, rd, do), (question, rd, do)
    for question, (rd, do) in itertools.product(LEFT_TO_UNBOUND, VARIANTS):
        assert not asked(auth, zone, question, rd, do), (question, rd, do)


@pytest.mark.parametrize("zone", ZONES)
def test_names_below_delegations(auth, zone):
    wait_for(auth, zone, REFERRED)
    for name, rdtype, (rd, do) in itertools.product(REFERRED, ("A", "AAAA", "TXT", "DS", "ANY"), VARIANTS):
        assert asked(auth, zone, f"{name} {rdtype}", rd, do), (name, rdtype, rd, do)


@pytest.mark.parametrize("zone", ZONES)
def test_types_of_delegations(auth, zone):
    """Of their names, too, which Unbound delegates."""
    wait_for(auth, zone, REFERRED)
    for rdtype, (rd, do) in itertools.product(("TXT", "MX", "DNSKEY", "TYPE65", "TYPE1234"), VARIANTS):
        assert asked(auth, zone, f"cut {rdtype}", rd, do), (rdtype, rd, do)


@pytest.mark.parametrize("zone", ZONES)
def test_delegations_without_ds(auth, zone):
    """Nobody has to ask before, not even for the proofs."""
    wait_until(lambda: all(answers(auth, zone, "cut", "DS", rd, do) for rd, do in VARIANTS), 10, lambda: f"DS to be denied; {notes(auth)}")
    for rd, do in VARIANTS:
        assert asked(auth, zone, "cut DS", rd, do), (rd, do)


@pytest.mark.parametrize("zone", ZONES)
def test_others_are_unbounds(auth, zone):
    wait_for(auth, zone, (*DENIED, *REFERRED))
    for name, (rd, do) in itertools.product(PASSED, VARIANTS):
        assert not asked(auth, zone, f"{name} TXT", rd, do), (name, rd, do)


def test_local_zones_come_first(auth):
    """At and below them the kernel says nothing, whether the auth-zone has data there or not."""
    wait_for(auth, PLAIN, DENIED)
    for name, (rd, do) in itertools.product(("local", "x.local", "y.x.local", "deep.local", "x.deep.local", "nowhere.local"), VARIANTS):
        assert not asked(auth, PLAIN, f"{name} TXT", rd, do), (name, rd, do)


def test_another_auth_zone_below(auth):
    wait_for(auth, PLAIN, DENIED)
    for name in ("nowhere.below", "x.www.below", "below"):
        assert not asked(auth, PLAIN, f"{name} TXT")


def test_a_zone_with_stray_proofs(auth):
    """Of which Unbound gives some, and some not: the kernel denies nothing."""
    wait_until(lambda: any(note.startswith(f"{STRAY}: ") and " questions asked, " in note for note in notes(auth)), 10,
               lambda: f"a note of {STRAY} among {notes(auth)}")
    assert not [note for note in notes(auth) if note.startswith(STRAY) and "does not have are answered" in note]
    for question, (rd, do) in itertools.product(("nowhere A", "x.www A", "zz A", "www AAAA", "zzz A"), VARIANTS):
        assert not asked(auth, STRAY, question, rd, do), (question, rd, do)


def test_a_chain_with_strays(auth):
    """NSEC records in a zone with NSEC3: Unbound gives them for some names that do not exist, and the chain's for others."""
    wait_for(auth, STRAYS, ("nowhere",))
    for name, rdtype in itertools.product(("nowhere", "x.www", "n"), ("A", "TXT")):
        for _ in range(3):
            assert not asked(auth, STRAYS, f"{name} {rdtype}", do=True), (name, rdtype)


# What is done, what undoes it, and names that it concerns.
LOCAL = {
    "data": (("local_data", "nowhere.{} A 192.0.2.1"), ("local_zone_remove", "nowhere.{}"), ("nowhere", "x.nowhere", "nowhere.www")),
    "data below a name": (("local_data", "x.www.{} A 192.0.2.1"), ("local_zone_remove", "x.www.{}"), ("x.www", "y.x.www", "www")),
    "a zone above names": (("local_zone", "b.{}", "redirect"), ("local_zone_remove", "b.{}"), ("b", "x.b", "x.a.b", "x.deep.a.b")),
    "a zone around it": (("local_zone", "names.example", "static"), ("local_zone_remove", "names.example"), DENIED),
    "its origin": (("local_zone", "{}", "refuse"), ("local_zone_remove", "{}"), DENIED),
}


@pytest.mark.parametrize("what", LOCAL)
def test_local_zones_that_come_and_go(auth, what):
    """When the command has ended, the kernel no longer says what the auth-zone does."""
    done, undone, names = LOCAL[what]
    wait_for(auth, PLAIN, DENIED)
    for command in (done, undone):
        auth.unbound.control(*(word.format(PLAIN) for word in command))
        for name, (rd, do) in itertools.product((*names, "unchanged"), VARIANTS):
            asked(auth, PLAIN, f"{name} TXT", rd, do)
    wait_for(auth, PLAIN, DENIED)


def test_lists_of_local_data(auth):
    wait_for(auth, PLAIN, DENIED)
    auth.unbound.control("local_datas", text=f"nowhere.{PLAIN}. A 192.0.2.1\nx.www.{PLAIN}. A 192.0.2.2\n")
    for name in ("nowhere", "x.nowhere", "x.www", "y.x.www"):
        asked(auth, PLAIN, f"{name} TXT")
    wait_for(auth, PLAIN, ("n",))
    for name in ("nowhere", "x.nowhere", "x.www", "y.x.www"):
        assert not asked(auth, PLAIN, f"{name} TXT")
    auth.unbound.control("local_zones_remove", text=f"nowhere.{PLAIN}.\nx.www.{PLAIN}.\n")
    wait_for(auth, PLAIN, DENIED)


@pytest.mark.parametrize("zone", (TRANSFERRED, RESIGNED))
def test_a_transfer_brings_names(auth, zone):
    """In any order of looks and answers the kernel says what Unbound does, and then denies what has not come. With NSEC a name that comes
    between two others divides what one proof was for."""
    rng = random.Random("names")
    there, pool = set(), ("nowhere", "x.www", "p.q.r", "q.r", "x.a.b", "*.www", "*.v", "a.b", "cut.cut")
    names = [prefix + name for name in pool for prefix in ("", "x.", "-")]
    for octet in range(1, 9):
        wait_until(lambda: asked(auth, zone, "unchanged A", do=True), 10, f"the kernel to deny names of {zone}")
        turned = rng.sample(pool, 3)
        zones.update(auth.primary, zone, ("replace", "version", 300, "TXT", str(octet)),
                     *(("delete", name) if name in there else ("add", name, 300, "A", f"192.0.2.{octet}") for name in turned))
        there ^= set(turned)
        wait_until(lambda octet=octet: str(octet).encode() in
                   exchange(auth.network.resolver, SERVICE[4], wire_of(zone, "version TXT"))[-1:], 10, "the transfer")
        for _ in range(2):
            for name, do in itertools.product(names, (False, True)):
                asked(auth, zone, f"{name} A", do=do)
            wait_until(lambda: asked(auth, zone, "unchanged A", do=True), 10, f"the kernel to deny names of {zone}")
    zones.update(auth.primary, zone, ("delete", "version"), *(("delete", name) for name in there))
    wait_for(auth, TRANSFERRED, (*DENIED, *REFERRED))


@pytest.mark.parametrize("zone", (TRANSFERRED, RESIGNED))
def test_a_transfer_brings_ds(auth, zone):
    """And takes it away: the kernel has no answer of the version before."""
    for change, has in ((("add", "cut", 300, "DS", f"1 13 2 {'ab' * 32}"), True), (("delete", "cut", "DS"), False)):
        wait_until(lambda: asked(auth, zone, "cut DS", do=True), 10, f"the kernel to say what DS {zone} has")
        zones.update(auth.primary, zone, change)
        wait_until(lambda has=has: bool(ask(auth.network.resolver, SERVICE[4], f"cut.{zone}", "DS").answer) == has, 10, "the transfer")
        for rd, do in VARIANTS:
            asked(auth, zone, "cut DS", rd, do)


@pytest.mark.parametrize("how", ("flushed", "reloaded", "hydnsd restarted", "hydnsd killed", "unbound restarted"))
def test_all_comes_back(auth, how):
    wait_for(auth, PLAIN, (*DENIED, *REFERRED))
    befall(auth, how)
    for zone in ZONES:
        wait_for(auth, zone, (*DENIED, *REFERRED))
    for name, (rd, do) in itertools.product((*DENIED, *REFERRED, *PASSED), VARIANTS):
        asked(auth, PLAIN, f"{name} TXT", rd, do)


def test_unbound_counts_them(auth):
    """In its statistics as its own."""
    wait_for(auth, PLAIN, DENIED)
    asks = {"A": 3, "AAAA": 5, "TXT": 7}
    before = auth.unbound.stats()
    for rdtype, times in asks.items():
        for _ in range(times):
            exchange(auth.network.client1, SERVICE[4], wire_of(PLAIN, f"nowhere {rdtype}"))
            exchange(auth.network.client1, SERVICE[4], wire_of(PLAIN, f"mx {rdtype}"))
    expected = {"num.answer.rcode.NXDOMAIN": sum(asks.values()), "num.answer.rcode.nodata": sum(asks.values()),
                **{f"num.query.type.{rdtype}": 2 * times for rdtype, times in asks.items()}}

    def gained():
        after = auth.unbound.stats()
        return {name: after.get(name, 0) - before.get(name, 0) for name in expected}

    wait_until(lambda: gained() == expected, 10, lambda: f"{expected} in the statistics: {gained()}")
