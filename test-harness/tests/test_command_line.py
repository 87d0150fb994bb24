# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Command lines: help and version of each program, and who may use hydnsctl."""

import grp
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from lab.tools import TOP

GROUP, USER = "daemon", "nobody"        # on every Debian machine; USER is not in GROUP
HARNESS = TOP / "test-harness"


def run(*argv, **options):
    return subprocess.run([str(a) for a in argv], capture_output=True, text=True, timeout=60, **options)


def commands(tools):
    return [line.split("\t")[0] for line in run(tools.hydnsctl, "--print-options").stdout.splitlines()
            if line.split("\t")[1] == "command"]


def test_help_of_each_command(world, tmp_path):
    """It prints its own synopsis and options, does nothing, and asks no daemon."""
    for command in commands(world.tools):
        done = run(world.tools.hydnsctl, "--socket", tmp_path / "none", command, "--help")
        assert done.returncode == 0 and not done.stderr
        assert done.stdout.startswith(f"usage: hydnsctl {command}") and "Exit status" in done.stdout
        assert ("--json" in done.stdout) == (command not in ("capture", "flush", "pause", "resume"))
        assert run(world.tools.hydnsctl, command, "-h").stdout == done.stdout
    done = run(world.tools.hydnsctl, "no-such-command", "--help")
    assert done.returncode == 2 and "no such command" in done.stderr


@pytest.mark.parametrize("program", ["hydnsd", "hydnsctl", "hydns_sim"])
def test_short_forms(world, program):
    file = world.tools.built("hydns-sim/hydns-sim") if program == "hydns_sim" else getattr(world.tools, program)
    for short, long in ("-h", "--help"), ("-V", "--version"):
        done = run(file, short)
        assert done.returncode == 0 and done.stdout and done.stdout == run(file, long).stdout


@pytest.mark.parametrize("tool", ["check", "check-install"])
def test_help_of_the_checks(tool):
    for word in ("-h", "--help"):
        done = run(HARNESS / tool, word)
        assert done.returncode == 0 and done.stdout.startswith(f"usage: {tool}") and not done.stderr
    assert run(HARNESS / tool).returncode == 2
    assert run(HARNESS / tool, "--no-such-option").returncode == 2


def test_arm64_is_asked_for_what_there_is_not(tmp_path):
    """Told before anything is installed or built."""
    tool, build = HARNESS / "kernel-matrix" / "arm64", tmp_path / "build"
    assert run(tool, "--help").stdout.startswith("usage: arm64")
    for words in (["--no-such-option"], ["--timeout"], ["--timeout", "soon"], ["no-such-folder/tests/test_wire"], ["plugin"],
                  ["plugin/tests/no-such-test"]):
        done = run(tool, "--build", build, *words)
        assert done.returncode == 2 and "usage: arm64" in done.stderr, words
        assert not build.exists()


def test_check_names_its_steps():
    text = run(HARNESS / "check", "--help").stdout
    steps = run(sys.executable, "-B", "-c", "import runpy, pathlib, sys; "
                f"m = runpy.run_path({str(HARNESS / 'check')!r}); print(*(s[0] for s in m['steps'](pathlib.Path('/b'))), sep='\\n')")
    assert steps.stdout.splitlines(), steps.stderr
    for step in steps.stdout.splitlines():
        assert f"\n  {step} " in text


@pytest.mark.parametrize("how", (["--list"], ["/no-build-tree"]), ids=" ".join)
def test_mutate_is_asked_for_faults_that_there_are_not(how):
    done = run(HARNESS / "mutate", "--only", "no-such-fault", "--only", "nor-this", *how)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == "mutate: no fault has no-such-fault or nor-this in its name, file or tests; --list prints them all\n"


def quickstart(tmp_path, *words):
    """On a machine where building would fail at once, and which must not come to that."""
    return run(TOP / "quickstart", *words, env={**os.environ, "HYDNS_BUILD": str(tmp_path / "build")})


def test_demo_is_asked_before_anything_is_built(tmp_path):
    for word in ("--help", "-h"):
        done = quickstart(tmp_path, "demo", word)
        assert done.returncode == 0 and "--fresh" in done.stdout, done.stderr
    for words in (["--no-such-option"], ["--fresh", "2"], ["--role", "authoritative"]):
        done = quickstart(tmp_path, "demo", *words)
        assert done.returncode == 2 and not done.stdout and "demo: error" in done.stderr
    assert not (tmp_path / "build").exists()


# -- who may use hydnsctl ------------------------------------------------------------------------------------------

@pytest.fixture
def public(world):
    """A directory that everybody can read, with hydnsctl in it: the build tree's need not be so."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        shutil.copy(world.tools.hydnsctl, directory / "hydnsctl")
        yield directory


def as_user(directory, *words, groups=()):
    group = ["--groups", ",".join(groups)] if groups else ["--clear-groups"]
    return run("setpriv", f"--reuid={USER}", f"--regid={pwd.getpwnam(USER).pw_gid}", *group,
               directory / "hydnsctl", "--socket", directory / "control.sock", *words)


@pytest.mark.parametrize("group", [None, GROUP])
def test_no_permission_names_the_group(public, group):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(public / "control.sock"))
        listener.listen()
        if group:
            os.chown(public / "control.sock", 0, grp.getgrnam(group).gr_gid)
        (public / "control.sock").chmod(0o660 if group else 0o600)
        done = as_user(public, "status")
    assert done.returncode == 1 and "no permission" in done.stderr and "run as root" in done.stderr
    if group:
        assert f"control-group: {group}" in done.stderr and f"usermod -aG {group} {USER}" in done.stderr
    else:
        assert "control-group: GROUP" in done.stderr


def test_the_control_group_may_use_all(world, public):
    """And other users nothing, as hydnsctl(8), hydnsd.conf(5) and doc/control-protocol.md say."""
    class Daemon(type(world.hydnsd())):
        def argv(self):
            return super().argv() + ["--control-socket", public / "control.sock", "--control-group", GROUP]
    daemon = Daemon(world, world.network.resolver, world.hydnsd().interfaces)
    daemon.control_socket = public / "control.sock"
    with daemon:
        for words in (["status"], ["flush", "--all"], ["pause"], ["resume"]):
            assert as_user(public, *words).returncode == 1
            done = as_user(public, *words, groups=[GROUP])
            assert done.returncode == 0, done.stderr
