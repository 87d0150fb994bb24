# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's reload and reconfig: where the configuration says what it did before, and named goes on with its cache and zones, the kernel's
answers stay, without a new offer. Each change of it, and what named begins anew, ends them as ever."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import dns.message
import dns.rcode
import pytest
from conftest import bind_path
from pyroute2 import NetlinkError
from test_bind_zone_versions import a
from test_doctor_rings import reserved

from lab import zones
from lab.changing_zones import records
from lab.client import ask, exchange, query
from lab.crowd import gather
from lab.network import SERVICE, UPSTREAM_PORTS
from lab.relay import everything
from lab.run import SOON, wait_until
from lab.servers import EVERY_CLIENT_WAITS

NAME, BESIDE, OWN, FILE = "www.lab.example", "a.kinds.example", "www.own.test", "www.file.test"
HOT = (NAME, BESIDE, OWN)
COMMANDS = ("reload", "reconfig")
COOKIE, CLIENT_COOKIE = 10, bytes(range(8))
SERVED = {"own.test": 'type primary; file "own.zone"; allow-update { any; };',
          "file.test": 'type primary; file "file.zone";'}
CROWD = 1000             # clients
OPTIONS = (EVERY_CLIENT_WAITS, "servfail-ttl 30;", "allow-new-zones yes;", 'include "more.conf";')


def begun(world, **options):
    named = world.run.dir / "named"
    named.mkdir(exist_ok=True)
    for zone in SERVED:
        (named / f"{zone.split('.')[0]}.zone").write_text(zones.text(zones.RECORDS, origin=zone))
    (named / "more.conf").write_text("max-ncache-ttl 900;\n")
    (named / "policy.zone").write_text("@ 60 SOA . . 1 60 60 60 60\n@ 60 NS .\n")
    return bind_path(world, options=OPTIONS, **({"zones": SERVED} | options))


@pytest.fixture(scope="module")
def bind(world):
    with begun(world) as path:
        yield path


def heat(bind, *names):
    for name in names or HOT:
        bind.world.heat(bind.daemon, name)


def where(bind, name):
    return bind.daemon.explain(name)["where"]


def hits(bind, name, **options):
    """How many of 20 queries the kernel answers, all as named itself does."""
    before = bind.daemon.reasons()["ANSWERED"]
    replies = [ask(bind.network.client1, SERVICE[4], name, **options) for _ in range(20)]
    kernel = bind.daemon.reasons()["ANSWERED"] - before
    own = ask(bind.network.resolver, SERVICE[4], name, local=SERVICE[4], **options)
    assert all({rrset.to_text().split(None, 2)[2] for rrset in reply.answer} == {rrset.to_text().split(None, 2)[2] for rrset in own.answer}
               for reply in replies)
    return kernel


def assert_kept(bind, action, names=HOT):
    """After the action the kernel answers the next query, and nothing was offered for that. One query may pass to renew a rule."""
    heat(bind, *names)
    offers, resolver = bind.daemon.offers(), bind.daemon.call({"cmd": "status"})["resolvers"]
    action()
    assert {name: where(bind, name) for name in names} == dict.fromkeys(names, "kernel")
    assert bind.daemon.offers() == offers
    assert all(hits(bind, name) >= 19 for name in names)
    now = bind.daemon.call({"cmd": "status"})["resolvers"]
    assert [(r["identity"], r["state"]) for r in now] == [(r["identity"], r["state"]) for r in resolver]


def assert_dropped(bind, action, names=HOT):
    heat(bind, *names)
    action()
    assert {name: where(bind, name) for name in names} == dict.fromkeys(names, "resolver")


def hang_up(bind):
    """SIGHUP: named loads its configuration, as by rndc reload."""
    log = bind.named.program.log
    loads = log.read_text().count("reloading zones succeeded")
    bind.named.program.popen.send_signal(signal.SIGHUP)
    wait_until(lambda: log.read_text().count("reloading zones succeeded") > loads, SOON, "the signal's reload")


WAYS = {command: lambda bind, command=command: bind.named.control(command) for command in COMMANDS} | {"SIGHUP": hang_up}


@pytest.mark.parametrize("way", WAYS)
def test_rules_stay(bind, way):
    """From the cache and from a zone; also when it happens again."""
    for _ in range(2):
        assert_kept(bind, lambda: WAYS[way](bind))


def test_a_comment_changes_nothing(bind):
    config = bind.named.config
    text = config.read_text()
    try:
        assert_kept(bind, lambda: (config.write_text(f"# a comment\n{text}"), bind.named.control("reconfig")))
    finally:
        config.write_text(text)


def test_changes_reach_the_rules_afterwards(bind):
    """Of the cache, by a flush and without one, and of zones; and the plugin offers again."""
    assert_kept(bind, lambda: bind.named.control("reload"))
    bind.named.control("flushname", NAME)
    assert (where(bind, NAME), where(bind, BESIDE)) == ("resolver", "kernel")
    zones.update(bind.named, "own.test", a("www", 77))
    assert ask(bind.network.client1, SERVICE[4], OWN).answer[0][0].address == "192.0.2.77"
    heat(bind)
    assert hits(bind, OWN) >= 19
    bind.world.change_lab(records(55), NAME, "A", "192.0.2.55")
    bind.named.control("flushname", NAME)
    heat(bind, NAME)
    assert ask(bind.network.client1, SERVICE[4], NAME).answer[0][0].address == "192.0.2.55"


def test_a_zone_whose_file_has_changed(bind):
    """Its answers alone go."""
    heat(bind, FILE)
    (bind.named.dir / "file.zone").write_text(zones.text(zones.RECORDS.replace("192.0.2.10", "192.0.2.210"), origin="file.test", serial=9))
    assert_kept(bind, lambda: bind.named.control("reload"))
    wait_until(lambda: ask(bind.network.resolver, SERVICE[4], "file.test", "SOA", rd=False).answer[0][0].serial == 9, SOON, "the new file")
    assert ask(bind.network.client1, SERVICE[4], FILE).answer[0][0].address == "192.0.2.210"
    heat(bind, FILE)
    assert hits(bind, FILE) >= 19


def test_failures_are_forgotten(bind):
    """Each view remembers its own, and a reload makes a new one."""
    name = "host77.lab.example"
    bind.world.relay.change = lambda wire: wire[:3] + bytes([wire[3] & 0xf0 | dns.rcode.SERVFAIL]) + wire[4:]
    try:
        heat(bind)
        heat(bind, name)
        bind.named.control("reload")
        assert (where(bind, name), where(bind, NAME)) == ("resolver", "kernel")
    finally:
        bind.world.relay.behave()
        bind.named.forget_servers()


def cookie_of(wire):
    return next(o.to_wire() for o in dns.message.from_wire(wire).options if o.otype == COOKIE)


def test_cookies_are_of_the_new_secret(bind):
    """named makes another one, unless the configuration has some: what it made with the former one is false."""
    def asked(cookie):
        return cookie_of(exchange(bind.network.client1, SERVICE[4], query(NAME, cookie=cookie).to_wire()))

    def kernel():
        return bind.daemon.reasons()["ANSWERED"]

    def matched():
        return bind.named.stats().get("CookieMatch", 0)
    heat(bind)
    former = asked(CLIENT_COOKIE)
    bind.named.control("reload")
    answered, valid = kernel(), matched()
    new = asked(CLIENT_COOKIE)
    assert new[16:] != former[16:] and kernel() == answered + 1
    asked(former)
    assert kernel() == answered + 1 and matched() == valid
    asked(new)
    assert kernel() == answered + 2 and matched() == valid + 1


def replaced(text, old, new):
    assert text.count(old) == 1, old
    return text.replace(old, new)


CONTROLS = "statistics-channels {"
ANCHOR = 'trust-anchors { away.test. static-ds 1 13 2 "' + "00" * 32 + '"; };\n'
# What becomes of named.conf, or of another file.
CHANGES = {
    "an option": lambda text: replaced(text, "    recursion yes;", "    recursion yes; max-cache-ttl 3600;"),
    "an option of the plugin's": lambda text: replaced(text, "    hydns-socket", "    hydns-admission 2;\n    hydns-socket"),
    "an access list": lambda text: replaced(text, "    allow-query {", "    allow-query { !10.53.99.1;"),
    "a key": lambda text: replaced(text, CONTROLS, f'key other {{ algorithm hmac-sha256; secret "b3RoZXI="; }};\n{CONTROLS}'),
    "a zone": lambda text: text + 'zone "more.test" { type primary; file "policy.zone"; };\n',
    "a forwarded zone": lambda text: text + 'zone "away.test" { type forward; forwarders { 10.53.99.1; }; };\n',
    "a trust anchor": lambda text: text + ANCHOR,
    "a policy zone": lambda text: replaced(text, "    recursion yes;", '    recursion yes; response-policy { zone "policy"; };')
    + 'zone "policy" { type primary; file "policy.zone"; };\n',
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("what", CHANGES)
def test_a_change_ends_all(bind, what, command):
    config = bind.named.config
    text = config.read_text()
    try:
        assert_dropped(bind, lambda: (config.write_text(CHANGES[what](text)), bind.named.control(command)))
    finally:
        config.write_text(text)
        bind.named.control("reconfig")


def test_a_file_that_is_included(bind):
    more = bind.named.dir / "more.conf"
    text = more.read_text()
    try:
        assert_dropped(bind, lambda: (more.write_text("max-ncache-ttl 901;\n"), bind.named.control("reconfig")))
    finally:
        more.write_text(text)
        bind.named.control("reconfig")


def test_a_file_of_trust_anchors(bind):
    """named.conf has only its name."""
    config, keys = bind.named.config, bind.named.dir / "anchors.conf"
    text = config.read_text()
    keys.write_text(ANCHOR)
    try:
        config.write_text(replaced(text, "    recursion yes;", f'    recursion yes; bindkeys-file "{keys}";'))
        bind.named.control("reconfig")
        assert_kept(bind, lambda: bind.named.control("reconfig"))
        keys.write_text(ANCHOR.replace("00", "11"))
        assert_dropped(bind, lambda: bind.named.control("reconfig"))
    finally:
        config.write_text(text)
        bind.named.control("reconfig")


def test_other_reserved_ports(bind):
    """The former ones may be another program's by now."""
    half = UPSTREAM_PORTS.replace("16384", "24576")
    with reserved(bind.world, half):
        assert_dropped(bind, lambda: bind.named.control("reload"))
        assert_kept(bind, lambda: bind.named.control("reload"))
    bind.named.control("reload")


def test_other_networks_of_the_host(bind):
    """An access list that names them lets in others, and is written as before."""
    config, resolver, address = bind.named.config, bind.network.resolver, "203.0.113.1/24"
    text = config.read_text()
    known = replaced(text, "    allow-query {", "    automatic-interface-scan no; allow-query { localnets;")
    try:
        config.write_text(known)
        bind.named.control("reload")
        assert_kept(bind, lambda: bind.named.control("reload"))
        resolver.address("lo", address)
        assert_dropped(bind, lambda: bind.named.control("reload"))
    finally:
        with suppress(NetlinkError):
            resolver.remove_address("lo", address)
        config.write_text(text)
        bind.named.control("reload")


@pytest.mark.parametrize("words", (("serve-stale", "off"), ("nta", "-l", "60", "away.test"),
                                   ("addzone", "added.test", '{ type primary; file "policy.zone"; };')), ids=lambda words: words[0])
def test_what_a_command_has_changed(bind, words):
    """A reload ends most of that, so nothing is taken for known; a second one finds what the first has left. Zones that were added stand in
    a file that may have changed."""
    bind.named.control("reload")
    bind.named.control(*words)
    try:
        assert_dropped(bind, lambda: bind.named.control("reload"))
        (assert_dropped if words[0] == "addzone" else assert_kept)(bind, lambda: bind.named.control("reload"))
    finally:
        if words[0] == "addzone":
            bind.named.control("delzone", "added.test")
        bind.named.control("nta", "-r", "away.test", check=False)
        bind.named.control("flush")
        for added in bind.named.dir.glob("*.nzf"):
            added.unlink()
        bind.named.control("reload")


def test_a_cache_that_is_not_the_same(bind):
    """After flushtree of the root named answers from the former one, until a reload (bind-patches/README.md)."""
    heat(bind)
    bind.named.control("flushtree", ".")
    assert_dropped(bind, lambda: bind.named.control("reload"))


def test_a_load_that_fails(bind):
    """The configuration in force goes on with its rules, and the next load is as any other."""
    config = bind.named.config
    text = config.read_text()
    try:
        heat(bind)
        config.write_text(text + "nonsense;\n")
        bind.named.control("reconfig", check=False)
        heat(bind)
        config.write_text(text)
        assert_kept(bind, lambda: bind.named.control("reconfig"))
    finally:
        config.write_text(text)


def test_statistics(bind):
    """No kernel answer is missing from named's counters, or in them twice."""
    heat(bind)
    before, kernel = bind.named.stats()["QryUDP"], bind.daemon.reasons()["ANSWERED"]
    for command in COMMANDS:
        for _ in range(10):
            ask(bind.network.client1, SERVICE[4], NAME)
        bind.named.control(command)
    assert bind.named.stats()["QryUDP"] - before == 20 and bind.daemon.reasons()["ANSWERED"] - kernel >= 18


ANEW = {
    "rate-limit": lambda text: replaced(text, "    recursion yes;", "    recursion yes; rate-limit { responses-per-second 1000; };"),
    "a static-stub zone": lambda text: text + 'zone "stub.test" { type static-stub; server-addresses { 10.53.99.1; }; };\n',
}


@pytest.mark.parametrize("what", ANEW)
def test_what_begins_anew(bind, what):
    """named counts anew, or makes a zone anew, though nothing has changed."""
    config = bind.named.config
    text = config.read_text()
    try:
        config.write_text(ANEW[what](text))
        bind.named.control("reload")
        assert_dropped(bind, lambda: bind.named.control("reload"))
    finally:
        config.write_text(text)
        bind.named.control("reload")


def test_queries_that_are_parked(bind):
    """The resolution that they wait for ends with the former view, which tells nobody: they come to the new one at once. Those that waited
    in named itself get what named gives them."""
    name, before, overflows = "host88.lab.example", bind.daemon.reasons(), bind.network.resolver.udp_overflows()

    def came(*reasons):
        return sum(bind.daemon.reasons()[reason] - before[reason] for reason in reasons)
    heat(bind, NAME)
    bind.named.forget_servers()
    bind.world.relay.loses = everything
    try:
        with ThreadPoolExecutor(1) as pool:
            clients = pool.submit(gather, bind.world, bind.network.client1, SERVICE[4], [(name, "A")], CROWD, 0.1, timeout=8)
            wait_until(lambda: came("PARKED", "MISS") >= CROWD, SOON, "all clients to have asked")
            left = CROWD - came("PARKED")
            bind.named.control("reload")
            bind.world.relay.behave()
            c = clients.result(SOON)
    finally:
        bind.world.relay.behave()
    overflows = bind.network.resolver.udp_overflows() - overflows
    assert left < CROWD and c.lost <= left + overflows and (c.twice, c.strays) == (0, []), (c, left, overflows)
