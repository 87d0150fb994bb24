# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings while links, addresses, routes, next hops and MTUs change: nothing is lost that Unbound with sockets would have
answered, and afterwards the rings are used again."""

import time
from contextlib import contextmanager

import pytest

from lab import rings
from lab.client import ask
from lab.network import LINKS, SERVICE
from lab.process import run_tool
from lab.ring_load import (RINGS_OFF, Used, addresses_again, assert_answered, come, fresh, link_down, note, numbers, set_mtu, settle,
                           sysctls)
from lab.run import SOON, wait_until


@pytest.fixture
def path(paths):
    return paths.take()


# -- links --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", [4, 6])
def test_client_link_down_and_up(path, family):
    resolver = path.network.resolver
    with fresh(path, server=SERVICE[family], timeout=2) as asker:
        Used(path).wait()
        link_down(resolver, "r1")
        resolver.link_state("r1", up=True)
        addresses_again(path)
        wait_until(lambda: ask(path.network.client1, SERVICE[family], "localhost", timeout=0.2), SOON, "the link to work")
        up = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=up)


def test_upstream_link_down_and_up(path):
    resolver = path.network.resolver
    with fresh(path) as asker:
        Used(path).wait()
        link_down(resolver, "ra")
        come(path)
        resolver.link_state("ra", up=True)
        addresses_again(path)
        Used(path).wait()
        settle(path)
        up = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=up)


def test_upstream_link_removed_and_made_again(path):
    network = path.network
    before = {n for (link, _), n in numbers(path).items() if link == "ra"}
    with fresh(path) as asker:
        Used(path).wait()
        with network.resolver.netlink() as ip:
            ip.link("del", index=ip.link_lookup(ifname="ra")[0])
        network.link_upstream()
        rings.wait_open(path.daemon)
        assert before.isdisjoint(numbers(path).values())
        settle(path)
        again = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=again)


def receive_queues(path, count):
    """Whether r1 has so many afterwards."""
    return run_tool(path.network.resolver, ["ethtool", "-L", "r1", "rx", count], check=False).returncode == 0


def test_number_of_receive_queues(path):
    """A queue that packet rings are bound to can't be taken away; as the operator guide says, a reload without rings comes first."""
    assert receive_queues(path, 2)
    wait_until(lambda: {("r1", 0), ("r1", 1)} <= set(numbers(path)), SOON, "a lane on the second queue")
    assert not receive_queues(path, 1)
    path.unbound.change(*RINGS_OFF)
    wait_until(lambda: receive_queues(path, 1), SOON, "the queue to be free")
    path.unbound.change(*reversed(RINGS_OFF))
    rings.wait_open(path.daemon)
    assert ("r1", 1) not in numbers(path)
    settle(path)


# -- addresses and next hops --------------------------------------------------------------------------------------------------
def test_address_and_default_route_change(path):
    """Queries under way to the former address are lost as a socket's would be; Unbound asks again."""
    network = path.network
    with fresh(path) as asker:
        Used(path).wait()
        network.authoritative.address("u0", "10.53.3.22/24")
        network.resolver.address("ra", "10.53.3.9/32")
        with network.resolver.netlink() as ip:
            ip.route("replace", dst="0.0.0.0/0", gateway="10.53.3.22", prefsrc="10.53.3.9")
        Used(path).wait()
        with network.resolver.netlink() as ip:
            ip.route("replace", dst="0.0.0.0/0", gateway="10.53.3.2")
        network.resolver.remove_address("ra", "10.53.3.9/32")
        network.authoritative.remove_address("u0", "10.53.3.22/24")
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)


@pytest.mark.parametrize("told", [True, False])
def test_next_hop_gets_another_ethernet_address(path, told):
    """With a gratuitous ARP, or without: then the kernel finds out by its own probes, once a query takes a socket."""
    network = path.network
    with network.authoritative.netlink() as ip:
        index = ip.link_lookup(ifname="u0")[0]
        former = ip.get_links(index)[0].get_attr("IFLA_ADDRESS")
    other = former[:-2] + ("00" if former[-2:] != "00" else "01")
    with impatient(network.resolver, "ra"), announcing(network.authoritative, "u0", told), fresh(path) as asker:
        Used(path).wait()
        with network.authoritative.netlink() as ip:
            ip.link("set", index=index, address=other)
        Used(path).wait(queries=1)
        answers = asker.result()
        with network.authoritative.netlink() as ip:
            ip.link("set", index=index, address=former)
    assert_answered(answers)


@contextmanager
def impatient(ns, link):
    """Neighbours are believed for a second, not for half a minute."""
    values = (("base_reachable_time_ms", 1000), ("delay_first_probe_time", 1), ("retrans_time_ms", 100))
    with sysctls(ns, {f"ipv{n}/neigh/{link}/{name}": value for n in (4, 6) for name, value in values}):
        run_tool(ns, ["ip", "neighbour", "flush", "dev", link])     # their timers run with the former values
        yield
    run_tool(ns, ["ip", "neighbour", "flush", "dev", link])


def announcing(ns, link, told):
    return sysctls(ns, {f"ipv4/conf/{link}/arp_notify": int(told), f"ipv6/conf/{link}/ndisc_notify": int(told)})


# -- MTU ----------------------------------------------------------------------------------------------------------------------
def test_smaller_mtu(path):
    """1,280 octets leave IPv6 on; with 600, what is longer leaves by a socket, in fragments."""
    resolver = path.network.resolver
    with fresh(path) as asker:
        for mtu in (1280, 600, 1500):
            note(f"MTU {mtu}")
            for link in LINKS:
                set_mtu(resolver, link, mtu)
            rings.wait_open(path.daemon)
            note("lanes are open")
            reply = ask(path.network.client1, SERVICE[4], "txt-big.kinds.example", "TXT", edns=True, payload=4096)
            assert reply and reply.answer
            Used(path).wait()
        answers = asker.result()
    addresses_again(path)
    assert_answered(answers)
