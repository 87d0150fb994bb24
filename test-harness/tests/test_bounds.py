# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Bounds of what resolvers may ask of hydnsd: options, counters, and both while hydnsd runs."""

import json
import signal

from conftest import kernel_path

from harness.plugin import PluginClient, withdraw
from harness.run import SOON, process_stat, wait_until


def reached(path):
    return path.daemon.call({"cmd": "stats"})["bounds"]


def two_requests(path, client):
    """Both lie in the socket before hydnsd reads either. True: both were under way at once, then or before. The first may have
    been done before the second was read: on a single processor a grace period takes no time."""
    hydnsd = path.daemon.program
    hydnsd.popen.send_signal(signal.SIGSTOP)
    try:
        wait_until(lambda: process_stat(hydnsd.pid)[0] == "T", SOON, "hydnsd to stand still")
        for _ in range(2):
            client.send("WITHDRAW", withdraw("worst.test"))
    finally:
        hydnsd.popen.send_signal(signal.SIGCONT)
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
