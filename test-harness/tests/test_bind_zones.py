# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's authoritative role: the kernel answers from named's zones as named does, and never with data from before a change of
any kind."""

import re
from types import SimpleNamespace

import dns.dnssec
import dns.rcode
import pytest

from lab import zones
from lab.authoritative import updates_under_load
from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

CLIENTS = "10.53.0.0/16;"
NSEC3 = ('dnssec-policy nsec3 { keys { csk lifetime unlimited algorithm ecdsap256sha256; }; nsec3param iterations 0; };',)
ZONES = {zones.ZONE: f'type primary; file "auth.zone"; allow-update {{ {CLIENTS} }};',
         "file.test": 'type primary; file "file.zone";',
         "signed.test": f'type primary; file "signed.zone"; allow-update {{ {CLIENTS} }}; dnssec-policy default;',
         "nsec3.test": f'type primary; file "nsec3.zone"; allow-update {{ {CLIENTS} }}; dnssec-policy nsec3;',
         "own.test": f'type primary; file "own.zone"; allow-query {{ {CLIENTS} }};',
         "counted.test": 'type primary; file "counted.zone"; zone-statistics full;',
         "incremental.test": f'type secondary; primaries {{ {REFERENCE[4]}; }};',
         "whole.test": f'type secondary; primaries {{ {REFERENCE[4]}; }}; request-ixfr no;'}
PRIMARY = {zone: f'type primary; file "{zone.split(".")[0]}.zone"; allow-update {{ {CLIENTS} }}; allow-transfer {{ any; }};'
                 f'also-notify {{ {SERVICE[4]}; }}; notify explicit;' for zone in ("incremental.test", "whole.test")}
NOREC = "without RD"    # with it, named says in EDNS why it does not follow the alias (RFC 8914)
SAME = {   # question: whether the kernel answers it
    "www A": True, "www AAAA": True, "zero A": True, "many A": True, "www MX": True, "missing A": True,
    "alias A": True, "chain A": True, "out A": NOREC, "lost A": True, "x.wild A": True, "x.wild AAAA": True,
    "ent.below A": True, "x.below-d A": True, "www.child A": True, "ns.child A": True, "www.away A": True, "@ SOA": True,
    "@ MX": True, "mx MX": True, "srv SRV": True,
    # named rotates these records, and names of others point into them
    "@ NS": False,
    # addresses of the client's own family come first
    "www.child6 A": False, "mx6 MX": False,
}
OPTIONS = {"plain": {}, "edns": {"edns": True}, "do": {"dnssec": True}, "ad": {"ad": True}}
SMALL = {"edns": True, "payload": 512}     # named says less to these


def write_files(named, served):
    for zone, body in served.items():
        if "type primary" in body:
            (named.dir / f"{zone.split('.')[0]}.zone").write_text(zones.text(zones.RECORDS, origin=zone))


@pytest.fixture(scope="module")
def primary(world):
    """Of the secondary zones, without the kernel path."""
    named = world.named_reference(recursion=False, zones=PRIMARY, options=("notify-source 10.53.0.54;", "serial-query-rate 1000;"))
    write_files(named, PRIMARY)
    with named:
        yield named


@pytest.fixture(scope="module")
def auth(world, primary):
    daemon = world.hydnsd()
    named = world.named(daemon, recursion=False, zones=ZONES, statements=NSEC3, options=("allow-new-zones yes;",))
    write_files(named, ZONES)
    with daemon, named:
        def ready():
            ask(world.network.client1, SERVICE[4], f"www.{zones.ZONE}")
            return daemon.resolver_ready()
        wait_until(ready, 10, "BIND's plugin to register with hydnsd")
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network, primary=primary)


def full(name, zone=zones.ZONE):
    return f"{name}.{zone}".removeprefix("@.")


@pytest.mark.parametrize("rd", (False, True), ids=("norec", "rec"))
@pytest.mark.parametrize("question", SAME)
def test_same_answer(auth, question, rd):
    name, rdtype = full(question.split()[0]), question.split()[1]
    hot = SAME[question] is True or (SAME[question] == NOREC and not rd)
    small = query(name, rdtype, rd=rd, **SMALL).to_wire()
    for family in (4, 6):
        for label, options in OPTIONS.items():
            if hot:
                auth.world.heat(auth.daemon, name, rdtype, rd=rd, **options)
            before = auth.daemon.reasons()["ANSWERED"]
            wire = query(name, rdtype, rd=rd, **options).to_wire()
            kernel = [exchange(auth.network.client1, SERVICE[family], wire) for _ in range(3)]
            assert auth.daemon.reasons()["ANSWERED"] == before + 3 * hot, label
            for reply in kernel:
                assert difference(reply, exchange(auth.network.resolver, SERVICE[family], wire), 0, shuffled=True) is None
        replies = [exchange(ns, SERVICE[family], small) for ns in (auth.network.client1, auth.network.resolver)]
        assert difference(*replies, 0, shuffled=True) is None


def test_what_small_clients_get_is_not_offered(auth):
    """A client with an EDNS size of 512 octets gets a shorter reply; others must not get it from the kernel."""
    name = full("www")
    auth.daemon.call({"cmd": "flush", "name": name})
    before = auth.daemon.offers()
    for _ in range(20):
        assert ask(auth.network.client1, SERVICE[4], name, "MX", rd=False, **SMALL)
    assert auth.daemon.offers() == before
    auth.world.heat(auth.daemon, name, "MX", rd=False)


HOT = ("www A", "missing A", "alias A", "x.wild A", "ent.below A", "www.child A", "@ SOA")


def heat(auth, zone, questions=HOT, **options):
    for question in questions:
        name, rdtype = question.split()
        auth.world.heat(auth.daemon, full(name, zone), rdtype, rd=False, **options)


def in_kernel(auth, zone, question, **options):
    name, rdtype = question.split()
    return auth.daemon.explain(full(name, zone), rdtype, norec=True, **options)["where"] == "kernel"


def address(auth, name, zone, ns=None):
    reply = ask(ns or auth.network.client1, SERVICE[4], full(name, zone), rd=False)
    return reply.answer[-1][0].to_text() if reply.answer else None


def serial(auth, zone):
    return ask(auth.network.client1, SERVICE[4], zone, "SOA", rd=False).answer[0][0].serial


def assert_same(auth, zone, questions=HOT, **options):
    """Client and named get the same answer now."""
    for question in questions:
        name, rdtype = question.split()
        wire = query(full(name, zone), rdtype, rd=False, **options).to_wire()
        kernel, direct = (exchange(ns, SERVICE[4], wire) for ns in (auth.network.client1, auth.network.resolver))
        assert difference(kernel, direct, 0, shuffled=True) is None, question


def assert_changed(auth, zone, octet):
    """All hot answers are new: of the record, a wildcard, an alias, a proof of non-existence, and a referral."""
    for name, more in (("www", 0), ("alias", 0), ("missing", 1), ("x.wild", 2), ("ent.below", 3)):
        assert address(auth, name, zone) == f"192.0.2.{octet + more}"
    assert ask(auth.network.client1, SERVICE[4], full("www.child", zone), rd=False).rcode() == dns.rcode.NXDOMAIN
    assert_same(auth, zone)
    heat(auth, zone)
    assert_same(auth, zone)


def changes(octet):
    return (("replace", "www", 300, "A", f"192.0.2.{octet}"), ("add", "missing", 300, "A", f"192.0.2.{octet + 1}"),
            ("add", "x.wild", 300, "A", f"192.0.2.{octet + 2}"), ("delete", "child", "NS"), ("delete", "ns.child", "A"),
            ("add", "ent.below", 300, "A", f"192.0.2.{octet + 3}"))


CHANGED = (zones.RECORDS.replace("www A 192.0.2.10\n", "www A 192.0.2.120\n").replace("child NS ns.child\n", "")
           .replace("ns.child A 192.0.2.50\n", "")
           + "missing A 192.0.2.121\nx.wild A 192.0.2.122\nent.below A 192.0.2.123\n")


def test_dynamic_update(auth):
    """All of it when the update is acknowledged; another zone's answers stay."""
    heat(auth, zones.ZONE)
    heat(auth, "file.test", ("www A",))
    zones.update(auth.named, zones.ZONE, *changes(110))
    assert not any(in_kernel(auth, zones.ZONE, question) for question in HOT)
    assert in_kernel(auth, "file.test", "www A")
    assert_changed(auth, zones.ZONE, 110)


def test_reload_of_a_zone(auth):
    """The new serial is never seen together with an old answer."""
    heat(auth, "file.test")
    (auth.named.dir / "file.zone").write_text(zones.text(CHANGED, 2, origin="file.test"))
    auth.named.control("reload", "file.test")
    wait_until(lambda: serial(auth, "file.test") == 2, 5, "the new serial")
    assert_changed(auth, "file.test", 120)


def test_freeze_and_thaw(auth):
    zone = "auth.test"
    auth.named.control("freeze", zone)
    try:
        number, file = serial(auth, zone) + 1, auth.named.dir / "auth.zone"
        # it takes the former file's place when it is whole; what would be written before that would be lost
        wait_until(lambda: re.search(rf"hostmaster\S*[\s(]+{number - 1}\b", file.read_text()), 5, "the zone to be written")
        file.write_text(zones.text(CHANGED, number))
        heat(auth, zone, ("www A",))
    finally:
        auth.named.control("thaw", zone)
    wait_until(lambda: serial(auth, zone) == number, 5, "the new serial")
    assert_changed(auth, zone, 120)


@pytest.mark.parametrize("zone, whole", (("incremental.test", False), ("whole.test", True)))
def test_transfer(auth, zone, whole):
    """As IXFR and as AXFR."""
    heat(auth, zone)
    zones.update(auth.primary, zone, *changes(130))
    wait_until(lambda: serial(auth, zone) == 2, 10, "the transfer")
    assert_changed(auth, zone, 130)
    records = re.findall(rf"'{zone}/IN'.* Transfer completed: .* (\d+) records", auth.named.program.log.read_text())
    assert (int(records[-1]) >= zones.RECORDS.count("\n")) == whole


@pytest.mark.parametrize("zone", ("signed.test", "nsec3.test"))
def test_signed_zone(auth, zone):
    """With proofs and signatures. named signs a change (inline-signing) after it has acknowledged it: once it serves the new
    serial there is no former answer."""
    questions = [q for q in HOT if q != "www.child A"]
    wait_until(lambda: ask(auth.network.client1, SERVICE[4], zone, "SOA", dnssec=True, payload=1232).answer[1:], 10, "signatures")
    for options in ({}, {"dnssec": True}):
        heat(auth, zone, questions, **options)
        assert_same(auth, zone, questions, **options)
    former = serial(auth, zone)
    zones.update(auth.named, zone, *changes(140))
    wait_until(lambda: address(auth, "missing", zone, auth.network.resolver), 10, "the signed change")
    assert serial(auth, zone) > former
    assert_same(auth, zone, questions, dnssec=True)
    heat(auth, zone, questions, dnssec=True)
    assert_same(auth, zone, questions, dnssec=True)
    assert address(auth, "missing", zone) == "192.0.2.141"


def test_key_rollover(auth):
    zone = "signed.test"
    wire = query(zone, "DNSKEY", dnssec=True, rd=False).to_wire()
    heat(auth, zone, ("@ DNSKEY",), dnssec=True)
    before = exchange(auth.network.client1, SERVICE[4], wire)
    tag = dns.dnssec.key_id(ask(auth.network.client1, SERVICE[4], zone, "DNSKEY", rd=False).answer[0][0])
    auth.named.control("dnssec", "-rollover", "-key", str(tag), zone)
    wait_until(lambda: exchange(auth.network.client1, SERVICE[4], wire)[12:] != before[12:], 10, "another DNSKEY RRset")
    assert_same(auth, zone, ("@ DNSKEY",), dnssec=True)


def test_zone_that_comes_and_goes(auth):
    (auth.named.dir / "new.zone").write_text(zones.text(zones.RECORDS, origin="new.auth.test"))
    auth.world.heat(auth.daemon, "www.new.auth.test", rd=False)       # the zone above says that there is none
    auth.named.control("addzone", "new.auth.test", '{ type primary; file "new.zone"; };')
    assert address(auth, "www", "new.auth.test") == "192.0.2.10"
    heat(auth, "new.auth.test", ("www A",))
    auth.named.control("delzone", "new.auth.test")
    wait_until(lambda: address(auth, "www", "new.auth.test") is None, SOON, "the zone to be gone")
    assert_same(auth, "new.auth.test", ("www A",))


@pytest.mark.parametrize("zone", ("own.test", "counted.test"))
def test_zone_with_something_of_its_own(auth, zone):
    """A zone with access lists or counters of its own: all its queries pass."""
    for _ in range(20):
        assert address(auth, "www", zone) == "192.0.2.10"
    assert not in_kernel(auth, zone, "www A")


def test_statistics(auth):
    """named's counters include kernel answers, by kind."""
    zone = "file.test"
    asked = {"QrySuccess": "www A", "QryNxrrset": "mail AAAA", "QryReferral": "www.away A", "QryNXDOMAIN": "nothing A"}
    heat(auth, zone, asked.values())
    before, kernel = auth.named.stats(), auth.daemon.reasons()["ANSWERED"]
    for question in asked.values():
        name, rdtype = question.split()
        for _ in range(5):
            ask(auth.network.client1, SERVICE[4], full(name, zone), rdtype, rd=False)
    assert auth.daemon.reasons()["ANSWERED"] == kernel + 20
    after = auth.named.stats()
    grown = {key: after.get(key, 0) - before.get(key, 0) for key in (*asked, "QryAuthAns", "QryNoauthAns", "Response")}
    assert grown == dict.fromkeys(asked, 5) | {"QryAuthAns": 15, "QryNoauthAns": 5, "Response": 20}


def test_updates_under_load(auth):
    """Of a hot name, in bursts as fast as named makes them: every reply to a query sent after an update was acknowledged
    has the new address. Before each burst the kernel answers with the data that the burst replaces."""
    bursts = 20
    done = updates_under_load(auth.world, auth.named, auth.daemon, "www.auth.test", "auth.test", 10 * bursts, rate=1000, burst=10)
    assert done.outdated == 0 and done.versions >= bursts
