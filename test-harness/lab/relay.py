# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A name server that forwards queries to NSD: it delays them, records what was asked when, and may lose queries and change
replies."""

import heapq
import select
import socket
import threading
import time

import dns.message

SO_RCVBUFFORCE = 33      # of linux/socket.h; Python has no name for it


def nothing(_wire):
    """The initial value of Relay.loses."""
    return False


def everything(_wire):
    """For Relay.loses: the server cannot be reached."""
    return True


def unchanged(wire):
    """The initial value of Relay.change."""
    return wire


class Relay:
    """Context manager. Set at any time: delay (seconds), loses (a function of a query's octets: drop it?) and change (a
    function from a reply's octets to those to send). asked and answered list (monotonic time, name, type)."""

    def __init__(self, ns, address, server):
        ns.address("lo", f"{address}/32")
        self.ns, self.address = ns, address
        self.behave()
        self.asked, self.answered = [], []
        with ns.entered():
            self.front = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.front.bind((address, 53))
            self.back = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            self.back.connect((server, 53))
        for s in (self.front, self.back):       # room for what comes while this thread waits for a processor
            s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20)
        self.wake, self.woken = socket.socketpair()
        self.thread = threading.Thread(target=self._serve, name="relay", daemon=True)

    def behave(self):
        """Forwards everything at once and unchanged, as at first."""
        self.delay, self.loses, self.change = 0.0, nothing, unchanged

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.wake.close()
        self.thread.join(5)
        for s in (self.front, self.back, self.woken):
            s.close()
        self.ns.remove_address("lo", f"{self.address}/32")

    def count(self, name, since=0.0):
        """How often this name was asked for, with any type, since a monotonic time."""
        return sum(1 for at, asked, _ in list(self.asked) if asked == name and at >= since)

    def asked_after(self, seconds):
        """Names that were asked for so long after their answer had left, or longer: it was lost."""
        first = {}
        for at, name, rdtype in list(self.answered):
            first.setdefault((name, rdtype), at)
        return [name for at, name, rdtype in list(self.asked) if at >= first.get((name, rdtype), at) + seconds]

    def _serve(self):
        waiting, clients, number = [], {}, 0
        while True:
            timeout = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            ready, _, _ = select.select([self.front, self.back, self.woken], [], [], timeout)
            if self.woken in ready:
                return
            if self.front in ready:
                wire, client = self.front.recvfrom(65535)
                self._remember(wire, self.asked)
                if not self.loses(wire):
                    number = (number + 1) % 65536
                    clients[number] = (client, wire[:2])
                    heapq.heappush(waiting, (time.monotonic() + self.delay, number, wire))
            while waiting and waiting[0][0] <= time.monotonic():
                _, n, wire = heapq.heappop(waiting)
                self.back.send(n.to_bytes(2, "big") + wire[2:])
            if self.back in ready:
                reply = self.back.recv(65535)
                client, query_id = clients.pop(int.from_bytes(reply[:2], "big"), (None, None))
                if client:
                    self._remember(reply, self.answered)
                    self.front.sendto(self.change(query_id + reply[2:]), client)

    def _remember(self, wire, where):
        question = dns.message.from_wire(wire, question_only=True).question[0]
        where.append((time.monotonic(), str(question.name).lower(), question.rdtype))
