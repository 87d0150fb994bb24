# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The authoritative servers of slow_zones.py: a thread that forwards to the one that has the data, late or not at all, and keeps
a ledger of what it has sent and when it was silent."""

import heapq
import random
import socket
import struct
import time

from lab.thread_server import ThreadServer

from .ledger import SECOND
from .slow_zones import DATA, DEAD, FICKLE, ORIGINS, SERVER

DELAY = 0.05, 0.4                    # seconds, the least and the most
ANSWERS, SILENT = (5.0, 20.0), (2.0, 6.0)      # seconds that a fickle server does each
LATE = 0.3                           # seconds: an answer as late as that counts as none; its resolver may have given up
SO_TIMESTAMPNS = 35                  # of linux/socket.h; Python has no name for it
TIMESPEC = struct.Struct("@qq")


def _receive(front):
    """(message, client, seconds since the kernel has it): the thread may have waited for a processor meanwhile."""
    wire, ancillary, _, client = front.recvmsg(65535, socket.CMSG_SPACE(TIMESPEC.size))
    came = [TIMESPEC.unpack(data) for level, kind, data in ancillary if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS)]
    return wire, client, max(0.0, time.time() - came[0][0] - came[0][1] / SECOND) if came else 0.0


class Authorities(ThreadServer):
    """Context manager. The server at DATA must be there."""

    def __init__(self, ns, ledger, seed):
        super().__init__(ns, "authorities")
        self.ledger, self.rng = ledger, random.Random(f"authorities {seed}")
        self.silent = {origin: origin in DEAD for origin in ORIGINS}
        for origin in DEAD:
            ledger.falls_silent(origin, 0)
        self.turns = [(time.monotonic() + self.rng.uniform(*ANSWERS), origin) for origin in FICKLE]
        self.changes = 0                     # how often one has fallen silent or come back
        self.waiting, self.asked, self.number = [], {}, 0
        self.error = None
        self.fronts = {}
        for origin in ORIGINS:
            ns.address("lo", f"{SERVER[origin]}/32")
            self.fronts[self.socket()] = origin
        self.back = self.socket()
        for front, origin in self.fronts.items():
            front.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
            front.bind((SERVER[origin], 53))
        self.back.connect((DATA, 53))

    def serve(self):
        try:
            self._serve()
        except Exception as error:           # any: a run without these servers would say nothing
            self.error = error

    def _serve(self):
        while (ready := self.ready(self._pause())) is not None:
            self._take_turns()
            for s in ready:
                if s is self.back:
                    self._reply(self.back.recv(65535))
                else:
                    self._take(s)
            while self.waiting and self.waiting[0][0] <= time.monotonic():
                self._forward(*heapq.heappop(self.waiting))

    def _pause(self):
        due = [at for at, _ in self.turns] + [at for at, _, _ in self.waiting[:1]]
        return max(0.0, min(due) - time.monotonic())

    def _take_turns(self):
        """Fickle servers fall silent, and come back."""
        now = time.monotonic()
        for n, (at, origin) in enumerate(self.turns):
            if at <= now:
                note = self.ledger.comes_back if self.silent[origin] else self.ledger.falls_silent
                note(origin, time.monotonic_ns())
                self.silent[origin] = not self.silent[origin]
                self.changes += 1
                self.turns[n] = now + self.rng.uniform(*(SILENT if self.silent[origin] else ANSWERS)), origin

    def _take(self, front):
        wire, client, waited = _receive(front)
        origin = self.fronts[front]
        if self.silent[origin]:
            return
        self.number = (self.number + 1) % 65536
        due = time.monotonic() - waited + self.rng.uniform(*DELAY)
        self.asked[self.number] = front, client, wire[:2], due
        heapq.heappush(self.waiting, (due, self.number, wire))

    def _forward(self, _, number, wire):
        origin = self.fronts[self.asked[number][0]]
        if self.silent[origin]:
            del self.asked[number]
            return
        self.back.send(number.to_bytes(2, "big") + wire[2:])

    def _reply(self, wire):
        front, client, query_id, due = self.asked.pop(int.from_bytes(wire[:2], "big"), (None, None, None, 0))
        if front:
            if time.monotonic() > due + LATE:
                self.ledger.was_late(self.fronts[front], round(due * SECOND), time.monotonic_ns())
            # noted before it is sent, so that the ledger has it when a client gets it
            self.ledger.was_sent(wire, time.monotonic_ns())
            front.sendto(query_id + wire[2:], client)
