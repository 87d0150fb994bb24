# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings through whatever happens to named, hydnsd, interfaces and servers: nothing is lost that named with sockets would
have answered, and afterwards the rings are used again. Counters show that they were. Reloads, kills and restarts under load:
test_bind_rings.py, test_bind_rings_upstream.py."""

import signal
import time
from contextlib import contextmanager

import dns.rcode
import dns.rdatatype
import pytest
from bind_rings import assert_answered, fresh, settle, upstream_path, warm

from lab import links, rings, vlan
from lab.changing_zones import STORM
from lab.client import ask
from lab.network import SERVICE
from lab.relay import everything
from lab.run import SOON, wait_until
from lab.rings import Used
from lab.tcp_relay import TcpRelay, truncated

NXDOMAIN = dns.rcode.NXDOMAIN
ROOM = 256               # of bind_rings.FRAMES
LOCAL = "here.example"   # a zone of named's own: no query to upstream
LOCAL_DATA = "@ 300 SOA . . 1 1 1 1 1\n@ 300 NS @\n@ 300 A 192.0.2.1\n* 60 A 192.0.2.99\n"


@pytest.fixture(scope="module")
def made(world):
    folder = world.run.dir / "named"
    folder.mkdir(exist_ok=True)
    (folder / "here.db").write_text(LOCAL_DATA)
    with upstream_path(world, zones={LOCAL: 'type primary; file "here.db";'}, options=("recursive-clients 20000;",),
                       daemon={"options": ("--vlan", "yes", "--vlan-offload", "trust")}) as p:
        yield p


@pytest.fixture
def path(made):
    """With all lanes open. A test may kill its programs."""
    for server in (made.daemon, made.named):
        if not server.program.running():
            server.start()
    made.world.relay.behave()
    made.world.relay.asked.clear()
    settle(made)
    return made


def local(path, rate, **options):
    return rings.load(path.world, rate, zone=LOCAL, most=6, **options)


def assert_fresh(answers, since=0):
    assert_answered([a for a in answers if a.sent >= since], NXDOMAIN)


def come(path, count=100):
    """Until so many more queries have come to named, by rings or sockets."""
    def received():
        counted = path.named.stats()
        return counted.get("Requestv4", 0) + counted.get("Requestv6", 0)
    before = received()
    wait_until(lambda: received() >= before + count, SOON, f"{count} queries to come to named")


@contextmanager
def stopped(program):
    program.popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        program.popen.send_signal(signal.SIGCONT)


# -- named --------------------------------------------------------------------------------------------------------------------
def test_killed(path):
    """The gate closes first: nothing is redirected to a dead process, however long its sockets take to close."""
    used = Used(path)
    with fresh(path, timeout=1) as asker:
        used.wait()
        path.named.stop(signal.SIGKILL)
        used.mark()
        rings.seen(path.daemon, ("MISS", "RESOLVER_GONE", "NOT_SERVICE", "EMPTY"))
        assert used.now() == (0, 0)
        path.named.start()
        started = time.monotonic_ns()
        settle(path)
        used.wait()
        answers = asker.result()
    assert_fresh(answers, since=started)


def test_stopped_and_continued(path):
    with fresh(path) as asker:
        Used(path).wait()
        with stopped(path.named.program):
            rings.seen(path.daemon, ("RESOLVER_GONE",))         # its heartbeat is stale
        Used(path).wait()
        answers = asker.result()
    assert_fresh(answers)


def test_nothing_left_of_named(path):
    daemon = path.daemon
    warm(path, "lab.example")
    path.world.relay.delay = 5.0
    for name, rdtype in rings.never_asked(20, "lab.example"):
        ask(path.network.client1, SERVICE[4], name, rdtype, timeout=0.01)
    wait_until(lambda: rings.claimed(daemon), SOON, "ports to be claimed")
    assert (daemon.pins / "stray_link").exists()
    path.named.stop()
    path.world.relay.behave()
    wait_until(lambda: not rings.claimed(daemon), SOON, "no port words")
    wait_until(lambda: not (daemon.pins / "stray_link").exists(), SOON, "no link of hydns_stray")
    wait_until(lambda: not rings.lanes(daemon), SOON, "no lanes")


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
    assert_fresh(answers)


def test_reload_while_hydnsd_hangs(path):
    """The link thread waits for it, and both plugin objects have the lanes for a while. The ring holds what comes in half a
    second."""
    used = Used(path)
    with local(path, ROOM * 2) as known:
        used.wait(answers=0)
        with stopped(path.daemon.program):
            path.named.control("reload")
            path.named.control("status")
            come(path, ROOM * 2)
        settle(path)
        used.wait(answers=0)
        answers = known.result()
    assert_answered(answers)


def test_hydnsd_with_other_maps(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.daemon.stop(signal.SIGKILL)
        path.daemon.capacity = 12345 if path.daemon.capacity != 12345 else 23456
        path.daemon.start()
        settle(path)
        Used(path).wait()
        answers = asker.result()
    assert_fresh(answers)


def test_hydnsd_stopped_and_started(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.daemon.stop()
        come(path)
        path.daemon.start()
        settle(path)
        Used(path).wait()
        answers = asker.result()
    assert_fresh(answers)


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
    assert_fresh(answers)


def test_answers_under_way_at_a_pause(path):
    """They come to the stack, which gives them to the thread that asked."""
    relay, used = path.world.relay, Used(path)
    warm(path, "lab.example")
    relay.delay = 0.3
    relay.asked.clear()
    relay.answered.clear()
    with rings.load(path.world, 100, zone="lab.example") as asker:
        wait_until(lambda: len(rings.claimed(path.daemon)) > 10, SOON, "queries under way")
        path.daemon.ctl("pause")
        under_way = set(rings.claimed(path.daemon))
        wait_until(lambda: not under_way & set(rings.claimed(path.daemon)), SOON, "the answers under way to come")
        come(path, 100)
        answers = asker.result()
    path.daemon.ctl("resume")
    assert used.now().queries > 5
    assert_fresh(answers)
    assert relay.asked and not relay.asked_after(0.05), "asked again: an answer was lost"


# -- interfaces ---------------------------------------------------------------------------------------------------------------
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
    assert_fresh(answers, since=up)


def test_upstream_link_removed_and_made_again(path):
    network = path.network
    before = {n for (link, _), n in rings.numbers(path.daemon).items() if link == "ra"}
    with fresh(path) as asker:
        Used(path).wait()
        with network.resolver.netlink() as ip:
            ip.link("del", index=ip.link_lookup(ifname="ra")[0])
        network.link_upstream()
        settle(path)
        assert before.isdisjoint(rings.numbers(path.daemon).values())
        again = time.monotonic_ns()
        Used(path).wait()
        answers = asker.result()
    assert_fresh(answers, since=again)


def test_address_and_default_route_change(path):
    """Queries under way to the former address are lost as a socket's would be; named asks again."""
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
    assert_fresh(answers)


@pytest.mark.parametrize("told", (True, False))
def test_next_hop_gets_another_ethernet_address(path, told):
    """With a gratuitous ARP, or without: then the kernel finds out by its own probes, once a query takes a socket."""
    network = path.network
    with links.impatient(network.resolver, "ra"), links.announcing(network.authoritative, "u0", told), \
            links.another_ethernet_address(network.authoritative, "u0") as change_address:
        with fresh(path) as asker:
            Used(path).wait()
            change_address()
            Used(path).wait(queries=1)
            answers = asker.result()
    assert_fresh(answers)


# -- sizes --------------------------------------------------------------------------------------------------------------------
def test_smaller_mtu(path):
    """1,280 octets leave IPv6 on; with 600, what is longer leaves by a socket, in fragments."""
    resolver = path.network.resolver
    with fresh(path) as asker:
        for mtu in (1280, 600, 1500):
            for link in path.daemon.interfaces:
                links.set_mtu(resolver, link, mtu)
            rings.wait_open(path.daemon, path.daemon.interfaces)
            reply = ask(path.network.client1, SERVICE[4], "txt-big.kinds.example", "TXT", edns=True, payload=4096)
            assert reply and reply.answer
            Used(path).wait()
        answers = asker.result()
    links.addresses_again(path.network)
    assert_fresh(answers)


def test_answers_in_fragments(path):
    """The authoritative server's link has a small MTU: fragments have no ports, and come to the stack."""
    used, server = Used(path), path.network.authoritative
    path.named.control("flushname", "big.lab.example")
    warm(path, "lab.example")
    used.mark()
    links.set_mtu(server, "u0", 576)
    try:
        reply = ask(path.network.client1, SERVICE[4], "big.lab.example", "TXT", edns=True, payload=1232)
    finally:
        links.set_mtu(server, "u0", 1500)
        links.ipv6_again(server, "u0", "fd53:3::2/64", ("fd53:3::1", "::/0"))
    assert reply and len(reply.answer[0]) == 4
    asked = [name for _, name, rdtype in path.world.relay.asked if rdtype == dns.rdatatype.TXT]
    assert asked == ["big.lab.example."], "named asked again, or not at all: the answer was lost"
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
    assert_fresh(answers)


def test_authoritative_server_that_answers_over_tcp_alone(path):
    used = Used(path)
    warm(path, "lab.example")
    path.world.relay.change = truncated
    with TcpRelay(path.world) as tcp, rings.load(path.world, 50, zone="lab.example") as asker:
        used.wait(queries=120, answers=120)
        answers = asker.result()
    assert tcp.connections
    assert_fresh(answers)


# -- rings that are full ------------------------------------------------------------------------------------------------------
def test_full_of_queries(path):
    """The rest is lost, as with a full socket."""
    used = Used(path)
    with local(path, 4000, seconds=0.4, timeout=1) as many:
        with stopped(path.named.program):
            wait_until(lambda: used.now().queries > 4 * ROOM, SOON, "more queries than the rings hold")
        answers = many.result()
    assert ROOM <= len([a for a in answers if a.latency is not None]) < len(answers), "the ring was not full"


def test_full_of_answers(path):
    """named asks again."""
    relay, used = path.world.relay, Used(path)
    warm(path, "lab.example")
    relay.delay = 0.6
    with rings.load(path.world, 2000, zone="lab.example", seconds=0.3) as asker:
        wait_until(lambda: len(rings.claimed(path.daemon)) > 2 * ROOM, SOON, "most queries to be under way")
        with stopped(path.named.program):
            used.mark()
            wait_until(lambda: used.now().answers > ROOM, SOON, "answers to wait in the rings")
        relay.behave()
        answers = asker.result()
    assert_fresh(answers)


# -- VLAN ---------------------------------------------------------------------------------------------------------------------
def test_client_in_a_vlan(path):
    """No kernel needs to know of VLANs: the reply leaves by the ring with the tag of its query."""
    used = Used(path)
    with vlan.asking(path.network) as ask_in_vlan:
        for port, (name, _) in enumerate(rings.never_asked(5), 4000):
            reply, tag = ask_in_vlan(name, port)
            assert (reply.rcode(), tag) == (NXDOMAIN, vlan.TAG)
    assert used.now().queries == 5
