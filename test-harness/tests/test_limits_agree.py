# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Many clients at an Unbound whose ip-ratelimit counts kernel answers, and at Unbound alone: in each second each of them gets as many
replies from both, and both log as often. With --limit-queries 1000000 it is the long comparison, with --calm-seconds 600 the long mix
below the limit."""

import random
import re
import select
import socket
import time
from collections import Counter
from contextlib import ExitStack

import pytest
from conftest import kernel_path

from lab.burst import ROOM, SO_RCVBUFFORCE
from lab.client import ask, query
from lab.network import CLIENT1_MORE, REFERENCE, SERVICE
from lab.run import wait_until

LIMIT = 40
MOST = 100                      # queries of a client in a second
LINES = [f"ip-ratelimit: {LIMIT}", "ip-ratelimit-factor: 0"]
HOT = "www.lab.example"
HOT_WIRE, CD_WIRE = query(HOT).to_wire(), query(HOT, cd=True).to_wire()
BEGIN, END, READ = 0.05, 0.7, 0.95      # of a second: the kernel's clock is late by a tick; then it is read


@pytest.fixture(scope="module")
def pair(world):
    options = {"server": LINES, "threads": 2}
    with kernel_path(world, unbound_options=options) as path, world.reference(**options) as reference:
        path.both = (path.unbound, reference)

        def hot():
            for address in CLIENT1_MORE:
                ask(path.network.client1, SERVICE[6 if ":" in address else 4], HOT, local=address)
            return path.daemon.explain(HOT)["where"] == "kernel"
        wait_until(hot, 10, f"{HOT} to be answered in the kernel")
        yield path


class Crowd:
    """Clients with a socket to each of both servers. Replies are counted by the second that their queries were sent in."""

    def __init__(self, pair, stack, seed):
        self.pair, self.rng, self.fresh = pair, random.Random(seed), 0
        self.sockets = {(client, i): self._open(stack, client, i) for client in CLIENT1_MORE for i in range(2)}
        self.logs = [len(server.program.log.read_text(errors="replace")) for server in pair.both]

    def _open(self, stack, client, i):
        family = 6 if ":" in client else 4
        with self.pair.network.client1.entered():
            s = stack.enter_context(socket.socket(socket.AF_INET6 if family == 6 else socket.AF_INET, socket.SOCK_DGRAM))
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        s.bind((client, 0))
        s.connect(((SERVICE, REFERENCE)[i][family], 53))
        return s

    def _wire(self):
        """What the kernel answers, what it does not read, and what needs a recursion."""
        kind = self.rng.random()
        if kind < 0.7:
            return HOT_WIRE
        if kind < 0.9:
            return CD_WIRE
        self.fresh += 1
        return query(f"fresh{self.fresh}.agree.lab.example").to_wire()

    def second(self, counts):
        """Sends each client's queries to both servers within a second. Returns what came back and how often each has logged, or None
        when the second was over before all were sent."""
        called = int(time.time())
        wait_until(lambda: int(time.time()) > called and BEGIN < time.time() % 1 < END, 3, "a new second")
        begun, turn = int(time.time()), int(time.time()) % 16
        order = [client for client, n in counts.items() for _ in range(n)]
        self.rng.shuffle(order)
        for number, client in enumerate(order):
            wire = (turn << 12 | number & 0xfff).to_bytes(2, "big") + self._wire()[2:]
            for i in range(2):
                self.sockets[client, i].send(wire)
        in_time = time.time() < begun + END
        wait_until(lambda: time.time() > begun + READ, 2, "the end of the second")
        seen = self._replies(turn), self.lines()
        return seen if in_time else None

    def _replies(self, turn):
        found = [Counter(), Counter()]
        by_socket = {s: key for key, s in self.sockets.items()}
        while ready := select.select(list(by_socket), [], [], 0)[0]:
            for s in ready:
                client, i = by_socket[s]
                wire = s.recv(65535)
                found[i][self.counted_as(client, wire)] += wire[0] >> 4 == turn
        return found

    @staticmethod
    def counted_as(client, wire):
        return client

    def lines(self):
        """Clients that each server says, since the last call, have exceeded the limit."""
        found = []
        for i, server in enumerate(self.pair.both):
            text = server.program.log.read_text(errors="replace")
            found.append(Counter(re.findall(r"ip_ratelimit exceeded (\S+) \d+", text[self.logs[i]:])))
            self.logs[i] = len(text)
        return found


@pytest.mark.limit(1500)
def test_budgets_are_spent_alike(pair, request):
    wanted, asked, seconds = request.config.getoption("--limit-queries"), 0, 0
    before = pair.daemon.reasons()
    with ExitStack() as stack:
        crowd = Crowd(pair, stack, seed=1)
        while asked < wanted:
            counts = {client: crowd.rng.randrange(MOST) for client in CLIENT1_MORE}
            seen = crowd.second(counts)
            seconds += 1
            assert seconds < 60 + wanted / 500, "the machine is too busy to send the queries of a second within it"
            if not seen:
                continue
            expected = Counter({client: min(n, LIMIT) for client, n in counts.items() if n})
            over = Counter(client for client, n in counts.items() if n > LIMIT)
            (ours, own), (our_lines, own_lines) = seen
            assert ours == expected and own == expected
            assert our_lines == over and own_lines == over
            asked += sum(counts.values())
    after = pair.daemon.reasons()
    print(f"{asked} queries in {seconds} seconds;", {k: n - before[k] for k, n in after.items() if n != before[k]})
    assert after["LIMITED"] > before["LIMITED"] and after["ANSWERED"] > before["ANSWERED"]


@pytest.mark.limit(1500)
def test_nothing_is_dropped_below_the_limit(pair, request):
    """Nine tenths of the limit, spread as it comes."""
    counts = {client: LIMIT * 9 // 10 for client in CLIENT1_MORE}
    before, seconds = pair.daemon.reasons(), request.config.getoption("--calm-seconds")
    dropped = [server.stats()["total.num.queries_ip_ratelimited"] for server in pair.both]
    with ExitStack() as stack:
        crowd = Crowd(pair, stack, seed=2)
        for _ in range(seconds):
            crowd.second(counts)
    after = pair.daemon.reasons()
    assert after["LIMITED"] == before["LIMITED"] and after["LIMIT_REACHED"] == before["LIMIT_REACHED"]
    assert dropped == [server.stats()["total.num.queries_ip_ratelimited"] for server in pair.both]
    assert after["ANSWERED"] > before["ANSWERED"]
