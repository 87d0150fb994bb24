# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Bounds of resolvers' requests to hydnsd: options, counters, and changes while hydnsd runs."""

import contextlib
import itertools
import json
import os
import resource
import select
import signal
import socket
from pathlib import Path

from conftest import kernel_path

from lab import rings
from lab.plugin import PluginClient, hello, ring, withdraw
from lab.run import SOON, wait_until
from storm import held


def reached(path):
    return path.daemon.call({"cmd": "stats"})["bounds"]


def two_requests(path, client):
    """Both lie in the socket before hydnsd reads either. True: both were under way at once, then or before. The first may have
    been done before the second was read: on a single processor a grace period takes no time."""
    with path.daemon.stopped():
        for _ in range(2):
            client.send("WITHDRAW", withdraw("worst.test"))
    assert [client.receive()[0] for _ in range(2)] == ["ACK", "ACK"]
    return reached(path)["plugin-requests"] >= 1


def test_bounds_are_options(world):
    """With a counter of the same name each, and each can be changed while hydnsd runs."""
    config = world.run.dir / "bounds.conf"
    config.write_text("plugin-connections: 6\nplugin-connections-per-user: 3\nplugin-requests: 2\nplugin-rate: 1\n"
                      "plugin-burst: 8\nplugin-log-rate: 1\nplugin-log-burst: 20\n")
    with kernel_path(world, daemon_options={"options": ["--config", config]}) as p:
        assert not any(reached(p).values())
        with PluginClient(p.daemon.plugin_socket).register() as client, PluginClient(p.daemon.plugin_socket) as second:
            status = p.daemon.call({"cmd": "status"})
            assert (status["plugin_connections"], status["plugin_connections_most"]) == (3, 6)
            assert "3 of at most 6 connections" in p.daemon.ctl("status").stdout
            for _ in range(25):
                with PluginClient(p.daemon.plugin_socket) as refused:
                    assert refused.receive() is None
            assert reached(p)["plugin-connections-per-user"] == 25 and reached(p)["plugin-log-rate"] > 0
            wait_until(lambda: two_requests(p, client), SOON, "two requests to be all that a connection may have")
            for _ in range(10):
                client.send("STATS")
            wait_until(lambda: reached(p)["plugin-rate"] > 0, SOON, "the user's costly requests to be used up")
            config.write_text("plugin-connections: 3\nplugin-connections-per-user: 3\nplugin-rate: 1000\n")
            p.daemon.program.popen.send_signal(signal.SIGHUP)
            assert [client.receive()[0] for _ in range(10)] == ["COUNTS"] * 10
            wait_until(lambda: reached(p)["plugin-connections"] == 1, SOON, "three connections to be all")
            second.socket.close()
            text = p.daemon.ctl("stats").stdout
            assert all(name in text for name in reached(p))
            assert json.loads(p.daemon.ctl("stats", "--json").stdout)["bounds"]["plugin-connections-per-user"] == 25


def held_back(pid):
    """How many of a process's descriptors are in its epoll sets without being looked at for what comes."""
    held = 0
    for info in Path(f"/proc/{pid}/fdinfo").iterdir():
        with contextlib.suppress(FileNotFoundError):      # closed meanwhile
            watched = [line.split() for line in info.read_text().splitlines() if line.startswith("tfd:")]
            held += sum(not int(words[3], 16) & select.EPOLLIN for words in watched)
    return held


def test_without_descriptors_others_wait(world):
    """Without a descriptor for a connection hydnsd does not try again and again, but later."""
    with kernel_path(world) as p, contextlib.ExitStack() as stack:
        pid = p.daemon.program.popen.pid
        limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        assert held_back(pid) == 0
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (0, limits[1]))
        client = stack.enter_context(PluginClient(p.daemon.plugin_socket))
        send_hello(client)
        wait_until(lambda: held_back(pid) == 1, SOON, "the plugin socket not to be looked at")
        operator = stack.enter_context(socket.socket(socket.AF_UNIX))
        operator.connect(str(p.daemon.control_socket))
        wait_until(lambda: held_back(pid) == 2, SOON, "the control socket not to be looked at, either")
        resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        assert client.receive()[0] == "WELCOME"
        assert p.daemon.call({"cmd": "status"})["plugin_connections"] == 2
        assert held_back(pid) == 0


RELOADED, UNCLOSED = "configuration read again", "it is tried again"


def said(daemon, text):
    """How often, since the run began: tests share the log."""
    return daemon.program.log.read_text().count(text)


def descriptors(pid):
    return {int(name) for name in os.listdir(f"/proc/{pid}/fd")}


def limit_with_one_free(pid):
    """The soft limit below which one number is free."""
    free = (number for number in itertools.count() if number not in descriptors(pid))
    return next(free) + 1


def test_without_descriptors_for_a_porter_nothing_stays_open(world):
    """A connection in which a descriptor lies is closed by another process. If none can be started it is closed later."""
    with kernel_path(world) as p:
        pid = p.daemon.program.popen.pid
        rings.wait_open(p.daemon)
        limits, before = resource.prlimit(pid, resource.RLIMIT_NOFILE), held.descriptors(pid, p.daemon)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit_with_one_free(pid), limits[1]))
        with PluginClient(p.daemon.plugin_socket) as client:
            unclosed = said(p.daemon, UNCLOSED)
            send_hello(client)
            wait_until(lambda: said(p.daemon, UNCLOSED) > unclosed, SOON, "hydnsd to start no process")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
        wait_until(lambda: held.descriptors(pid, p.daemon) == before, SOON, "the connection to be closed")


def test_a_limited_file_size_does_not_end_it(world):
    """The log is a file: what it may not write it leaves out."""
    with kernel_path(world) as p:
        pid = p.daemon.program.popen.pid
        limits, before = resource.prlimit(pid, resource.RLIMIT_FSIZE), said(p.daemon, RELOADED)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, limits[1]))
        p.daemon.program.popen.send_signal(signal.SIGHUP)
        assert p.daemon.call({"cmd": "status"})["pid"] == pid
        resource.prlimit(pid, resource.RLIMIT_FSIZE, limits)
        assert said(p.daemon, RELOADED) == before
        p.daemon.program.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: said(p.daemon, RELOADED) > before, SOON, "the log to go on")


def send_hello(client):
    fd = ring()
    client.send("HELLO", hello(), [fd])
    os.close(fd)


def test_a_raised_rate_relieves_at_once(world):
    """Hundreds of requests made at once under a rate of one a second do not wait longer after the rate is raised to a
    thousand."""
    config = world.run.dir / "bounds.conf"
    config.write_text("plugin-rate: 1\nplugin-burst: 600\n")
    with kernel_path(world, daemon_options={"options": ["--config", config]}) as p:
        with PluginClient(p.daemon.plugin_socket).register() as first:
            for _ in range(590):
                assert first.call("STATS")[0] == "COUNTS"
            wait_until(lambda: first.send("STATS") and reached(p)["plugin-rate"], SOON,
                       "the user's costly requests to be used up")
            with PluginClient(p.daemon.plugin_socket) as second:
                send_hello(second)
                config.write_text("plugin-rate: 1000\nplugin-burst: 600\n")
                p.daemon.program.popen.send_signal(signal.SIGHUP)
                assert second.receive()[0] == "WELCOME"


def test_a_plugin_over_its_rate_is_not_silent(world):
    """One registration a second: the last of nine sends HELLO long before hydnsd reads it, and is not dropped as silent."""
    with kernel_path(world, daemon_options={"options": ["--plugin-rate", "1", "--plugin-burst", "1"]}) as p:
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(PluginClient(p.daemon.plugin_socket, timeout=60)) for _ in range(9)]
            for client in clients:
                send_hello(client)
            assert [client.receive()[0] for client in clients] == ["WELCOME"] * 9


def test_a_plugin_after_bye_is_not_silent(world):
    """It may send HELLO again within the same time as a new connection. hydnsd drops connections without HELLO at a tick, so
    the end of one that connected later shows that another tick has passed."""
    with kernel_path(world) as p, PluginClient(p.daemon.plugin_socket, timeout=SOON).register() as client, \
            PluginClient(p.daemon.plugin_socket, timeout=SOON) as silent:
        assert not select.select([silent.socket], [], [], 1.5)[0]
        with PluginClient(p.daemon.plugin_socket, timeout=SOON) as later:
            assert silent.receive()[0] == "REFUSED"
            assert client.call("BYE")[0] == "ACK"
            assert later.receive()[0] == "REFUSED"
            client.register()
