# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with packet rings: what comes by them is answered as what comes by its sockets, and nothing is lost by reloads. Nothing is
offered to the kernel, so that every query is named's to answer."""

import signal
import socket
import time
from contextlib import closing, contextmanager
from types import SimpleNamespace

import dns.flags
import dns.query
import dns.rcode
import pytest
from conftest import bind_path

from lab import pinned, rings
from lab.changing_zones import TLD
from lab.client import Asker, ask, exchange, query
from lab.compare import difference
from lab.network import CLIENT2, DOORS, SERVICE, UPSTREAM_PORTS
from lab.process import run_tool
from lab.relay import SO_RCVBUFFORCE, everything
from lab.run import SOON, wait_until

NAME = "www.lab.example"
NOTHING = "hydns-admission 1000000;"
# named drops CAP_IPC_LOCK, so it may lock 8 MiB, in which the rings of a named that has just ended still count for some ten
# seconds: one link, with 3 MiB.
FRAMES = "hydns-queue-frames 256;"
CLIENTS = "hydns-queue-upstream no;"
LINKS = ("r1",)
LANES = {"links": LINKS}
UP_LINKS = ("r1", "ra")  # with one thread, for named's own queries: 3 MiB again
RATE = 2000
FRESH_RATE = 300         # of names that nobody has asked before


@contextmanager
def ring_path(world, **options):
    with bind_path(world, clause=(NOTHING, FRAMES, CLIENTS), daemon_options=LANES, **options) as p:
        wait_open(p)
        try:
            yield p
        finally:
            world.relay.behave()


@pytest.fixture(scope="class")
def bind(world):
    with ring_path(world, options=("rrset-order { order none; };",)) as p:
        yield p


@pytest.fixture
def own(world):
    """A path for one test."""
    with ring_path(world) as p:
        yield p


def wait_open(path):
    rings.wait_open(path.daemon, LINKS)


def counts(path):
    """What the rings of all resolvers have carried."""
    found = [r["packet_rings"] for r in path.daemon.call({"cmd": "stats"})["resolvers"]]
    return {name: sum(f[name] for f in found) for name in ("received", "sent")} | \
        {"detours": sum(sum(f["detours"].values()) for f in found)}


def by_ring(path, do):
    """Its result, and how many queries and responses took rings, and datagrams detours, while do() ran."""
    before = counts(path)
    result = do()
    after = counts(path)
    return result, tuple(after[name] - before[name] for name in ("received", "sent", "detours"))


def load(path, names=(NAME,), rate=RATE, **options):
    return Asker(path.world, path.network.client1, SERVICE[4], [(name, "A") for name in names], rate, **options)


def assert_answered(answers, rcode=dns.rcode.NOERROR):
    lost = [a for a in answers if a.latency is None]
    wrong = [a for a in answers if a.latency is not None and a.rcode != rcode]
    assert len(answers) > 100
    assert not lost, f"{len(lost)} of {len(answers)} queries without an answer"
    assert not wrong, f"{len(wrong)} wrong answers, the first: {wrong[0]}"


def wait_used(path, queries=200):
    used = rings.counted(path.daemon).queries
    wait_until(lambda: rings.counted(path.daemon).queries >= used + queries, SOON, f"{queries} queries to come by rings")


def numbers(path):
    return {(lane["interface"], lane["queue"]): lane["number"] for lane in rings.lanes(path.daemon) if lane["open"]}


def change(path, old, new):
    text = path.named.config.read_text()
    assert old in text
    path.named.config.write_text(text.replace(old, new, 1))
    path.named.control("reconfig")
    ask(path.network.client1, SERVICE[4], NAME)      # the plugin starts with the first response


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
    before = numbers(own)
    with load(own) as asker:
        for _ in range(5):
            wait_used(own)
            own.named.control(command)
        wait_until(lambda: numbers(own) == before, SOON, "the same lanes to be open again")
        wait_used(own)
        answers = asker.result()
    assert_answered(answers)


def test_reload_under_recursion(own):
    """Responses to queries by former rings still leave."""
    with rings.load(own.world, 300) as asker:
        for _ in range(3):
            for former, frames in ((256, 512), (512, 256)):
                change(own, f"hydns-queue-frames {former};", f"hydns-queue-frames {frames};")
                wait_open(own)
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
        wait_open(own)
        wait_used(own)
        answers = asker.result()
    assert_answered(answers)


def test_plugin_removed_and_added(own):
    """named unloads the plugin's code while queries lie in the rings, and while others wait for upstream: none is lost."""
    text = own.named.config.read_text()
    start = text.index("plugin query")
    with load(own, rate=8000) as asker, rings.load(own.world, 300) as recursions:
        for _ in range(12):
            wait_used(own)
            own.named.config.write_text(text[:start])
            own.named.control("reconfig")
            wait_until(lambda: not rings.lanes(own.daemon), SOON, "no lanes")
            own.named.config.write_text(text)
            own.named.control("reconfig")
            wait_open(own)
        wait_used(own)
        answers, recursed = asker.result(), recursions.result()
    assert_answered(answers)
    assert_answered(recursed, dns.rcode.NXDOMAIN)


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
    wait_open(own)


def test_killed(own):
    with load(own, timeout=0.5) as asker:
        wait_used(own)
        own.named.stop(signal.SIGKILL)
        own.named.start()
        wait_open(own)
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


# -- named's own queries --------------------------------------------------------------------------------------------------------
@contextmanager
def upstream_path(world, **options):
    with bind_path(world, **{"clause": (NOTHING, FRAMES), "threads": 1} | options, daemon_options={"links": UP_LINKS}) as p:
        settle(p)
        try:
            yield p
        finally:
            world.relay.behave()


@pytest.fixture(scope="class")
def upstream(world):
    with upstream_path(world) as p:
        yield p


@pytest.fixture
def shared(upstream):
    """The class's path, as at first."""
    for server in (upstream.daemon, upstream.named):
        if not server.program.running():
            server.start()
    upstream.world.relay.behave()
    settle(upstream)
    return upstream


def settle(path):
    """Until all lanes are open and answers come by rings."""
    rings.wait_open(path.daemon, UP_LINKS)

    def used():
        before = rings.counted(path.daemon).answers
        for name, rdtype in rings.never_asked(8):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1)
        return rings.counted(path.daemon).answers - before >= 8
    wait_until(used, SOON, "answers to named's own queries to come by rings")


def own_counts(path):
    found = [r["packet_rings"] for r in path.daemon.call({"cmd": "stats"})["resolvers"]]
    return {name: sum(f[name] for f in found) for name in ("sent_upstream", "received_answers", "strays")} | \
        {"detours": sum(sum(f["detours"].values()) for f in found), "sockets": path.named.sockets()}


def grown(path, do):
    """Its result, and what own_counts() has grown by."""
    before = own_counts(path)
    result = do()
    return result, {name: n - before[name] for name, n in own_counts(path).items()}


def recursions(path, count=50, zone="kinds.example", **options):
    """Replies to names that nobody has asked before."""
    return [ask(path.network.client1, SERVICE[4], name, rdtype, timeout=8, **options)
            for name, rdtype in rings.never_asked(count, zone)]


def warm(path, zone):
    """Until queries to the zone's servers leave by rings: their next hop is known then."""
    wait_until(lambda: grown(path, lambda: recursions(path, 1, zone))[1]["sent_upstream"], SOON,
               f"queries for {zone} to leave by rings")


def fresh(path, **options):
    return rings.load(path.world, FRESH_RATE, **options)


def wait_answers(path, answers=100):
    before = rings.counted(path.daemon).answers
    wait_until(lambda: rings.counted(path.daemon).answers >= before + answers, SOON, f"{answers} answers to come by rings")


@contextmanager
def all_ports_taken(path):
    first, last = (int(port) for port in UPSTREAM_PORTS.split("-"))
    taken, free = b"\xff" * rings.WORD * (last - first + 1), bytes(rings.WORD) * (last - first + 1)
    wait_until(lambda: not rings.claimed(path.daemon), SOON, "all ports to be free")
    with pinned.writable(path.daemon.pins / "hydns_ports") as words:
        assert words[first * rings.WORD:(last + 1) * rings.WORD] == free
        words[first * rings.WORD:(last + 1) * rings.WORD] = taken
        yield
        words[first * rings.WORD:(last + 1) * rings.WORD] = free


def forward(*addresses, port=53):
    return {"refused.example": f"type forward; forward only; forwarders port {port} {{ {' '.join(f'{a};' for a in addresses)} }};"}


class TestOwnQueries:
    def test_no_socket_is_opened(self, shared):
        replies, took = grown(shared, lambda: recursions(shared))
        assert {r.rcode() for r in replies} == {dns.rcode.NXDOMAIN}
        assert took == {"sent_upstream": 50, "received_answers": 50, "strays": 0, "detours": 0, "sockets": 0}
        assert not rings.claimed(shared.daemon)

    def test_load(self, shared):
        with fresh(shared) as asker:
            wait_answers(shared, 500)
            answers = asker.result()
        assert_answered(answers, dns.rcode.NXDOMAIN)
        wait_until(lambda: not rings.claimed(shared.daemon), SOON, "all ports to be free")

    def test_ports_are_those_that_the_host_reserves(self, shared):
        first, last = (int(port) for port in UPSTREAM_PORTS.split("-"))
        warm(shared, "lab.example")
        shared.world.relay.delay = 1.0
        for name, rdtype in rings.never_asked(20, "lab.example"):
            ask(shared.network.client1, SERVICE[4], name, rdtype, timeout=0.01)
        claimed = rings.claimed(shared.daemon)
        assert len(claimed) > 10 and all(first <= port <= last for port in claimed)

    def test_no_port_is_free(self, shared):
        """Others have all. A query finds out when it is sent: its socket is opened then."""
        with all_ports_taken(shared):
            replies, took = grown(shared, lambda: recursions(shared))
        assert {r.rcode() for r in replies} == {dns.rcode.NXDOMAIN}
        assert took == {"sent_upstream": 0, "received_answers": 0, "strays": 0, "detours": 50, "sockets": 50}

    def test_silent_server(self, shared):
        """named asks again, and gives up, by its own timers; its ports are free then, and answers come when the server does."""
        warm(shared, "lab.example")
        before = shared.named.resolving().get("QueryTimeout", 0)
        shared.world.relay.loses = everything
        replies, took = grown(shared, lambda: recursions(shared, 1, "lab.example"))
        assert replies[0] is None or replies[0].rcode() == dns.rcode.SERVFAIL
        assert took["sent_upstream"] >= 1 and took["received_answers"] == 0
        assert shared.named.resolving()["QueryTimeout"] > before
        wait_until(lambda: not rings.claimed(shared.daemon), SOON, "all ports to be free")
        shared.world.relay.behave()
        wait_until(lambda: recursions(shared, 1, "lab.example")[0].rcode() == dns.rcode.NXDOMAIN, SOON, "the server to be asked")

    def test_late_answer(self, shared):
        """It comes to a port that is nobody's; named has asked again."""
        shared.world.relay.delay = 1.2
        replies = recursions(shared, 1, "lab.example")
        assert replies[0] is not None and replies[0].rcode() == dns.rcode.NXDOMAIN

    def test_wrong_id_counts_as_forged(self, shared):
        """As by a socket: named asks again by TCP, which the relay does not answer, and says SERVFAIL or goes on asking."""
        before = shared.named.resolving().get("Mismatch", 0)
        shared.world.relay.change = lambda wire: bytes((wire[0] ^ 1,)) + wire[1:]
        recursions(shared, 1, "lab.example")
        assert shared.named.resolving()["Mismatch"] > before

    @pytest.mark.parametrize("command", ("reload", "reconfig"))
    def test_reload(self, shared, command):
        """What was under way is asked again at once."""
        with fresh(shared) as asker:
            for _ in range(3):
                wait_answers(shared)
                shared.named.control(command)
            wait_answers(shared)
            answers = asker.result()
        assert_answered(answers, dns.rcode.NXDOMAIN)

    def test_other_rings(self, shared):
        """Those that end take their ports along; what was under way is asked again."""
        with fresh(shared) as asker:
            for former, frames in ((256, 512), (512, 256)) * 2:
                change(shared, f"hydns-queue-frames {former};", f"hydns-queue-frames {frames};")
                settle(shared)
                wait_answers(shared)
            answers = asker.result()
        assert_answered(answers, dns.rcode.NXDOMAIN)
        wait_until(lambda: not rings.claimed(shared.daemon), SOON, "all ports to be free")

    def test_hydnsd_restarted(self, shared):
        with fresh(shared) as asker:
            wait_answers(shared)
            shared.daemon.stop(signal.SIGKILL)
            wait_answers(shared)
            shared.daemon.start()
            wait_until(shared.daemon.resolver_ready, SOON, "the plugin to register again")
            wait_answers(shared)
            answers = asker.result()
        assert_answered(answers, dns.rcode.NXDOMAIN)

    def test_reload_while_hydnsd_is_away(self, shared):
        """The next plugin object starts with the first response: until then no query may leave by the former's rings."""
        shared.daemon.stop(signal.SIGKILL)
        sockets, timeouts = shared.named.sockets(), shared.named.resolving().get("QueryTimeout", 0)
        shared.named.control("reconfig")
        replies = recursions(shared, 10)
        assert {r.rcode() for r in replies} == {dns.rcode.NXDOMAIN}
        assert shared.named.sockets() >= sockets + 10
        assert shared.named.resolving().get("QueryTimeout", 0) == timeouts
        shared.daemon.start()
        settle(shared)

    def test_pause(self, shared):
        """Answers come to the stack, which gives them to the thread that asked."""
        with fresh(shared) as asker:
            wait_answers(shared)
            before = own_counts(shared)
            shared.daemon.ctl("pause")
            wait_until(lambda: own_counts(shared)["strays"] > before["strays"], SOON, "answers by the stack")
            wait_until(lambda: own_counts(shared)["sockets"] > before["sockets"] + 50, SOON, "queries by sockets")
            shared.daemon.ctl("resume")
            wait_answers(shared)
            answers = asker.result()
        assert_answered(answers, dns.rcode.NXDOMAIN)

    def test_link_down(self, shared):
        resolver = shared.network.resolver
        with fresh(shared) as asker:
            wait_answers(shared)
            resolver.link_state("ra", up=False)
            resolver.link_state("ra", up=True)
            for address, gateway, to in (("10.53.3.1/24", "10.53.3.2", "0.0.0.0/0"), ("fd53:3::1/64", "fd53:3::2", "::/0")):
                run_tool(resolver, ["ip", "address", "replace", address, "dev", "ra", *(["nodad"] if ":" in address else [])])
                run_tool(resolver, ["ip", "route", "replace", to, "via", gateway])
            settle(shared)
            up = time.monotonic_ns()
            wait_answers(shared)
            answers = asker.result()
        assert_answered([a for a in answers if a.sent > up], dns.rcode.NXDOMAIN)

    def test_turned_off_and_on(self, shared):
        change(shared, NOTHING, f"{NOTHING} hydns-queue-upstream no;")
        wait_until(lambda: ask(shared.network.client1, SERVICE[4], NAME, timeout=1), SOON, "an answer")
        rings.wait_open(shared.daemon, UP_LINKS)
        _, took = grown(shared, lambda: recursions(shared, 10))
        assert took["sent_upstream"] == 0 and took["sockets"] >= 10
        change(shared, " hydns-queue-upstream no;", "")
        settle(shared)

    def test_killed(self, shared):
        with fresh(shared, timeout=1) as asker:
            wait_answers(shared)
            shared.named.stop(signal.SIGKILL)
            shared.named.start()
            settle(shared)
            started = time.monotonic_ns()
            wait_answers(shared)
            answers = asker.result()
        assert_answered([a for a in answers if a.sent > started], dns.rcode.NXDOMAIN)

    def test_ends_under_load(self, shared):
        with fresh(shared, timeout=0.5) as asker:
            wait_answers(shared)
            assert shared.named.stop() == 0
            asker.result()
        wait_until(lambda: not rings.claimed(shared.daemon), SOON, "no port words")
        shared.named.start()
        settle(shared)


@pytest.mark.parametrize("dead", (TLD[4], TLD[6]))
def test_refused_query_fails_at_once(world, dead):
    """Nobody listens there. named does not wait for its timer, neither alone nor before it asks the next server."""
    with upstream_path(world, zones=forward(dead, port=5353)) as p:
        warm(p, "refused.example")
        replies, took = grown(p, lambda: recursions(p, 2, "refused.example"))
        assert {r.rcode() for r in replies} == {dns.rcode.SERVFAIL}
        assert took["sent_upstream"] >= 2 and took["received_answers"] == 0
        assert p.named.resolving().get("QueryTimeout", 0) == 0
        assert not rings.claimed(p.daemon)


def test_truncated_answer_is_asked_for_by_tcp(world):
    def ask_whole(path):
        with path.network.client1.entered():
            return dns.query.tcp(query("txt-big.kinds.example", "TXT"), SERVICE[4], timeout=8)

    with upstream_path(world, options=("edns-udp-size 512;",)) as p:
        reply, took = grown(p, lambda: ask_whole(p))
        assert took["sent_upstream"] == took["received_answers"] == 1
        assert not reply.flags & dns.flags.TC and len(reply.answer[0]) == 5


def test_ports_to_avoid(world):
    first, last = (int(port) for port in UPSTREAM_PORTS.split("-"))
    half = (first + last) // 2
    with upstream_path(world, options=(f"use-v4-udp-ports {{ range 1024 {last - 1}; }};",
                                       f"avoid-v6-udp-ports {{ range {first} {half - 1}; {half}; }};")) as p:
        warm(p, "lab.example")
        world.relay.delay = 3.0
        for name, rdtype in rings.never_asked(200, "lab.example"):
            ask(p.network.client1, SERVICE[4], name, rdtype, timeout=0.001)
        wait_until(lambda: len(rings.claimed(p.daemon)) > 50, SOON, "queries under way")
        assert all(half < port < last for port in rings.claimed(p.daemon))


@pytest.mark.parametrize("options, where, words", (
    ("", "resolver", ""),
    ("", "client1", "hydns-queue-upstream yes: the host reserves no 4096 ports in a row"),
    ("edns-udp-size 1233;", "resolver", "hydns-queue-upstream yes: edns-udp-size is above 1232"),
    ("use-v4-udp-ports { range 32768 60999; };", "resolver", "hydns-queue-upstream yes: use-v4-udp-ports and the like leave fewer"),
))
def test_demanded(world, options, where, words):
    """named-checkconf, in a host that reserves ports, or none."""
    named = world.named(world.hydnsd(), clause=("hydns-queue-upstream yes;",), options=(options,))
    done = run_tool(getattr(world.network, where), [*named.program_of("bin/named-checkconf"), named.config], check=False)
    assert (done.returncode == 0) == (words == "") and words in done.stdout + done.stderr


def test_query_source_with_a_port_takes_sockets(world):
    with bind_path(world, clause=(NOTHING, FRAMES), threads=1, daemon_options={"links": UP_LINKS},
                   options=("query-source address * port 20053;",)) as p:
        rings.wait_open(p.daemon, UP_LINKS)
        _, took = grown(p, lambda: recursions(p, 5))
        assert took["sent_upstream"] == 0 and took["sockets"] >= 1


def test_large_edns_takes_sockets(world):
    with bind_path(world, clause=(NOTHING, FRAMES), threads=1, daemon_options={"links": UP_LINKS},
                   options=("edns-udp-size 4096;",)) as p:
        rings.wait_open(p.daemon, UP_LINKS)
        _, took = grown(p, lambda: recursions(p, 5))
        assert took["sent_upstream"] == 0 and took["sockets"] >= 5
        assert any("edns-udp-size" in n for r in p.daemon.call({"cmd": "status"})["resolvers"] for n in r["notes"])


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


@contextmanager
def named_views(world, views, address, **options):
    daemon = world.hydnsd(**LANES)
    named = world.named(daemon, clause=(NOTHING, FRAMES), views=views, **options)
    for name, a in address.items():
        (named.dir / f"{name}.db").write_text(f"@ 300 SOA . . 1 1 1 1 1\n@ 300 NS @\n@ 300 A {a}\n")
    with daemon, named:
        path = SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)

        def ready():
            for server in (SERVICE[4], DOORS["view"]):
                ask(world.network.client1, server, "which.example", timeout=0.5)
            identities = [r["identity"] for r in daemon.call({"cmd": "status"})["resolvers"]]
            return all(f"named, view {view}" in identities for view in views)
        wait_until(ready, SOON, "the views to register")
        wait_open(path)
        yield path
