# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings on the clients' side: more queries than they hold, VLANs, and replies that take routes."""

import signal
from contextlib import contextmanager

import dns.message
import pytest

from lab import links, rings, vlan
from lab.client import query, udp
from lab.network import SERVICE
from lab.ring_load import NXDOMAIN, assert_answered, fresh, local, settle
from lab.rings import Used
from lab.run import SOON, wait_until


# -- routed replies -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def routed(world, paths):
    """A path whose replies are routed (reply-path: fib)."""
    with links.forwarding(world.network.resolver):
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
    used, sent = Used(routed), rings.replies(routed.daemon)
    with links.roaming_client(network, family) as client, udp(network.client1, client) as asks, \
            udp(network.client2, client, asks.getsockname()[1]) as listens:
        def one_by_ring():
            """Until the next hop's Ethernet address is known, replies take sockets."""
            ((name, rdtype),) = rings.never_asked(1)
            asks.sendto(query(name, rdtype).to_wire(), (SERVICE[family], 53))
            assert dns.message.from_wire(listens.recv(4096)).rcode() == NXDOMAIN
            return rings.replies(routed.daemon) > sent
        wait_until(one_by_ring, SOON, "a reply by a ring")
    assert used.now().queries > 0


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
    used.mark()
    with rings.load(path.world, 2000, zone="lab.example", seconds=0.4) as asker:
        # all of them, for the rings of a stopped Unbound would have no room for the rest
        wait_until(lambda: used.now().queries >= 800 and len(rings.claimed(path.daemon)) > 2 * room, SOON, "queries under way")
        with stopped(path.unbound):
            used.mark()
            wait_until(lambda: used.now().answers > room, SOON, "answers to wait in the rings")
        relay.behave()
        answers = asker.result()
    assert_answered(answers)
    settle(path)


# -- VLAN ---------------------------------------------------------------------------------------------------------------------
def test_client_in_a_vlan(paths):
    """No kernel needs to know of VLANs: the reply leaves by the ring with the tag of its query."""
    path = paths.take(daemon={"options": ["--vlan", "yes", "--vlan-offload", "trust"]})
    used = Used(path)
    with vlan.asking(path.network) as ask_in_vlan:
        for port, (name, _) in enumerate(rings.never_asked(5), 4000):
            reply, tag = ask_in_vlan(name, port)
            assert (reply.rcode(), tag) == (NXDOMAIN, vlan.TAG)
    assert used.now().queries == 5
