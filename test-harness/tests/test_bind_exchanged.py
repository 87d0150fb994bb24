# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A zone of BIND's that gets another database (AXFR, a loaded file) keeps the kernel's answers of what is the same in both, and has no
other answer of the former one once the new serial is seen."""

import re
import shutil
import subprocess
import time
from types import SimpleNamespace

import pytest
from test_bind_zone_versions import (CLIENTS, KEPT_ALWAYS, KINDS, POLICY, POSITIVE, QUESTIONS, RECORDS, VERSIONS, a, differs, heat,
                                     in_kernel, is_signed, make, parts, serial, wait_signed)

from lab import zones
from lab.client import ask
from lab.network import REFERENCE, SERVICE
from lab.run import HarnessError, wait_until

# Of its primary's zones, the one under test preloads all but the first.
PRELOADED = {"all.test": ""} | {zone: more for zone, more in KINDS.items() if more}
TRANSFERRED = {"unsigned.test": ""} | PRELOADED
LATER = "later.test"
OPT_OUT = "dnssec-policy optout { keys { csk lifetime unlimited algorithm ecdsap256sha256; }; nsec3param iterations 0 optout yes; };"
NSEC, NSEC3 = 47, 50
OPTED = "opted.test"
FILES = "file.test", "large.test", OPTED
LARGEST = 250_000        # names, and NSEC3 records, of databases that are compared
DNSSEC = {"dnssec": True, "payload": 1232}


def primary_body(zone, more=""):
    return f'type primary; file "{zone}.zone"; allow-update {{ {CLIENTS} }}; allow-transfer {{ any; }}; also-notify {{ {SERVICE[4]}; }}; ' \
           f'notify explicit; {more}'


def secondary_body(zone):
    preload = "hydns-preload yes;" if zone in (*PRELOADED, LATER) else ""
    return f'type secondary; file "{zone}.zone"; primaries {{ {REFERENCE[4]}; }}; request-ixfr no; {preload}'


@pytest.fixture(scope="module")
def primary(world):
    """Without the kernel path. It signs zones, and takes updates."""
    named = world.named_reference(recursion=False, statements=(*POLICY, OPT_OUT), zones={
        zone: primary_body(zone, more) for zone, more in (*TRANSFERRED.items(), (LATER, ""))},
        options=("allow-new-zones yes;", f"notify-source {REFERENCE[4]};", "notify-rate 1000;", "notify-delay 0;"))
    for zone in (*TRANSFERRED, LATER):
        (named.dir / f"{zone}.zone").write_text(zones.text(RECORDS, origin=zone))
    with named:
        yield named


@pytest.fixture(scope="module")
def auth(world, primary):
    """Where updates go is the primary."""
    daemon = world.hydnsd()
    served = {zone: secondary_body(zone) for zone in (*TRANSFERRED, LATER)} | {
        zone: f'type primary; file "{zone}.zone";' for zone in FILES}
    tested = world.named(daemon, recursion=False, zones=served, options=("serial-query-rate 1000;",))
    for zone in FILES:
        (tested.dir / f"{zone}.zone").write_text(zones.text(RECORDS, origin=zone))
    with daemon, tested:
        wait_until(daemon.resolver_ready, 10, "BIND's plugin to register with hydnsd")
        wait_signed(world, TRANSFERRED)
        yield SimpleNamespace(world=world, daemon=daemon, named=primary, tested=tested, network=world.network)


def options_of(zone):
    return DNSSEC if TRANSFERRED.get(zone) else {}


def differing(auth, zone, questions=QUESTIONS):
    found = {question: differs(auth, zone, question, **options_of(zone)) for question in questions}
    return {question: what for question, what in found.items() if what}


def transfers(auth, zone):
    return len(re.findall(rf"'{zone}/IN'.* Transfer completed: ", auth.tested.program.log.read_text()))


@pytest.mark.parametrize("what", VERSIONS)
@pytest.mark.parametrize("zone", TRANSFERRED)
def test_answers_are_those_of_the_transferred_version(auth, zone, what):
    done, undone, goes = VERSIONS[what]
    heat(auth, zone, **options_of(zone))
    for version in (done, undone):
        before = transfers(auth, zone)
        make(auth, zone, version)
        wait_until(lambda before=before: transfers(auth, zone) > before, 10, "named to log the transfer")
        if version is done and zone == "unsigned.test":
            assert in_kernel(auth, zone, POSITIVE) == set(POSITIVE) - goes
        assert not differing(auth, zone)


def test_a_transfer_of_the_same(auth):
    zone = "unsigned.test"
    heat(auth, zone)
    before = transfers(auth, zone)
    auth.tested.control("retransfer", zone)
    wait_until(lambda: transfers(auth, zone) > before, 10, "the transfer")
    assert in_kernel(auth, zone, POSITIVE) == set(POSITIVE)


def denies(auth, zone, name, rdtype):
    return auth.daemon.explain(f"{name}.{zone}", rdtype, do=bool(options_of(zone)), norec=True)["where"] == "kernel"


@pytest.mark.parametrize("name, rdtype", (("nowhere", "A"), ("last", "TXT")))
@pytest.mark.parametrize("zone", PRELOADED)
def test_denials_outlive_transfers(auth, zone, name, rdtype):
    """Nobody asks for it meanwhile; and what is not a template goes with each version, for it shows another SOA. In a signed zone but for
    one version of the primary's own that may come meanwhile, with another NSEC record of the apex."""
    lost = 0
    for octet in (120, 121, 122, 11):
        wait_until(lambda: not differing(auth, zone, (f"{name} {rdtype}",)) and denies(auth, zone, name, rdtype), 10,
                   f"the kernel to deny {name} of {zone}")
        make(auth, zone, [a("other", octet)])
        try:
            wait_until(lambda: denies(auth, zone, name, rdtype), 3, f"the kernel to deny {name} of {zone} still", patience=3)
        except HarnessError:
            lost += 1
    assert lost <= bool(PRELOADED[zone])


def proofs(auth, zone):
    """Of a name that does not exist: (type, flags of NSEC3)."""
    reply = ask(auth.network.resolver, SERVICE[4], f"nowhere.{zone}", rd=False, dnssec=True)
    return {(rrset.rdtype, getattr(rrset[0], "flags", None)) for rrset in reply.authority if rrset.rdtype in (NSEC, NSEC3)}


PROOFS = ("default", (NSEC, None)), ("nsec3", (NSEC3, 0)), ("default", (NSEC, None)), ("optout", (NSEC3, 1))


@pytest.mark.parametrize("policy, proof", PROOFS, ids=("NSEC", "NSEC3", "NSEC again", "opt-out"))
def test_other_proofs(auth, policy, proof):
    """Of a zone that comes signed first: answers get signatures and proofs, and later others, also of names that have not changed."""
    heat(auth, LATER, **DNSSEC)
    auth.named.control("modzone", LATER, "{ " + primary_body(LATER, f"dnssec-policy {policy}; inline-signing no;") + " };")
    auth.named.control("loadkeys", LATER)
    wait_until(lambda: is_signed(auth.world, LATER) and proofs(auth, LATER) == {proof}, 30, f"the proofs of {policy}")
    assert {question: differs(auth, LATER, question, **DNSSEC) for question in QUESTIONS} == dict.fromkeys(QUESTIONS)


def load(auth, zone, records, number):
    (auth.tested.dir / f"{zone}.zone").write_text(zones.text(records, number, origin=zone))
    auth.tested.control("reload", zone)
    wait_until(lambda: serial(auth, zone) == number, 30, "the new serial")


def test_reload_of_a_file(auth):
    zone = "file.test"
    heat(auth, zone)
    load(auth, zone, RECORDS.replace("www A 192.0.2.10", "www A 192.0.2.110\nnothing A 192.0.2.111"), 2)
    assert in_kernel(auth, zone, POSITIVE) == set(POSITIVE) - {"www A", "alias A"}
    assert not differing(auth, zone)
    heat(auth, zone)
    load(auth, zone, RECORDS.replace("other A", "Other A"), 3)
    assert in_kernel(auth, zone, POSITIVE) == set(POSITIVE) - {"www A", "alias A", "other A"}
    assert not differing(auth, zone)


def test_a_file_that_opts_out(auth, tmp_path):
    """Signatures of what has not changed stay as they are: RSA's are the same for the same data and times."""
    tools, plain, signed = auth.world.tools, tmp_path / "plain", tmp_path / "signed"
    when = [time.strftime("%Y%m%d%H%M%S", time.gmtime(time.time() + seconds)) for seconds in (-3600, 86400)]
    subprocess.run([*map(str, tools.bind("bin/dnssec-keygen")), "-q", "-K", tmp_path, "-a", "RSASHA256", "-b", "2048", "-f", "KSK", OPTED],
                   check=True, capture_output=True)

    def serve(number, octet, *options):
        plain.write_text(zones.text(RECORDS.replace("192.0.2.10", f"192.0.2.{octet}"), number, origin=OPTED))
        subprocess.run([*map(str, tools.bind("bin/dnssec-signzone")), "-q", "-S", "-z", "-P", "-K", tmp_path, "-d", tmp_path, "-o", OPTED,
                        "-s", when[0], "-e", when[1], "-f", signed, "-3", "-", "-H", "0", *options, plain], check=True, capture_output=True)
        shutil.copy(signed, auth.tested.dir / f"{OPTED}.zone")
        auth.tested.control("reload", OPTED)
        wait_until(lambda: serial(auth, OPTED) == number, 10, "the new serial")

    serve(2, 10)
    for number, octet, options, kept in ((3, 110, (), set(KEPT_ALWAYS)), (4, 110, ("-A",), set())):
        for question in KEPT_ALWAYS:
            auth.world.heat(auth.daemon, *parts(question, OPTED), rd=False, **DNSSEC)
        serve(number, octet, *options)
        assert in_kernel(auth, OPTED, KEPT_ALWAYS, dnssec=True) == kept
        assert {question: differs(auth, OPTED, question, **DNSSEC) for question in QUESTIONS} == dict.fromkeys(QUESTIONS)


@pytest.mark.parametrize("names, kept", ((LARGEST - 1000, True), (LARGEST + 1, False)))
def test_large_zones_go_whole(auth, names, kept):
    """Or the server's threads would stand still for long."""
    zone, records = "large.test", RECORDS + f"$GENERATE 1-{names} n$ A 192.0.2.1\n"
    number = serial(auth, zone)
    load(auth, zone, records, number + 1)
    heat(auth, zone)
    load(auth, zone, records.replace("www A 192.0.2.10", "www A 192.0.2.110"), number + 2)
    assert in_kernel(auth, zone, POSITIVE) == (set(POSITIVE) - {"www A", "alias A"} if kept else set())
    assert not differing(auth, zone)
