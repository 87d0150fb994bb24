# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings through whatever happens to resolver, hydnsd, interfaces and servers: nothing is lost that Unbound with sockets
would have answered, and afterwards the rings are used again. Counters show that they were."""

import signal
import time
from contextlib import contextmanager

import pytest
from conftest import kernel_path

from lab import rings
from lab.client import ask
from lab.network import LINKS, SERVICE
from lab.run import SOON, wait_until

RATE = 500               # queries a second of names that nobody has asked before
NXDOMAIN = 3


@pytest.fixture
def path(world):
    """A kernel path for one test, with all lanes open."""
    with ring_path(world) as p:
        yield p


@contextmanager
def ring_path(world, **options):
    with kernel_path(world, **options) as p:
        rings.wait_open(p.daemon)
        settle(p)
        yield p


def settle(path):
    """Asks until queries and answers come by rings: only then Unbound knows the zones' servers and their next hop."""
    def used():
        before = rings.counted(path.daemon)
        for name, rdtype in rings.never_asked(8):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1)
        now = rings.counted(path.daemon)
        return now.queries - before.queries >= 8 and now.answers - before.answers >= 7
    wait_until(used, SOON, "queries and answers to come by rings")


def assert_answered(answers, rcode=NXDOMAIN):
    assert answers
    lost = [a for a in answers if a.latency is None]
    assert not lost, f"{len(lost)} of {len(answers)} queries without an answer"
    wrong = [a for a in answers if a.rcode != rcode]
    assert not wrong, f"{len(wrong)} wrong answers, the first: {wrong[0]}"


class Used:
    """How many packets rings have taken since it was made or marked."""

    def __init__(self, daemon):
        self.daemon = daemon
        self.mark()

    def mark(self):
        self.before = rings.counted(self.daemon)

    def now(self):
        return rings.Counts(*(n - before for n, before in zip(rings.counted(self.daemon), self.before)))

    def wait(self, queries=100, answers=100):
        wait_until(lambda: self.now().queries >= queries and self.now().answers >= answers, SOON,
                   f"{queries} queries and {answers} answers to come by rings")


@pytest.mark.parametrize("command", ["reload", "reload_keep_cache"])
def test_reload(path, command):
    used = Used(path.daemon)
    numbers = lanes(path.daemon)
    with rings.fresh_load(path.world, RATE, 4) as asker:
        used.wait()
        path.unbound.control(command)
        path.unbound.control("status")
        wait_until(lambda: lanes(path.daemon) == numbers, SOON, "the same lanes to be open again")
        used.mark()
        used.wait()
        answers = asker.result()
    assert_answered(answers)


def lanes(daemon):
    """(interface, queue, number) of those that are open."""
    status = daemon.call({"cmd": "status"})
    return {(lane["interface"], lane["queue"], lane["number"]) for r in status["resolvers"] for lane in r["lanes"] if lane["open"]}


def test_reload_with_more_threads(world):
    with ring_path(world, unbound_options={"threads": 1}) as path:
        assert {lane["threads"] for lane in status_lanes(path.daemon)} == {1}
        with rings.fresh_load(world, RATE, 4) as asker:
            path.unbound.change("num-threads: 1", "num-threads: 2")
            wait_until(lambda: status_lanes(path.daemon) and
                       all(lane["threads"] == 2 and lane["open"] for lane in status_lanes(path.daemon)), SOON, "lanes of 2 threads")
            used = Used(path.daemon)
            used.wait()
            answers = asker.result()
        assert_answered([a for a in answers])


def status_lanes(daemon):
    status = daemon.try_call({"cmd": "status"})
    return [lane for r in status["resolvers"] for lane in r["lanes"]] if status else []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGUSR2])
def test_hydnsd_away(path, how):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 4) as asker:
        used.wait()
        numbers = lanes(path.daemon)
        path.daemon.stop(how)
        used.mark()
        used.wait()
        path.daemon.start()
        used.mark()
        used.wait()
        wait_until(path.daemon.resolver_ready, 10, "the module to register again")
        assert lanes(path.daemon) == numbers
        used.mark()
        used.wait()
        answers = asker.result()
    assert_answered(answers)


def test_hydnsd_killed_and_restarted_with_another_capacity(path):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 5) as asker:
        used.wait()
        path.daemon.stop(signal.SIGKILL)
        path.daemon.capacity = 12345
        path.daemon.start()
        rings.wait_open(path.daemon)
        used = Used(path.daemon)
        used.wait()
        answers = asker.result()
    print("latency max", max(a.latency or 0 for a in answers) / 1e6)
    assert_answered(answers)


def test_hydnsd_stopped_and_started(path):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 6) as asker:
        used.wait()
        path.daemon.stop()
        time.sleep(1)
        path.daemon.start()
        rings.wait_open(path.daemon)
        used = Used(path.daemon)
        used.wait()
        answers = asker.result()
    print("latency max", max(a.latency or 0 for a in answers) / 1e6)
    assert_answered(answers)


def test_unbound_killed(path):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 8, timeout=2) as asker:
        used.wait()
        path.unbound.stop(signal.SIGKILL)
        after = rings.counted(path.daemon)
        killed = time.monotonic_ns()
        time.sleep(0.3)
        assert rings.counted(path.daemon) == after
        path.unbound.start()
        t0 = time.monotonic()
        rings.wait_open(path.daemon)
        print("open after", time.monotonic() - t0)
        started = time.monotonic_ns()
        used = Used(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered([a for a in answers if a.sent > started])
    assert killed


def test_unbound_stopped_for_a_while(path):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 6) as asker:
        used.wait()
        path.unbound.program.popen.send_signal(signal.SIGSTOP)
        time.sleep(2)
        path.unbound.program.popen.send_signal(signal.SIGCONT)
        used.mark()
        used.wait()
        answers = asker.result()
    print("latency max", max(a.latency or 0 for a in answers) / 1e6)
    assert_answered(answers)


def test_nothing_left_of_unbound(path):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 2, timeout=1) as asker:
        used.wait()
        path.world.relay.delay = 3.0
        for name, rdtype in rings.never_asked(20, "lab.example"):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=0.01)
        wait_until(lambda: rings.claimed(path.daemon), SOON, "ports to be claimed")
        path.unbound.stop()
        path.world.relay.behave()
        asker.result()
    wait_until(lambda: not rings.claimed(path.daemon), SOON, "no port words")
    wait_until(lambda: not (path.daemon.pins / "stray").exists(), SOON, "no link of hydns_stray")
    assert not status_lanes(path.daemon)
    print(list(path.daemon.pins.iterdir()))


def test_pause_and_resume(path):
    used = Used(path.daemon)
    with rings.fresh_load(path.world, RATE, 4) as asker:
        used.wait()
        path.daemon.ctl("pause")
        paused = rings.counted(path.daemon)
        time.sleep(1)
        assert rings.counted(path.daemon) == paused
        path.daemon.ctl("resume")
        used.mark()
        used.wait()
        answers = asker.result()
    print("latency max", max(a.latency or 0 for a in answers) / 1e6)
    assert_answered(answers)
