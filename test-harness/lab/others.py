# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Counts the frames that come in on some links and are no queries, such as ARP, neighbour discovery and ICMP."""

import socket
from collections import Counter
from contextlib import ExitStack

ETH_P_ALL, OUTGOING = 0x0003, 4          # linux/if_ether.h, linux/if_packet.h
IPV4, IPV6, UDP, PORT = 0x0800, 0x86DD, 17, 53


def kind_of(frame):
    """"" for a query, else what the frame is."""
    ethertype = int.from_bytes(frame[12:14], "big")
    if ethertype not in (IPV4, IPV6) or len(frame) < 34:
        return f"Ethernet type {ethertype:04x}"
    at, protocol = (54, frame[20]) if ethertype == IPV6 else (14 + 4 * (frame[14] & 15), frame[23])
    if protocol != UDP or int.from_bytes(frame[at + 2:at + 4], "big") != PORT:
        return f"IP protocol {protocol}"
    return ""


class Others:
    """Context manager. They are seen behind the program, which passes all of them."""

    def __init__(self, ns, links):
        self.ns, self.links = ns, links
        self._stack, self._sockets = ExitStack(), []
        self._found = {link: Counter() for link in links}

    def __enter__(self):
        with self.ns.entered():
            for link in self.links:
                s = self._stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)))
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
                s.setblocking(False)
                s.bind((link, ETH_P_ALL))
                self._sockets.append(s)
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def take(self):
        """{kind: how many} of those that have come since the last call."""
        self._look()
        found, self._found = sum((self._found[link] for link in self.links), Counter()), {link: Counter() for link in self.links}
        return found

    def take_udp(self, link):
        """How many datagrams have come by one link since the last call; take() does not return these."""
        self._look()
        return self._found[link].pop(f"IP protocol {UDP}", 0)

    def _look(self):
        for s, link in zip(self._sockets, self.links):
            try:
                while True:
                    frame, address = s.recvfrom(2048)
                    if address[2] != OUTGOING:
                        self._found[link][kind_of(frame)] += 1
            except BlockingIOError:
                pass
            self._found[link].pop("", 0)
