# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The harness itself: runs clean up, each module begins with a reset world, and attempts are judged. Its check has test_check.py."""

import ctypes
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import xml.etree.ElementTree as ElementTree
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyroute2 import netns

from bench.pace import poll_device_by_thread
from lab import load, measure, sharing
from lab.attempts import HELD_UP, TRIES, Inconclusive, Ticks, until_conclusive
from lab.client import ask, must_ask, must_exchange, query
from lab.hogs import hogs
from lab.changing_zones import RELAY, records
from lab.losses import Losses, wait_for_room
from lab.network import CLIENT1, SERVICE
from lab.process import Program, run_tool
from lab.relay import Relay, everything
from lab.run import RUNS, SOON, HarnessError, clean, start_time, wait_until
from lab.scripts import program_as_module

HARNESS = Path(__file__).resolve().parent.parent


def test_what_a_killed_harness_left_is_removed():
    """The next run cleans up after a killed one, whichever run that is."""
    script = ("import sys, os, signal; sys.path.insert(0, sys.argv[1])\n"
              "from lab.run import Run, start_time\nfrom lab.network import Namespace\n"
              "from lab.process import Program\n"
              "run = Run().__enter__(); ns = Namespace(run, 'x'); p = Program(run, ns, 'sleep', ['sleep', '1000'])\n"
              "assert run.dir.exists() and start_time(p.pid)\n"
              "import subprocess; unrecorded = subprocess.Popen(ns.command(['sleep', '1000']), stdout=subprocess.DEVNULL,\n"
              "                                                 stderr=subprocess.DEVNULL, start_new_session=True)\n"
              "there = os.stat(ns.path).st_ino\n"
              "while os.stat(f'/proc/{unrecorded.pid}/ns/net').st_ino != there: pass\n"
              "print(run.id, p.pid, unrecorded.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n")
    done = subprocess.run([sys.executable, "-c", script, HARNESS], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    run_id, *pids = done.stdout.split()
    clean()
    wait_until(lambda: not (RUNS / run_id).exists(), SOON, "the run's directory to be removed")
    assert [start_time(int(pid)) for pid in pids] == [None, None]
    assert run_id not in " ".join(netns.listnetns())


def test_a_module_begins_as_the_world_began(world):
    """Whatever the former module left: data, delays, hanging programs, files, pins, programs on links."""
    def address():
        return ask(world.network.authoritative, RELAY, "www.lab.example").answer[0][0].address
    daemon = world.hydnsd()
    daemon.start()
    daemon.stop(signal.SIGKILL)
    left = Program(world.run, world.network.client1, "left", ["sleep", "1000"])
    left.popen.send_signal(signal.SIGSTOP)
    before = set(world.run.dir.iterdir())
    (world.run.dir / "named").mkdir(exist_ok=True)
    (world.run.dir / "named" / "journal").touch()
    world.rewrite_lab(records(55))
    world.relay.delay = 0.1
    with Relay(world.network.resolver, "10.53.0.79", SERVICE[4]):
        pass
    assert address() == "192.0.2.55" and world.network.resolver.xdp_attached("r1") and any(daemon.pins.iterdir())
    world.relay.loses = everything
    world.reset()
    assert address() == "192.0.2.1" and world.relay.delay == 0.0
    with Relay(world.network.resolver, "10.53.0.79", SERVICE[4]):
        pass
    assert not left.running() and set(world.run.dir.iterdir()) < before
    assert not daemon.pins.exists()
    wait_until(lambda: not world.network.resolver.xdp_attached("r1"), SOON, "the program to be off the link")


def test_nobody_serves_former_data_after_a_reload(world):
    """The authoritative server's former process answers on the same sockets until it ends."""
    before = world.nsd.program.processes()
    server = max(before, key=lambda pid: (start_time(pid), pid))
    os.kill(server, signal.SIGSTOP)
    timer = threading.Timer(0.5, os.kill, (server, signal.SIGCONT))
    timer.start()
    world.rewrite_lab(records())
    assert start_time(server) is None and len(world.nsd.program.processes()) == len(before)
    timer.join()


AT_ONCE = 300            # datagrams: more than a veth holds


SEND = """
import socket, sys
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sender.connect((sys.argv[1], int(sys.argv[2])))
for _ in range(int(sys.argv[3])):
    sender.send(b"x")
"""


def alone_on(processor):
    """The start of a command that leaves it to nobody. A program of its own, whose only thread waits for none: one of these here
    would wait for Python's lock while another has it, and leave the processor."""
    return ["chrt", "--fifo", "1", "taskset", "--cpu-list", processor]


@pytest.fixture
def polled_by_a_thread(world):
    """A processor whose turn it must be before client 1's end of the link takes anything."""
    processor = min(os.sched_getaffinity(0))
    poll_device_by_thread(world.network.client1, "c1", processor)
    yield processor
    run_tool(world.network.client1, ["unshare", "--mount", "sh", "-c", "mount -t sysfs sysfs /sys && echo 0 > /sys/class/net/c1/threaded"])


def arrived(world, room, sent_by):
    """How many of AT_ONCE datagrams from the resolver's host came to client 1's socket, which has so much room, and what was lost."""
    network = world.network
    losses = Losses(network)
    with network.client1.entered():
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with receiver:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        receiver.bind((CLIENT1[4], 0))
        receiver.setblocking(False)

        def send(datagrams, by=()):
            run_tool(network.resolver, [*by, sys.executable, "-c", SEND, *receiver.getsockname(), datagrams])
        send(1)                   # from now on the neighbour is known
        wait_until(lambda: select.select([receiver], [], [], 0)[0], SOON, "the first datagram")
        receiver.recv(100)
        send(AT_ONCE, sent_by)
        count = [0]

        def all_ended():
            while select.select([receiver], [], [], 0)[0]:
                count[0] += len(receiver.recv(100))
            return count[0] + sum(losses.now().values()) >= AT_ONCE
        wait_until(all_ended, SOON, "each datagram to have come or to be counted as lost")
    return count[0], losses


def test_what_a_full_link_loses_is_counted(world, polled_by_a_thread):
    """Each loss explains one query."""
    came, losses = arrived(world, 1 << 20, alone_on(polled_by_a_thread))
    assert losses.now() == {"r1 full": AT_ONCE - came} and came < AT_ONCE
    assert [losses.explain() for _ in range(AT_ONCE - came + 1)] == [1] * (AT_ONCE - came) + [0]


def test_what_waits_for_room_is_not_lost(world, polled_by_a_thread):
    try:
        wait_for_room(world.network.resolver, "r1", AT_ONCE)
        came, losses = arrived(world, 1 << 20, alone_on(polled_by_a_thread))
    finally:
        run_tool(world.network.resolver, ["tc", "qdisc", "del", "dev", "r1", "root"])
    release = tuple(map(int, os.uname().release.split(".")[:2]))
    assert came == AT_ONCE if release >= (6, 16) else came + losses.now()["r1 full"] == AT_ONCE


def test_what_a_full_socket_loses_is_counted(world):
    came, losses = arrived(world, 1 << 12, [])
    assert losses.now() == {"client1's sockets": AT_ONCE - came} and came < AT_ONCE


def test_a_load_that_does_not_end_is_an_error(world):
    endless = Program(world.run, world.network.client1, "endless", ["sleep", "1000"])
    with pytest.raises(HarnessError, match="endless: no end 0.2 s after it was due"):
        measure._play([endless], 0.1, patience=0.2)
    endless.stop()


def test_a_request_waits_while_the_queue_is_full(world):
    held = []
    with world.hydnsd() as daemon, ExitStack() as stack:
        daemon.program.popen.send_signal(signal.SIGSTOP)

        def go_on():
            stack.close()
            daemon.program.popen.send_signal(signal.SIGCONT)
        timer = threading.Timer(0.5, go_on)
        with pytest.raises(BlockingIOError):
            while True:
                held.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
                held[-1].setblocking(False)
                held[-1].connect(str(daemon.control_socket))
        timer.start()
        assert len(held) > 1 and daemon.call({"cmd": "status"})["ok"]
        timer.join()


def test_unbound_with_the_plugin_starts_as_its_unit_does(world):
    """In the unit's environment, which malloc reads. Unbound alone does not."""
    unit = (HARNESS.parent / "packaging" / "hydns-unbound.service.in").read_text()
    words = set(re.findall(r"^Environment=(\S+)$", unit, re.M))
    assert words and len(words) == unit.count("\nEnvironment=")
    with world.unbound(world.hydnsd()) as ours, world.reference() as alone:
        assert words <= ours.program.environment() and not words & alone.program.environment()


# -- attempts -----------------------------------------------------------------------------------------------------------
def attempts(outcomes, longest):
    """The result of attempts with these ends: a gap in seconds before a failure, an Inconclusive, or a result."""
    left = list(outcomes)

    def attempt(number, pace):
        assert number == len(outcomes) - len(left)
        outcome = left.pop(0)
        pace.look()
        if isinstance(outcome, Inconclusive):
            raise outcome
        if isinstance(outcome, float):
            stand_still(outcome)
            pace.look()
            raise AssertionError("wrong")
        return outcome
    return until_conclusive(attempt, longest), len(left)


def stand_still(seconds):
    """No thread of this process runs meanwhile: a call that keeps the interpreter's lock."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def test_an_attempt_is_repeated_when_it_shows_nothing():
    assert attempts(["done", "more"], 9.0) == ("done", 1)
    with pytest.warns(UserWarning, match="attempt [12] of") as warned:
        assert attempts([Inconclusive("late"), 3 * HELD_UP, "done"], HELD_UP) == ("done", 0)
    assert ["late" in str(warned[0].message), "stood still" in str(warned[1].message)] == [True, True]
    with pytest.warns(UserWarning), pytest.raises(HarnessError, match="none of .* the last: late"):
        attempts([Inconclusive("late")] * TRIES, 9.0)


def test_an_attempt_that_fails_in_time_fails():
    with pytest.raises(AssertionError, match="wrong"):
        attempts([0.0, "done"], 9.0)
    with pytest.warns(UserWarning), pytest.raises(AssertionError, match="wrong"):
        attempts([Inconclusive("late"), 0.0, "done"], 9.0)


def test_a_program_that_is_slow_is_no_machine_that_stands_still():
    """A gap during which other threads went on comes from the program that was asked."""
    def attempt(number, pace):
        pace.look()
        with Ticks() as ticks:
            subprocess.run(["sleep", "0.4"], check=True)
        pace.look()
        if ticks.longest() > HELD_UP:
            raise Inconclusive("the machine has stood still meanwhile")
        raise AssertionError("slow")
    with pytest.raises(AssertionError, match="slow"):
        until_conclusive(attempt, 0.2)


@pytest.mark.parametrize("asks", (must_ask, must_exchange))
def test_a_query_without_a_reply_is_named(world, asks):
    question = query("www.lab.example").to_wire() if asks is must_exchange else "www.lab.example"
    with pytest.raises(HarnessError, match="no reply"):
        asks(world.network.client1, SERVICE[4], question, timeout=0.2)


# -- processes side by side -------------------------------------------------------------------------------------------------
# Tests of these files that start no servers: on a slow machine the others would take longer than a test may.
LIGHT = ("test_chaos.py", "test_coverage_table.py")
NO_SERVERS = " and ".join(f"not {word}" for word in ("storm", "is_found", "asker", "kills", "all_ways", "shrunk"))
SLOW = """import pytest
from lab.limits import pytest_configure, time_limit


@pytest.mark.limit(1)
def test_hangs():
    while True:
        pass
"""


def pytest_run(*words, **options):
    return subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *map(str, words)], capture_output=True, text=True,
                          **options)


def test_processes_run_every_test_once(tmp_path):
    """And whole modules."""
    words = ["-k", NO_SERVERS, *(HARNESS / "tests" / name for name in LIGHT)]
    names = {line for line in pytest_run("--collect-only", "-q", *words).stdout.splitlines() if "::" in line}
    done = pytest_run("-v", "-n", "2", f"--junitxml={tmp_path / 'junit.xml'}", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"^\[(gw\d)\] \[ *\d+%\] PASSED (\S.*?) *$", done.stdout, re.M)
    assert len(ran) == len(names) > 10 and {name for _, name in ran} == names
    assert sorted(sorted({gw for gw, name in ran if module in name}) for module in LIGHT) == [["gw0"], ["gw1"]]
    suite, = ElementTree.parse(tmp_path / "junit.xml").getroot().iter("testsuite")
    assert int(suite.get("tests")) == len(names) and suite.get("failures") == suite.get("errors") == "0"


def test_modules_that_are_distributed_first_are_there():
    assert not {*sharing.BUSY, *sharing.LONG} - {file.name for file in (HARNESS / "tests").glob("test_*.py")}


# Holds pytest up between the parts of a test, as a busy machine may.
SLOW_REPORT = """import time


def pytest_runtest_logreport(report):
    end = time.monotonic() + 1.5
    while report.when == "setup" and time.monotonic() < end:
        pass
"""


@pytest.mark.parametrize("plugin", ("", SLOW_REPORT), ids=("in the test", "before it"))
def test_a_limit_holds_in_a_process(tmp_path, plugin):
    (tmp_path / "test_slow.py").write_text(SLOW)
    (tmp_path / "conftest.py").write_text(plugin)
    done = pytest_run("-n", "1", tmp_path / "test_slow.py", env={**os.environ, "PYTHONPATH": str(HARNESS)}, timeout=60)
    assert done.returncode == 1 and "not done within 1 s" in done.stdout, done.stdout


# -- programs ----------------------------------------------------------------------------------------------------------------
def test_faults_of_releases_that_the_tree_lacks(monkeypatch, capsys, tmp_path):
    """Are left out by name; those of any release stay."""
    mutate = program_as_module("mutate")
    monkeypatch.setattr(mutate, "unbound_release", lambda prefix: (1, 22))
    faults = [SimpleNamespace(name=name, since=since) for name, since in (("any", ""), ("same", "1.22"), ("later", "1.23"))]
    assert [f.name for f in mutate.of_the_tree(faults, tmp_path)] == ["any", "same"]
    assert capsys.readouterr().out == "not in this tree: later (Unbound 1.23 or later)\n"


def test_hogs_end():
    """Also when the process that started them is killed."""
    def children(pid):
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    script = ("import signal, sys; sys.path.insert(0, sys.argv[1])\nfrom lab.hogs import hogs\n"
              "with hogs():\n    print(flush=True)\n    signal.pause()\n")
    with subprocess.Popen([sys.executable, "-c", script, HARNESS], stdout=subprocess.PIPE) as starter:
        starter.stdout.readline()
        busy = [(int(pid), start_time(int(pid))) for pid in children(starter.pid)]
        starter.kill()
    assert busy
    wait_until(lambda: all(start_time(pid) != began for pid, began in busy), SOON, "the hogs to end")
    with hogs():
        pass


def test_divided_load_has_each_query_once(tmp_path):
    queries = [n.to_bytes(2, "big") + bytes([n % 251]) * n for n in range(1, 60)]
    (tmp_path / "queries").write_bytes(b"".join(queries))
    data = load.Workload([load.Stream(tmp_path / "queries", 1, "", 1.0)], {}, None, [], {})
    parts = [part.streams[0].file.read_bytes() for part in load.divided(data, 4)]
    assert b"".join(parts) == b"".join(queries) and len(parts) == 4
    for part in parts:
        while part:
            length = 2 + int.from_bytes(part[:2], "big")
            assert part[:length] in queries
            part = part[length:]
