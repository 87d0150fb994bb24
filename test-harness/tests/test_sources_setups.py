# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Source validation, as test_sources.py, with other interfaces, access lists and resolvers."""

from contextlib import contextmanager

import pytest
from conftest import bind_path, kernel_path
from test_sources import (ACCESS, HOST, NAME, NET, SOURCE, answered, ask, batch, ip, passed, route, rp_filter, sources,
                          sysctl)

from harness.network import CLIENT1, CLIENT2, REFERENCE, STRANGER
from harness.run import SOON, wait_until


def test_strict_on_two_interfaces(world):
    """Which one a query came by the tables can't tell: passed, and said, unless the route is by both."""
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
    """Without a look-up of clients while all routes are good, and with one as soon as any refuses somebody."""
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


def test_list_and_routes_that_do_not_fit(world):
    """Of the two families the one with more prefixes is passed, until its routes are fewer."""
    refused = [f"access-control: 10.53.{128 + i // 100}.{i % 100 * 2}/32 refuse" for i in range(2500)]
    with kernel_path(world, unbound_options={"server": ["access-control: 203.0.0.0/8 allow", *refused]}) as p:
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


@pytest.mark.parametrize("family", [4, 6])
def test_bind(world, family):
    with bind_path(world) as p:
        p.world.heat(p.daemon, NAME)
        answered(p, family, SOURCE[family])
        with route(p, family, "blackhole", SOURCE[family] + HOST[family]):
            passed(p, family, SOURCE[family])
        answered(p, family, SOURCE[family])
