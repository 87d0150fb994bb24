# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings on the upstream side: answers under way, long ones and ones in fragments, servers that are silent, unreachable
or answer over TCP alone."""

import dns.rdatatype
import pytest

from lab import links, rings
from lab.changing_zones import STORM
from lab.client import ask
from lab.network import SERVICE
from lab.relay import everything
from lab.ring_load import assert_answered, fresh
from lab.rings import Used
from lab.run import SOON, wait_until
from lab.tcp_relay import TcpRelay, truncated


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
    relay.answered.clear()
    with rings.load(path.world, 100, zone="lab.example") as asker:
        wait_until(lambda: len(rings.claimed(path.daemon)) > 10, SOON, "queries under way")
        path.daemon.ctl("pause")
        under_way = set(rings.claimed(path.daemon))
        wait_until(lambda: not under_way & set(rings.claimed(path.daemon)), SOON, "the answers under way to come")
        answers = asker.result()
    path.daemon.ctl("resume")
    assert used.now().queries > 5
    assert_answered(answers)
    assert relay.asked and not relay.asked_after(0.05), "asked again: an answer was lost"


def test_answers_in_fragments(path):
    """The authoritative server's link has a small MTU: fragments have no ports, and come to the stack."""
    used = Used(path)
    links.set_mtu(path.network.authoritative, "u0", 576)
    try:
        reply = ask(path.network.client1, SERVICE[4], "big.lab.example", "TXT", edns=True, payload=1232)
    finally:
        links.set_mtu(path.network.authoritative, "u0", 1500)
        links.ipv6_again(path.network.authoritative, "u0", "fd53:3::2/64", ("fd53:3::1", "::/0"))
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
    relay.loses = everything
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


def test_authoritative_server_that_answers_over_tcp_alone(path):
    used = Used(path)
    path.world.relay.change = truncated
    with TcpRelay(path.world) as tcp, rings.load(path.world, 50, zone="lab.example") as asker:
        wait_until(lambda: used.now().answers > 20, SOON, "truncated answers")
        answers = asker.result()
    assert tcp.connections
    assert_answered(answers)
