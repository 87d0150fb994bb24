# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with packet rings: clients' queries that come by them are answered as those by its sockets, and nothing is lost by reloads.
Nothing is offered to the kernel, so that every query is named's to answer."""

import signal
import socket
import time
from contextlib import closing, contextmanager
from types import SimpleNamespace

import dns.flags
import dns.message
import dns.query
import dns.rcode
import pytest
from bind_rings import (FRAMES, LANES, NAME, NOTHING, RATE, assert_answered, by_ring, change, counts, load, ring_path,
                        wait_used)

from lab import links, rings
from lab.client import ask, exchange, query, udp
from lab.compare import difference
from lab.losses import Losses
from lab.network import CLIENT2, CLIENT_LINKS, DOORS, SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until
from lab.thread_server import SO_RCVBUFFORCE

ZONES = 30000            # named takes a good part of a second for them


@pytest.fixture(scope="class")
def bind(world):
    with ring_path(world, options=("rrset-order { order none; };",)) as p:
        yield p


@pytest.fixture
def own(world):
    """A path for one test."""
    with ring_path(world) as p:
        yield p


# -- one query ----------------------------------------------------------------------------------------------------------------
class TestOneQuery:
    @pytest.mark.parametrize("options", ({}, {"edns": True}, {"dnssec": True}, {"edns": True, "payload": 512}), ids=str)
    @pytest.mark.parametrize("rr", (("www", "A"), ("many", "A"), ("big", "TXT"), ("missing", "A"), ("empty", "A"), ("chain", "A")),
                             ids=lambda rr: "-".join(rr))
    @pytest.mark.parametrize("family", (4, 6))
    def test_same_answer(self, bind, family, rr, options):
        """big needs more than 512 octets, and comes truncated where the client takes no more."""
        wire = query(f"{rr[0]}.lab.example", rr[1], **options).to_wire()
        exchange(bind.network.resolver, SERVICE[family], wire)           # over loopback: it is cached
        reply, took = by_ring(bind, lambda: exchange(bind.network.client1, SERVICE[family], wire))
        assert took == (1, 1, 0)
        assert difference(reply, exchange(bind.network.resolver, SERVICE[family], wire)) is None

    def test_truncated_comes_by_tcp(self, bind):
        reply = ask(bind.network.client1, SERVICE[4], "big.lab.example", "TXT")
        assert reply.flags & dns.flags.TC
        with bind.network.client1.entered():
            whole = dns.query.tcp(query("big.lab.example", "TXT"), SERVICE[4], timeout=5)
        assert not whole.flags & dns.flags.TC and len(whole.answer[0]) == 4

    def test_other_links_have_sockets(self, bind):
        reply, took = by_ring(bind, lambda: ask(bind.network.client2, SERVICE[4], NAME))
        assert reply.answer and took == (0, 0, 0)

    def test_answer_from_upstream_leaves_by_ring(self, bind):
        bind.world.relay.delay = 0.1
        reply, took = by_ring(bind, lambda: ask(bind.network.client1, SERVICE[6], "wild.wild.lab.example", "A", timeout=3))
        bind.world.relay.behave()
        assert reply is not None and took == (1, 1, 0)

    def test_named_counts_them(self, bind):
        ask(bind.network.client1, SERVICE[4], NAME)
        before = bind.named.stats()
        for _ in range(50):
            ask(bind.network.client1, SERVICE[4], NAME)
        after = bind.named.stats()
        assert counts(bind)["sent"] == counts(bind)["received"] >= 51
        grown = {name: after[name] - before.get(name, 0) for name in ("Requestv4", "Response", "QrySuccess", "QryUDP")}
        assert grown == {"Requestv4": 50, "Response": 50, "QrySuccess": 50, "QryUDP": 50}

    def test_many_at_once(self, bind):
        """More than a loop takes in one turn, from one port, so by one ring; fewer than that holds."""
        count = 200
        bind.named.program.popen.send_signal(signal.SIGSTOP)

        def flood():
            with bind.network.client1.entered():
                s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            with closing(s):
                s.settimeout(10)
                s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
                s.connect((SERVICE[4], 53))
                for i in range(count):
                    wire = query(NAME, "A")
                    wire.id = i
                    s.send(wire.to_wire())
                bind.named.program.popen.send_signal(signal.SIGCONT)
                return {int.from_bytes(s.recv(4096)[:2], "big") for _ in range(count)}
        ids, took = by_ring(bind, flood)
        assert ids == set(range(count)) and took == (count, count, 0)


def test_client_that_is_refused(world):
    with ring_path(world, clients="10.53.1.0/24;") as p:
        reply = ask(p.network.client2, SERVICE[4], NAME, local=CLIENT2[4])
        assert reply.rcode() == dns.rcode.REFUSED
        assert by_ring(p, lambda: ask(p.network.client1, SERVICE[4], NAME))[1] == (1, 1, 0)


def test_obstacles_of_offers_are_none_of_rings(world):
    with ring_path(world, options=("querylog yes;",)) as p:
        assert by_ring(p, lambda: ask(p.network.client1, SERVICE[4], NAME))[1] == (1, 1, 0)
        assert "no answer is offered to the kernel: queries are logged" in p.named.program.log.read_text()


# -- life ---------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ("reload", "reconfig"))
def test_reload(own, command):
    """The lanes stay, with what waits in them."""
    before = rings.numbers(own.daemon)
    with load(own) as asker:
        for _ in range(5):
            wait_used(own)
            own.named.control(command)
        wait_until(lambda: rings.numbers(own.daemon) == before, SOON, "the same lanes to be open again")
        wait_used(own)
        answers = asker.result()
    assert_answered(answers)


def test_reload_under_recursion(own):
    """Responses to queries by former rings still leave."""
    with rings.load(own.world, 300) as asker:
        for _ in range(3):
            for former, frames in ((256, 512), (512, 256)):
                change(own, f"hydns-queue-frames {former};", f"hydns-queue-frames {frames};")
                rings.wait_open(own.daemon)
                wait_used(own, 50)
        answers = asker.result()
    assert_answered(answers, dns.rcode.NXDOMAIN)


def test_turned_off_and_on(own):
    with load(own) as asker:
        change(own, NOTHING, f"{NOTHING} hydns-queue no;")
        wait_until(lambda: not rings.lanes(own.daemon), SOON, "no lanes")
        used = rings.counted(own.daemon)
        time.sleep(0.3)
        assert rings.counted(own.daemon) == used
        change(own, " hydns-queue no;", "")
        rings.wait_open(own.daemon)
        wait_used(own)
        answers = asker.result()
    assert_answered(answers)


def test_number_of_receive_queues(world):
    """A queue that packet rings are bound to can't be taken away; as the operator guide says, rings are turned off first."""
    def receive_queues(count):
        return run_tool(world.network.resolver, ["ethtool", "-L", "r1", "rx", count], check=False).returncode == 0

    with ring_path(world, threads=1) as p:
        assert receive_queues(2)
        try:
            wait_until(lambda: set(rings.numbers(p.daemon)) == {("r1", 0), ("r1", 1)}, SOON, "a lane on the second queue")
            assert not receive_queues(1)
            change(p, NOTHING, f"{NOTHING} hydns-queue no;")
        finally:
            wait_until(lambda: receive_queues(1), SOON, "the queue to be free")
        change(p, " hydns-queue no;", "")
        wait_until(lambda: set(rings.numbers(p.daemon)) == {("r1", 0)}, SOON, "a lane on the queue that is left")
        assert by_ring(p, lambda: ask(p.network.client1, SERVICE[4], NAME))[1] == (1, 1, 0)


def test_plugin_removed_and_added(world):
    """named unloads the plugin's code while queries lie in the rings, and while others wait for upstream: none is lost but in a
    socket that overflowed. At this rate rings of the fewest frames overflow when named waits 32 ms for a processor."""
    with ring_path(world, frames="hydns-queue-frames 4096;") as p:
        text = p.named.config.read_text()
        start, losses = text.index("plugin query"), Losses(world.network)
        with load(p, rate=8000) as asker, rings.load(world, 300) as recursions:
            for _ in range(12):
                wait_used(p)
                p.named.config.write_text(text[:start])
                p.named.control("reconfig")
                wait_until(lambda: not rings.lanes(p.daemon), SOON, "no lanes")
                p.named.config.write_text(text)
                p.named.control("reconfig")
                rings.wait_open(p.daemon)
            wait_used(p)
            answers, recursed = asker.result(), recursions.result()
        assert_answered(answers, losses=losses)
        assert_answered(recursed, dns.rcode.NXDOMAIN, losses=losses)


def test_plugin_removed_while_named_reads_a_long_configuration(world):
    """Its threads stand still meanwhile, and the ring fills. All that lay in it is answered, though it is more than a socket takes at
    once; only what came to full sockets is lost."""
    zones = "".join(f'zone "z{n}.example" {{ type forward; forward only; forwarders {{ 192.0.2.1; }}; }};\n' for n in range(ZONES))
    with ring_path(world, frames="hydns-queue-frames 4096;", threads=1) as p:
        text = p.named.config.read_text()
        losses, start = Losses(world.network), text.index("plugin query")
        with load(p, rate=8000) as asker:
            wait_used(p)
            p.named.config.write_text(text[:start] + zones)
            p.named.control("reconfig")
            wait_until(lambda: not rings.lanes(p.daemon), SOON, "no lanes")
            answers = asker.result()
        assert_answered(answers, losses=losses)


def test_another_address(own):
    """named listens elsewhere: the plugin starts again, and the rings serve that address, too."""
    other = DOORS["view"]
    change(own, f"listen-on {{ {SERVICE[4]};", f"listen-on {{ {SERVICE[4]}; {other};")
    def served():
        reply, took = by_ring(own, lambda: ask(own.network.client1, other, NAME, timeout=1))
        return reply is not None and took == (1, 1, 0)
    wait_until(served, SOON, f"queries to {other} to come by rings")


def test_ends_under_load(own):
    with rings.load(own.world, RATE, timeout=0.5) as asker:
        wait_used(own)
        assert own.named.stop() == 0
        asker.result()
    wait_until(lambda: not rings.lanes(own.daemon), SOON, "no lanes")
    own.named.start()
    rings.wait_open(own.daemon)


def test_restarted_with_another_number_of_threads(own):
    """That is named's for life: reloads do not change it. Its cache is empty: the first queries wait for the same fetch."""
    for threads in (1, 2):
        own.named.stop()
        own.named.threads = threads
        own.named.start()
        rings.wait_open(own.daemon)
        wait_until(lambda n=threads: {lane["threads"] for lane in rings.lanes(own.daemon)} == {n}, SOON, f"rings of {threads}")
        own.world.relay.delay = 0.02
        with load(own) as asker:
            wait_used(own)
            answers = asker.result()
        own.world.relay.behave()
        assert_answered(answers)


def test_killed(own):
    with load(own, timeout=0.5) as asker:
        wait_used(own)
        own.named.stop(signal.SIGKILL)
        own.named.start()
        rings.wait_open(own.daemon)
        started = time.monotonic_ns()
        wait_used(own)
        answers = asker.result()
    assert_answered([a for a in answers if a.sent > started])


def test_hydnsd_restarted(own):
    with load(own) as asker:
        wait_used(own)
        own.daemon.stop(signal.SIGKILL)
        wait_used(own)
        own.daemon.start()
        wait_until(own.daemon.resolver_ready, SOON, "the plugin to register again")
        wait_used(own)
        answers = asker.result()
    assert_answered(answers)


# -- routed replies ------------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="class")
def routed(world):
    """A path whose replies are routed (reply-path: fib), with one thread for the locked memory of two links."""
    with links.forwarding(world.network.resolver), \
            ring_path(world, threads=1, daemon={"links": CLIENT_LINKS, "options": ("--reply-path", "fib")}) as p:
        yield p


class TestRoutedReplies:
    @pytest.mark.parametrize("family", (4, 6))
    def test_replies(self, routed, family):
        """Until the next hop's Ethernet address is known, replies take sockets."""
        def one_by_ring():
            return by_ring(routed, lambda: ask(routed.network.client1, SERVICE[family], NAME))[1] == (1, 1, 0)
        wait_until(one_by_ring, SOON, "a reply by a ring")

        def load_ended():
            with load(routed, server=SERVICE[family]) as asker:
                wait_used(routed)
                return asker.result()
        answers, took = by_ring(routed, load_ended)
        assert_answered(answers)
        assert took[1] > 200 and took[0] == took[1] + took[2], f"received {took[0]}, sent {took[1]}, detours {took[2]}"

    @pytest.mark.parametrize("family", (4, 6))
    def test_replies_leave_where_the_routes_lead(self, routed, family):
        """Queries come by r1, and the route to their client leads out of r2; with or without a recursion."""
        network = routed.network
        with links.roaming_client(network, family) as client, udp(network.client1, client) as asks, \
                udp(network.client2, client, asks.getsockname()[1]) as listens:
            def exchanged(name):
                asks.sendto(query(name).to_wire(), (SERVICE[family], 53))
                return dns.message.from_wire(listens.recv(4096))
            wait_until(lambda: by_ring(routed, lambda: exchanged(NAME))[1] == (1, 1, 0), SOON, "a reply by a ring")
            for (name, _), rcode in (((NAME, ""), dns.rcode.NOERROR), (rings.never_asked(1)[0], dns.rcode.NXDOMAIN)):
                reply, took = by_ring(routed, lambda name=name: exchanged(name))
                assert (reply.rcode(), took) == (rcode, (1, 1, 0))


# -- views --------------------------------------------------------------------------------------------------------------------
def test_views(world):
    """The first view with the plugin has the rings. A query by a ring may be for another one at the same address; other
    addresses have sockets."""
    door = DOORS["view"]
    address = {"door": "192.0.2.201", "first": "192.0.2.203"}
    views = {name: ((f"match-destinations {{ {destination}; }};",
                     f'zone "which.example" {{ type primary; file "{name}.db"; }};'), True)
             for name, destination in (("first", f"{SERVICE[4]}; {SERVICE[6]}"), ("door", door))}
    with named_views(world, views, address, listen=f"{door};") as p:
        for server, view, took in ((SERVICE[4], "first", (1, 1, 0)), (door, "door", (0, 0, 0))):
            reply, carried = by_ring(p, lambda: ask(p.network.client1, server, "which.example"))
            assert (reply.answer[0][0].address, carried) == (address[view], took)
        def noted():
            return any("view first has the packet rings" in n for r in p.daemon.call({"cmd": "status"})["resolvers"]
                       if r["identity"] == "named, view door" for n in r["notes"])
        wait_until(noted, SOON, "a note of who has the rings")


def test_view_of_another_class(world):
    """It comes first, and has the first response, but neither the addresses nor the rings."""
    zone = 'zone "which.example" { type primary; file "%s.db"; };'
    views = {"chaos": ((zone % "chaos",), True, "chaos"), "internet": ((zone % "internet",), True)}
    daemon = world.hydnsd(**LANES)
    named = world.named(daemon, clause=(NOTHING, FRAMES), views=views)
    for name, rdclass in (("chaos", "CH"), ("internet", "IN")):
        (named.dir / f"{name}.db").write_text(f"@ 300 {rdclass} SOA . . 1 1 1 1 1\n@ 300 {rdclass} NS elsewhere.\n"
                                              f'@ 300 {rdclass} TXT "{name}"\n')
    with daemon, named:
        def answer(rdclass):
            with world.network.client1.entered():
                return dns.query.udp(dns.message.make_query("which.example", "TXT", rdclass), SERVICE[4], timeout=5).answer[0][0]
        assert answer("CH").strings == (b"chaos",)
        wait_until(lambda: "view chaos is not of class IN" in named.program.log.read_text(), SOON, "a line of what it has not")
        assert answer("IN").strings == (b"internet",)
        path = SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)
        rings.wait_open(path.daemon)
        assert [r["identity"] for r in daemon.call({"cmd": "status"})["resolvers"]] == ["named, view internet"]
        assert by_ring(path, lambda: answer("IN"))[1] == (1, 1, 0)


@contextmanager
def named_views(world, views, address, **options):
    daemon = world.hydnsd(**LANES)
    named = world.named(daemon, clause=(NOTHING, FRAMES), views=views, **options)
    for name, a in address.items():
        (named.dir / f"{name}.db").write_text(f"@ 300 SOA . . 1 1 1 1 1\n@ 300 NS @\n@ 300 A {a}\n")
    with daemon, named:
        path = SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)

        def ready():
            replies = [ask(world.network.client1, server, "which.example", timeout=0.5) for server in (SERVICE[4], DOORS["view"])]
            if not all(reply and reply.answer for reply in replies):     # a view may not have loaded its zone yet
                return False
            identities = [r["identity"] for r in daemon.call({"cmd": "status"})["resolvers"]]
            return all(f"named, view {view}" in identities for view in views)
        wait_until(ready, SOON, "the views to register")
        rings.wait_open(path.daemon)
        yield path
