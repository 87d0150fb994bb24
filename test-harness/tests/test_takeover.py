# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Who answers at an address: the process that has bound it, as soon as it has registered, and no other."""

import signal
import time

import pytest
from conftest import bind_path, kernel_path

from lab.client import ask
from lab.changing_zones import records
from lab.network import SERVICE
from lab.run import SOON, wait_until
from lab.servers import Unbound

NAME = "www.lab.example"
OURS = {f"{SERVICE[4]}:53", f"[{SERVICE[6]}]:53"}


def resolver_path(world, server):
    return (kernel_path if server == "unbound" else bind_path)(world)


def resolver_of(daemon, program):
    """What status says of the process; None before it is ready."""
    status = daemon.call({"cmd": "status"})
    return next((r for r in status["resolvers"] if r["pid"] == program.pid and r["state"] == "ready"), None)


def has_services(path, server):
    ask(path.network.client1, SERVICE[4], "localhost")     # BIND's plugin starts with the first response
    r = resolver_of(path.daemon, server.program)
    return r and set(r["services"]) == OURS and not r["missing"]


def answers_in_kernel(path, number):
    """New data for NAME, and the kernel's answer over both families is that."""
    path.world.change_lab(records(number), NAME, "A", f"192.0.2.{number}")
    path.server.control("flush" if isinstance(path.server, Unbound) else "flushname", NAME)
    path.world.heat(path.daemon, NAME)
    before = path.daemon.reasons()["ANSWERED"]
    for address in SERVICE.values():
        reply = ask(path.network.client1, address, NAME)
        assert [str(rr[0]) for rr in reply.answer] == [f"192.0.2.{number}"]
    assert path.daemon.reasons()["ANSWERED"] == before + 2


@pytest.mark.parametrize("server", ["unbound", "bind"])
@pytest.mark.parametrize("delay", [0, 0.1, 0.5])
def test_resolver_killed_and_back(world, server, delay):
    """systemd starts it again after 100 to 500 ms, when its last heartbeat is still fresh."""
    with resolver_path(world, server) as path:
        path.world.heat(path.daemon, NAME)
        path.server.stop(signal.SIGKILL)
        time.sleep(delay)
        path.server.start()
        wait_until(lambda: has_services(path, path.server), SOON, "the services to be the new process's")
        answers_in_kernel(path, 41)


@pytest.mark.parametrize("server", ["unbound", "bind"])
@pytest.mark.parametrize("signal_to_daemon", [signal.SIGSTOP, signal.SIGKILL, signal.SIGUSR2])
def test_resolver_killed_while_the_daemon_is_away(world, server, signal_to_daemon):
    """hydnsd finds the end of the one connection and the beginning of the other together, in any order."""
    with resolver_path(world, server) as path:
        for number in (42, 43, 44):
            path.world.heat(path.daemon, NAME)
            path.daemon.program.popen.send_signal(signal_to_daemon)
            path.server.stop(signal.SIGKILL)
            path.server.start()
            if signal_to_daemon == signal.SIGSTOP:
                path.daemon.program.popen.send_signal(signal.SIGCONT)
            else:
                path.daemon.program.popen.wait(10)
                path.daemon.start()
            wait_until(lambda: has_services(path, path.server), SOON, "the services to be the new process's")
            answers_in_kernel(path, number)


def missing(path, server):
    """{service: why} of what the process does not have; None before it is ready."""
    r = resolver_of(path.daemon, server.program)
    return r and {m["service"]: m["why"] for m in r["missing"]}


def test_two_resolvers_at_one_address(world):
    """The first has it as long as it runs, also after a restart of hydnsd; then the second gets it without a request."""
    with kernel_path(world) as path:
        first = path.unbound
        second = Unbound(world, world.network.resolver, "second", SERVICE, world.hints, hydns=path.daemon.plugin_socket)
        begin = path.daemon.program.log.stat().st_size
        with second:
            wait_until(lambda: missing(path, second), SOON, "the second to be refused")
            for sig in (None, signal.SIGKILL, signal.SIGUSR2, signal.SIGKILL):
                if sig:
                    path.daemon.stop(sig)
                    path.daemon.start()
                wait_until(lambda: resolver_of(path.daemon, first.program), SOON, "the first to be ready")
                wait_until(lambda: missing(path, second), SOON, "the second to be ready")
                assert set(resolver_of(path.daemon, first.program)["services"]) == OURS
                assert missing(path, first) == {}
                assert set(missing(path, second)) == OURS
                number = resolver_of(path.daemon, first.program)["authority"]
                assert all(f"resolver {number} has" in why for why in missing(path, second).values())
            assert "MISSING" in path.daemon.ctl("status").stdout
            said = path.daemon.program.log.read_text()[begin:].count("refused a listening address")
            tries = second.program.log.read_text().count("refused a listening address")
            assert said <= 2 * 4 and tries <= 2 * 4, "one line for each address and each hydnsd, not for each trial"
            first.stop(signal.SIGKILL)
            wait_until(lambda: missing(path, second) == {}, SOON, "the second to have what the first had")
            assert set(resolver_of(path.daemon, second.program)["services"]) == OURS
            wait_until(lambda: "has taken a listening address" in second.program.log.read_text(), SOON,
                       "the second to say so")
            first.start()
            wait_until(lambda: missing(path, first), SOON, "the first to be refused")
            assert missing(path, second) == {}
