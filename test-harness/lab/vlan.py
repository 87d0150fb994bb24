# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Queries of client 1 in a VLAN that no kernel knows."""

import socket
import struct
from contextlib import contextmanager

import dns.message

from .client import SILENCE, query
from .network import CLIENT1, SERVICE

TAG = 7
VLAN = struct.pack("!HH", 0x8100, TAG)   # TPID of IEEE 802.1Q, and the tag
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA = 3, 263, 8
AUXDATA = struct.Struct("=IIIHHHH")      # struct tpacket_auxdata of linux/if_packet.h; the sixth is the tag


@contextmanager
def asking(network):
    """Gives a function: asks a question in the VLAN from a port, and returns (DNS message, tag of its frame)."""
    with network.client1.entered():
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    with s:
        s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        s.bind(("c1", ETH_P_ALL))
        s.settimeout(SILENCE)

        def ask_in_vlan(name, port):
            s.send(_tagged_query(network, name, port))
            return _reply_and_tag(s, port)
        yield ask_in_vlan


def _tagged_query(network, name, source_port):
    """An Ethernet frame of client 1 to the resolver's service, with a tag."""
    own, router = (_ethernet_address(ns, link) for ns, link in ((network.client1, "c1"), (network.resolver, "r1")))
    wire = query(name).to_wire()
    source, to = (socket.inet_aton(a) for a in (CLIENT1[4], SERVICE[4]))
    udp = struct.pack("!HHHH", source_port, 53, 8 + len(wire), 0) + wire       # no checksum: IPv4 allows that (RFC 768)
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0) + source + to
    return router + own + VLAN + b"\x08\x00" + ip[:10] + _checksum(ip) + ip[12:] + udp


def _ethernet_address(ns, link):
    with ns.netlink() as ip:
        found = ip.get_links(ip.link_lookup(ifname=link)[0])[0]
    return bytes.fromhex(found.get_attr("IFLA_ADDRESS").replace(":", ""))


def _checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", total ^ 0xFFFF)


def _reply_and_tag(s, port):
    """Of the next reply to this port; the kernel has taken the tag out of the frame."""
    while True:
        frame, ancillary, _, address = s.recvmsg(2048, 64)
        ip = frame[14:]
        if address[2] == socket.PACKET_OUTGOING or frame[12:14] != b"\x08\x00" or ip[9] != socket.IPPROTO_UDP or \
                struct.unpack_from("!HH", ip, 20) != (53, port):
            continue
        return dns.message.from_wire(ip[28:]), AUXDATA.unpack(ancillary[0][2])[5]
