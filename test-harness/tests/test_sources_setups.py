# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Source validation, as test_sources.py, with other interfaces, access lists and resolvers."""

import pytest
from conftest import bind_path, kernel_path
from test_sources import ACCESS, HOST, NAME, NET, SOURCE, answered, ask, ip, passed, route, rp_filter, sources, sysctl

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


@pytest.mark.parametrize("family", [4, 6])
def test_bind(world, family):
    with bind_path(world) as p:
        p.world.heat(p.daemon, NAME)
        answered(p, family, SOURCE[family])
        with route(p, family, "blackhole", SOURCE[family] + HOST[family]):
            passed(p, family, SOURCE[family])
        answered(p, family, SOURCE[family])
