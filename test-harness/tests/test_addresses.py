# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Addresses and interfaces that come and go under wildcard sockets, and a configuration read again."""

import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from lab.client import ask, exchange, query
from lab.changing_zones import records
from lab.network import CLIENT_LINKS, REFERENCE, SERVICE, pass_everything, veth
from lab.run import wait_until

NAME = "host1.lab.example"
ADDRESS = "192.0.2.2"
LATER = {4: "10.53.0.77", 6: "fd53::77"}
LOCAL = [SERVICE[4], SERVICE[6], "10.53.1.1", "fd53:1::1", "10.53.2.1", "fd53:2::1", REFERENCE[4], REFERENCE[6]]
WILDCARDS = ["interface: 0.0.0.0", "interface: ::0", "interface-automatic: no"]
ASKED = 20
MANY = 600                     # of each family
SHOWN = 32                     # hydnsd/ctl/status.c


def services(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["services"]


def service(address):
    return f"[{address}]:53" if ":" in address else f"{address}:53"


def in_kernel(path, address, name=NAME, expected=ADDRESS):
    """Asks several times at the address; all answers must be right. Returns how many of them the kernel gave."""
    before = path.daemon.reasons()["ANSWERED"]
    for _ in range(ASKED):
        reply = ask(path.network.client1, address, name)
        assert reply and [str(rr[0]) for rr in reply.answer] == [expected]
    return path.daemon.reasons()["ANSWERED"] - before


def heat(path, name=NAME):
    path.world.heat(path.daemon, name, "A", server=LOCAL[2])


@pytest.fixture(scope="module")
def wildcard(world):
    """Unbound on wildcard addresses alone; a configuration file, so that a test can change it."""
    daemon = world.hydnsd(options=("--config", world.run.dir / "wildcard.conf"))
    daemon.interfaces = ()
    write_config(daemon, CLIENT_LINKS)
    unbound = world.unbound(daemon, server=WILDCARDS)
    lines = unbound.config.read_text().splitlines()
    exact = {f"    interface: {a}" for a in SERVICE.values()}
    unbound.config.write_text("\n".join(line for line in lines if line not in exact) + "\n")
    with daemon, unbound:
        wait_until(daemon.resolver_ready, 10, "Unbound's module to register with hydnsd")
        path = SimpleNamespace(world=world, daemon=daemon, unbound=unbound, network=world.network)
        heat(path)
        yield path


def write_config(daemon, interfaces, **options):
    lines = [f"interface: {i}" for i in interfaces] + [f"{k.replace('_', '-')}: {v}" for k, v in options.items()]
    (daemon.world.run.dir / "wildcard.conf").write_text("\n".join(lines) + "\n")


def reload(daemon):
    """Sends SIGHUP; returns what hydnsd logged until the configuration was in force."""
    begin = daemon.program.log.stat().st_size
    daemon.program.popen.send_signal(signal.SIGHUP)

    def said():
        return daemon.program.log.read_text()[begin:]
    wait_until(lambda: "configuration read again" in said(), 5, "hydnsd to read its configuration again")
    return said()


def attached(daemon):
    return {i["name"]: i["attached"] for i in daemon.call({"cmd": "status"})["interfaces"]}


@contextmanager
def spare_link(network):
    """A third link to client1: r9 with 10.53.9.1 and fd53:9::1, removed at the end if it is still there."""
    def make():
        veth(network.resolver, "r9", network.client1, "c9")
        network.resolver.address("r9", "10.53.9.1/24", "fd53:9::1/64")
        network.client1.address("c9", "10.53.9.2/24", "fd53:9::2/64")
        pass_everything(network.client1, "c9", network.pass_object)

    def delete():
        with network.resolver.netlink() as ip:
            for index in ip.link_lookup(ifname="r9"):
                ip.link("del", index=index)
    make()
    try:
        yield SimpleNamespace(make=make, delete=delete)
    finally:
        delete()


@pytest.mark.parametrize("address", LOCAL)
def test_wildcard_answers_on_every_address(wildcard, address):
    assert service(address) in services(wildcard)
    assert in_kernel(wildcard, address) == ASKED


@pytest.mark.parametrize("family", [4, 6])
def test_address_comes_and_goes(wildcard, family):
    address, resolver = LATER[family], wildcard.network.resolver
    length = {4: 32, 6: 128}[family]
    assert service(address) not in services(wildcard)
    for _ in range(2):
        resolver.address("lo", f"{address}/{length}")
        wait_until(lambda: service(address) in services(wildcard), 5, "the new address to be a service")
        assert in_kernel(wildcard, address) == ASKED
        with resolver.netlink() as ip:
            ip.addr("del", index=1, address=address, prefixlen=length)
        wait_until(lambda: service(address) not in services(wildcard), 5, "the address to be no service any more")
        before = wildcard.daemon.reasons()["ANSWERED"]
        assert exchange(wildcard.network.client1, address, query(NAME).to_wire(), timeout=0.3) is None
        assert wildcard.daemon.reasons()["ANSWERED"] == before
    assert in_kernel(wildcard, SERVICE[family]) == ASKED


def test_many_addresses(wildcard):
    """More than the map of services had room for once, of each family; hydnsctl's table shows some of them, and says how many more."""
    resolver, before = wildcard.network.resolver, len(services(wildcard))
    many = [f"10.53.{100 + n // 250}.{1 + n % 250}/32" for n in range(MANY)] + [f"fd53::1:{n + 1:x}/128" for n in range(MANY)]
    resolver.address("lo", *many)
    try:
        wait_until(lambda: len(services(wildcard)) == before + len(many), 20, "all addresses to be services")
        for last in many[MANY - 1], many[-1]:
            assert in_kernel(wildcard, last.partition("/")[0]) == ASKED
        shown = wildcard.daemon.ctl("status").stdout
        assert f"and {before + len(many) - SHOWN:,} more (--json)" in shown and shown.count(":53, ") == SHOWN - 1
    finally:
        for address in many:
            resolver.remove_address("lo", address)
    wait_until(lambda: len(services(wildcard)) == before, 20, "the addresses to be services no more")


def test_flush_reaches_every_address(wildcard):
    """Rules are shared by all addresses: changed data appear at all of them."""
    name = "www.lab.example"
    for generation, address in ((31, SERVICE[6]), (32, LOCAL[4])):
        data = f"192.0.2.{generation}"
        wildcard.world.change_lab(records(generation), name, "A", data)
        wildcard.unbound.control("flush", name)
        heat(wildcard, name)
        for local in (LOCAL[2], address):
            assert in_kernel(wildcard, local, name, data) == ASKED


def test_interface_added_and_removed_by_sighup(wildcard):
    daemon, resolver = wildcard.daemon, wildcard.network.resolver
    with spare_link(wildcard.network):
        wait_until(lambda: service("10.53.9.1") in services(wildcard), 5, "the link's address to be a service")
        assert in_kernel(wildcard, "10.53.9.1") == 0, "nothing is attached to that link"
        write_config(daemon, [*CLIENT_LINKS, "r9"])
        assert "attached to r9" in reload(daemon)
        assert attached(daemon) == {"r1": True, "r2": True, "r9": True}
        for address in ("10.53.9.1", "fd53:9::1"):
            assert in_kernel(wildcard, address) == ASKED
        write_config(daemon, CLIENT_LINKS)
        assert "detached from r9" in reload(daemon)
        assert not resolver.xdp_attached("r9") and resolver.xdp_attached("r1")
        assert in_kernel(wildcard, "10.53.9.1") == 0
        assert in_kernel(wildcard, LOCAL[2]) == ASKED


def test_interface_deleted_and_made_again(wildcard):
    daemon, resolver = wildcard.daemon, wildcard.network.resolver
    with spare_link(wildcard.network) as link:
        write_config(daemon, [*CLIENT_LINKS, "r9"])
        reload(daemon)
        assert in_kernel(wildcard, "10.53.9.1") == ASKED
        link.delete()
        wait_until(lambda: not attached(daemon)["r9"] and service("10.53.9.1") not in services(wildcard), 5,
                   "hydnsd to see that the link has gone")
        assert in_kernel(wildcard, LOCAL[2]) == ASKED
        link.make()
        wait_until(lambda: resolver.xdp_attached("r9") and service("fd53:9::1") in services(wildcard), 10,
                   "hydnsd to attach to the new link")
        for address in ("10.53.9.1", "fd53:9::1"):
            assert in_kernel(wildcard, address) == ASKED
    write_config(daemon, CLIENT_LINKS)
    assert "detached from r9" in reload(daemon)


def test_sighup_takes_options_or_says_that_it_cannot(wildcard):
    daemon = wildcard.daemon
    cold = "host77.lab.example"
    write_config(daemon, CLIENT_LINKS, min_hits=1000000, log_level="debug", capacity=500)
    said = reload(daemon)
    assert "in force only after a restart: capacity" in said
    assert "min-hits" not in said

    def refused():
        return daemon.call({"cmd": "stats"})["offers"]["rejected"]["COLD"]
    before = refused()
    for _ in range(40):
        assert ask(wildcard.network.client1, LOCAL[2], cold)
    wait_until(lambda: refused() > before, 5, "the offer to be refused as cold")
    assert daemon.explain(cold)["where"] == "resolver"
    write_config(daemon, CLIENT_LINKS, no_such_option="yes")
    before = daemon.program.log.stat().st_size
    daemon.program.popen.send_signal(signal.SIGHUP)
    wait_until(lambda: "the former configuration stays" in daemon.program.log.read_text()[before:], 5,
               "hydnsd to refuse the configuration")
    assert in_kernel(wildcard, LOCAL[2]) == ASKED
    write_config(daemon, CLIENT_LINKS, log_level="error")
    before = daemon.program.log.stat().st_size
    daemon.program.popen.send_signal(signal.SIGHUP)
    wildcard.world.heat(daemon, cold, "A", server=LOCAL[2])
    assert daemon.program.log.stat().st_size == before, "what is no error was logged"
