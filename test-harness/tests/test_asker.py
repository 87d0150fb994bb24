# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The harness's client as a closed loop, and at a rate."""

import signal
import time

import pytest

from lab.client import Asker
from lab.network import SERVICE
from lab.process import run_tool
from lab.relay import everything
from lab.rings import never_asked
from lab.run import SOON, wait_until

UNDER_WAY = 5
RATE = 4000
AT_ONCE = 64            # queries that it sends together at most


def closed_loop(path, questions, **options):
    with Asker(path.world, path.network.client1, SERVICE[4], questions, 1, under_way=UNDER_WAY, **options) as asker:
        return asker.result()


def most_at_once(answers):
    changes = [(a.sent, 1) for a in answers] + [(a.sent + a.latency, -1) for a in answers]
    most = now = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def test_so_many_are_under_way(path):
    answers = closed_loop(path, [("www.lab.example", "A")], seconds=1)
    assert len(answers) > UNDER_WAY and all(a.latency is not None for a in answers)
    assert most_at_once(answers) == UNDER_WAY


def test_what_is_given_up_is_followed_by_another(path):
    """Each query waits for its timeout: nobody answers."""
    path.world.relay.loses = everything
    try:
        answers = closed_loop(path, never_asked(100, "lab.example"), seconds=1, timeout=0.3)
    finally:
        path.world.relay.behave()
    assert len(answers) > UNDER_WAY and all(a.latency is None for a in answers)
    ends = sorted(a.sent + 0.3e9 for a in answers)
    assert all(later.sent >= end for end, later in zip(ends, answers[UNDER_WAY:]))


def goes_on(path):
    """Waits for many queries."""
    before = sum(path.daemon.reasons().values())
    wait_until(lambda: sum(path.daemon.reasons().values()) > before + RATE / 2, SOON, "queries")


def without_processor(path, asker):
    """Until hydnsd's clock has gone on by two seconds. Returns how many seconds that took."""
    def uptime():
        return path.daemon.call({"cmd": "status"})["uptime_s"]

    asker.program.popen.send_signal(signal.SIGSTOP)
    began, stopped = uptime(), time.monotonic()
    wait_until(lambda: uptime() >= began + 2, SOON, "two seconds of hydnsd's")
    away = time.monotonic() - stopped
    asker.program.popen.send_signal(signal.SIGCONT)
    return away


def test_what_it_could_not_send_it_leaves_out(path):
    with Asker(path.world, path.network.client1, SERVICE[4], [("www.lab.example", "A")], RATE) as asker:
        goes_on(path)
        away = without_processor(path, asker)
        goes_on(path)
        answers = asker.result()
    lasted = (answers[-1].sent - answers[0].sent) / 1e9
    assert AT_ONCE < len(answers) <= RATE * (lasted - away) + 2 * AT_ONCE


def test_so_many_in_all(path):
    """What it could not send while it had no processor it sends later."""
    with Asker(path.world, path.network.client1, SERVICE[4], [("www.lab.example", "A")], RATE, queries=3 * RATE) as asker:
        goes_on(path)
        without_processor(path, asker)
        assert len(asker.result()) == 3 * RATE


def test_so_many_in_all_of_a_closed_loop(path):
    assert len(closed_loop(path, [("www.lab.example", "A")], queries=RATE)) == RATE


@pytest.mark.parametrize("wrong", (("-n", "0"), ("-n", "5x"), ("-q", "40000"), ("-q", "5", "-w"), ("-q", "abc"), ("-q", "5x"), ("-q", "0"), ("-q", "-1"),
                                   ("-q", "4294967297"), ("-q", "")))
def test_wrong_usage(world, wrong):
    done = run_tool(world.network.client1, [world.tools.asker, "-s", SERVICE[4], "-d", "/dev/null", "-o", "/dev/null", *wrong],
                    check=False)
    assert done.returncode == 2 and "usage" in done.stderr
