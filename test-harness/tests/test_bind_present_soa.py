# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the kernel denies in a preloaded zone of BIND's, it goes on denying when a version changes other names, with the version's SOA and
signature; and it says nothing that is not named's when a version changes more of the SOA, or of the answer."""

import pytest
from test_bind_names import answers, ask_once, asked, wait_for
from test_bind_preload import preloading
from test_bind_zone_versions import KINDS, POLICY, a, make, parts, serial

from lab.batch import exchange_all
from lab.client import SILENCE, exchange, query
from lab.compare import difference
from lab.network import SERVICE
from lab.run import HarnessError, wait_until

RSA = "rsa.test"                 # whose signatures have 256 octets
POLICIES = (*POLICY, "dnssec-policy rsa { keys { csk lifetime unlimited algorithm rsasha256 2048; }; };")
ZONES = KINDS | {RSA: "dnssec-policy rsa;"}
FAMILIES = 4, 6
# A name that does not exist, and one that lacks the type.
QUESTIONS = ("nowhere", "A"), ("www", "TXT")
SOA = "ns hostmaster {serial} 7200 600 86400 {minimum}"


@pytest.fixture(scope="module")
def auth(world):
    with preloading(world, ZONES, statements=POLICIES) as path:
        yield path


def have_templates(auth, zone, do):
    wait_for(auth, zone, ("nowhere",))
    for name, rdtype in QUESTIONS:
        if do:
            ask_once(auth, zone, name, rdtype, flags=(False,))
        wait_until(lambda name=name, rdtype=rdtype: answers(auth, zone, name, rdtype, do=do), 10, f"the kernel to deny {name} {rdtype} of {zone}")


def says_what_named_does(auth, zone, name, rdtype, do, family):
    """Nobody has asked since the version: what the kernel answers from was there before."""
    owner, rdtype = parts(f"{name} {rdtype}", zone)
    wire = b"\0\0" + query(owner, rdtype, rd=False, edns=True, dnssec=do, payload=1232).to_wire()[2:]
    before = auth.daemon.reasons()["ANSWERED"]
    reply, = exchange_all(auth.network.client1, SERVICE[family], [wire], link=auth.wire, timeout=SILENCE)
    assert auth.daemon.reasons()["ANSWERED"] > before
    assert difference(reply, exchange(auth.network.resolver, SERVICE[4], wire), 0) is None


def is_kept(auth, zone, name, rdtype, do):
    """Whether the kernel denies it after a version, and nobody has asked. If not, it does once this has returned."""
    try:
        wait_until(lambda: answers(auth, zone, name, rdtype, do=do), 3, f"the kernel to deny {name} of {zone} again")
    except HarnessError:
        have_templates(auth, zone, do)
        return False
    return True


@pytest.mark.parametrize("zone", ZONES)
def test_denials_outlive_versions(auth, zone):
    """All; in a signed zone but for the one version of named's own that may come meanwhile, with the apex's CDS and so another NSEC record."""
    do, kept = bool(ZONES[zone]), []
    have_templates(auth, zone, do)
    for octet in range(50, 54):
        make(auth, zone, [a("other", octet)])
        for name, rdtype in QUESTIONS:
            kept.append(is_kept(auth, zone, name, rdtype, do))
            for family in FAMILIES:
                says_what_named_does(auth, zone, name, rdtype, do, family)
    assert kept.count(False) <= do * len(QUESTIONS), kept


@pytest.mark.parametrize("ttl, minimum", ((300, 30), (200, 30), (300, 60)))
@pytest.mark.parametrize("zone", ZONES)
def test_more_of_the_soa(auth, zone, ttl, minimum):
    """Its minimum, or its own TTL: both are the TTL of denials."""
    do = bool(ZONES[zone])
    have_templates(auth, zone, do)
    make(auth, zone, [("replace", "@", ttl, "SOA", SOA.format(serial=serial(auth, zone) + 10, minimum=minimum))])
    for _ in range(20):
        for name, rdtype in QUESTIONS:
            asked(auth, zone, name, rdtype, False, do)
    for name, rdtype in QUESTIONS:
        wait_until(lambda name=name, rdtype=rdtype: asked(auth, zone, name, rdtype, False, do), 10, f"the kernel to deny {name} of {zone} again")


@pytest.mark.parametrize("zone", ZONES)
def test_another_proof(auth, zone):
    """Of the names beside one that comes, and of one that gets a type: those templates go, and no other's."""
    do = bool(ZONES[zone])
    have_templates(auth, zone, do)
    make(auth, zone, [a("nowhere", 99), ("add", "www", 300, "TXT", "x")])
    for name, rdtype in (*QUESTIONS, ("nowhera", "A"), ("x.nowhere", "A"), ("www", "AAAA")):
        for _ in range(3):
            asked(auth, zone, name, rdtype, False, do)
    make(auth, zone, [("delete", "nowhere"), ("delete", "www", "TXT")])
    for name, rdtype in QUESTIONS:
        wait_until(lambda name=name, rdtype=rdtype: asked(auth, zone, name, rdtype, False, do), 10, f"the kernel to deny {name} of {zone} again")
