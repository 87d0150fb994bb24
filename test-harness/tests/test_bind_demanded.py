# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with packet rings that its configuration demands: named does not start without them, but a reload ends no service."""

from contextlib import contextmanager

from lab import rings
from lab.client import ask
from lab.network import SERVICE
from lab.process import Program
from lab.run import SOON, wait_until

NAME = "www.lab.example"
DEMAND = ("hydns-admission 1000000;", "hydns-queue-frames 256;", "hydns-queue yes;")
LINKS = ("r1",)
NO_RINGS = {"links": LINKS, "options": ("--queue", "no")}


@contextmanager
def begun(world, daemon, **options):
    """named from its first moment on, which may never serve. Gives its process and a function: what it has logged."""
    named = world.named(daemon, clause=DEMAND, **options)
    log = world.run.dir / f"{named.name}.log"
    since = log.stat().st_size if log.is_file() else 0
    program = Program(world.run, named.ns, named.name,
                      [*named.program_of("sbin/named"), "-g", "-n", named.threads, "-c", named.config])
    try:
        yield program, lambda: log.read_bytes()[since:].decode()
    finally:
        program.stop()


def test_rings_before_the_first_query(world):
    """named waits for hydnsd, which starts later."""
    daemon = world.hydnsd(links=LINKS)
    with begun(world, daemon) as (named, said):
        wait_until(lambda: "hydnsd cannot be reached at" in said(), SOON, "the plugin to look for hydnsd")
        assert " running\n" not in said()
        with daemon:
            wait_until(lambda: named.must_run() and " running\n" in said(), SOON, "named to run")
            rings.wait_open(daemon, LINKS)
            assert ask(world.network.client1, SERVICE[4], NAME).answer


def test_named_does_not_start(world):
    with world.hydnsd(**NO_RINGS) as daemon, begun(world, daemon) as (named, said):
        assert named.popen.wait(60) == 1
    assert "hydns: no packet rings: " in said()
    assert "hydns-queue is yes, and there are no packet rings" in said()
    assert "exiting (due to fatal error)" in said() and " running\n" not in said()


def test_view_without_rings(world):
    """One view has them, the first that may. Here the second one demands them, too."""
    with world.hydnsd(links=LINKS) as daemon, begun(world, daemon, views={"first": ((), True), "second": ((), True)}) as (named, said):
        assert named.popen.wait(60) == 1
    assert "hydns-queue yes: view first has the packet rings: set hydns-queue and hydns-queue-upstream no there" in said()


def test_reload_ends_no_service(world):
    daemon = world.hydnsd(links=LINKS)
    with daemon, world.named(daemon, clause=DEMAND) as named:
        rings.wait_open(daemon, LINKS)
        daemon.stop()
        with world.hydnsd(**NO_RINGS):
            for command in ("reload", "reconfig"):
                named.control(command)
                assert ask(world.network.client1, SERVICE[4], NAME).answer
