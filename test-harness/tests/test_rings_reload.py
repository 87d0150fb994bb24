# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Packet rings while Unbound or hydnsd are reloaded, killed, stopped or hang: nothing is lost that Unbound with sockets
would have answered, and afterwards the rings are used again."""

import signal
import time

import pytest

from lab import rings
from lab.client import ask
from lab.network import SERVICE
from lab.ring_load import LOCAL_RATE, RINGS_OFF, Used, assert_answered, come, fresh, local, numbers, seen
from lab.run import SOON, wait_until


@pytest.fixture
def path(paths):
    return paths.take()


# -- reload -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", ["reload", "reload_keep_cache"])
def test_reload(path, command):
    """The lanes stay, with what waits in them. What waits for upstream is forgotten, by any Unbound that reloads."""
    used, before = Used(path), numbers(path)
    with fresh(path, timeout=2) as asker, local(path) as known:
        used.wait()
        path.unbound.control(command)
        path.unbound.control("status")
        reloaded = time.monotonic_ns()
        wait_until(lambda: numbers(path) == before, SOON, "the same lanes to be open again")
        used.wait()
        answers = asker.result()
        local_answers = known.result()
    assert_answered(answers, since=reloaded)
    assert_answered(local_answers, rcode=0)


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


# -- hydnsd -------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGUSR2])
def test_rings_go_on_without_hydnsd(path, how):
    used, before = Used(path), numbers(path)
    with fresh(path) as asker:
        used.wait()
        path.daemon.stop(how)
        used.wait()
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, SOON, "the module to register again")
        assert numbers(path) == before
        used.wait()
        answers = asker.result()
    assert_answered(answers)


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


def test_reload_while_hydnsd_hangs(path):
    """The link thread waits for it, and both plugin objects have the lanes for a while."""
    hydnsd, used = path.daemon.program.popen, Used(path)
    with local(path) as known:
        used.wait(answers=0)
        hydnsd.send_signal(signal.SIGSTOP)
        try:
            path.unbound.control("reload")
            path.unbound.control("status")
            come(path, LOCAL_RATE)
        finally:
            hydnsd.send_signal(signal.SIGCONT)
        rings.wait_open(path.daemon)
        used.wait(answers=0)
        answers = known.result()
    assert_answered(answers, rcode=0)


def test_hydnsd_with_other_maps(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.daemon.stop(signal.SIGKILL)
        path.daemon.capacity = 12345 if path.daemon.capacity != 12345 else 23456
        path.daemon.start()
        rings.wait_open(path.daemon)
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)


def test_hydnsd_stopped_and_started(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.daemon.stop()
        come(path)
        path.daemon.start()
        rings.wait_open(path.daemon)
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)
    assert max(a.latency for a in answers) < 3e9


# -- Unbound ------------------------------------------------------------------------------------------------------------------
def test_unbound_killed(path):
    """The gate closes first: nothing is redirected to a dead process, however long its sockets take to close."""
    used = Used(path)
    with fresh(path, timeout=1) as asker:
        used.wait()
        path.unbound.program.popen.kill()
        path.unbound.program.popen.wait()
        used.mark()
        seen(path, ("MISS", "RESOLVER_GONE", "NOT_SERVICE", "EMPTY"))
        assert used.now() == (0, 0)
        path.unbound.start()
        started = time.monotonic_ns()
        rings.wait_open(path.daemon)
        used.wait()
        answers = asker.result()
    assert_answered(answers, since=started)


def test_unbound_stopped_and_continued(path):
    with fresh(path) as asker:
        Used(path).wait()
        path.unbound.program.popen.send_signal(signal.SIGSTOP)
        seen(path, ("RESOLVER_GONE",))         # its heartbeat is stale
        path.unbound.program.popen.send_signal(signal.SIGCONT)
        Used(path).wait()
        answers = asker.result()
    assert_answered(answers)


def test_nothing_left_of_unbound(path):
    daemon = path.daemon
    Used(path)
    path.world.relay.delay = 5.0
    for name, rdtype in rings.never_asked(20, "lab.example"):
        ask(path.network.client1, SERVICE[4], name, rdtype, timeout=0.01)
    wait_until(lambda: rings.claimed(daemon), SOON, "ports to be claimed")
    assert (daemon.pins / "stray_link").exists()
    path.unbound.stop()
    path.world.relay.behave()
    wait_until(lambda: not rings.claimed(daemon), SOON, "no port words")
    wait_until(lambda: not (daemon.pins / "stray_link").exists(), SOON, "no link of hydns_stray")
    wait_until(lambda: not rings.lanes(daemon), SOON, "no lanes")
    path.unbound.start()
    rings.wait_open(daemon)


# -- the program off ----------------------------------------------------------------------------------------------------------
def test_pause_and_resume(path):
    used = Used(path)
    with fresh(path) as asker:
        used.wait()
        path.daemon.ctl("pause")
        used.mark()
        come(path)
        assert used.now() == (0, 0)
        path.daemon.ctl("resume")
        used.wait()
        answers = asker.result()
    assert_answered(answers)
