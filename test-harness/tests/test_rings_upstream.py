# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings on the upstream side: answers under way, long ones and ones in fragments, servers that are silent, unreachable
or answer over TCP alone."""

import socket
import threading

import dns.rdatatype
import pytest

from lab import rings
from lab.changing_zones import LAB, RELAY, STORM
from lab.client import ask
from lab.network import SERVICE
from lab.ring_load import Used, assert_answered, fresh, ipv6_again, set_mtu
from lab.run import SOON, wait_until


@pytest.fixture
def path(paths):
    return paths.take()


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
