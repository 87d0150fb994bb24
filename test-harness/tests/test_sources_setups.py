# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Source validation, as test_sources.py, with other interfaces, access lists and resolvers."""

import pytest
from conftest import bind_path, kernel_path
from test_sources import (ACCESS, HOST, NAME, NET, SOURCE, answered, ask, batch, ip, passed, route, rp_filter, sources,
                          sysctl)

from harness.network import CLIENT1, CLIENT2, STRANGER
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


def test_everybody_is_allowed(world):
    """Without a look-up of clients while all routes are good, and with one as soon as any refuses somebody."""
    everybody = ["access-control: 0.0.0.0/0 allow", "access-control: ::/0 allow"]
    with kernel_path(world, unbound_options={"server": everybody}) as p:
        p.world.heat(p.daemon, NAME)
        for family in (4, 6):
            with route(p, family, "blackhole", SOURCE[family] + HOST[family]):
                passed(p, family, SOURCE[family])
                assert ask(p, family, CLIENT1[family]) == (True, True)
            answered(p, family, SOURCE[family])


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
