# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What changes an auth-zone of Unbound's (for-downstream: yes) takes its answers from the kernel before it takes effect."""

import itertools
import threading

import dns.rcode
import pytest
from conftest import kernel_path

from lab import zones
from lab.auth_zones import OWN, PLAIN, RECORDS, by_file, clause, full, wire_of, zone_text
from lab.client import ask, exchange, query
from lab.network import REFERENCE, SERVICE
from lab.run import wait_until

TRANSFERRED, EXPIRING = "transferred.auth.example", "expiring.auth.example"
CHANGING = ("www A", "missing A", "alias A", "x.wild A", "ent.below A", "www.child A", "@ SOA")


@pytest.fixture(scope="module")
def primary(world):
    """Of the zones that are transferred, without the kernel path."""
    options = "allow-update { 10.53.0.0/16; }; allow-transfer { any; };"
    named = world.named_reference(recursion=False, options=("notify-source 10.53.0.54;", "serial-query-rate 1000;"), zones={
        zone: f'type primary; file "{zone}.zone"; {options} also-notify {{ {SERVICE[4]}; }}; notify explicit;'
        for zone in (TRANSFERRED, EXPIRING)})
    (named.dir / f"{TRANSFERRED}.zone").write_text(zone_text(TRANSFERRED))
    (named.dir / f"{EXPIRING}.zone").write_text(zone_text(EXPIRING, expire=4).replace(" 3600 900 ", " 2 1 "))
    with named:
        yield named


@pytest.fixture(scope="module")
def auth(world, primary):
    others = by_file(world.run.dir / "auth")
    for zone in (TRANSFERRED, EXPIRING):
        others += clause(zone, "for-upstream: no", f"primary: {REFERENCE[4]}", "allow-notify: 10.53.0.0/16")
    with kernel_path(world, unbound_options={"server": ["rrset-roundrobin: no"], "others": others}) as path:
        for zone in (TRANSFERRED, EXPIRING):
            wait_until(lambda zone=zone: serial(path, zone), 10, f"the transfer of {zone}")
        path.primary, path.file = primary, world.run.dir / "auth" / f"{OWN}.zone"
        yield path


def serial(path, zone):
    reply = ask(path.network.resolver, SERVICE[4], zone, "SOA")
    return reply.answer[0][0].serial if reply and reply.answer else None


def address(path, zone, name="www"):
    return ask(path.network.client1, SERVICE[4], f"{name}.{zone}").answer[-1][0].to_text()


def heat_all(path, zone, questions=CHANGING):
    for question, rd in itertools.product(questions, (True, False)):
        path.world.heat(path.daemon, *full(question, zone), rd=rd)


def in_kernel(path, zone, question, rd=True):
    return path.daemon.explain(*full(question, zone), norec=not rd)["where"] == "kernel"


def assert_kernel_gives_unbounds(path, zone, questions=CHANGING):
    for question, rd in itertools.product(questions, (True, False)):
        wire = wire_of(zone, question, rd=rd)
        kernel, own = (exchange(ns, SERVICE[4], wire) for ns in (path.network.client1, path.network.resolver))
        assert kernel[2:] == own[2:], question


def changed(octet):
    return (RECORDS.replace("www A 192.0.2.10\n", f"www A 192.0.2.{octet}\n").replace("child NS ns.child\n", "")
            + f"missing A 192.0.2.{octet}\nx.wild A 192.0.2.{octet}\nent.below A 192.0.2.{octet}\n")


def restore(path):
    path.file.write_text(zone_text(OWN))
    path.unbound.control("auth_zone_reload", f"{OWN}.")


def test_reload_of_a_file(auth):
    """All old answers have gone when the command says ok; another zone's stay."""
    restore(auth)
    heat_all(auth, OWN)
    heat_all(auth, PLAIN, ("www A",))
    auth.file.write_text(zone_text(OWN, 2, changed(120)))
    auth.unbound.control("auth_zone_reload", f"{OWN}.")
    assert not any(in_kernel(auth, OWN, question, rd) for question in CHANGING for rd in (True, False))
    assert in_kernel(auth, PLAIN, "www A") and in_kernel(auth, PLAIN, "www A", rd=False)
    assert [address(auth, OWN, name) for name in ("www", "alias", "missing", "x.wild", "ent.below")] == ["192.0.2.120"] * 5
    assert_kernel_gives_unbounds(auth, OWN)
    heat_all(auth, OWN)
    assert_kernel_gives_unbounds(auth, OWN)


def test_no_old_answer_beside_the_new_serial(auth):
    """While Unbound reads the file: once it serves the new serial, the kernel gives nothing from before."""
    restore(auth)
    for number in range(2, 12):
        heat_all(auth, OWN, ("www A",))
        auth.file.write_text(zone_text(OWN, number, changed(100 + number)))
        command = threading.Thread(target=auth.unbound.control, args=("auth_zone_reload", f"{OWN}."))
        command.start()
        while command.is_alive() or serial(auth, OWN) != number:
            seen = serial(auth, OWN)
            given = address(auth, OWN)
            assert seen != number or given == f"192.0.2.{100 + number}"
        command.join()
        assert address(auth, OWN) == f"192.0.2.{100 + number}"


def test_transfer(auth):
    """As IXFR: the first answer after the new serial is new, and so are all."""
    octet = 130
    heat_all(auth, TRANSFERRED)
    former = serial(auth, TRANSFERRED)
    zones.update(auth.primary, TRANSFERRED, ("replace", "www", 300, "A", f"192.0.2.{octet}"),
                 ("add", "missing", 300, "A", f"192.0.2.{octet}"), ("delete", "child", "NS"))
    wait_until(lambda: serial(auth, TRANSFERRED) != former, 10, "the transfer")
    assert [address(auth, TRANSFERRED, name) for name in ("www", "alias", "missing")] == [f"192.0.2.{octet}"] * 3
    assert_kernel_gives_unbounds(auth, TRANSFERRED)
    heat_all(auth, TRANSFERRED)
    assert_kernel_gives_unbounds(auth, TRANSFERRED)


def test_a_zone_that_fails_its_checksum(auth):
    """Unbound then fails for its names, and so does the kernel, though the command reports an error."""
    restore(auth)
    heat_all(auth, OWN)
    bad = f"@ ZONEMD 2 1 1 {'00' * 48}\n"
    auth.file.write_text(zone_text(OWN, 2, RECORDS + bad))
    assert "error zonemd" in auth.unbound.control("auth_zone_reload", f"{OWN}.", check=False)
    for rd in (True, False):
        assert ask(auth.network.client1, SERVICE[4], f"www.{OWN}", rd=rd).rcode() == dns.rcode.SERVFAIL
    auth.world.not_offered(auth.daemon, f"www.{OWN}", "an auth-zone of the resolver answers it with a failure")
    restore(auth)
    heat_all(auth, OWN)
    assert_kernel_gives_unbounds(auth, OWN)


def test_an_error_in_a_command(auth):
    """What could not be read leaves the answers as they are; and offers go on."""
    restore(auth)
    assert "error no auth-zone" in auth.unbound.control("auth_zone_reload", "nowhere.auth.example.", check=False)
    heat_all(auth, OWN)


def test_a_zone_that_expires(auth):
    """Its primary is silent: Unbound fails for its names from a moment on, and so does the kernel."""
    heat_all(auth, EXPIRING, ("www A",))
    auth.primary.stop()
    try:
        wait_until(lambda: ask(auth.network.resolver, SERVICE[4], f"www.{EXPIRING}").rcode() == dns.rcode.SERVFAIL, 30,
                   "the zone to expire")
        for rd in (True, False):
            assert ask(auth.network.client1, SERVICE[4], f"www.{EXPIRING}", rd=rd).rcode() == dns.rcode.SERVFAIL
            assert not in_kernel(auth, EXPIRING, "www A", rd)
    finally:
        auth.primary.start()
    auth.unbound.control("auth_zone_transfer", f"{EXPIRING}.")
    wait_until(lambda: serial(auth, EXPIRING), 30, "the zone to be there again")
    heat_all(auth, EXPIRING, ("www A",))
    assert_kernel_gives_unbounds(auth, EXPIRING, ("www A",))


@pytest.mark.parametrize("command", (("local_zone", f"www.{PLAIN}.", "always_nxdomain"), ("local_data", f"www.{PLAIN}. 300 A 203.0.113.9")),
                         ids=lambda c: c[0])
def test_local_data_come_first(auth, command):
    heat_all(auth, PLAIN, ("www A",))
    auth.unbound.control(*command)
    try:
        assert_kernel_gives_unbounds(auth, PLAIN, ("www A",))
        assert not in_kernel(auth, PLAIN, "www A")
    finally:
        auth.unbound.control("local_zone_remove", f"www.{PLAIN}.")
        auth.unbound.control("local_data_remove", f"www.{PLAIN}.")
    heat_all(auth, PLAIN, ("www A",))
    assert_kernel_gives_unbounds(auth, PLAIN, ("www A",))
