# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Interfaces that are missing when hydnsd starts, and interfaces that are no longer configured."""

import re
import signal
from contextlib import contextmanager

import pytest
from conftest import kernel_path
from test_addresses import spare_link

from lab.client import ask
from lab.network import CLIENT1, CLIENT_LINKS, SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until

NAME = "host1.lab.example"
HERE, MISSING = {"r1": True, "r2": True}, {"r9": False}


def interfaces(daemon):
    status = daemon.try_call({"cmd": "status"})
    return {i["name"]: i["attached"] for i in status["interfaces"]} if status else None


def note(daemon, name):
    return next(i["note"] for i in daemon.call({"cmd": "status"})["interfaces"] if i["name"] == name)


def program_on(ns, link):
    """The id of the XDP program on the link, or None."""
    return (m := re.search(r"prog/xdp id (\d+)", run_tool(ns, ["ip", "link", "show", link]).stdout)) and int(m[1])


@contextmanager
def started(world, names, expected, **options):
    """hydnsd for these interfaces, as soon as its status is as expected."""
    daemon = world.hydnsd(**options)
    daemon.interfaces = names
    daemon.attached = lambda: interfaces(daemon) == expected
    log = world.run.dir / "hydnsd.log"
    begin = log.stat().st_size if log.exists() else 0
    with daemon:
        daemon.said = lambda: log.read_text()[begin:]
        yield daemon


def checksums(daemon):
    """Whether the program takes unfinished ones, and why."""
    found, = (p for p in daemon.call({"cmd": "status"})["composition"]["parts"] if p["part"] == "partial_checksum")
    return found["in"], found["why"]


def test_a_missing_interface_harms_no_other(world):
    with started(world, (*CLIENT_LINKS, "r9"), {**HERE, **MISSING}) as daemon, world.unbound(daemon):
        log = daemon.said()
        assert "r9" in note(daemon, "r9") and re.search(r"r9 does not exist.*tries again by itself", log)
        assert "NOT ATTACHED" in daemon.ctl("status").stdout
        wait_until(daemon.resolver_ready, SOON, "Unbound's module to register")
        world.heat(daemon, NAME)
        with spare_link(world.network):
            wait_until(lambda: interfaces(daemon) == {**HERE, "r9": True}, 10, "hydnsd to attach to the link that came")
            wait_until(lambda: note(daemon, "r9") == "", 10, "hydnsd to see that the peer has its program by now")
            with world.network.client1.netlink() as ip:    # the way to the service is the new link
                link = ip.link_lookup(ifname="c9")[0]
                ip.route("add", dst=f"{SERVICE[4]}/32", gateway="10.53.9.1", oif=link)
                ip.route("add", dst=f"{SERVICE[6]}/128", gateway="fd53:9::1", oif=link)
            for address in SERVICE.values():
                before = daemon.reasons()["ANSWERED"]
                assert ask(world.network.client1, address, NAME).answer
                assert daemon.reasons()["ANSWERED"] == before + 1
        assert daemon.said().count("attached to r1") == 1
        assert daemon.program.running()


def test_no_interface_is_there(world):
    with started(world, ("r9",), MISSING) as daemon:
        wait_until(lambda: "is ready" in daemon.said(), SOON, "hydnsd to say that it is ready")
        with spare_link(world.network):
            wait_until(lambda: interfaces(daemon) == {"r9": True}, 10, "hydnsd to attach to the link that came")
            # its driver could not be known when the program was loaded
            wait_until(lambda: checksums(daemon) == (True, "r9 leaves checksums unfinished"), 10, "another program to be loaded")
    with started(world, ("r9",), MISSING, options=("--partial-checksum", "no")) as daemon, spare_link(world.network):
        wait_until(lambda: interfaces(daemon) == {"r9": True}, 10, "hydnsd to attach to the link that came")
        assert checksums(daemon) == (False, "partial-checksum: no")


@pytest.mark.parametrize("mode", ["native", "generic"])
@pytest.mark.parametrize("capacity", [None, 500])
@pytest.mark.parametrize("end", [signal.SIGUSR2, signal.SIGKILL])
def test_an_interface_taken_out_is_left_at_the_next_start(world, mode, capacity, end):
    """With another capacity the old program has maps of its own, which no pause reaches."""
    resolver = world.network.resolver
    options = ("--attach-mode", mode)
    with kernel_path(world, daemon_options={"options": options}) as path:
        world.heat(path.daemon, NAME)
        path.daemon.stop(end)
        assert program_on(resolver, "r1") and program_on(resolver, "r2")
        path.daemon.interfaces, path.daemon.capacity = ("r2",), capacity
        begin = path.daemon.program.log.stat().st_size
        path.daemon.start()
        assert interfaces(path.daemon) == {"r2": True}
        assert program_on(resolver, "r1") is None and program_on(resolver, "r2")
        assert "detached from r1" in path.daemon.program.log.read_text()[begin:]
        path.daemon.ctl("pause")
        for address in SERVICE.values():
            received = path.unbound.received()
            assert ask(world.network.client1, address, NAME, local=CLIENT1[6 if ":" in address else 4]).answer
            assert path.unbound.received() == received + 1, "somebody else has answered"


def test_an_interface_that_went_meanwhile_leaves_no_pin(world):
    with spare_link(world.network) as link:
        with started(world, ("r2", "r9"), {"r2": True, "r9": True}) as daemon:
            daemon.stop(signal.SIGKILL)
            assert (daemon.pins / "link_r9").exists()
            link.delete()
            daemon.attached = lambda: interfaces(daemon) == {"r2": True, "r9": False}
            daemon.start()
            assert not (daemon.pins / "link_r9").exists() and (daemon.pins / "link_r2").exists()
