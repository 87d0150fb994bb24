# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A plugin that sends as many requests as it can does not affect another one with few requests. With -s, prints how long the
latter's withdrawals take."""

import statistics
import subprocess
import threading
import time
from contextlib import contextmanager

import pytest
from conftest import kernel_path

from lab.network import REFERENCE
from lab.plugin import PluginClient, withdraw
from lab.process import Program
from lab.run import SOON, wait_until

NAME = "host1.lab.example"
RULES = 50000
FLOOD = 20000
TIMED = 50
QUEUE = 1000      # messages: more than lie in a connection's buffer (160 to 280) and with hydnsd (a few)


@pytest.fixture(scope="module")
def path(world):
    """With many rules of a third resolver, so that a withdrawal that looks at all of them takes a while."""
    with kernel_path(world, daemon_options={"capacity": 2 * RULES}) as p:
        offerer = Program(world.run, world.network.resolver, "offerer",
                          [world.tools.built("test-harness/bench/offerer"), "rate", p.daemon.plugin_socket, REFERENCE[4],
                           RULES], stdin=subprocess.PIPE)
        try:
            wait_until(lambda: p.daemon.call({"cmd": "status"})["rules"] >= RULES, 60, "the rules to be there")
            yield p
        finally:
            offerer.stop()


class Flood:
    """Context manager: sends the message again and again, reading what comes back; most_open: the most of them that were
    sent and not yet answered."""

    def __init__(self, path, kind, payload=b""):
        self.path, self.kind, self.payload = path, kind, payload
        self.sent = self.answered = self.most_open = 0
        self.over = False

    def __enter__(self):
        self.client = PluginClient(self.path.daemon.plugin_socket, timeout=None).register()
        self.threads = [threading.Thread(target=f, daemon=True) for f in (self._send, self._receive)]
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *exc):
        self.over = True
        self.client.socket.shutdown(2)
        for t in self.threads:
            t.join(SOON)
        self.client.socket.close()

    def _send(self):
        try:
            while not self.over and self.sent < FLOOD:
                self.client.send(self.kind, self.payload)
                self.sent += 1
                self.most_open = max(self.most_open, self.sent - self.answered)
        except OSError:
            pass

    def _receive(self):
        try:
            while self.client.receive():
                self.answered += 1
        except OSError:
            pass

    def has_sent_much(self):
        """The flood has reached hydnsd's bound."""
        return self.sent >= FLOOD or self.sent - self.answered > 60


def held_back(path):
    return path.daemon.call({"cmd": "stats"})["held_back"]


def epoch(path):
    return next(r["epoch"] for r in path.daemon.call({"cmd": "status"})["resolvers"] if r["identity"] == "unbound")


@contextmanager
def flushes_are_done(path):
    """Context manager: before and after the block hydnsd does flushes in time; otherwise the resolver would advance its
    epoch."""
    before = epoch(path)
    for _ in range(5):
        path.world.heat(path.daemon, NAME)
        path.unbound.control("flush", NAME)
        assert path.daemon.explain(NAME)["where"] == "resolver"
    yield
    assert epoch(path) == before, "the resolver had to withdraw by itself"


def print_times(other, beside):
    """Of withdrawals that look at every rule, one after the other."""
    times = []
    for _ in range(TIMED):
        begun = time.monotonic()
        assert other.call("WITHDRAW", withdraw("other.test"))[0] == "ACK"
        times.append((time.monotonic() - begun) * 1000)
    print(f"\n{RULES:,} rules, a withdrawal beside {beside}: median {statistics.median(times):.1f} ms, worst {max(times):.1f} ms "
          f"of {TIMED}")


def test_alone(path):
    """For comparison."""
    with PluginClient(path.daemon.plugin_socket).register() as other:
        print_times(other, "nobody")


@pytest.mark.parametrize("scope", ["SUBTREE", "ALL"])
def test_withdrawals_without_end(path, scope):
    with PluginClient(path.daemon.plugin_socket).register() as other, \
            Flood(path, "WITHDRAW", withdraw("worst.test", scope)) as worst:
        wait_until(worst.has_sent_much, SOON, "the flood to fill what it can fill")
        for _ in range(5):
            assert other.call("WITHDRAW", withdraw("other.test"))[0] == "ACK"
            assert worst.sent == FLOOD or worst.sent > worst.answered, "there is no backlog: the test proves nothing"
        print_times(other, f"a client that withdraws without end (scope {scope})")
        with flushes_are_done(path):
            pass
        assert worst.answered > 0 and worst.most_open < QUEUE, "hydnsd took more than it could do"


def test_counts_without_end(path):
    before = held_back(path)
    with PluginClient(path.daemon.plugin_socket).register() as other, Flood(path, "STATS") as worst:
        wait_until(worst.has_sent_much, SOON, "the flood to fill what it can fill")
        for _ in range(5):
            assert other.call("WITHDRAW", withdraw("other.test"))[0] == "ACK"
        print_times(other, "a client that asks for counts without end")
        with flushes_are_done(path):
            pass
        wait_until(lambda: held_back(path) > before, SOON, "the flood to be held back")


def connections(path):
    return path.daemon.call({"cmd": "status"})["plugin_connections"]


def test_many_sessions(path):
    """One user can't take all sessions, nor fill the log."""
    before = connections(path)
    begin = path.daemon.program.log.stat().st_size
    clients, refused = [], 0
    for _ in range(300):
        clients.append(PluginClient(path.daemon.plugin_socket, timeout=None))
    for client in clients:
        client.socket.settimeout(0.05)
        try:
            refused += client.receive() is None
        except (TimeoutError, ConnectionError):
            pass
    assert refused >= 200
    with flushes_are_done(path):
        pass
    for client in clients:
        client.socket.close()
    wait_until(lambda: connections(path) <= before, SOON, "hydnsd to have their places back")
    lines = path.daemon.program.log.read_text()[begin:].splitlines()
    assert any("has 48 already" in line for line in lines) and len(lines) < 200


def test_coming_and_going(path):
    """Each HELLO and BYE makes pages, processes and lines."""
    begin = path.daemon.program.log.stat().st_size
    with PluginClient(path.daemon.plugin_socket) as client:
        for _ in range(100):
            client.register()
            assert client.call("BYE")[0] == "ACK"
    with flushes_are_done(path):
        pass
    lines = path.daemon.program.log.read_text()[begin:].splitlines()
    assert 10 < len(lines) < 200, "four for each coming and going"
    with PluginClient(path.daemon.plugin_socket) as client:
        wait_until(lambda: client.register().call("BYE") and
                   "lines about plugins were left out" in path.daemon.program.log.read_text()[begin:], SOON,
                   "the log to say how many lines it does not have")
