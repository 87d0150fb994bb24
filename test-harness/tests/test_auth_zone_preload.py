# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unbound's hydns-preload: all that an auth-zone has answers for is in the kernel before anybody has asked for it, stays there, and comes
back by itself when it was withdrawn."""

import itertools
import signal
from types import SimpleNamespace

import dns.rcode
import pytest
from conftest import kernel_path

from lab import zones
from lab.auth_zones import NSEC, NSEC3, OWN, PLAIN, RECORDS, by_file, clause, full, wire_of, zone_text
from lab.client import ask, exchange
from lab.network import REFERENCE, SERVICE
from lab.preloaded import notes, wait_for_want_of_room, with_capacity
from lab.run import wait_until

ADMISSION = 3            # more often than the preloader asks
TRANSFERRED = "transferred.auth.example"
UNLOADED = "unloaded.auth.example"
# That the zones have data for; of an alias and a delegation also what they lead to.
EXISTING = ("www A", "www AAAA", "www TXT", "zero A", "many A", "mail A", "alias CNAME", "alias A", "alias AAAA", "chain A", "lost A",
            "out AAAA", "*.wild A", "deep.ent.below A", "below-d DNAME", "child NS", "child A", "ns.child A", "away A",
            "mx MX", "srv SRV", "svc HTTPS", "unknown TYPE65534", "@ SOA", "@ NS", "@ MX")
ABSENT = ("missing A", "child DS", "www MX", "ent.below A", "x.wild A", "x.below-d A")
LOCAL = "mail A"         # whose queries a local zone logs
VARIANTS = tuple(itertools.product((True, False), (True, False)))


@pytest.fixture(scope="module")
def primary(world):
    named = world.named_reference(recursion=False, options=("notify-source 10.53.0.54;", "serial-query-rate 1000;"), zones={
        TRANSFERRED: f'type primary; file "{TRANSFERRED}.zone"; allow-update {{ 10.53.0.0/16; }}; allow-transfer {{ any; }};'
                     f"also-notify {{ {SERVICE[4]}; }}; notify explicit;"})
    (named.dir / f"{TRANSFERRED}.zone").write_text(zone_text(TRANSFERRED))
    with named:
        yield named


@pytest.fixture(scope="module")
def auth(world, primary):
    others = by_file(world.run.dir / "auth", "hydns-preload: yes")
    others += clause(TRANSFERRED, "for-upstream: no", f"primary: {REFERENCE[4]}", "allow-notify: 10.53.0.0/16", "hydns-preload: yes")
    others += clause(UNLOADED, file=world.run.dir / "auth" / f"{UNLOADED}.zone")
    (world.run.dir / "auth" / f"{UNLOADED}.zone").write_text(zone_text(UNLOADED))
    server = ["rrset-roundrobin: no", f'local-zone: "mail.{PLAIN}." inform', "ip-ratelimit: 1000"]
    options = {"server": server, "others": others, "clause": [f"hydns-admission: {ADMISSION}"]}
    with kernel_path(world, unbound_options=options) as path:
        path.file = world.run.dir / "auth" / f"{OWN}.zone"
        path.primary = primary
        yield path


def in_kernel(auth, zone, question, rd, do):
    name, rdtype = full(question, zone)
    found = auth.daemon.explain(name, rdtype, do=do, norec=not rd)
    return found["where"] == "kernel" and found["rule"] is not None     # of its own, and not that for what is not there


def kept(auth, zone, questions):
    return {(question, rd, do) for question in questions for rd, do in VARIANTS if in_kernel(auth, zone, question, rd, do)}


def everything(questions):
    return {(question, rd, do) for question in questions for rd, do in VARIANTS}


def existing(zone):
    return [question for question in EXISTING if (question, zone) != (LOCAL, PLAIN)]


def wait_for(auth, zone, questions, absent=()):
    expected = everything(questions)
    asked = [*questions, *absent]
    wait_until(lambda: kept(auth, zone, asked) == expected, 10,
               lambda: f"{sorted(expected ^ kept(auth, zone, asked))} of {zone}; {notes(auth)}")


def assert_kernel_gives_unbounds(auth, zone, questions, answered=True):
    """The same octets; answered: by the kernel."""
    for question, (rd, do) in itertools.product(questions, VARIANTS):
        wire = wire_of(zone, question, rd=rd, edns=True, dnssec=do)
        before = auth.daemon.reasons()
        kernel, own = (exchange(ns, SERVICE[4], wire) for ns in (auth.network.client1, auth.network.resolver))
        after = auth.daemon.reasons()
        assert kernel[2:] == own[2:], (question, rd, do)
        # a veth's frame has no room for the longest
        assert after["ANSWERED"] - before["ANSWERED"] + after["NO_ROOM"] - before["NO_ROOM"] == answered, (question, rd, do)


@pytest.mark.parametrize("zone", (PLAIN, NSEC, NSEC3, TRANSFERRED))
def test_all_that_exists_is_there(auth, zone):
    """Before anybody has asked, and as Unbound says it; nothing else is, and nothing of other zones."""
    wait_for(auth, zone, existing(zone), ABSENT)
    assert_kernel_gives_unbounds(auth, zone, existing(zone))
    assert not kept(auth, UNLOADED, ("www A",))
    wait_until(lambda: any(note.startswith(f"{zone}: ") and " questions asked, " in note for note in notes(auth)), 10,
               lambda: f"a note of {zone} among {notes(auth)}")


def test_what_a_local_zone_logs_is_not_there(auth):
    wait_for(auth, PLAIN, existing(PLAIN), (LOCAL,))
    assert_kernel_gives_unbounds(auth, PLAIN, (LOCAL,), answered=False)


def test_a_reload_brings_the_new_content(auth):
    """Nothing of the old one is left when the command says ok, and the new one comes by itself."""
    wait_for(auth, OWN, existing(OWN))
    auth.file.write_text(zone_text(OWN, 2, RECORDS.replace("www A 192.0.2.10\n", "www A 192.0.2.110\n") + "new A 192.0.2.111\n"))
    auth.unbound.control("auth_zone_reload", f"{OWN}.")
    assert ask(auth.network.client1, SERVICE[4], f"www.{OWN}").answer[0][0].to_text() == "192.0.2.110"
    assert ask(auth.network.client1, SERVICE[4], f"new.{OWN}").answer[0][0].to_text() == "192.0.2.111"
    wait_for(auth, OWN, [*existing(OWN), "new A"])
    assert_kernel_gives_unbounds(auth, OWN, [*existing(OWN), "new A"])
    auth.file.write_text(zone_text(OWN, 3))
    auth.unbound.control("auth_zone_reload", f"{OWN}.")
    wait_for(auth, OWN, existing(OWN))
    for _ in range(20):
        assert ask(auth.network.client1, SERVICE[4], f"new.{OWN}").rcode() == dns.rcode.NXDOMAIN


def test_a_transfer_brings_the_new_content(auth):
    wait_for(auth, TRANSFERRED, existing(TRANSFERRED))
    zones.update(auth.primary, TRANSFERRED, ("replace", "www", 300, "A", "192.0.2.120"), ("add", "new", 300, "A", "192.0.2.121"))
    wait_until(lambda: ask(auth.network.resolver, SERVICE[4], f"new.{TRANSFERRED}").answer, 10, "the transfer")
    assert ask(auth.network.client1, SERVICE[4], f"www.{TRANSFERRED}").answer[0][0].to_text() == "192.0.2.120"
    wait_for(auth, TRANSFERRED, [*existing(TRANSFERRED), "new A"])
    assert_kernel_gives_unbounds(auth, TRANSFERRED, [*existing(TRANSFERRED), "new A"])


def befall(auth, how):
    """A mishap, after which both servers are there again."""
    if how == "flushed":
        auth.daemon.call({"cmd": "flush", "all": True})
    elif how == "a name flushed":
        auth.unbound.control("flush", f"www.{PLAIN}")
    elif how == "reloaded":
        auth.unbound.control("reload")
    else:
        server = auth.unbound if how.startswith("unbound") else auth.daemon
        server.stop(signal.SIGKILL if how.endswith("killed") else signal.SIGTERM)
        server.start()
    wait_until(auth.daemon.resolver_ready, 10, "Unbound's module to register with hydnsd")


@pytest.mark.parametrize("how", ("flushed", "a name flushed", "reloaded", "hydnsd restarted", "hydnsd killed", "unbound restarted"))
def test_all_comes_back(auth, how):
    wait_for(auth, PLAIN, existing(PLAIN))
    befall(auth, how)
    wait_for(auth, PLAIN, existing(PLAIN))
    assert_kernel_gives_unbounds(auth, PLAIN, existing(PLAIN))


def test_ip_ratelimit_does_not_concern_it(auth):
    """set_option withdraws everything, so that all is asked again: far more than the limit."""
    wait_for(auth, PLAIN, existing(PLAIN))
    auth.unbound.control("set_option", "ip-ratelimit:", "20")
    try:
        wait_for(auth, PLAIN, existing(PLAIN))
    finally:
        auth.unbound.control("set_option", "ip-ratelimit:", "1000")
    wait_for(auth, PLAIN, existing(PLAIN))


def test_a_zone_that_does_not_fit(auth):
    """It says so, and clients are answered as ever."""
    with with_capacity(auth, 40) as small:
        wait_for_want_of_room(small)
        for question in EXISTING:
            wire = wire_of(PLAIN, question)
            assert exchange(small.network.client1, SERVICE[4], wire)[2:] == exchange(small.network.resolver, SERVICE[4], wire)[2:]
    wait_for(auth, PLAIN, existing(PLAIN))
