# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydnsd and a resolver's plugin of two ABI versions, one after the other replaced under load, forwards and back: every query is
answered, and rightly, by the resolver itself while they differ; both sides say what is to be restarted; and then the kernel path
is back. The first cases have packet rings for clients' queries and the resolver's own, and parked queries."""

import json
import signal
import time
from contextlib import contextmanager
from functools import partial

import pytest
from conftest import bind_path, kernel_path

from lab import rings
from lab.changing_zones import records
from lab.client import Asker, ask, must_ask
from lab.network import DEFAULT_HOPS, SERVICE
from lab.ring_load import assert_answered, settle
from lab.run import SOON, wait_until
from lab.servers import ATTEMPTS, EVERY_CLIENT_WAITS
from lab.versions import PRESENT, Versions

NEXT = PRESENT + 1
HOSTS = [f"host{i}.lab.example" for i in range(20)]
HOT_RATE, FRESH_RATE = 1000, 200
NOERROR, NXDOMAIN = 0, 3
SECOND = 10**9


def unbound(world, **options):
    return kernel_path(world, unbound_options={"server": [ATTEMPTS, "log-servfail: yes"]} | options)


def bind(world, **options):
    return bind_path(world, options=(EVERY_CLIENT_WAITS, "recursive-clients 20000;"), **options)


@pytest.fixture(scope="module", params=(unbound, bind), ids=("unbound", "bind"))
def opened(request, world):
    with request.param(world) as p:
        p.versions = Versions(world.run, p.daemon, p.server)
        is_unbound = request.param is unbound
        p.flush = partial(p.server.control, "flush" if is_unbound else "flushname")
        p.process = "unbound" if is_unbound else "named"
        yield p


@pytest.fixture
def path(opened):
    """Both sides of the present version, the kernel path in use."""
    for side in (opened.daemon, opened.server):
        if opened.versions.of[side] != PRESENT:
            side.stop()
            opened.versions.set(side, PRESENT)
        if not side.program.running():
            side.start()
    opened.world.rewrite_lab(records())
    ready(opened)
    settle(opened)
    return opened


def ready(path):
    """The kernel path is back: a resolver has registered, and the kernel answers."""
    def registered():
        ask(path.network.client1, SERVICE[4], HOSTS[0])     # BIND's plugin starts with the first response
        return path.daemon.resolver_ready()
    wait_until(registered, SOON, "the resolver to register")
    for name in HOSTS:
        path.world.heat(path.daemon, name)


def replace(path, side, version, how=signal.SIGTERM):
    side.stop(how)
    path.versions.set(side, version)
    side.start()


def differing(path):
    """What hydnsd says of plugins of other versions."""
    status = path.daemon.try_call({"cmd": "status"})
    return [(o["pid"], o["process"], o["abi"]) for o in status["other_versions"]] if status else []


def wait_refused(path, plugin):
    """Until hydnsd says so of the resolver, whose plugin is of this version."""
    def said():
        ask(path.network.client1, SERVICE[4], HOSTS[0])
        return [(pid, abi) for pid, _, abi in differing(path)] == [(path.server.program.pid, plugin)]
    wait_until(said, SOON, "hydnsd to name the plugin of another version")


@contextmanager
def load(path):
    """Hot names, and names that nobody has asked before; yields a list that then has their answers."""
    client, hot = path.network.client1, [(name, "A") for name in HOSTS]
    taken = []
    with Asker(path.world, client, SERVICE[4], hot, HOT_RATE, watch=True) as known, \
            rings.load(path.world, FRESH_RATE, zone="lab.example", most=60) as fresh:
        rings.Used(path).wait()
        path.world.relay.asked.clear()
        yield taken
        taken += [known.result(), fresh.result()]


def replaced_resolver(path, version):
    """Replaces it; when the former began to end, and the next was there."""
    down = time.monotonic_ns()
    replace(path, path.server, version)
    return down, time.monotonic_ns()


def kernel_path_back(path):
    """Answers come from the kernel, and packets by rings."""
    ready(path)
    rings.wait_open(path.daemon)
    rings.Used(path).wait()


def assert_answered_around(answers, down, up):
    """All but what was asked while the resolver was not there."""
    for found, rcode in zip(answers, (NOERROR, NXDOMAIN)):
        before = [a for a in found if a.sent < down - SECOND]
        after = [a for a in found if a.sent >= up]
        bad = [a for a in before + after if a.latency is None or a.rcode != rcode]
        assert after and not bad, f"{len(bad)} of {len(before) + len(after)} queries: {bad[:5]}"


def in_kernel(answers, since, until=float("inf")):
    return [a for a in answers if a.latency is not None and since <= a.sent < until and a.hops == DEFAULT_HOPS]


def address(path, name):
    return must_ask(path.network.client1, SERVICE[4], f"{name}.lab.example").answer[-1][0].address


# -- hydnsd first -----------------------------------------------------------------------------------------------------------------
def test_new_hydnsd_then_back(path):
    """hydnsd was killed. The resolver asks nobody again for a lost answer, and needs no restart when the former hydnsd is back."""
    relay, server = path.world.relay, path.server
    with server.patient(), load(path) as answers:
        begin = time.monotonic_ns()
        replace(path, path.daemon, NEXT, signal.SIGKILL)
        attached = time.monotonic_ns()
        wait_refused(path, PRESENT)
        rings.seen(path.daemon, ("NOT_SERVICE", "EMPTY"), 500)
        assert not rings.lanes(path.daemon)
        again = time.monotonic_ns()
        replace(path, path.daemon, PRESENT, signal.SIGKILL)
        kernel_path_back(path)
    hot, fresh = answers
    assert_answered(hot, NOERROR)
    assert_answered(fresh, NXDOMAIN)
    assert in_kernel(hot, 0, begin) and not in_kernel(hot, attached, again) and in_kernel(hot, again)
    assert relay.asked and not relay.asked_again(), "an answer was lost"


def test_new_hydnsd_then_the_resolver(path):
    """Both in the next version, one after the other; the kernel path is back as soon as both are there."""
    with load(path) as answers:
        replace(path, path.daemon, NEXT, signal.SIGUSR2)
        attached = time.monotonic_ns()
        wait_refused(path, PRESENT)
        down, up = replaced_resolver(path, NEXT)
        kernel_path_back(path)
        assert not differing(path) and path.daemon.call({"cmd": "status"})["abi"] == NEXT
    assert_answered_around(answers, down, up)
    assert not in_kernel(answers[0], attached, down) and in_kernel(answers[0], up)


# -- the resolver first -----------------------------------------------------------------------------------------------------------
def test_new_resolver_then_hydnsd(path):
    """Its plugin waits for a hydnsd of its version, and notices by itself when one is there."""
    with load(path) as answers:
        down, up = replaced_resolver(path, NEXT)
        wait_refused(path, NEXT)
        again = time.monotonic_ns()
        replace(path, path.daemon, NEXT, signal.SIGUSR2)
        kernel_path_back(path)
    assert_answered_around(answers, down, up)
    assert not in_kernel(answers[0], up, again) and in_kernel(answers[0], again)


# -- what they say ----------------------------------------------------------------------------------------------------------------
def test_what_is_said(path):
    """One line each, in both logs and by hydnsctl; and a flush meanwhile is final, also when the former hydnsd is back."""
    pid, name = path.server.program.pid, path.process
    replace(path, path.daemon, NEXT)
    wait_refused(path, PRESENT)
    line = f"the plugin in process {pid} ({name}) speaks ABI {PRESENT}, hydnsd {NEXT}: restart the resolver"
    wait_until(lambda: line in path.server.program.log.read_text(errors="replace"), SOON, "the resolver's log to say it")
    assert path.daemon.program.log.read_text(errors="replace").count(line) == 1
    # this hydnsctl is of the resolver's version: so that one is installed
    assert f"REFUSED      {line.partition(': ')[0]}: restart hydnsd\n" in path.daemon.ctl("status").stdout
    found = {c["check"]: c for c in json.loads(path.daemon.ctl("--json", "doctor", check=False).stdout)["checks"]}
    assert found["version"]["state"] == "fail" and found["version"]["mend"] == "systemctl restart hydnsd"
    path.world.rewrite_lab(records(93))
    path.flush("shift.lab.example")
    assert address(path, "shift") == "192.0.2.93"
    replace(path, path.daemon, PRESENT, signal.SIGKILL)
    ready(path)
    assert not differing(path)
    path.world.heat(path.daemon, "shift.lab.example")
    assert address(path, "shift") == "192.0.2.93"
