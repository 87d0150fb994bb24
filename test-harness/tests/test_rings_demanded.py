# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unbound with packet rings that its configuration demands: it does not start without them, but a reload ends no service."""

from contextlib import contextmanager

import pytest

from lab import rings
from lab.client import ask
from lab.network import SERVICE
from lab.process import Program
from lab.run import SOON, wait_until

NO_RINGS = {"options": ("--queue", "no")}
NONE = "hydns-queue or hydns-queue-upstream is yes, and there are no packet rings"


def demands(world, daemon, option="hydns-queue"):
    return world.unbound(daemon, clause=[f"{option}: yes"])


@contextmanager
def begun(unbound):
    """From its first moment on; it may never serve. Gives the process and a function: what it has logged."""
    log = unbound.world.run.dir / f"{unbound.name}.log"
    since = log.stat().st_size if log.is_file() else 0
    program = Program(unbound.world.run, unbound.ns, unbound.name, [*unbound.command, "-d", "-c", unbound.config])
    try:
        yield program, lambda: log.read_bytes()[since:].decode()
    finally:
        program.stop()


@pytest.mark.parametrize("option", ["hydns-queue", "hydns-queue-upstream"])
def test_unbound_does_not_start(world, option):
    with world.hydnsd(**NO_RINGS) as daemon, begun(demands(world, daemon, option)) as (program, said):
        assert program.popen.wait(60) == 1
    assert f"fatal error: hydns: {NONE}" in said()


def test_hydnsd_may_start_later(world):
    daemon = world.hydnsd()
    with begun(demands(world, daemon)) as (program, said):
        wait_until(lambda: "hydnsd cannot be reached at" in said(), SOON, "the module to look for hydnsd")
        with daemon:
            rings.wait_open(daemon)
            wait_until(lambda: program.must_run() and ask(world.network.client1, SERVICE[4], "localhost", timeout=0.2), SOON,
                       "Unbound to answer")


def test_reload_ends_no_service(world):
    daemon = world.hydnsd()
    with daemon, demands(world, daemon) as unbound:
        rings.wait_open(daemon)
        daemon.stop()
        with world.hydnsd(**NO_RINGS):
            unbound.control("reload")
            wait_until(lambda: f" error: hydns: {NONE}" in unbound.program.log.read_text(), SOON, "Unbound to say so")
            assert ask(world.network.client1, SERVICE[4], "localhost", timeout=20).answer
