# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings through whatever happens to resolver, hydnsd, interfaces and servers: nothing is lost that Unbound with sockets
would have answered, and afterwards the rings are used again. Counters show that they were."""

import signal
import socket
import struct
import threading
import time
from contextlib import ExitStack, contextmanager

import dns.message
import dns.rdatatype
import pytest
from conftest import kernel_path

from lab import rings
from lab.changing_zones import LAB, RELAY, STORM, records
from lab.client import SILENCE, ask, query
from lab.network import CLIENT1, CLIENT2, LINKS, SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until

RATE = 500               # queries a second of names that nobody has asked before
LOCAL_RATE = 4000        # the same of names that Unbound itself has data of: no query to upstream
LOCAL = "here.example"   # their zone
NXDOMAIN = 3
OPTIONS = {"server": [f'local-zone: "{LOCAL}." redirect', f'local-data: "{LOCAL}. 60 A 192.0.2.99"']}


class Paths:
    """Context manager: one kernel path at a time, which tests with the same options share."""

    def __init__(self, world):
        self.world, self.stack, self.options = world, ExitStack(), None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def take(self, *, daemon=None, queries=True, upstream=True, **unbound):
        """With all lanes open. A test may kill its programs, and starts them again."""
        if self.options != (daemon, unbound):
            self.stack.close()
            self.options = None
            made = kernel_path(self.world, daemon_options=daemon, unbound_options=OPTIONS | unbound)
            self.path = self.stack.enter_context(made)
            self.options = (daemon, unbound)
        for server in (self.path.daemon, self.path.unbound):
            if not server.program.running():
                server.start()
        self.world.relay.behave()
        self.world.relay.asked.clear()
        self.path.unbound.control("flush_infra", "all")     # servers that were silent in another test
        settle(self.path, queries, upstream)
        return self.path


@pytest.fixture(scope="module")
def paths(world):
    with Paths(world) as p:
        yield p
    world.relay.behave()


@pytest.fixture
def path(paths):
    return paths.take()


def settle(path, queries=True, upstream=True):
    """Until all lanes are open, then asks until queries and answers come by rings: only then Unbound knows the zones' servers
    and their next hop."""
    rings.wait_open(path.daemon)

    def used():
        before = rings.counted(path.daemon)
        for name, rdtype in rings.never_asked(8):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1)
        now = rings.counted(path.daemon)
        return now.queries - before.queries >= 8 * queries and now.answers - before.answers >= 7 * upstream
    wait_until(used, SOON, "queries and answers to come by rings")


def fresh(path, **options):
    return rings.load(path.world, RATE, **options)


def local(path, **options):
    return rings.load(path.world, LOCAL_RATE, zone=LOCAL, most=6, **options)


def assert_answered(answers, rcode=NXDOMAIN, since=0, until=float("inf")):
    """Those that were sent in this time."""
    asked = [a for a in answers if since <= a.sent < until]
    lost = [a for a in asked if a.latency is None]
    wrong = [a for a in asked if a.latency is not None and a.rcode != rcode]
    assert asked
    assert not lost, f"{len(lost)} of {len(asked)} queries without an answer"
    assert not wrong, f"{len(wrong)} wrong answers, the first: {wrong[0]}"


class Used:
    """How many packets rings have taken since it was made or marked."""

    def __init__(self, path):
        self.daemon = path.daemon
        self.mark()

    def mark(self):
        self.before = rings.counted(self.daemon)

    def now(self):
        return rings.Counts(*(n - before for n, before in zip(rings.counted(self.daemon), self.before)))

    def wait(self, queries=100, answers=100):
        """For so many more from now on."""
        self.mark()
        wait_until(lambda: self.now().queries >= queries and self.now().answers >= answers, SOON,
                   f"{queries} queries and {answers} answers to come by rings")


def come(path, count=100):
    """Until so many more queries have come to Unbound's threads, by rings or sockets."""
    before = path.unbound.received()
    wait_until(lambda: path.unbound.received() >= before + count, SOON, f"{count} queries to come to Unbound")


def seen(path, reasons, count=30):
    """Until the program has seen so many more packets that end like one of these; hydnsd runs."""
    def number():
        return sum(n for reason, n in path.daemon.reasons().items() if reason in reasons)
    before = number()
    wait_until(lambda: number() >= before + count, SOON, f"{count} packets that end with {' or '.join(reasons)}")


def link_down(ns, link):
    """Takes it down; returns when the kernel says that it is."""
    ns.link_state(link, up=False)

    def is_down():
        with ns.netlink() as ip:
            return ip.get_links(ip.link_lookup(ifname=link)[0])[0].get_attr("IFLA_OPERSTATE") == "DOWN"
    wait_until(is_down, SOON, f"{link} to be down")


def numbers(path):
    """{(interface, queue): number} of open lanes."""
    return {(lane["interface"], lane["queue"]): lane["number"] for lane in rings.lanes(path.daemon) if lane["open"]}


# -- reload -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["reload", "reload_keep_cache"])
def test_reload(path, command):
    """The lanes stay, with what waits in them. What waits for upstream is forgotten, by any Unbound that reloads."""
    used, before = Used(path), numbers(path)
    with fresh(path, timeout=2) as asker, local(path) as known:
        used.wait()
        path.unbound.control(command)
        path.unbound.control("status")
        reloaded = time.monotonic_ns()
        wait_until(lambda: numbers(path) == before, SOON, "the same lanes to be open again")
        used.wait()
        answers = asker.result()
        local_answers = known.result()
    assert_answered(answers, since=reloaded)
    assert_answered(local_answers, rcode=0)


def test_reload_with_another_number_of_threads(paths):
    path = paths.take(threads=1)
    assert {lane["threads"] for lane in rings.lanes(path.daemon)} == {1}
    with fresh(path, timeout=2) as asker:
        reloaded = path.unbound.change("num-threads: 1", "num-threads: 2")
        rings.wait_open(path.daemon)
        assert {lane["threads"] for lane in rings.lanes(path.daemon)} == {2}
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=reloaded)


def test_rings_turned_off_and_on_by_reload(path):
    with fresh(path, timeout=2) as asker:
        path.unbound.change("hydns:\n", "hydns:\n    hydns-queue: no\n    hydns-queue-upstream: no\n")
        wait_until(lambda: not rings.lanes(path.daemon), SOON, "no lanes")
        used = Used(path)
        reloaded = time.monotonic_ns()
        come(path)
        assert used.now() == (0, 0)
        end = time.monotonic_ns()
        again = path.unbound.change("    hydns-queue: no\n    hydns-queue-upstream: no\n", "")
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=reloaded, until=end)
    assert_answered(answers, since=again)


# -- hydnsd -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGUSR2])
def test_rings_go_on_without_hydnsd(path, how):
    used, before = Used(path), numbers(path)
    with fresh(path) as asker:
        used.wait()
        path.daemon.stop(how)
        used.wait()
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, SOON, "the module to register again")
        assert numbers(path) == before
        used.wait()
        answers = asker.result()
    assert_answered(answers)


def test_reload_while_hydnsd_is_away(path):
    with fresh(path, timeout=2) as asker:
        path.daemon.stop(signal.SIGKILL)
        path.unbound.control("reload")
        path.unbound.control("status")
        reloaded = time.monotonic_ns()
        used = Used(path)
        come(path)
        assert used.now() == (0, 0), "the program gives packets to a resolver that has left its page"
        path.daemon.start()
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=reloaded)


def test_reload_while_hydnsd_hangs(path):
    """The link thread waits for it, and both plugin objects have the lanes for a while."""
    hydnsd, used = path.daemon.program.popen, Used(path)
    with local(path) as known:
        used.wait(answers=0)
        hydnsd.send_signal(signal.SIGSTOP)
        try:
            path.unbound.control("reload")
            path.unbound.control("status")
            come(path, LOCAL_RATE)
        finally:
            hydnsd.send_signal(signal.SIGCONT)
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


# -- Unbound ------------------------------------------------------------------------------------------------------------------
def test_unbound_killed(path):
    """The gate closes first: nothing is redirected to a dead process, however long its sockets take to close."""
    used = Used(path)
    with fresh(path, timeout=1) as asker:
        used.wait()
        path.unbound.program.popen.kill()
        path.unbound.program.popen.wait()
        used.mark()
        seen(path, ("MISS", "RESOLVER_GONE", "NOT_SERVICE", "EMPTY"))
        assert used.now() == (0, 0)
        path.unbound.start()
        started = time.monotonic_ns()
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=started)


def test_unbound_stopped_and_continued(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.unbound.program.popen.send_signal(signal.SIGSTOP)
        seen(path, ("RESOLVER_GONE",))         # its heartbeat is stale
        path.unbound.program.popen.send_signal(signal.SIGCONT)
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)


def test_nothing_left_of_unbound(path):
    daemon = path.daemon
    Used(path)
    path.world.relay.delay = 5.0
    for name, rdtype in rings.never_asked(20, "lab.example"):
        ask(path.network.client1, SERVICE[4], name, rdtype, timeout=0.01)
    wait_until(lambda: rings.claimed(daemon), SOON, "ports to be claimed")
    assert (daemon.pins / "stray_link").exists()
    path.unbound.stop()
    path.world.relay.behave()
    wait_until(lambda: not rings.claimed(daemon), SOON, "no port words")
    wait_until(lambda: not (daemon.pins / "stray_link").exists(), SOON, "no link of hydns_stray")
    wait_until(lambda: not rings.lanes(daemon), SOON, "no lanes")
    path.unbound.start()
    rings.wait_open(daemon)


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
    """They come to the stack, which gives them to the thread that asked."""
    relay, used = path.world.relay, Used(path)
    relay.delay = 0.3
    with rings.load(path.world, 20, zone="lab.example") as asker:      # Unbound learns how long answers take
        wait_until(lambda: used.now().answers > 15, SOON, "answers")
        asker.result()
    used.mark()
    relay.asked.clear()
    with rings.load(path.world, 100, zone="lab.example") as asker:
        wait_until(lambda: len(rings.claimed(path.daemon)) > 10, SOON, "queries under way")
        path.daemon.ctl("pause")
        under_way = set(rings.claimed(path.daemon))
        wait_until(lambda: not under_way & set(rings.claimed(path.daemon)), SOON, "the answers under way to come")
        answers = asker.result()
    path.daemon.ctl("resume")
    assert used.now().queries > 5
    assert_answered(answers)
    assert relay.asked and len({name for _, name, _ in relay.asked}) == len(relay.asked), "asked again: an answer was lost"


# -- interfaces ---------------------------------------------------------------------------------------------------------------
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


def ipv6_again(ns, link, address, *routes):
    """The kernel removes a link's IPv6 addresses and all its routes with it. routes: (gateway, destination)."""
    run_tool(ns, ["ip", "address", "replace", address, "dev", link, "nodad"])
    for gateway, to in routes:
        run_tool(ns, ["ip", "route", "replace", to, "via", gateway])


def addresses_again(path):
    """After links of the resolver went down, or had a small MTU."""
    resolver = path.network.resolver
    for n, link in enumerate(LINKS, 1):
        ipv6_again(resolver, link, f"fd53:{n}::1/64")
    for gateway, to in (("10.53.3.2", "0.0.0.0/0"), ("fd53:3::2", "::/0"), (CLIENT1[4], "10.54.1.0/24"),
                        (CLIENT1[6], "fd54:1::/64")):
        run_tool(resolver, ["ip", "route", "replace", to, "via", gateway])


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
def sysctls(ns, values):
    def write(file, value):
        with ns.entered(), open(f"/proc/sys/net/{file}", "r+") as f:
            former = f.read().strip()
            f.seek(0)
            f.write(str(value))
        return former
    before = {file: write(file, value) for file, value in values.items()}
    try:
        yield
    finally:
        for file, value in before.items():
            write(file, value)


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


# -- sizes --------------------------------------------------------------------------------------------------------------------
def set_mtu(ns, link, mtu):
    with ns.netlink() as ip:
        ip.link("set", index=ip.link_lookup(ifname=link)[0], mtu=mtu)


def test_smaller_mtu(path):
    """1,280 octets leave IPv6 on; with 600, what is longer leaves by a socket, in fragments."""
    resolver = path.network.resolver
    with fresh(path) as asker:
        for mtu in (1280, 600, 1500):
            for link in LINKS:
                set_mtu(resolver, link, mtu)
            rings.wait_open(path.daemon)
            reply = ask(path.network.client1, SERVICE[4], "txt-big.kinds.example", "TXT", edns=True, payload=4096)
            assert reply and reply.answer
            Used(path).wait()
        answers = asker.result()
    addresses_again(path)
    assert_answered(answers)


def test_answers_in_fragments(path):
    """The authoritative server's link has a small MTU: fragments have no ports, and come to the stack."""
    used = Used(path)
    set_mtu(path.network.authoritative, "u0", 576)
    try:
        reply = ask(path.network.client1, SERVICE[4], "big.lab.example", "TXT", edns=True, payload=1232)
    finally:
        set_mtu(path.network.authoritative, "u0", 1500)
        ipv6_again(path.network.authoritative, "u0", "fd53:3::2/64", ("fd53:3::1", "::/0"))
    assert reply and len(reply.answer[0]) == 4
    asked = [name for _, name, rdtype in path.world.relay.asked if rdtype == dns.rdatatype.TXT]
    assert asked == ["big.lab.example."], "Unbound asked again, or not at all: the answer was lost"
    assert used.now().queries == 1


def test_no_upstream_rings_for_long_answers(paths):
    path = paths.take(upstream=False, server=["edns-buffer-size: 4096", "max-udp-size: 4096"])
    used = Used(path)
    with fresh(path) as asker:
        used.wait(answers=0)
        answers = asker.result()
    assert used.now().answers == 0
    assert_answered(answers)


@contextmanager
def udp(namespace, host, port=0):
    with namespace.entered():
        s = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.settimeout(SOON)
        s.bind((host, port))
        yield s


@pytest.fixture
def routed(world, paths):
    """A path whose replies are routed (reply-path: fib)."""
    with sysctls(world.network.resolver, dict.fromkeys(("ipv4/conf/lo/forwarding", "ipv6/conf/lo/forwarding"), 1)):
        yield paths.take(daemon={"options": ("--reply-path", "fib")})


def test_routed_replies(routed):
    used, before = Used(routed), rings.replies(routed.daemon)
    with fresh(routed) as asker:
        used.wait()
        answers = asker.result()
    assert_answered(answers)
    assert rings.replies(routed.daemon) - before >= used.now().queries / 2, "replies took sockets"


@pytest.mark.parametrize("family", [4, 6])
def test_routed_replies_leave_where_the_routes_lead(routed, family):
    """Queries come by r1, and the route to their client leads out of r2."""
    network = routed.network
    client, host = {4: ("10.53.9.9", "10.53.9.9/32"), 6: ("fd53:9::9", "fd53:9::9/128")}[family]
    network.client1.address("lo", host)
    network.client2.address("lo", host)
    network.resolver.route(CLIENT2[family], host)
    used, sent = Used(routed), rings.replies(routed.daemon)
    with udp(network.client1, client) as asks, udp(network.client2, client, asks.getsockname()[1]) as listens:
        def one_by_ring():
            """Until the next hop's Ethernet address is known, replies take sockets."""
            ((name, rdtype),) = rings.never_asked(1)
            asks.sendto(query(name, rdtype).to_wire(), (SERVICE[family], 53))
            assert dns.message.from_wire(listens.recv(4096)).rcode() == NXDOMAIN
            return rings.replies(routed.daemon) > sent
        wait_until(one_by_ring, SOON, "a reply by a ring")
    assert used.now().queries > 0


# -- authoritative servers ----------------------------------------------------------------------------------------------------
def test_authoritative_server_unreachable_or_silent(path):
    """Nobody listens at the address of storm.example.'s server: the host there says so (ICMP); others go on by rings."""
    network, relay = path.network, path.world.relay
    for address in STORM.values():
        network.authoritative.address("lo", f"{address}/{128 if ':' in address else 32}")
    relay.loses = lambda wire: True
    try:
        with fresh(path) as asker:
            for n in range(40):
                ask(network.client1, SERVICE[4], f"gone{n}.storm.example", timeout=0.02)
                ask(network.client1, SERVICE[4], f"lost{n}.lab.example", timeout=0.02)
            Used(path).wait()
            answers = asker.result()
    finally:
        for address in STORM.values():
            network.authoritative.remove_address("lo", f"{address}/{128 if ':' in address else 32}")
    assert_answered(answers)


class TcpRelay:
    """Context manager: forwards TCP to the server behind the relay, which makes all UDP replies truncated."""

    def __init__(self, world):
        self.relay, self.ns, self.connections = world.relay, world.network.authoritative, 0
        with self.ns.entered():
            self.listener = socket.create_server((RELAY, 53))

    def __enter__(self):
        self.relay.change = lambda wire: wire[:2] + bytes([wire[2] | 2]) + wire[3:]     # TC
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.relay.behave()
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with self.ns.entered():
                server = socket.create_connection((LAB, 53))
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(a, b), daemon=True).start()

    def _copy(self, a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_authoritative_server_that_answers_over_tcp_alone(path):
    used = Used(path)
    with TcpRelay(path.world) as tcp, rings.load(path.world, 50, zone="lab.example") as asker:
        wait_until(lambda: used.now().answers > 20, SOON, "truncated answers")
        answers = asker.result()
    assert tcp.connections
    assert_answered(answers)


# -- rings that are full ------------------------------------------------------------------------------------------------------
@contextmanager
def stopped(unbound):
    unbound.program.popen.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        unbound.program.popen.send_signal(signal.SIGCONT)


def test_full_rings(paths):
    """Of queries: the rest is lost, as with a full socket. Of answers: Unbound asks again."""
    room = 256
    path = paths.take(clause=[f"hydns-queue-frames: {room}"])
    relay = paths.world.relay
    used = Used(path)
    with local(path, seconds=0.4, timeout=1) as many:
        with stopped(path.unbound):
            wait_until(lambda: used.now().queries > 4 * room, SOON, "more queries than the rings hold")
        answers = many.result()
    assert room <= len([a for a in answers if a.latency is not None]) < len(answers), "the ring was not full"
    relay.delay = 0.4
    with rings.load(path.world, 2000, zone="lab.example", seconds=0.4) as asker:
        wait_until(lambda: len(rings.claimed(path.daemon)) > 2 * room, SOON, "queries under way")
        with stopped(path.unbound):
            used.mark()
            wait_until(lambda: used.now().answers > room, SOON, "answers to wait in the rings")
        relay.behave()
        answers = asker.result()
    assert_answered(answers)
    settle(path)


# -- VLAN ---------------------------------------------------------------------------------------------------------------------
VLAN = struct.pack("!HH", 0x8100, 7)     # TPID of IEEE 802.1Q, and the tag
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA = 3, 263, 8
AUXDATA = struct.Struct("=IIIHHHH")      # struct tpacket_auxdata of linux/if_packet.h; the sixth is the tag


def tagged_query(network, name, source_port):
    """An Ethernet frame of client 1 to the resolver's service, with a tag."""
    (own, _), (router, _) = (addresses(ns, link) for ns, link in ((network.client1, "c1"), (network.resolver, "r1")))
    wire = query(name).to_wire()
    source, to = (socket.inet_aton(a) for a in (CLIENT1[4], SERVICE[4]))
    udp = struct.pack("!HHHH", source_port, 53, 8 + len(wire), 0) + wire       # no checksum: IPv4 allows that (RFC 768)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + source + to
    return router + own + VLAN + b"\x08\x00" + ip[:10] + checksum(ip) + ip[12:] + udp


def addresses(ns, link):
    """Ethernet address and broadcast address."""
    with ns.netlink() as ip:
        found = ip.get_links(ip.link_lookup(ifname=link)[0])[0]
    return [bytes.fromhex(found.get_attr(name).replace(":", "")) for name in ("IFLA_ADDRESS", "IFLA_BROADCAST")]


def checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", total ^ 0xFFFF)


def reply_and_tag(s, port):
    """(DNS message, tag of its frame, which the kernel has taken out) of the next reply to this port."""
    while True:
        frame, ancillary, _, address = s.recvmsg(2048, 64)
        ip = frame[14:]
        if address[2] == socket.PACKET_OUTGOING or frame[12:14] != b"\x08\x00" or ip[9] != socket.IPPROTO_UDP or \
                struct.unpack_from("!HH", ip, 20) != (53, port):
            continue
        return dns.message.from_wire(ip[28:]), AUXDATA.unpack(ancillary[0][2])[5]


def test_client_in_a_vlan(paths):
    """No kernel needs to know of VLANs: the reply leaves by the ring with the tag of its query."""
    path = paths.take(daemon={"options": ["--vlan", "yes", "--vlan-offload", "trust"]})
    client, used = path.network.client1, Used(path)
    with client.entered():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    with s:
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.bind(("c1", ETH_P_ALL))
        s.settimeout(SILENCE)
        for n, (name, _) in enumerate(rings.never_asked(5)):
            s.send(tagged_query(path.network, name, 4000 + n))
            reply, tag = reply_and_tag(s, 4000 + n)
            assert reply.rcode() == NXDOMAIN and tag == 7
    assert used.now().queries == 5
