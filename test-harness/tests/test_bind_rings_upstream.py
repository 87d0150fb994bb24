# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with packet rings for its own queries: they leave by them, from reserved ports, and their answers come by them; what rings
can't take, and queries when rings end, take sockets, and nothing is lost. More of failures: test_rings_failures.py."""

import signal
from contextlib import suppress

import dns.flags
import dns.query
import dns.rcode
import pytest
from bind_rings import (FRAMES, NAME, NOTHING, all_ports_taken, another_object, assert_answered, change, fresh, grown, own_counts, recursions,
                        settle, upstream_alone, upstream_path, wait_answers, warm, with_senders)
from conftest import bind_path

from lab import links, rings
from lab.changing_zones import TLD
from lab.client import ask, query
from lab.network import SERVICE, UPSTREAM_PORTS
from lab.process import run_tool
from lab.relay import everything
from lab.run import SOON, HarnessError, wait_until

GIVEN_UP = 12            # seconds: named ends a resolution after 10


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


def forward(*addresses, port=53):
    return {"refused.example": f"type forward; forward only; forwarders port {port} {{ {' '.join(f'{a};' for a in addresses)} }};"}


class TestOwnQueries:
    def test_no_socket_is_opened(self, shared):
        replies, took = grown(shared, lambda: recursions(shared))
        assert {r.rcode() for r in replies} == {dns.rcode.NXDOMAIN}
        assert took == {"sent_upstream": 50, "received_answers": 50}
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
        assert took == {"sockets": 50, "NO_PORT": 50}

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

    def test_reload_ends_timers(self, shared):
        """After some tries named waits for longer than for the first: a query that waits so is asked again before another's
        first timer ends."""
        relay, some = shared.world.relay, 4
        warm(shared, "lab.example")
        relay.loses = everything
        second, *names = (name for name, _ in rings.never_asked(4, "lab.example"))

        def is_tried_again(name):
            ask(shared.network.client1, SERVICE[4], name, timeout=0.01)
            with suppress(HarnessError):       # named has given it up before, since the machine was busy
                return wait_until(lambda: relay.count(f"{name}.") >= some and rings.claimed(shared.daemon), GIVEN_UP, "some tries, the last by a ring")
        first = next(name for name in names if is_tried_again(name))
        tried = relay.count(f"{first}.")
        with another_object(shared):
            ask(shared.network.client1, SERVICE[4], second, timeout=0.01)
            wait_until(lambda: relay.count(f"{second}.") > 1, SOON, "the other query to be asked again")
            assert relay.count(f"{first}.") > tried
            relay.behave()

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

    def test_reload_while_hydnsd_is_away(self, shared):
        """The next plugin object starts with the first response: until then no query may leave by the former's rings."""
        shared.daemon.stop(signal.SIGKILL)
        sockets, timeouts = shared.named.sockets(), shared.named.resolving().get("QueryTimeout", 0)
        with another_object(shared):
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

    def test_turned_off_and_on(self, shared):
        change(shared, NOTHING, f"{NOTHING} hydns-queue-upstream no;")
        wait_until(lambda: ask(shared.network.client1, SERVICE[4], NAME, timeout=1), SOON, "an answer")
        rings.wait_open(shared.daemon)
        _, took = grown(shared, lambda: recursions(shared, 10))
        assert took["sent_upstream"] == 0 and took["sockets"] >= 10
        change(shared, " hydns-queue-upstream no;", "")
        settle(shared)

    def test_ends_under_load(self, shared):
        with fresh(shared, timeout=0.5) as asker:
            wait_answers(shared)
            assert shared.named.stop() == 0
            asker.result()
        wait_until(lambda: not rings.claimed(shared.daemon), SOON, "no port words")
        shared.named.start()
        settle(shared)


def test_two_threads(world):
    """An answer comes to the thread that has asked, also under load; clients' queries come by sockets here."""
    with upstream_alone(world, threads=2) as p:
        replies, took = grown(p, lambda: recursions(p, 200))
        assert {r.rcode() for r in replies} == {dns.rcode.NXDOMAIN}
        for_next_hops = took.pop("REFRESH_NEIGHBOUR", 0)       # when the machine is so slow that one has become doubtful
        assert took.pop("sockets", 0) == for_next_hops < 20
        assert took == dict.fromkeys(("sent_upstream", "received_answers"), 200 - for_next_hops)
        with fresh(p) as one, fresh(p) as another:
            wait_answers(p, 500)
            answers = one.result() + another.result()
        assert_answered(answers, dns.rcode.NXDOMAIN)
        wait_until(lambda: not rings.claimed(p.daemon), SOON, "all ports to be free")


@pytest.mark.parametrize("dead", (TLD[4], TLD[6]))
def test_refused_query_fails_at_once(world, dead):
    """Nobody listens there. named does not wait for its timer, neither alone nor before it asks the next server."""
    with links.icmp_always(world.network.authoritative), upstream_alone(world, zones=forward(dead, port=5353)) as p:
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

    with upstream_alone(world, options=("edns-udp-size 512;",)) as p:
        reply, took = grown(p, lambda: ask_whole(p))
        assert took["sent_upstream"] == took["received_answers"] == 1
        assert not reply.flags & dns.flags.TC and len(reply.answer[0]) == 5


def test_ports_to_avoid(world):
    first, last = (int(port) for port in UPSTREAM_PORTS.split("-"))
    half = (first + last) // 2
    with upstream_alone(world, options=(f"use-v4-udp-ports {{ range 1024 {last - 1}; }};",
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
    ports = ("query-source address * port 20053;", "query-source-v6 address * port 20053;")
    with bind_path(world, clause=(NOTHING, FRAMES, "hydns-queue no;"), threads=1, daemon_options={"links": ("ra",)},
                   options=ports) as p:
        rings.wait_open(p.daemon)
        _, took = grown(p, lambda: recursions(p, 5))
        assert took["sent_upstream"] == 0 and took["sockets"] >= 1


@pytest.mark.parametrize("options, statements", (
    (("edns-udp-size 4096;",), ()),
    ((), ("server 192.0.2.77 { edns-udp-size 4096; };",)),
), ids=("all", "one-server"))
def test_large_edns_takes_sockets(world, options, statements):
    with bind_path(world, clause=(NOTHING, FRAMES), threads=1, daemon_options={"links": ("ra",)}, options=options,
                   statements=statements) as p:
        rings.wait_open(p.daemon)
        _, took = grown(p, lambda: recursions(p, 5))
        assert took["sent_upstream"] == 0 and took["sockets"] >= 5
        assert any("edns-udp-size" in n for r in p.daemon.call({"cmd": "status"})["resolvers"] for n in r["notes"])


def test_query_source_address(world):
    """Queries leave by rings from the address that is set, which is another link's."""
    source = {4: SERVICE[4], 6: SERVICE[6]}
    with upstream_alone(world, options=(f"query-source address {source[4]};", f"query-source-v6 address {source[6]};")) as p:
        (_, took), seen = with_senders(p, lambda: grown(p, lambda: recursions(p, 20)), 20)
    assert took["sent_upstream"] == took["received_answers"] == 20 and took["sockets"] == 0
    assert {address for address, _ in seen} <= set(source.values()) and len(seen) == 20


def test_sockets_leave_the_ports_of_rings_alone(world):
    """Also where use-v4-udp-ports lists both."""
    first, last = (int(port) for port in UPSTREAM_PORTS.split("-"))
    ports = [f"use-v{family}-udp-ports {{ range {first} {last + 4096}; }};" for family in (4, 6)]
    with upstream_alone(world, options=ports) as p:
        _, by_ring = with_senders(p, lambda: recursions(p, 20), 20)
        with all_ports_taken(p):
            (_, took), by_socket = with_senders(p, lambda: grown(p, lambda: recursions(p)), 50)
    assert all(first <= port <= last for _, port in by_ring)
    assert took["sockets"] == 50 and all(last < port <= last + 4096 for _, port in by_socket)
