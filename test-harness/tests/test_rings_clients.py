# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings for clients: more packets than they hold, VLANs, replies that take routes, and none for queries to upstream."""

import time
from collections import Counter

import dns.message
import dns.rcode
import pytest
from bind_rings import EITHER

from lab import links, rings, vlan
from lab.client import ask, query, udp
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


def test_no_upstream_rings_for_long_answers(paths):
    path = paths.take(upstream=False, server=["edns-buffer-size: 4096", "max-udp-size: 4096"])
    used = Used(path)
    with fresh(path) as asker:
        used.wait(answers=0)
        answers = asker.result()
    assert used.now().answers == 0
    assert_answered(answers)


# -- how long it took ---------------------------------------------------------------------------------------------------------
def took(path):
    """(replies by rings by the bucket of their time, seconds of all)"""
    found = [r["packet_rings"]["took"] for r in path.daemon.call({"cmd": "stats"})["resolvers"]]
    return Counter({float(bound): sum(f["counts"][bound] for f in found) for bound in found[0]["counts"]}), sum(f["sum_s"] for f in found)


def test_how_long_replies_took(paths):
    """Each reply by a ring counts once, those that wait for a slow upstream server among the long ones."""
    path = paths.take()
    before, seconds = took(path)
    path.world.relay.delay = 0.06
    ((name, rdtype),) = rings.never_asked(1, "lab.example")
    began = time.monotonic()
    assert ask(path.network.client1, SERVICE[4], name, rdtype)
    asked_for = time.monotonic() - began
    after, more = took(path)
    (bound,) = (after - before).elements()
    assert bound >= 0.1 and 0.06 <= more - seconds <= asked_for
    assert after.total() == rings.replies(path.daemon)


# -- rings that are full ------------------------------------------------------------------------------------------------------
ROOM = 256


@pytest.fixture
def small(paths):
    """A path whose rings hold few packets."""
    return paths.take(frames=ROOM)


@EITHER
def test_full_of_queries(small):
    """The rest comes by the resolver's sockets, which hold more."""
    before = rings.full(small.daemon)
    with local(small, 4000, seconds=0.4) as many:
        with small.server.stopped():
            wait_until(lambda: rings.full(small.daemon) >= before + ROOM, SOON, "more queries than the rings hold")
        answers = many.result()
    assert_answered(answers, dns.rcode.NOERROR)


@EITHER
def test_full_of_answers(small):
    """The rest comes by the stray sockets."""
    relay, used, before = small.world.relay, Used(small), rings.full(small.daemon)
    settle(small, zone="lab.example")
    relay.delay = 0.6
    used.mark()
    with rings.load(small.world, 2000, zone="lab.example", seconds=0.4) as asker:
        # all of them, for the rings of a stopped resolver would have no room for the rest
        wait_until(lambda: used.now().queries >= 800 and len(rings.claimed(small.daemon)) > 2 * ROOM, SOON, "queries under way")
        with small.server.stopped():
            wait_until(lambda: rings.full(small.daemon) > before, SOON, "more answers than the rings hold")
        relay.behave()
        answers = asker.result()
    assert_answered(answers)
    settle(small)


# -- VLAN ---------------------------------------------------------------------------------------------------------------------
@EITHER
def test_client_in_a_vlan(paths):
    """No kernel needs to know of VLANs: the reply leaves by the ring with the tag of its query."""
    path = paths.take(daemon={"options": ["--vlan", "yes", "--vlan-offload", "trust"]})
    used = Used(path)
    with vlan.asking(path.network) as ask_in_vlan:
        for port, (name, _) in enumerate(rings.never_asked(5), 4000):
            reply, tag = ask_in_vlan(name, port)
            assert (reply.rcode(), tag) == (NXDOMAIN, vlan.TAG)
    assert used.now().queries == 5
