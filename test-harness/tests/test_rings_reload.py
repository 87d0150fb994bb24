# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings of Unbound while it reloads, also with other threads, without rings, or while hydnsd is away: nothing is lost that
Unbound with sockets would have answered, and afterwards the rings are used again."""

import signal
import time

import pytest

from lab import rings
from lab.process import run_tool
from lab.ring_load import RINGS_OFF, assert_answered, come, fresh, local, settle
from lab.rings import Used
from lab.run import SOON, wait_until


@pytest.fixture
def path(paths):
    return paths.take()


@pytest.mark.parametrize("command", ["reload", "reload_keep_cache"])
def test_reload(path, command):
    """The lanes stay, with what waits in them. What waits for upstream is forgotten, by any Unbound that reloads."""
    used, before = Used(path), rings.numbers(path.daemon)
    with fresh(path, timeout=2) as asker, local(path) as known:
        used.wait()
        path.unbound.control(command)
        path.unbound.control("status")
        reloaded = time.monotonic_ns()
        wait_until(lambda: rings.numbers(path.daemon) == before, SOON, "the same lanes to be open again")
        used.wait()
        answers = asker.result()
        local_answers = known.result()
    assert_answered(answers, since=reloaded)
    assert_answered(local_answers, rcode=0)


def test_reload_while_hydnsd_is_away(path):
    with fresh(path, timeout=2) as asker:
        path.daemon.stop(signal.SIGKILL)
        path.unbound.control("reload")
        path.unbound.control("status")
        reloaded = time.monotonic_ns()
        used = Used(path)
        come(path)
        assert used.now() == (0, 0), "the program gives packets to a resolver that has left its page"
        path.daemon.start()
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=reloaded)


def test_reload_with_another_number_of_threads(paths):
    path = paths.take(threads=1)
    assert {lane["threads"] for lane in rings.lanes(path.daemon)} == {1}
    with fresh(path, timeout=2) as asker:
        reloaded = path.unbound.change("num-threads: 1", "num-threads: 2")
        rings.wait_open(path.daemon)
        assert {lane["threads"] for lane in rings.lanes(path.daemon)} == {2}
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers, since=reloaded)


def test_rings_turned_off_and_on_by_reload(path):
    with fresh(path, timeout=2) as asker:
        path.unbound.change(*RINGS_OFF)
        wait_until(lambda: not rings.lanes(path.daemon), SOON, "no lanes")
        used = Used(path)
        reloaded = time.monotonic_ns()
        come(path)
        assert used.now() == (0, 0)
        end = time.monotonic_ns()
        again = path.unbound.change(*reversed(RINGS_OFF))
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=reloaded, until=end)
    assert_answered(answers, since=again)


def receive_queues(path, count):
    """Whether r1 has so many afterwards."""
    return run_tool(path.network.resolver, ["ethtool", "-L", "r1", "rx", count], check=False).returncode == 0


def test_number_of_receive_queues(path):
    """A queue that packet rings are bound to can't be taken away; as the operator guide says, a reload without rings comes first."""
    assert receive_queues(path, 2)
    wait_until(lambda: {("r1", 0), ("r1", 1)} <= set(rings.numbers(path.daemon)), SOON, "a lane on the second queue")
    assert not receive_queues(path, 1)
    path.unbound.change(*RINGS_OFF)
    wait_until(lambda: receive_queues(path, 1), SOON, "the queue to be free")
    path.unbound.change(*reversed(RINGS_OFF))
    rings.wait_open(path.daemon)
    assert ("r1", 1) not in rings.numbers(path.daemon)
    settle(path)
