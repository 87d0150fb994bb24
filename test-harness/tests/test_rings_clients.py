# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings on the clients' side: more queries than they hold, VLANs, and replies that take routes."""

import signal
import socket
import struct
from contextlib import contextmanager

import dns.message
import pytest

from lab import rings
from lab.client import SILENCE, query
from lab.network import CLIENT1, CLIENT2, SERVICE
from lab.ring_load import NXDOMAIN, Used, assert_answered, fresh, local, settle, sysctls
from lab.run import SOON, wait_until


# -- routed replies -----------------------------------------------------------------------------------------------------------
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
