# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydnsctl pause holds until hydnsctl resume, whatever happens to hydnsd and its maps meanwhile."""

import signal

import pytest
from conftest import kernel_path

from lab.client import ask
from lab.network import SERVICE
from lab.pinned import writable
from lab.process import run_tool
from lab.run import SOON, wait_until

NAME = "host1.lab.example"


@pytest.fixture
def path(world):
    with kernel_path(world) as p:
        world.heat(p.daemon, NAME)
        yield p


def stop_and_start(path):
    assert path.daemon.stop() == 0
    path.daemon.start()


def restart(path):
    path.daemon.stop(signal.SIGUSR2)
    path.daemon.start()


def restart_with_another_capacity(path):
    path.daemon.stop(signal.SIGUSR2)
    path.daemon.capacity = 500
    path.daemon.start()


def reboot(path):
    """As far as hydnsd sees it: nothing is pinned."""
    path.daemon.stop(signal.SIGKILL)
    run_tool(path.network.resolver, [*path.daemon.argv(), "--clean"])
    path.daemon.start()


def upgrade_to_another_abi(path):
    path.daemon.stop(signal.SIGUSR2)
    with writable(path.daemon.pins / "hydns_meta") as meta:
        meta[0:4] = (int.from_bytes(meta[0:4], "little") - 1).to_bytes(4, "little")
    path.daemon.start()


def crash(path):
    path.daemon.stop(signal.SIGKILL)
    path.daemon.start()


def paused(path):
    """Nothing is answered in the kernel, and status says so; the resolver registers and offers as ever."""
    wait_until(path.daemon.resolver_ready, SOON, "the module to register")
    status = path.daemon.call({"cmd": "status"})
    assert status["paused"] and status["paused_kept"]
    assert "PAUSED" in path.daemon.ctl("status").stdout
    for address in SERVICE.values():
        for _ in range(5):
            assert ask(path.network.client1, address, NAME).answer
    assert path.daemon.reasons()["ANSWERED"] == path.answered


def resumed(path):
    wait_until(path.daemon.resolver_ready, SOON, "the module to register")
    status = path.daemon.call({"cmd": "status"})
    assert not status["paused"] and not status["paused_kept"]
    path.world.heat(path.daemon, NAME)
    before = path.daemon.reasons()["ANSWERED"]
    for address in SERVICE.values():
        assert ask(path.network.client1, address, NAME).answer
    assert path.daemon.reasons()["ANSWERED"] == before + 2


@pytest.mark.parametrize("event", [stop_and_start, restart, restart_with_another_capacity, reboot,
                                   upgrade_to_another_abi, crash])
def test_pause_holds(path, event):
    path.daemon.ctl("pause")
    path.answered = path.daemon.reasons()["ANSWERED"]
    if event not in (restart, crash):
        path.answered = 0      # the counters go with the maps
    begin = path.daemon.program.log.stat().st_size
    event(path)
    paused(path)
    assert "paused, as was ordered before" in path.daemon.program.log.read_text()[begin:]
    path.daemon.ctl("resume")
    resumed(path)
    event(path)
    resumed(path)


@pytest.mark.parametrize("pins", ["pinned", "nothing pinned"])
def test_without_the_daemon(path, pins):
    """hydnsctl sets what the next hydnsd reads, and takes it back."""
    path.answered = path.daemon.reasons()["ANSWERED"] if pins == "pinned" else 0
    path.daemon.stop(signal.SIGKILL if pins == "pinned" else signal.SIGTERM)
    assert "not running" in path.daemon.ctl("pause").stdout
    alone = path.daemon.ctl("status", check=False)
    assert "PAUSED" in alone.stdout + alone.stderr
    path.daemon.start()
    paused(path)
    path.daemon.stop(signal.SIGKILL if pins == "pinned" else signal.SIGTERM)
    assert "not running" in path.daemon.ctl("resume").stdout
    path.daemon.start()
    resumed(path)


def test_as_a_user_of_its_own(world):
    """hydnsd may write there after it has given up its rights, and take away what root's hydnsctl has written."""
    with kernel_path(world, daemon_options={"options": ("--user", "nobody")}) as path:
        path.daemon.ctl("pause")
        path.answered = 0
        stop_and_start(path)
        paused(path)
        path.daemon.ctl("resume")
        resumed(path)
        path.daemon.stop()
        path.daemon.ctl("pause")
        path.daemon.start()
        paused(path)
        path.daemon.ctl("resume")
        resumed(path)


def test_a_pause_that_cannot_be_saved(path):
    """It is in force at once nevertheless, and hydnsctl, status and log say what is missing."""
    path.daemon.state.rmdir()
    path.daemon.state.write_text("in the way")
    done = path.daemon.ctl("pause", check=False)
    assert done.returncode == 1 and "paused, but only until hydnsd is stopped" in done.stderr
    assert str(path.daemon.state) in done.stderr and "cannot record" in path.daemon.program.log.read_text()
    assert path.daemon.call({"cmd": "status"})["paused"]
    assert "not beyond the next stop" in path.daemon.ctl("status").stdout
    path.daemon.state.unlink()
    path.daemon.ctl("pause")
    path.answered = path.daemon.reasons()["ANSWERED"]
    paused(path)


def test_links_in_the_directory_are_not_followed(path):
    """The directory may be an unprivileged user's, and hydnsctl is root."""
    victim = path.daemon.dir / "victim"
    victim.write_text("mine")
    path.daemon.stop()
    (path.daemon.state / "paused").symlink_to(victim)
    path.daemon.ctl("pause")
    assert victim.read_text() == "mine"
    path.daemon.ctl("resume")
    assert victim.read_text() == "mine" and not list(path.daemon.state.iterdir())
    path.daemon.start()
