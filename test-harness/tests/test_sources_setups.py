# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Source validation, as test_sources.py, with other interfaces, access lists and resolvers."""

import ipaddress
import json
from contextlib import contextmanager

import pytest
from conftest import bind_path, kernel_path
from test_sources import (ACCESS, HOST, NAME, NET, SOURCE, answered, ask, batch, ip, passed, route, rp_filter, sources,
                          sysctl)

from lab.layouts import number
from lab.network import CLIENT1, CLIENT2, REFERENCE, STRANGER
from lab.run import SOON, wait_until

PREFIXES = number("HYDNS_ACL_ENTRIES")


def test_strict_on_two_interfaces(world):
    """The tables do not know by which one a query came: it passes, and status says so, unless the route is by both."""
    with kernel_path(world, unbound_options={"server": ACCESS}) as p:
        p.world.heat(p.daemon, NAME)
        with rp_filter(p, "strict", "r1", "r2"):
            wait_until(lambda: not ask(p, 4, CLIENT1[4])[1], SOON, "rp_filter to count")
            assert ask(p, 4, CLIENT1[4]) == (True, False)
            assert "several devices" in sources(p, 4)["note"]
            assert ask(p, 6, CLIENT1[6]) == (True, True)
            ip(p, 4, "route", "replace", NET[4], "nexthop", "via", CLIENT1[4], "nexthop", "via", CLIENT2[4])
            try:
                answered(p, 4, STRANGER[4])
            finally:
                ip(p, 4, "route", "replace", NET[4], "via", CLIENT1[4])
        sysctl(p, r2=1)                # r1 is not strict: what is routed by r2 is good on both
        try:
            wait_until(lambda: sources(p, 4)["rp_filter"] == "strict", SOON, "rp_filter to be known")
            answered(p, 4, CLIENT2[4], p.network.client2)
            assert "several devices" in sources(p, 4)["note"]
            assert ask(p, 4, CLIENT1[4]) == (True, False)
        finally:
            sysctl(p, r2=0)
        answered(p, 4, CLIENT1[4])


EVERYBODY = ["access-control: 0.0.0.0/0 allow", "access-control: ::/0 allow"]
# the resolver's host's own: of another service, of an interface, a broadcast address
OWN = {4: (REFERENCE[4], "10.53.2.1", "10.53.2.255"), 6: (REFERENCE[6], "fd53:2::1")}
NEW = {4: "10.53.9.9", 6: "fd53:9::9"}          # nobody's, until a test gives it to somebody


def test_everybody_is_allowed(world):
    """No look-up of clients while all routes are good, and a look-up as soon as one refuses clients."""
    with kernel_path(world, unbound_options={"server": EVERYBODY}) as p:
        p.world.heat(p.daemon, NAME)
        for family in (4, 6):
            with route(p, family, "blackhole", SOURCE[family] + HOST[family]):
                passed(p, family, SOURCE[family])
                assert ask(p, family, CLIENT1[family]) == (True, True)
            answered(p, family, SOURCE[family])


@contextmanager
def more_addresses(ns, link, *addresses):
    """A host's, within the block."""
    ns.address(link, *(a + HOST[6 if ":" in a else 4] for a in addresses))
    try:
        yield
    finally:
        with ns.netlink() as nl:
            index = nl.link_lookup(ifname=link)[0]
            for a in addresses:
                nl.addr("del", index=index, address=a, prefixlen=int(HOST[6 if ":" in a else 4][1:]))


@pytest.mark.parametrize("family", [4, 6])
def test_own_addresses_where_everybody_is_allowed(world, family):
    """The host's stack takes its own addresses from no interface: neither does the program, which looks nobody else up. One that
    comes is refused from then on, and one that goes is let in."""
    client = world.network.client1
    with kernel_path(world, unbound_options={"server": EVERYBODY}) as p, \
            more_addresses(client, "c1", *OWN[family], NEW[family]):
        p.world.heat(p.daemon, NAME)
        for address in OWN[family]:
            passed(p, family, address)
            assert "address of this host" in p.daemon.ctl("explain", "--client", address).stdout
        assert ask(p, family, CLIENT1[family]) == (True, True)
        with route(p, family, NEW[family], "via", CLIENT1[family]):
            answered(p, family, NEW[family])
        with more_addresses(p.network.resolver, "lo", NEW[family]):
            passed(p, family, NEW[family])
            assert ask(p, family, CLIENT1[family]) == (True, True)
        with route(p, family, NEW[family], "via", CLIENT1[family]):
            answered(p, family, NEW[family])


@pytest.mark.parametrize("family", [4, 6])
def test_own_prefix_where_everybody_is_allowed(world, family):
    """All of a prefix that is routed to the host are its own."""
    net = {4: "10.53.9.0/24", 6: "fd53:9::/64"}[family]
    with kernel_path(world, unbound_options={"server": EVERYBODY}) as p, \
            more_addresses(world.network.client1, "c1", NEW[family]):
        p.world.heat(p.daemon, NAME)
        with route(p, family, "local", net, "dev", "lo"):
            passed(p, family, NEW[family])
            assert ask(p, family, CLIENT1[family]) == (True, True)
        with route(p, family, NEW[family], "via", CLIENT1[family]):
            answered(p, family, NEW[family])


def test_ipv6_for_everybody_lets_no_ipv4_in(world):
    """The kernel's list has both families, but an entry ::/0 does not affect IPv4."""
    with kernel_path(world, unbound_options={"server": ["access-control: ::/0 allow"]}) as p:
        p.world.heat(p.daemon, NAME)
        assert ask(p, 6, STRANGER[6]) == (True, True)
        assert ask(p, 4, STRANGER[4]) == (True, False)
        assert ask(p, 4, CLIENT1[4]) == (True, True)


def test_list_and_routes_that_do_not_fit(world):
    """Of the two families the one with more prefixes is passed, until its routes are fewer."""
    first = int(ipaddress.ip_address("10.64.0.0"))
    refused = [f"access-control: {ipaddress.ip_address(first + 2 * i)}/32 refuse" for i in range(PREFIXES - 1500)]
    lines = ["access-control: 203.0.0.0/8 allow", "access-control: 10.64.0.0/10 allow", *refused]
    with kernel_path(world, unbound_options={"server": lines}) as p:
        p.world.heat(p.daemon, NAME)
        nets = [f"203.{i >> 7}.{(i & 127) * 2}.0/24" for i in range(1900)]
        batch(p, 4, [f"route add blackhole {net}" for net in nets])
        try:
            wait_until(lambda: "do not fit" in sources(p, 4)["note"], SOON, "hydnsd to give up")
            assert ask(p, 4, SOURCE[4]) == (True, False)
            assert ask(p, 6, SOURCE[6]) == (True, True)
        finally:
            batch(p, 4, [f"route del blackhole {net}" for net in nets])
        answered(p, 4, SOURCE[4])
        assert not sources(p, 4)["note"]


def said_of_families(p):
    """({family: note} of top, of explain, text of both, where explain says that NAME is answered, where top lists it)"""
    top, explained = (json.loads(p.daemon.ctl(*words, "--json").stdout) for words in (["top"], ["explain", NAME, "A"]))
    notes = [{f["family"]: f["note"] for f in reply["families_passed"]} for reply in (top, explained)]
    assert all(f["mend"] for reply in (top, explained) for f in reply["families_passed"])
    text = [p.daemon.ctl(*words).stdout for words in (["top", "--once"], ["explain", NAME, "A"])]
    listed = {n["where"] for n in top["names"] if n["name"].rstrip(".") == NAME}
    return notes, text, explained["where"], listed


def test_a_family_that_is_switched_off_is_said(world):
    """By the option ipv6: as one that routes keep out."""
    with kernel_path(world, daemon_options={"options": ["--ipv6", "no"]}) as p:
        p.world.heat(p.daemon, NAME)
        assert (ask(p, 4, CLIENT1[4]), ask(p, 6, CLIENT1[6])) == ((True, True), (True, False))
        notes, text, where, listed = said_of_families(p)
        assert notes == [{"IPv6": "ipv6: no"}] * 2 and ({where}, listed) == ({"kernel"}, {"kernel"})
        assert all("IPv6 is not answered in the kernel: ipv6: no: ipv6: auto, then hydnsctl reload" in t for t in text)
        for words in ({}, {"name": NAME, "type": "A"}):
            six, four = (p.daemon.call({"cmd": "explain", "client": CLIENT1[family], **words}) for family in (6, 4))
            assert (six["where"], six["reason"], four["where"]) == ("resolver", "NOT_IP", "kernel")
            assert "ipv6: auto, then hydnsctl reload" in six["text"]


def test_a_family_that_is_passed_is_said(world):
    """By top and by explain, with what helps; the other family goes on, until it is passed, too."""
    goto = [[f"-{family}", "rule", "add", "priority", "100", "from", "192.0.2.1" if family == 4 else "2001:db8::1", "goto", "32766"]
            for family in (4, 6)]
    with kernel_path(world) as p:
        p.world.heat(p.daemon, NAME)
        assert said_of_families(p)[0] == [{}, {}]
        try:
            for family, (_, *words) in zip((4, 6), goto):
                ip(p, family, *words)
                name = f"IPv{family}"
                wait_until(lambda: name in said_of_families(p)[0][0], SOON, f"hydnsd to pass {name}")
                notes, text, where, listed = said_of_families(p)
                assert all(f"all {name} queries are passed" in n[name] for n in notes)
                assert all(f"{name} is not answered in the kernel: the policy rules" in t and "do without goto" in t for t in text)
                assert set(notes[0]) == set(notes[1]) == ({"IPv4"} if family == 4 else {"IPv4", "IPv6"})
                assert {where} == listed == ({"kernel"} if family == 4 else {"resolver"})
                assert ask(p, 6, CLIENT1[6]) == (True, family == 4)
        finally:
            for family, (_, *words) in zip((4, 6), goto):
                ip(p, family, *["del" if w == "add" else w for w in words], check=False)
        wait_until(lambda: said_of_families(p) == ([{}, {}], said_of_families(p)[1], "kernel", {"kernel"}), SOON,
                   "both families to be answered again")


def test_a_family_without_any_good_route_is_said(world):
    """Strict on the only interface, and no route leaves by it."""
    with kernel_path(world) as p:
        p.daemon.stop()
        p.daemon.interfaces = ("r1",)
        p.daemon.start()
        wait_until(p.daemon.resolver_ready, SOON, "the plugin to register")
        p.world.heat(p.daemon, NAME)
        routes = [line for line in ip(p, 4, "route", "show", "dev", "r1").splitlines()]
        with rp_filter(p, "strict", "r1"):
            try:
                for line in routes:
                    ip(p, 4, "route", "del", *line.split(), "dev", "r1")
                wait_until(lambda: "IPv4" in said_of_families(p)[0][0], SOON, "hydnsd to pass IPv4")
                notes, text, where, _ = said_of_families(p)
                assert all("no route leaves by the interface" in n["IPv4"] for n in notes)
                assert all("set rp_filter to 2 (loose)" in t for t in text) and where == "kernel"
            finally:
                for line in sorted(routes, key=lambda line: "via" in line):
                    ip(p, 4, "route", "add", *line.split(), "dev", "r1")


@pytest.mark.parametrize("family", [4, 6])
def test_bind(world, family):
    with bind_path(world) as p:
        p.world.heat(p.daemon, NAME)
        answered(p, family, SOURCE[family])
        with route(p, family, "blackhole", SOURCE[family] + HOST[family]):
            passed(p, family, SOURCE[family])
        answered(p, family, SOURCE[family])
