# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with packet rings that its configuration demands: named does not start without them, but a reload ends no service."""

from contextlib import contextmanager

import pytest

from lab import rings
from lab.client import ask
from lab.network import SERVICE
from lab.process import Program
from lab.run import SOON, wait_until

NAME = "www.lab.example"
OPTIONS = ("hydns-admission 1000000;", "hydns-queue-frames 256;")
# What is demanded: the option, the link where it is used, and what the plugin's braces say.
DEMANDS = {"clients": ("hydns-queue", "r1", (*OPTIONS, "hydns-queue yes;")),
           "upstream": ("hydns-queue-upstream", "ra", (*OPTIONS, "hydns-queue no;", "hydns-queue-upstream yes;"))}
each_demand = pytest.mark.parametrize("option, link, clause", DEMANDS.values(), ids=DEMANDS)
NO_RINGS = ("--queue", "no")


@contextmanager
def begun(world, daemon, clause, **options):
    """named from its first moment on, which may never serve. Gives its process and a function: what it has logged."""
    named = world.named(daemon, clause=clause, threads=1, **options)
    log = world.run.dir / f"{named.name}.log"
    since = log.stat().st_size if log.is_file() else 0
    program = Program(world.run, named.ns, named.name,
                      [*named.program_of("sbin/named"), "-g", "-n", named.threads, "-c", named.config])
    try:
        yield program, lambda: log.read_bytes()[since:].decode()
    finally:
        program.stop()


@each_demand
def test_rings_before_the_first_query(world, option, link, clause):
    """named waits for hydnsd, which starts later."""
    daemon = world.hydnsd(links=(link,))
    with begun(world, daemon, clause) as (named, said):
        wait_until(lambda: "hydnsd cannot be reached at" in said(), SOON, "the plugin to look for hydnsd")
        assert " running\n" not in said()
        with daemon:
            wait_until(lambda: named.must_run() and " running\n" in said(), SOON, "named to run")
            rings.wait_open(daemon, (link,))

            def used():
                """The next hop's Ethernet address is known after the first query to upstream."""
                ((name, rdtype),) = rings.never_asked(1)
                assert ask(world.network.client1, SERVICE[4], name, rdtype)
                carried = rings.counted(daemon)
                return carried.queries if option == "hydns-queue" else carried.answers
            wait_until(used, SOON, "packet rings to be used")


@each_demand
def test_named_does_not_start(world, option, link, clause):
    with world.hydnsd(links=(link,), options=NO_RINGS) as daemon, begun(world, daemon, clause) as (named, said):
        assert named.popen.wait(60) == 1
    assert "hydns: no packet rings: " in said()
    assert f"{option} is yes, and there are no packet rings" in said()
    assert "exiting (due to fatal error)" in said() and " running\n" not in said()


@each_demand
def test_view_without_rings(world, option, link, clause):
    """One view has them, the first that may. Here the second one demands them, too."""
    with world.hydnsd(links=(link,)) as daemon, \
            begun(world, daemon, clause, views={"first": ((), True), "second": ((), True)}) as (named, said):
        assert named.popen.wait(60) == 1
    assert f"{option} yes: view first has the packet rings: set hydns-queue and hydns-queue-upstream no there" in said()


@each_demand
def test_reload_ends_no_service(world, option, link, clause):
    daemon = world.hydnsd(links=(link,))
    with daemon, world.named(daemon, clause=clause, threads=1) as named:
        rings.wait_open(daemon, (link,))
        daemon.stop()
        with world.hydnsd(links=(link,), options=NO_RINGS):
            for command in ("reload", "reconfig"):
                named.control(command)
                assert ask(world.network.client1, SERVICE[4], NAME).answer
