# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Bursts: queries of one client, sent as fast as they go, at servers that drop what is above a limit."""

import select
import socket
import time
from contextlib import contextmanager
from dataclasses import dataclass

from .run import wait_until

# The part of a second in which a burst may begin. The kernel's clock is late by a tick at most; the burst shall end in the second.
EARLY = 0.05, 0.25
ROOM = 1 << 24           # octets for replies that have not been read: each may charge a driver's whole buffer
SO_RCVBUFFORCE = 33
ATTEMPTS = 20            # bursts until one begins and ends in one second


@dataclass
class Burst:
    """What became of one. seconds: of the wall clock, from the first query to the last that the resolver has counted. tries: of
    burst_in_a_second(), with what was sent and replied in all of them."""
    replies: list
    sent: int
    seconds: int
    tries: int = 1
    tries_sent: int = 0
    tries_replied: int = 0


def new_second(after=None):
    """The next one, or the one after this, when it has just begun."""
    least = int(time.time() if after is None else after) + 1
    wait_until(lambda: int(time.time()) >= least and EARLY[0] < time.time() % 1 < EARLY[1], 3, "a new second")
    return int(time.time())


class Sent:
    """Queries that were sent from one socket at the beginning of the next second, and their replies so far. ready: called after the
    first query; the others follow when it returns. begin: what waits for that second, and returns it."""

    def __init__(self, s, wires, ready=None, begin=new_second):
        self.socket, self.replies, self.count, self.begun = s, [], 0, begin()
        for wire in wires:
            self.send(wire)
            if ready and self.count == 1:
                ready()

    def send(self, wire):
        self.socket.send(self.count.to_bytes(2, "big") + wire[2:])
        self.count += 1
        self.read()

    def read(self):
        while select.select([self.socket], [], [], 0)[0]:
            self.replies.append(self.socket.recv(65535))
        return len(self.replies)

    def seconds(self):
        return int(time.time()) - self.begun + 1


@contextmanager
def sent(ns, address, wires, *, local=None, **options):
    """Sends the queries to an address as fast as they go. options: of Sent."""
    with ns.entered():
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        if local:
            s.bind((local, 0))
        s.connect((address, 53))
        yield Sent(s, wires, **options)


def _grown(server, before, what):
    return server.stats()[f"total.num.{what}"] - before[f"total.num.{what}"]


def burst(ns, server, address, wires, **options):
    """Sends the queries to one of the server's addresses. Returns when each has a reply, or was dropped as one too many."""
    before = server.stats()
    with sent(ns, address, wires, **options) as queries:
        wait_until(lambda: _grown(server, before, "queries") >= len(wires), 10, "the server to count all queries")
        seconds = queries.seconds()
        wait_until(lambda: queries.read() + _grown(server, before, "queries_ip_ratelimited") >= len(wires), 10,
                   lambda: f"a reply or a reason why there is none for each: {len(queries.replies)} replies")
        return Burst(queries.replies, len(wires), seconds)


def burst_in_a_second(*args, **options):
    """The same, again until one has begun and ended within a second: then the limit of a second is exact."""
    asked = replied = 0
    for tries in range(ATTEMPTS):
        result = burst(*args, **options)
        asked += result.sent
        replied += len(result.replies)
        if result.seconds == 1:
            result.tries, result.tries_sent, result.tries_replied = tries + 1, asked, replied
            return result
    raise AssertionError(f"none of {ATTEMPTS} bursts ended within a second")
