# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Exact addresses that the host has only at times (anycast, VRRP): the kernel answers while the host has them."""

import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from conftest import bind_path, kernel_path
from test_addresses import ASKED, NAME, in_kernel, service, spare_link

from lab.client import ask, exchange, query
from lab.network import SERVICE
from lab.run import SOON, wait_until

FLOATING = {4: "10.53.0.88", 6: "fd53::88"}
PREFIX = {4: ("10.53.200.0/24", "10.53.200.5"), 6: ("fd53:200::/64", "fd53:200::5")}
ON_LINK = {4: "10.53.9.1", 6: "fd53:9::1"}
LENGTH = {4: 32, 6: 128}


def floats(network, family, here):
    """Gives the resolver's host the address, as keepalived or bird do, or takes it away."""
    if here:
        network.resolver.address("lo", f"{FLOATING[family]}/{LENGTH[family]}")
        return
    with network.resolver.netlink() as ip:
        ip.addr("del", index=1, address=FLOATING[family], prefixlen=LENGTH[family])


def resolver(path):
    """The one that is ready. named's plugin ends when named notices that an interface has gone, and starts with its next response."""
    def ready():
        ask(path.network.client1, SERVICE[4], NAME)
        return next((r for r in path.daemon.call({"cmd": "status"})["resolvers"] if r["state"] == "ready"), None)
    return wait_until(ready, SOON, "a resolver to be ready")


def missing(path):
    return {m["service"]: m["why"] for m in resolver(path)["missing"]}


def becomes_service(path, address):
    wait_until(lambda: service(address) in resolver(path)["services"], SOON, f"{address} to be a service")
    assert service(address) not in missing(path)


def becomes_none(path, address):
    """The resolver goes on listening there."""
    wait_until(lambda: service(address) not in resolver(path)["services"], SOON, f"{address} to be no service")
    assert "not an address of this host" in missing(path)[service(address)] and "MISSING" in path.daemon.ctl("status").stdout
    assert_silent(path, address)


def assert_silent(path, address):
    before = path.daemon.reasons()["ANSWERED"]
    assert exchange(path.network.client1, address, query(NAME).to_wire(), timeout=0.3) is None
    assert path.daemon.reasons()["ANSWERED"] == before


@contextmanager
def with_floating(network, families):
    for family in families:
        floats(network, family, True)
    try:
        yield
    finally:
        with network.resolver.netlink() as ip:
            held = {a.get_attr("IFA_ADDRESS") for a in ip.get_addr(index=1)}
        for family in families:
            if FLOATING[family] in held:
                floats(network, family, False)


def test_bind_loses_an_address(world):
    """named notices that it can't listen there any more. This test is the first of the module: later, Unbound of `backup` has the same
    addresses."""
    with with_floating(world.network, (4,)), bind_path(world, listen=f"{FLOATING[4]};") as p:
        path = SimpleNamespace(world=p.world, daemon=p.daemon, network=p.network)
        path.world.heat(path.daemon, NAME)
        becomes_service(path, FLOATING[4])
        assert in_kernel(path, FLOATING[4]) == ASKED
        floats(path.network, 4, False)
        wait_until(lambda: service(FLOATING[4]) not in {*resolver(path)["services"], *missing(path)}, SOON, "named to notice")
        assert_silent(path, FLOATING[4])
        floats(path.network, 4, True)
        becomes_service(path, FLOATING[4])


@pytest.fixture(scope="module")
def backup(world):
    """Unbound with ip-freebind, also at addresses that the host does not have yet."""
    more = [*FLOATING.values(), *(a for _, a in PREFIX.values()), *ON_LINK.values()]
    with kernel_path(world, unbound_options={"server": ["ip-freebind: yes", *(f"interface: {a}" for a in more)]}) as p:
        p.world.heat(p.daemon, NAME)
        yield p


@pytest.mark.parametrize("family", [4, 6])
def test_address_moves(backup, family):
    """A backup becomes master and backup again."""
    for _ in range(2):
        becomes_none(backup, FLOATING[family])
        floats(backup.network, family, True)
        becomes_service(backup, FLOATING[family])
        assert in_kernel(backup, FLOATING[family]) == ASKED
        floats(backup.network, family, False)
    becomes_none(backup, FLOATING[family])
    assert in_kernel(backup, SERVICE[family]) == ASKED


@pytest.mark.parametrize("family", [4, 6])
def test_address_goes_while_the_daemon_is_dead(backup, family):
    """Without hydnsd nothing can remove the service; hydnsd does so first when it is back."""
    floats(backup.network, family, True)
    becomes_service(backup, FLOATING[family])
    backup.daemon.stop(signal.SIGKILL)
    floats(backup.network, family, False)
    backup.daemon.start()
    wait_until(backup.daemon.resolver_ready, SOON, "the module to register")
    becomes_none(backup, FLOATING[family])
    backup.world.heat(backup.daemon, NAME)


@pytest.mark.parametrize("family", [4, 6])
def test_prefix_routed_to_the_host(backup, family):
    """AnyIP: a local route makes a whole prefix the host's."""
    prefix, address = PREFIX[family]
    becomes_none(backup, address)
    with backup.network.resolver.netlink() as ip:
        route = {"dst": prefix, "type": "local", "table": 255, "oif": 1, "family": {4: 2, 6: 10}[family]}
        if family == 4:
            route["scope"] = 254
        ip.route("add", **route)
        becomes_service(backup, address)
        assert in_kernel(backup, address) == ASKED
        ip.route("del", **route)
    becomes_none(backup, address)


def test_link_goes_down(backup):
    """Then the kernel removes the link's IPv6 addresses; an IPv4 address is the host's on any link, and stays."""
    with spare_link(backup.network):
        for address in ON_LINK.values():
            becomes_service(backup, address)
        backup.network.resolver.link_state("r9", up=False)
        with backup.network.client1.netlink() as ip:       # so that queries come by r1
            ip.link("set", index=ip.link_lookup(ifname="c9")[0], state="down")
        becomes_none(backup, ON_LINK[6])
        assert in_kernel(backup, ON_LINK[4]) == ASKED
    becomes_none(backup, ON_LINK[4])
