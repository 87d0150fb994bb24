# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydnsctl: exit codes, its output with a running daemon, and what it does without one."""

import json
import signal
import socket
import threading

import pytest

from lab.client import ask
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import wait_until

USAGE, ERROR = 2, 1
NAME = "www.lab.example"


def parsed(path, *words):
    return json.loads(path.daemon.ctl(*words, "--json").stdout)


class Stranger:
    """Answers the first connection with a line that is no JSON; gives its socket's path."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.file))
        self.listener.listen()

        def serve():
            peer, _ = self.listener.accept()
            with peer:
                peer.recv(4096)
                peer.sendall(b"220 mail.example ESMTP\n")
        self.thread = threading.Thread(target=serve, daemon=True)
        self.thread.start()
        return self.file

    def __exit__(self, *exc):
        self.thread.join(5)
        self.listener.close()


@pytest.mark.parametrize("words", [
    [], ["no-such-command"], ["--no-such-option"], ["status", "surplus"], ["status", "--do"], ["pause", "--json"],
    ["top", "-n", "0"], ["top", "-n", "x"], ["rules", "-n", "-1"], ["explain", NAME], ["explain", "a..b", "A"],
    ["explain", "x" * 64, "A"], ["explain", NAME, "NOSUCHTYPE"], ["explain", NAME, "TYPE65537"],
    ["explain", NAME, "ANY"], ["flush"], ["flush", NAME, "--all"], ["flush", "--zone", "a..b"],
    ["preload"], ["preload", "a.zone"], ["preload", "--estimate"], ["preload", "--estimate", "a.zone", "--origin", "a..b"],
    ["status", "--origin", NAME]],
    ids=lambda w: " ".join(w)[:30] or "nothing")
def test_wrong_usage(world, tmp_path, words):
    done = run_tool(world.network.resolver, [world.tools.hydnsctl, "--socket", tmp_path / "none", *words],
                    check=False)
    assert done.returncode == USAGE
    assert done.stderr.strip() and not done.stdout


@pytest.mark.parametrize("words", [["status"], ["stats"], ["rules"], ["top"], ["explain", NAME, "A"]],
                         ids=" ".join)
def test_nobody_there(world, tmp_path, words):
    done = run_tool(world.network.resolver, [world.tools.hydnsctl, "--socket", tmp_path / "none", "--pin-dir",
                                             tmp_path / "pins", *words], check=False)
    assert done.returncode == ERROR
    assert str(tmp_path / "none") in done.stderr and "start" in done.stderr


def estimate(world, tmp_path, text, *words):
    (tmp_path / "zone").write_text(text)
    return run_tool(world.network.resolver, [world.tools.hydnsctl, "--socket", tmp_path / "none", "preload", "--estimate",
                                             tmp_path / "zone", *words], check=False)


def test_estimate_without_hydnsd(world, tmp_path):
    """It needs no daemon, and says that there is none. test_bind_estimate.py compares what it says with a preloaded zone."""
    zone = "@ SOA ns hostmaster 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n"
    done = estimate(world, tmp_path, zone, "--origin", "lab.example")
    assert done.returncode == 0 and not done.stderr
    assert "lab.example." in done.stdout and "is not running" in done.stdout
    reply = json.loads(estimate(world, tmp_path, "$ORIGIN lab.example.\n" + zone, "--json").stdout)
    assert (reply["names"], reply["questions"], reply["rules"], reply["hydnsd"]) == (2, 20, 20, None)
    assert sum(slot["octets"] * slot["rules"] for slot in reply["slots"]) == reply["slot_bytes"]


@pytest.mark.parametrize("text, where", [("", "zone:"), ("@ SOA ns h 1 2 3 4 5\n", "zone:1:"), ("$ORIGIN a.\n@ A 192.0.2.1\n", "zone:2:"),
                                         ("$ORIGIN a.\n@ SOA ns h 1 2 3 4 5\n\nwww A 192.0.2\n", "zone:4:")])
def test_estimate_of_no_zone(world, tmp_path, text, where):
    done = estimate(world, tmp_path, text)
    assert done.returncode == ERROR and not done.stdout
    assert f"{tmp_path}/{where} " in done.stderr


def test_somebody_else_listens(world, tmp_path):
    """A socket of a process without the protocol: hydnsctl reports an error and does not hang."""
    with Stranger(tmp_path / "other") as other:
        done = run_tool(world.network.resolver, [world.tools.hydnsctl, "--socket", other, "status"], check=False)
    assert done.returncode == ERROR and "protocol" in done.stderr


def test_status(path):
    path.world.heat(path.daemon, NAME)
    status = parsed(path, "status")
    assert status["daemon"] is True and status["rules"] >= 1 and not status["paused"]
    text = path.daemon.ctl("status").stdout
    for word in [i["name"] for i in status["interfaces"]] + [r["identity"] for r in status["resolvers"]]:
        assert word in text


def test_stats_count_answers(path):
    path.world.heat(path.daemon, NAME)
    before = parsed(path, "stats")["reasons"]["ANSWERED"]
    for _ in range(10):
        ask(path.network.client1, SERVICE[4], NAME)
    assert parsed(path, "stats")["reasons"]["ANSWERED"] >= before + 10
    assert "ANSWERED" in path.daemon.ctl("stats").stdout


def test_rules_and_top_show_the_hot_name(path):
    path.world.heat(path.daemon, NAME)
    assert any(r["name"].rstrip(".") == NAME for r in parsed(path, "rules")["rules"])
    assert len(parsed(path, "rules", "-n", "1")["rules"]) == 1
    for words in (["rules"], ["top", "--once"]):
        assert NAME in path.daemon.ctl(*words).stdout


def test_flush_withdraws(path):
    path.world.heat(path.daemon, NAME)
    path.daemon.ctl("flush", NAME.upper())
    assert path.daemon.explain(NAME)["where"] == "resolver"
    path.world.heat(path.daemon, NAME)
    path.daemon.ctl("flush", "--zone", "lab.example")
    assert path.daemon.explain(NAME)["where"] == "resolver"
    path.world.heat(path.daemon, NAME)
    path.daemon.ctl("flush", "--all")
    assert parsed(path, "status")["rules"] == 0


def test_doctor_finds_daemon_and_interfaces(path):
    done = path.daemon.ctl("doctor", "--json", check=False)
    findings = json.loads(done.stdout)
    assert done.returncode == (0 if findings["healthy"] else ERROR)
    state = {(c["check"], c["subject"]): c["state"] for c in findings["checks"]}
    assert state["daemon", None] == state["abi", None] == state["pins", None] == state["bpffs", None] == "ok"
    for interface in path.daemon.interfaces:
        assert state["xdp", interface] == state["link", interface] == state["veth-peer", interface] == "ok"
    for check in findings["checks"]:
        assert check["state"] in ("ok", "skip") or check["mend"], check


def test_doctor_lets_resolvers_come(path):
    """At once after a start of hydnsd, before the module has noticed it, nothing is ill."""
    path.daemon.stop()
    path.daemon.start()
    done = path.daemon.ctl("doctor", "--json", check=False)
    checks = {(c["check"], c["subject"]): c for c in json.loads(done.stdout)["checks"]}
    assert not [c for c in checks.values() if c["state"] == "fail"]
    assert checks["resolver", "unbound"]["state"] == "ok"


def test_dead_daemon_can_still_be_seen_and_stopped(path):
    path.world.heat(path.daemon, NAME)
    path.daemon.stop(signal.SIGKILL)
    try:
        status = parsed(path, "status")
        assert status["daemon"] is False and status["paused"] is False
        assert {i["name"] for i in status["interfaces"]} == set(path.daemon.interfaces)
        answered = parsed(path, "stats")["reasons"]["ANSWERED"]
        ask(path.network.client1, SERVICE[4], NAME)
        assert parsed(path, "stats")["reasons"]["ANSWERED"] == answered + 1
        path.daemon.ctl("pause")
        received = path.unbound.received()
        assert ask(path.network.client1, SERVICE[4], NAME).answer
        assert path.unbound.received() == received + 1
        path.daemon.ctl("resume")
        assert parsed(path, "status")["paused"] is False
        doctor = json.loads(path.daemon.ctl("doctor", "--json", check=False).stdout)
        assert "stale-pins" in {c["check"] for c in doctor["checks"]}
    finally:
        path.daemon.start()
    wait_until(path.daemon.resolver_ready, 10, "Unbound's module to register again")
