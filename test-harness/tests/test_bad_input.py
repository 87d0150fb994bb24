# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Bad input: a clear error on standard error, a status other than zero, nothing broken."""

import os
import random
import socket
import subprocess

import pytest

from lab.client import ask
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import replaced

NOBODY = 65534


def refused(done, *words):
    """Checks that the command failed by itself and that its error names the cause."""
    assert done.returncode > 0, f"status {done.returncode}"
    error = done.stderr.strip()
    assert error, "no error message"
    for word in words:
        assert word in error, f"'{word}' is not in: {error}"


@pytest.fixture
def daemon_command(world, tmp_path):
    """Runs hydnsd with a config text and options, in the resolver's namespace."""
    def run(config=None, *options):
        file = tmp_path / "hydnsd.conf"
        file.write_text(config or "")
        return run_tool(world.network.resolver,
                        [world.tools.hydnsd, "--config", file, "--pin-dir", world.run.dir / "bpf" / "bad",
                         "--plugin-socket", tmp_path / "p", "--control-socket", tmp_path / "c", *options], check=False)
    return run


def test_hydnsd_unknown_option(daemon_command):
    refused(daemon_command(None, "--no-such-option"), "no-such-option")


def test_hydnsd_number_out_of_range(daemon_command):
    refused(daemon_command(None, "--interface", "r1", "--capacity", "0"), "capacity")
    refused(daemon_command(None, "--interface", "r1", "--capacity", "many"), "capacity")


@pytest.mark.parametrize("config,word", [("interface: r1\ncapac", "truncated"),
                                         ("interface: r1\ncapacity: 10", "truncated"),
                                         ("interface\n", "line 1"), ("capacity:\n", "capacity"),
                                         ("no-such-option: 1\n", "no-such-option")])
def test_hydnsd_truncated_or_wrong_config(daemon_command, config, word):
    refused(daemon_command(config), word)


def test_hydnsd_missing_config_file(world, tmp_path):
    refused(run_tool(world.network.resolver, [world.tools.hydnsd, "--config", tmp_path / "none"], check=False),
            str(tmp_path / "none"))


def test_hydnsd_without_root(world, tmp_path):
    """As nobody, from a copy that nobody may read."""
    copy = world.run.dir / "hydnsd-copy"
    copy.write_bytes(world.tools.hydnsd.read_bytes())
    copy.chmod(0o755)
    done = subprocess.run(world.network.resolver.command(
        ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", str(copy), "--config",
         "/dev/null", "--interface", "r1", "--pin-dir", str(world.run.dir / "bpf" / "bad")]),
        capture_output=True, text=True, timeout=20)
    refused(done, "root")


def test_hydnsctl_without_daemon(world, tmp_path):
    for command in (["status"], ["explain", "www.example", "A"], ["flush", "--all"]):
        done = run_tool(world.network.resolver, [world.tools.hydnsctl, "--socket", tmp_path / "none", "--pin-dir",
                                                 world.run.dir / "bpf" / "bad", *command], check=False)
        refused(done, "hydnsd")


@pytest.mark.parametrize("words", [["no-such-command"], ["--no-such-option"], ["explain"], ["explain", "www.example"],
                                   ["explain", "a..b", "A"], ["explain", "www.example", "NOSUCHTYPE"],
                                   ["flush"]], ids=" ".join)
def test_hydnsctl_wrong_usage(path, words):
    refused(path.daemon.ctl(*words, check=False))


@pytest.mark.parametrize("line", ["hydns-capacity: many", "hydns-no-such-option: 1", "hydns-refresh: 5000"])
def test_checkconf_refuses_a_wrong_hydns_clause(path, tmp_path, line):
    config = tmp_path / "unbound.conf"
    config.write_text(replaced(path.unbound.config.read_text(), "hydns:\n", f"hydns:\n    {line}\n"))
    done = run_tool(path.network.resolver, [path.world.tools.unbound_checkconf, config], check=False)
    refused(done)


def test_checkconf_takes_the_configuration_of_the_tests(path):
    run_tool(path.network.resolver, [path.world.tools.unbound_checkconf, path.unbound.config])


def test_random_octets_on_the_sockets(path):
    """Random octets on the plugin socket and on the control socket do not disturb the daemon."""
    rng = random.Random(2)
    path.world.heat(path.daemon, "www.lab.example", "A")
    for _ in range(200):
        for file, kind in ((path.daemon.plugin_socket, socket.SOCK_SEQPACKET),
                           (path.daemon.control_socket, socket.SOCK_STREAM)):
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.connect(str(file))
                try:
                    s.send(rng.randbytes(rng.choice((1, 15, 16, 17, 100, 4000))))
                except (BrokenPipeError, ConnectionResetError):
                    pass     # refused already: as good
    assert path.daemon.program.running()
    assert path.daemon.explain("www.lab.example", "A")["where"] == "kernel"
    assert ask(path.network.client1, SERVICE[4], "www.lab.example").answer
    assert os.path.exists(path.daemon.control_socket)
