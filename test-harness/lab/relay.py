# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A name server that forwards queries to NSD: it delays them, records what was asked when, and may lose queries and change
replies."""

import heapq
import time
from collections import Counter

import dns.message

from .thread_server import ThreadServer


STEP = 0.01              # seconds after which it looks again whether it still holds queries back


def nothing(_wire):
    """The initial value of Relay.loses."""
    return False


def everything(_wire):
    """For Relay.loses: the server cannot be reached."""
    return True


def unchanged(wire):
    """The initial value of Relay.change."""
    return wire


class Relay(ThreadServer):
    """Context manager. Set at any time: delay (seconds), held (as long as it is set queries wait here), loses (a function of a
    query's octets: drop it?), change (a function from a reply's octets to those to send) and gone (drop everything, also what is
    under way). asked lists (monotonic time, name, type)."""

    def __init__(self, ns, address, server, port=53):
        super().__init__(ns, "relay")
        ns.address("lo", f"{address}/32")
        self.address = address
        self.behave()
        self.asked = []
        self.front, self.back = self.socket(), self.socket()
        self.front.bind((address, 53))
        self.back.connect((server, port))

    def behave(self):
        """Forwards everything at once and unchanged, as at first."""
        self.delay, self.held, self.loses, self.change, self.gone = 0.0, False, nothing, unchanged, False

    def __exit__(self, *exc):
        super().__exit__(*exc)
        self.ns.remove_address("lo", f"{self.address}/32")

    def count(self, name, since=0.0):
        """How often this name was asked for, with any type, since a monotonic time."""
        return sum(1 for at, asked, _ in list(self.asked) if asked == name and at >= since)

    def asked_again(self):
        """Names and types that were asked for more than once."""
        return [question for question, n in Counter(asked[1:] for asked in list(self.asked)).items() if n > 1]

    def _idle(self, waiting):
        """Seconds until one of them is due; None: nobody waits."""
        return None if not waiting else STEP if self.held else max(0.0, waiting[0][0] - time.monotonic())

    def serve(self):
        waiting, clients, number = [], {}, 0
        while (ready := self.ready(self._idle(waiting))) is not None:
            if self.front in ready:
                wire, client = self.front.recvfrom(65535)
                self._remember(wire)
                if not self.gone and not self.loses(wire):
                    number = (number + 1) % 65536
                    clients[number] = (client, wire[:2])
                    heapq.heappush(waiting, (time.monotonic() + self.delay, number, wire))
            while waiting and not self.held and waiting[0][0] <= time.monotonic():
                _, n, wire = heapq.heappop(waiting)
                self.back.send(n.to_bytes(2, "big") + wire[2:])
            if self.back in ready:
                reply = self.back.recv(65535)
                client, query_id = clients.pop(int.from_bytes(reply[:2], "big"), (None, None))
                if client and not self.gone:
                    self.front.sendto(self.change(query_id + reply[2:]), client)

    def _remember(self, wire):
        question = dns.message.from_wire(wire, question_only=True).question[0]
        self.asked.append((time.monotonic(), str(question.name).lower(), question.rdtype))
