# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unbound's auth-zones (for-downstream: yes): the kernel gives Unbound's own answers from them, octet for octet."""

import itertools

import dns.flags
import dns.rcode
import pytest
from conftest import kernel_path
from test_fidelity import Hot, mixed_case, new_second
from test_statistics import grown

from lab.auth_zones import NSEC, NSEC3, PLAIN, by_file, full, wires_of
from lab.client import ask, exchange, query
from lab.network import SERVICE
from lab.run import wait_until

# Of one of these zones, with the type. Answers through a DNAME have an alias in the letters of the question.
KERNEL = ("www A", "www AAAA", "www TXT", "zero A", "many A", "www MX", "missing A", "x.missing A", "alias A", "alias CNAME", "chain A",
          "chain AAAA", "out A", "lost A", "x.wild A", "y.x.wild AAAA", "*.wild A", "x.alias-wild A", "ent.below A", "deep.ent.below A",
          "below-d DNAME", "www.child A", "child NS", "child DS", "ns.child A", "www.child6 A", "www.away A", "@ A", "@ SOA", "@ NS",
          "@ MX", "@ DNSKEY", "@ NSEC3PARAM", "mx MX", "mx6 MX", "srv SRV", "svc HTTPS", "unknown TYPE65534", "www NSEC", "www RRSIG")
UNBOUND = ("x.below-d A", "ent.below-d A", "www ANY")
LARGE = "long TXT"
INFORMED = f"mail.{PLAIN}"
VARIANTS = {"plain": {}, "edns": {"edns": True}, "do": {"dnssec": True}, "ad": {"ad": True}, "large": {"edns": True, "payload": 4096},
            "cookie": {"cookie": b"01234567"}}
PASSED = {"cd": {"cd": True}, "cd and do": {"cd": True, "dnssec": True}, "small": {"edns": True, "payload": 512}}


@pytest.fixture(scope="module", params=("yes", "no"), ids=("minimal", "whole"))
def hot(world, request):
    """A path whose answers from the zones of files are in the kernel."""
    server = [f'local-zone: "{INFORMED}." inform', "rrset-roundrobin: no",
              f"minimal-responses: {request.param}", "extended-statistics: yes", "statistics-inhibit-zero: no"]
    with kernel_path(world, unbound_options={"server": server, "others": by_file(world.run.dir / "auth")}) as path:
        yield Hot(path)


def heat(hot, wires):
    for _ in range(4):
        hot.ask(wires)
    left = list(wires)

    def all_hot():
        nonlocal left
        left = hot.cold(left)
        return not left
    wait_until(all_hot, 10, lambda: f"{left} to be answered in the kernel")


def assert_same(hot, wires, family, answered):
    """The same octets but for the id; answered: how many the kernel answers."""
    replies, count = hot.count(wires, family)
    for wire, kernel, own in zip(wires, replies, hot.ask_directly(wires, family)):
        assert kernel is not None and kernel[2:] == own[2:], (wire, kernel, own)
    assert count == answered


@pytest.mark.parametrize("rd", (True, False), ids=("rd", "no-rd"))
@pytest.mark.parametrize("zone", (PLAIN, NSEC, NSEC3))
def test_same_answer(hot, zone, rd):
    for options in ({}, {"dnssec": True, "payload": 4096}):
        heat(hot, wires_of(zone, KERNEL, rd=rd, **options))
    for options, family in itertools.product(VARIANTS.values(), (4, 6)):
        wires = wires_of(zone, KERNEL, rd=rd, **options)
        fits = [w for w in wires if not too_large(hot, w, options)]
        assert len(fits) > len(wires) // 2
        assert_same(hot, fits, family, len(fits))
        assert_same(hot, [w for w in wires if w not in fits], family, 0)
        assert_same(hot, [mixed_case(w, hot.rng) for w in fits], family, len(fits))


def too_large(hot, wire, options):
    """Of a signed zone: for a client that has not said that it takes as much, or for one frame."""
    if not options.get("dnssec"):
        return False
    own = hot.ask_directly([wire])[0]
    return bool(own[2] & 0x02) or len(own) > options.get("payload", 1232)


@pytest.mark.parametrize("rd", (True, False), ids=("rd", "no-rd"))
@pytest.mark.parametrize("zone", (PLAIN, NSEC, NSEC3))
def test_what_unbound_answers(hot, zone, rd):
    """Answers that depend on more than the question, and queries that the kernel leaves to the resolver."""
    for family in (4, 6):
        for options in VARIANTS.values():
            wires = [mixed_case(w, hot.rng) for w in wires_of(zone, UNBOUND, rd=rd, **options)]
            for _ in range(4):
                assert_same(hot, wires, family, 0)
        for options in PASSED.values():
            assert_same(hot, wires_of(zone, KERNEL, rd=rd, **options), family, 0)


@pytest.mark.parametrize("rd", (True, False), ids=("rd", "no-rd"))
def test_logged_queries_are_unbounds(hot, rd):
    """A local zone of type inform logs each, and lets the auth-zone answer."""
    wire = query(INFORMED, rd=rd).to_wire()
    for _ in range(20):
        assert_same(hot, [wire], 4, 0)


def test_an_answer_of_any_size(hot):
    """Whole for clients with room for it, in the kernel as well; the others get what Unbound cuts."""
    heat(hot, wires_of(PLAIN, (LARGE,), edns=True, payload=1232))
    for payload in (512, 600, 800, 900, 1000, 1232, 4096):
        wires = wires_of(PLAIN, (LARGE,), edns=True, payload=payload)
        whole = not hot.ask_directly(wires)[0][2] & 0x02
        assert_same(hot, wires, 4, int(whole))
    assert_same(hot, wires_of(PLAIN, (LARGE,)), 4, 0)


def test_ttls_are_the_zones(hot):
    """A rule that is older than a second gives them as they are."""
    wires = wires_of(PLAIN, ("www A", "missing A", "www.child A"))
    heat(hot, wires)
    for _ in range(2):
        new_second()
    assert_same(hot, wires, 4, len(wires))


def test_small_clients_do_not_decide(hot):
    """Unbound leaves out additional data that find no room, without TC: what one client gets so is not offered to the others."""
    small, large = (wires_of(PLAIN, ("x.wide A",), edns=True, payload=payload) for payload in (600, 1232))
    short, whole = (len(hot.ask_directly(wires)[0]) for wires in (small, large))
    assert short < whole
    hot.path.daemon.call({"cmd": "flush", "name": f"x.wide.{PLAIN}"})
    for _ in range(20):
        assert_same(hot, small, 4, 0)
    for _ in range(4):
        hot.ask(small)
    assert_same(hot, large, 4, 0)
    heat(hot, large)
    assert_same(hot, large, 4, 1)


def test_answers_are_what_the_zone_holds(hot):
    """So that nothing is compared that is not there."""
    def reply(question, zone=PLAIN, **options):
        return ask(hot.path.network.client1, SERVICE[4], *full(question, zone), **options)
    assert reply("www A").flags & dns.flags.AA and reply("www A").answer[0].ttl == 300
    assert reply("missing A").rcode() == dns.rcode.NXDOMAIN and reply("missing A").authority[0].ttl == 60
    assert reply("ent.below A").rcode() == dns.rcode.NOERROR and not reply("ent.below A").answer
    assert not reply("www.child A").flags & dns.flags.AA and reply("www.child A").authority
    assert reply("zero A").answer[0].ttl == 0
    assert not reply("www A", rd=False).flags & (dns.flags.RA | dns.flags.RD) and reply("www A").flags & dns.flags.RA
    for zone, rdtype in ((NSEC, 47), (NSEC3, 50)):
        assert any(rrset.rdtype == rdtype for rrset in reply("missing A", zone, dnssec=True, payload=4096).authority)


def test_statistics(hot):
    """Kernel answers count as Unbound's own do, those without RD and those of auth-zones as well."""
    wires = [w for rd in (True, False) for options in ({}, {"dnssec": True})
             for w in wires_of(PLAIN, KERNEL, rd=rd, **options)]
    heat(hot, wires)

    def in_the_kernel():
        replies, answered = hot.count(wires)
        assert answered == len(wires) and None not in replies
    own = grown(hot, lambda: hot.ask_directly(wires))
    assert grown(hot, in_the_kernel) == own
    assert own["num.query.authzone.down"] == own["total.num.queries"] == len(wires) == 2 * own["num.query.flags.RD"]


def test_a_resolution_of_unbounds_own(hot):
    """Of the same question, by which it looks for the address of a server: what it finds is not what clients get."""
    wires = wires_of(PLAIN, ("ns A",))
    path = hot.path
    path.world.rewrite_lab(path.world.zones.content | {"cut": [f"300 NS ns.{PLAIN}."]})
    path.unbound.control("flush_zone", "lab.example")
    heat(hot, wires)
    before = path.unbound.stats()["num.query.authzone.up"]
    exchange(path.network.client1, SERVICE[4], query("x.cut.lab.example").to_wire(), timeout=0.1)     # that server is silent
    wait_until(lambda: path.unbound.stats()["num.query.authzone.up"] > before, 10, "the server's address to be resolved")
    for _ in range(20):
        assert_same(hot, wires, 4, 1)
