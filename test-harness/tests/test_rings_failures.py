# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings of Unbound and of BIND through whatever happens to the resolver, hydnsd, links, routes and servers: nothing is
lost that the resolver with sockets would have answered, and afterwards the rings are used again. Counters show that they were."""

import signal
import time

import dns.rdatatype
import pytest
from bind_rings import EITHER

from lab import links, rings
from lab.changing_zones import STORM
from lab.client import ask
from lab.network import SERVICE
from lab.relay import everything
from lab.ring_load import LOCAL, assert_answered, come, fresh, local, note, settle
from lab.rings import Used
from lab.run import SOON, wait_until
from lab.tcp_relay import TcpRelay, truncated

pytestmark = EITHER


@pytest.fixture
def path(paths):
    return paths.take()


# -- the resolver -------------------------------------------------------------------------------------------------------------
def test_killed(path):
    """The gate closes first: nothing is redirected to a dead process, however long its sockets take to close."""
    used = Used(path)
    with fresh(path, timeout=1) as asker:
        used.wait()
        path.server.stop(signal.SIGKILL)
        used.mark()
        rings.seen(path.daemon, ("MISS", "RESOLVER_GONE", "NOT_SERVICE", "EMPTY"))
        assert used.now() == (0, 0)
        path.server.start()
        started = time.monotonic_ns()
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=started)


def test_stopped_and_continued(path):
    with fresh(path) as asker:
        Used(path).wait()
        with path.server.stopped():
            rings.seen(path.daemon, ("RESOLVER_GONE",))         # its heartbeat is stale
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)


def test_nothing_left(path):
    daemon = path.daemon
    settle(path, zone="lab.example")
    path.world.relay.delay = 5.0
    for name, rdtype in rings.never_asked(20, "lab.example"):
        ask(path.network.client1, SERVICE[4], name, rdtype, timeout=0.01)
    wait_until(lambda: rings.claimed(daemon), SOON, "ports to be claimed")
    assert (daemon.pins / "stray_link").exists()
    path.server.stop()
    path.world.relay.behave()
    wait_until(lambda: not rings.claimed(daemon), SOON, "no port words")
    wait_until(lambda: not (daemon.pins / "stray_link").exists(), SOON, "no link of hydns_stray")
    wait_until(lambda: not rings.lanes(daemon), SOON, "no lanes")
    path.server.start()
    settle(path)


# -- hydnsd -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", (signal.SIGKILL, signal.SIGUSR2))
def test_rings_go_on_without_hydnsd(path, how):
    used, before = Used(path), rings.numbers(path.daemon)
    with fresh(path) as asker:
        used.wait()
        path.daemon.stop(how)
        used.wait()
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, SOON, "the plugin to register again")
        assert rings.numbers(path.daemon) == before
        used.wait()
        answers = asker.result()
    assert_answered(answers)


def test_reload_while_hydnsd_hangs(path):
    """The link thread waits for it, and both plugin objects have the lanes for a while."""
    used = Used(path)
    with local(path) as known:
        used.wait(answers=0)
        with path.daemon.stopped():
            path.server.control("reload")
            path.server.control("status")
            come(path, path.local_rate)
        rings.wait_open(path.daemon)
        used.wait(answers=0)
        answers = known.result()
    assert_answered(answers, rcode=0)


def test_hydnsd_with_other_maps(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.daemon.stop(signal.SIGKILL)
        path.daemon.capacity = 12345 if path.daemon.capacity != 12345 else 23456
        path.daemon.start()
        rings.wait_open(path.daemon)
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)


def test_hydnsd_stopped_and_started(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.daemon.stop()
        come(path)
        path.daemon.start()
        rings.wait_open(path.daemon)
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)
    assert max(a.latency for a in answers) < 3e9


# -- the program off ----------------------------------------------------------------------------------------------------------
def test_pause_and_resume(path):
    used = Used(path)
    with fresh(path) as asker:
        used.wait()
        path.daemon.ctl("pause")
        used.mark()
        come(path)
        assert used.now() == (0, 0)
        path.daemon.ctl("resume")
        used.wait()
        answers = asker.result()
    assert_answered(answers)


def test_answers_under_way_at_a_pause(path):
    """They come to the stack, which gives them to the thread that asked: the resolver, patient, asks nothing again."""
    settle(path, zone="lab.example")
    relay, used = path.world.relay, Used(path)
    relay.delay = 0.2
    relay.asked.clear()
    with path.server.patient(), rings.load(path.world, 100, zone="lab.example") as asker:
        wait_until(lambda: len(rings.claimed(path.daemon)) > 10, SOON, "queries under way")
        path.daemon.ctl("pause")
        under_way = set(rings.claimed(path.daemon))
        wait_until(lambda: not under_way & set(rings.claimed(path.daemon)), SOON, "the answers under way to come")
        come(path)
        answers = asker.result()
    path.daemon.ctl("resume")
    assert used.now().queries > 5
    assert_answered(answers)
    assert relay.asked and not relay.asked_again(), "an answer was lost"


# -- links --------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", (4, 6))
def test_client_link_down_and_up(path, family):
    resolver = path.network.resolver
    with fresh(path, server=SERVICE[family], timeout=2) as asker:
        Used(path).wait()
        links.down(resolver, "r1")
        resolver.link_state("r1", up=True)
        links.addresses_again(path.network)
        wait_until(lambda: ask(path.network.client1, SERVICE[family], f"a.{LOCAL}", timeout=0.2), SOON, "the link to work")
        up = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=up)


def test_upstream_link_down_and_up(path):
    resolver = path.network.resolver
    with fresh(path) as asker:
        Used(path).wait()
        links.down(resolver, "ra")
        come(path)
        resolver.link_state("ra", up=True)
        links.addresses_again(path.network)
        Used(path).wait()
        settle(path)
        up = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=up)


def test_upstream_link_removed_and_made_again(path):
    network = path.network
    before = {n for (link, _), n in rings.numbers(path.daemon).items() if link == "ra"}
    with fresh(path) as asker:
        Used(path).wait()
        with network.resolver.netlink() as ip:
            ip.link("del", index=ip.link_lookup(ifname="ra")[0])
        network.link_upstream()
        rings.wait_open(path.daemon)
        assert before.isdisjoint(rings.numbers(path.daemon).values())
        settle(path)
        again = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=again)


# -- addresses and next hops --------------------------------------------------------------------------------------------------
def test_address_and_default_route_change(path):
    """Queries under way to the former address are lost as a socket's would be; the resolver asks again."""
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


@pytest.mark.parametrize("told", (True, False))
def test_next_hop_gets_another_ethernet_address(path, told):
    """With a gratuitous ARP, or without: then the kernel finds out by its own probes, once a query takes a socket."""
    network = path.network
    with links.impatient(network.resolver, "ra"), links.announcing(network.authoritative, "u0", told), \
            links.another_ethernet_address(network.authoritative, "u0") as change_address, fresh(path) as asker:
        Used(path).wait()
        change_address()
        Used(path).wait(queries=1)
        answers = asker.result()
    assert_answered(answers)


# -- sizes --------------------------------------------------------------------------------------------------------------------
def test_smaller_mtu(path):
    """1,280 octets leave IPv6 on; with 600, what is longer leaves by a socket, in fragments."""
    resolver = path.network.resolver
    with fresh(path) as asker:
        for mtu in (1280, 600, 1500):
            note(f"MTU {mtu}")
            for link in path.daemon.interfaces:
                links.set_mtu(resolver, link, mtu)
            rings.wait_open(path.daemon)
            note("lanes are open")
            reply = ask(path.network.client1, SERVICE[4], "txt-big.kinds.example", "TXT", edns=True, payload=4096)
            assert reply and reply.answer
            Used(path).wait()
        answers = asker.result()
    links.addresses_again(path.network)
    assert_answered(answers)


def test_answers_in_fragments(path):
    """The authoritative server's link has a small MTU: fragments have no ports, and come to the stack."""
    used, server = Used(path), path.network.authoritative
    settle(path, zone="lab.example")
    used.mark()
    links.set_mtu(server, "u0", 576)
    try:
        reply = ask(path.network.client1, SERVICE[4], "big.lab.example", "TXT", edns=True, payload=1232)
    finally:
        links.set_mtu(server, "u0", 1500)
        links.ipv6_again(server, "u0", "fd53:3::2/64", ("fd53:3::1", "::/0"))
    assert reply and len(reply.answer[0]) == 4
    asked = [name for _, name, rdtype in path.world.relay.asked if rdtype == dns.rdatatype.TXT]
    assert asked == ["big.lab.example."], "the resolver asked again, or not at all: the answer was lost"
    assert used.now().queries == 1


# -- authoritative servers ----------------------------------------------------------------------------------------------------
def test_authoritative_server_unreachable_or_silent(path):
    """Nobody listens at the address of storm.example.'s server: the host there says so (ICMP); others go on by rings."""
    network, relay = path.network, path.world.relay
    hosts = [f"{address}/{128 if ':' in address else 32}" for address in STORM.values()]
    network.authoritative.address("lo", *hosts)
    relay.loses = everything
    try:
        with fresh(path) as asker:
            for n in range(40):
                ask(network.client1, SERVICE[4], f"gone{n}.storm.example", timeout=0.02)
                ask(network.client1, SERVICE[4], f"lost{n}.lab.example", timeout=0.02)
            Used(path).wait()
            answers = asker.result()
    finally:
        for host in hosts:
            network.authoritative.remove_address("lo", host)
    assert_answered(answers)


def test_authoritative_server_that_answers_over_tcp_alone(path):
    used = Used(path)
    settle(path, zone="lab.example")
    path.world.relay.change = truncated
    with TcpRelay(path.world) as tcp, rings.load(path.world, 50, zone="lab.example") as asker:
        used.wait(queries=120, answers=120)
        answers = asker.result()
    assert tcp.connections
    assert_answered(answers)
