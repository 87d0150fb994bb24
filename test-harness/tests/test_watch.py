# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`hydnsctl watch`: what hydns-metrics' page shows, on a terminal that it leaves as it was."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
from contextlib import contextmanager

import pytest

from lab.client import ask
from lab.fake_hydnsd import FakeHydnsd
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import SOON, process_stat, wait_until

NAME = "www.lab.example"
COMMANDS = ("status", "stats", "top", "pending")
ENTER, LEAVE = "\x1b[?1049h", "\x1b[?25h\x1b[?7h\x1b[?1049l"
HOSTILE = "evil\x1b]0;owned\x07\x1b[2J\r\n\t\x7f\x9b31m\u202e<script>"


class Terminal:
    """A pseudoterminal with a program on it; text: all that it has written."""

    def __init__(self, argv, rows=24, columns=80, **environment):
        self.fd, self.other = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.other)
        self.text = ""
        env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "LC_ALL", "LC_CTYPE")}
        self.program = subprocess.Popen([str(a) for a in argv], stdin=self.other, stdout=self.other, stderr=self.other, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
                                        env={**env, "TERM": "xterm", "LANG": "C.UTF-8", **environment})

    def resize(self, rows, columns):
        fcntl.ioctl(self.other, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            self.text += os.read(self.fd, 1 << 16).decode(errors="replace")
        return self.text

    def screens(self, whole=True):
        """The lines of each screen so far. whole: not of the last one, which may be under way."""
        drawn = self.read().split("\x1b[H")[1:-1 if whole else None]
        return [re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", d).rstrip("\n").split("\n") for d in drawn]

    def wait(self, condition, what):
        return wait_until(lambda: condition(self.read()), SOON, what)

    def type(self, keys):
        os.write(self.fd, keys.encode())

    def restored(self):
        return self.text.rstrip().endswith(LEAVE) and termios.tcgetattr(self.other) == self.before


@contextmanager
def terminal(argv, **options):
    t = Terminal(argv, **options)
    try:
        yield t
    finally:
        t.program.kill()
        t.program.wait()
        os.close(t.fd)
        os.close(t.other)


def watch(world, socket, *options):
    return [world.tools.hydnsctl, "--socket", socket, "watch", *options]


@pytest.fixture(scope="module")
def replies(path):
    """hydnsd's, with a rule and a reason to pass."""
    def both():
        ask(path.network.client1, SERVICE[4], NAME, cd=True)
        found = {c: {k: v for k, v in path.daemon.call({"cmd": c}).items() if k != "ok"} for c in COMMANDS}
        return found["top"]["reasons"] and found["top"]["names"] and found
    path.world.heat(path.daemon, NAME)
    return wait_until(both, SOON, "a rule and a query that passes")


def changed(replies, **fields):
    """A copy, each named text replaced wherever it stands."""
    def walk(thing):
        if isinstance(thing, dict):
            return {k: fields[k] if k in fields and isinstance(v, str) else walk(v) for k, v in thing.items()}
        return [walk(v) for v in thing] if isinstance(thing, list) else thing
    return walk(replies)


# -- what it says ------------------------------------------------------------------------------------------------
def test_once(path, replies):
    text = path.daemon.ctl("watch", "--once").stdout
    status = replies["status"]
    for word in (status["version"], "in the kernel", "WHY QUERIES PASS", "HOTTEST NAMES", NAME, "TTL LEFT", "interfaces attached",
                 *(r["identity"] for r in status["resolvers"])):
        assert word in text, word
    assert "\x1b" not in text


def test_json(path):
    """hydnsd's replies by the names of their commands, and what the page has besides."""
    live = json.loads(path.daemon.ctl("watch", "--once", "--json").stdout)
    for command in COMMANDS:
        assert live[command].keys() | {"ok"} == path.daemon.call({"cmd": command}).keys()
    assert live["up"] is True and {f["check"] for f in live["health"]} >= {"kill-switch", "resolver", "sources"}
    assert sum(r["queries"] for r in live["passing"]) == live["top"]["passed"] and all(r["text"] for r in live["passing"])


@pytest.mark.parametrize("options, is_line", [((), lambda line: "in the kernel" in line and "rules" in line), (("--json",), json.loads)])
def test_into_a_pipe(path, options, is_line):
    """A line now and then, until it is ended."""
    with subprocess.Popen([str(w) for w in watch(path.world, path.daemon.control_socket, *options)], stdout=subprocess.PIPE, text=True) as program:
        assert all(is_line(program.stdout.readline()) for _ in range(2))
        program.send_signal(signal.SIGTERM)
        assert program.wait(SOON) == 0


@pytest.mark.parametrize("options", ([], ["--once"], ["--json"]))
def test_nobody_there(world, tmp_path, options):
    done = run_tool(world.network.resolver, watch(world, tmp_path / "none", *options), check=False)
    assert done.returncode == 1 and str(tmp_path / "none") in done.stderr and not done.stdout


@pytest.mark.parametrize("words", (["--interval", "0"], ["--interval", "x"], ["--interval", "-1"], ["--interval", "3601"], ["-n", "5"], ["surplus"]))
def test_wrong_usage(world, tmp_path, words):
    assert run_tool(world.network.resolver, watch(world, tmp_path / "none", *words), check=False).returncode == 2


# -- the terminal --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("end", ("q", "\x03", "SIGTERM", "SIGHUP"))
def test_it_leaves_the_terminal_as_it_was(path, end):
    with terminal(watch(path.world, path.daemon.control_socket)) as t:
        t.wait(lambda text: len(t.screens()) >= 2, "two screens")
        assert ENTER in t.text and termios.tcgetattr(t.other) != t.before
        if end.startswith("SIG"):
            t.program.send_signal(getattr(signal, end))
        else:
            t.type(end)
        assert t.program.wait(SOON) == 0
        t.read()
        assert t.restored()


def test_keys_are_heard_while_hydnsd_hangs(path):
    with terminal(watch(path.world, path.daemon.control_socket)) as t:
        t.wait(lambda text: t.screens(), "a screen")
        with path.daemon.stopped():
            t.wait(lambda text: "does not answer" in text, "hydnsd to be missed")
            t.type("q")
            assert t.program.wait(SOON) == 0
        t.read()
        assert t.restored()


def test_it_goes_on_without_hydnsd(path):
    with terminal(watch(path.world, path.daemon.control_socket)) as t:
        t.wait(lambda text: t.screens(), "a screen")
        with path.daemon.stopped():
            t.wait(lambda text: "does not answer" in text, "hydnsd to be missed")
        seen = len(t.read())
        t.wait(lambda text: "HOTTEST NAMES" in text[seen:], "hydnsd to be back")


def test_stopped_and_continued(path):
    """Ctrl-Z gives the terminal back, and fg takes it again."""
    with terminal(watch(path.world, path.daemon.control_socket)) as t:
        t.wait(lambda text: t.screens(), "a screen")
        t.program.send_signal(signal.SIGTSTP)
        wait_until(lambda: process_stat(t.program.pid)[0] == "T", SOON, "it to stand still")
        t.read()
        assert t.restored()
        t.program.send_signal(signal.SIGCONT)
        t.wait(lambda text: text.count(ENTER) == 2, "the screen to be back")


@pytest.mark.parametrize("rows, columns", ((24, 80), (8, 40), (3, 12), (1, 1), (60, 200)))
def test_it_fits(world, tmp_path, replies, rows, columns):
    """No line is longer than the terminal, and none too many, however long the names are."""
    long = changed(replies, name="x" * 200 + "." + "y" * 800, note="z" * 2000)
    with FakeHydnsd(tmp_path / "control", long) as hydnsd, terminal(watch(world, hydnsd.path), rows=rows, columns=columns) as t:
        t.wait(lambda text: len(t.screens()) >= 2, "two screens")
        for screen in t.screens():
            assert len(screen) <= rows and max(len(line) for line in screen) <= columns


def test_another_size(world, tmp_path, replies):
    """It draws anew at once, not when an hour is over."""
    with FakeHydnsd(tmp_path / "control", replies) as hydnsd, terminal(watch(world, hydnsd.path, "--interval", "3600")) as t:
        t.wait(lambda text: "in the kernel" in text, "a screen")
        t.resize(10, 30)
        t.program.send_signal(signal.SIGWINCH)
        t.wait(lambda text: text.count("\x1b[H") >= 2, "a second screen")
        t.type("q")
        assert t.program.wait(SOON) == 0
        last = t.screens(whole=False)[-1]
        assert len(last) <= 10 and max(len(line) for line in last) <= 30
        assert len(hydnsd.asked) <= 2                # hydnsctl's first question, and one view


@pytest.mark.parametrize("environment, dim, blocks", (({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"LANG": "C"}, True, False)))
def test_what_the_terminal_can(path, environment, dim, blocks):
    with terminal(watch(path.world, path.daemon.control_socket), **environment) as t:
        t.wait(lambda text: len(t.screens()) >= 3, "screens")
        assert (re.search(r"\x1b\[[0-9;]+m", t.text) is not None) == dim
        assert (re.search("[▁▂▃▄▅▆▇█]", t.text) is not None) == blocks


@pytest.mark.parametrize("term", ("dumb", ""))
def test_a_terminal_that_can_nothing(path, term):
    with terminal(watch(path.world, path.daemon.control_socket), TERM=term) as t:
        t.wait(lambda text: text.count("\n") >= 2, "two lines")
        assert "\x1b" not in t.text and "in the kernel" in t.text


def test_hostile_texts(world, tmp_path, replies):
    """Nothing of a name or a note acts on the terminal, on a screen or in a line."""
    hostile = changed(replies, name=HOSTILE, identity=HOSTILE, note=HOSTILE, why=HOSTILE, version=HOSTILE, type=HOSTILE)
    with FakeHydnsd(tmp_path / "control", hostile) as hydnsd:
        once = run_tool(world.network.resolver, watch(world, hydnsd.path, "--once")).stdout
        assert r"evil\x1b]0;owned\x07\x1b[2J\x0d\x0a\x09\x7f\x9b31m\u202e<script>" in once
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", once)
        with terminal(watch(world, hydnsd.path), rows=60, columns=200) as t:
            t.wait(lambda text: len(t.screens()) >= 2, "two screens")
            assert not re.search("\x07|\x1b\\]|\x1b\\[2J|\u202e|\x9b", t.text) and r"evil\x1b" in t.text
            assert t.program.poll() is None
