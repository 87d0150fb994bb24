# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`hydnsctl top`: what is hot, where it is answered, and why not in the kernel."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

import pytest

from conftest import bind_path, kernel_path
from lab.client import ask
from lab.network import SERVICE
from lab.run import wait_until

NAME, OTHER = "www.lab.example", "a1.lab.example"


def top(path):
    return json.loads(path.daemon.ctl("top", "--json").stdout)


def rows(path, name, variant=0):
    return [n for n in top(path)["names"] if n["name"].rstrip(".") == name and n["variant"] == variant]


def asked_until(path, condition, what, name=NAME, **options):
    """Asks over IPv4 and IPv6 until the condition holds."""
    def holds():
        for version in (4, 6):
            for _ in range(10):
                ask(path.network.client1, SERVICE[version], name, **options)
        return condition()
    wait_until(holds, 20, what)


def columns(path):
    """The cells of the text's rows, by title."""
    lines = path.daemon.ctl("top", "--once").stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["RATE", "HITS"])
    return [dict(zip(lines[head].split(), line.split(None, 6))) for line in lines[head + 1:]]


@pytest.mark.parametrize("way", [kernel_path, bind_path])
def test_variants_are_shown_apart(world, way):
    with way(world) as path:
        world.heat(path.daemon, NAME)
        world.heat(path.daemon, NAME, dnssec=True)
        assert [r["where"] for v in (0, 1) for r in rows(path, NAME, v)] == ["kernel", "kernel"]
        assert {r["FOR"] for r in columns(path) if r["NAME"].rstrip(".") == NAME} == {"plain", "do"}


@pytest.mark.parametrize("way", [kernel_path, bind_path])
def test_a_flushed_name_says_so(world, way):
    """And when it has a rule again, it is listed once, as a rule."""
    with way(world) as path:
        asked_until(path, lambda: any(r["rate"] >= 1 for r in rows(path, NAME)), f"{NAME} to be hot")
        path.daemon.ctl("flush", NAME)
        row, = rows(path, NAME)
        assert row["where"] == "resolver" and row["reason"] == "WITHDRAWN" and "flush" in row["why"] and row["rate"] >= 1
        text = path.daemon.ctl("top", "--once").stdout
        assert row["why"].rpartition(": ")[2] in text
        world.heat(path.daemon, NAME)
        row, = rows(path, NAME)
        assert row["where"] == "kernel" and not row["why"]


def test_a_refused_name_says_why(world):
    """A store of one rule: of two hot names one has it, and the other is listed with its rate and the reason."""
    with kernel_path(world, daemon_options={"capacity": 1}) as path:
        def both_listed():
            for name in (NAME, OTHER):
                for _ in range(10):
                    ask(path.network.client1, SERVICE[4], name)
            where = {n["name"].rstrip("."): n["where"] for n in top(path)["names"]}
            return sorted(where.get(n, "") for n in (NAME, OTHER)) == ["kernel", "resolver"]
        wait_until(both_listed, 20, "one of two names to be in the kernel and the other listed")
        row, = [n for n in top(path)["names"] if n["where"] == "resolver"]
        assert row["reason"] in ("FULL", "NO_SLOT", "EVICTED") and row["why"] and row["rate"] > 0


def test_a_paused_kernel_answers_nothing(world):
    with kernel_path(world) as path:
        world.heat(path.daemon, NAME)
        path.daemon.ctl("pause")
        row, = rows(path, NAME)
        assert row["where"] == "resolver" and "paused" in row["why"]
        path.daemon.ctl("resume")
        assert rows(path, NAME)[0]["where"] == "kernel"


def test_rules_that_no_service_reaches(world):
    """With interface-automatic Unbound registers no address: it offers, and nothing is answered in the kernel."""
    with kernel_path(world, unbound_options={"server": ["interface-automatic: yes"]}) as path:
        asked_until(path, lambda: rows(path, NAME), f"{NAME} to be listed")
        answered = path.daemon.reasons()["ANSWERED"]
        ask(path.network.client1, SERVICE[4], NAME)
        assert path.daemon.reasons()["ANSWERED"] == answered
        row, = rows(path, NAME)
        assert row["where"] == "resolver" and "no address" in row["why"]


def test_notes_and_reasons_are_shown(world):
    """What keeps everything from the kernel, and what became of the queries."""
    with kernel_path(world, unbound_options={"server": ["log-queries: yes"]}) as path:
        asked_until(path, lambda: top(path)["passed"] > 0 or top(path)["notes"], "a note")
        note = top(path)["notes"][0]
        assert "log-queries" in note["note"] and note["identity"]
        assert f"note: {note['identity']}: {note['note']}" in path.daemon.ctl("top", "--once").stdout
    with kernel_path(world) as path:
        world.heat(path.daemon, NAME)
        asked_until(path, lambda: top(path)["reasons"].get("DNS_UNUSUAL", 0) > 0, "a query with CD to be counted", cd=True)
        report = top(path)
        assert sum(report["reasons"].values()) == report["passed"]
        assert "passed: " in path.daemon.ctl("top", "--once").stdout


def test_on_a_terminal(world):
    """A screen holds it all, however many names there are, and q ends it."""
    height = 16
    with kernel_path(world) as path:
        for n in [*range(1, height + 10)] * 2:
            ask(path.network.client1, SERVICE[4], f"a{n}.lab.example")
            ask(path.network.client1, SERVICE[4], f"none{n}.lab.example")
        wait_until(lambda: len(top(path)["names"]) >= height, 20, "more names than lines")
        terminal, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", height, 80, 0, 0))
        with subprocess.Popen([world.tools.hydnsctl, "--socket", path.daemon.control_socket, "top"], stdin=other,
                              stdout=other) as program:
            text = ""
            while "\033[J" not in text or "NAME" not in text.rpartition("\033[J")[2]:
                text += os.read(terminal, 65536).decode()
            os.write(terminal, b"q")
            assert program.wait(10) == 0
        os.close(other)
        text += os.read(terminal, 65536).decode()
        os.close(terminal)
    screen = text.partition("\033[J")[2].partition("\033[")[0]
    assert height - 6 < screen.count("\n") < height
    assert text.rstrip().endswith("\033[?7h\033[?1049l")
