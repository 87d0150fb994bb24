# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A veth whose peer has no XDP program: kernel answers are lost. hydnsd says so with the command that mends it, and doctor
as well; that command, pasted, mends it: with the peer in another network namespace and in the same one."""

import json
import re
from contextlib import contextmanager

import pytest
from conftest import kernel_path

from lab.client import ask
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until

NAME = "www.lab.example"
COMMAND = r"ip (-n \S+ )?link set dev \S+ xdpdrv obj \S+/pass\.bpf\.o sec xdp\.frags"
INSTALLED = r"\S+/pass\.bpf\.o"


@contextmanager
def deaf(network):
    """Client 1's end has no program."""
    run_tool(network.client1, ["ip", "link", "set", "dev", "c1", "xdpdrv", "off"])
    try:
        yield
    finally:
        run_tool(network.client1, ["ip", "link", "set", "dev", "c1", "xdpdrv", "off"])
        run_tool(network.client1, ["ip", "link", "set", "dev", "c1", "xdpdrv", "obj", network.pass_object, "sec", "xdp.frags"])


def note(daemon, interface):
    return next(i["note"] for i in daemon.call({"cmd": "status"})["interfaces"] if i["name"] == interface)


def finding(daemon, interface):
    checks = json.loads(daemon.ctl("doctor", "--json", check=False).stdout)["checks"]
    return next(c for c in checks if (c["check"], c["subject"]) == ("veth-peer", interface))


def paste(world, ns, text):
    """Runs the command that a message gives, with the object of the build tree instead of the installed one."""
    command = [m[0] for m in re.finditer(COMMAND, text)][-1]    # the log goes on over several runs
    run_tool(ns, ["sh", "-c", re.sub(INSTALLED, str(world.tools.pass_object), command)])


def answered(path, address):
    """Whether a name that is hot gets its kernel answer."""
    before = path.daemon.reasons()["ANSWERED"]
    reply = ask(path.network.client1, address, NAME, timeout=0.5)
    assert path.daemon.reasons()["ANSWERED"] == before + 1, "the kernel path has not taken the query"
    return reply is not None


@pytest.mark.parametrize("source", ["log", "status", "doctor"])
def test_the_peer_in_another_namespace(world, source):
    with kernel_path(world) as path:
        world.heat(path.daemon, NAME)
        with deaf(world.network):
            wait_until(lambda: note(path.daemon, "r1"), 15, "hydnsd to look at the peer again")
            assert not any(answered(path, address) for address in SERVICE.values()), "nothing is lost: is the warning true?"
            texts = {"log": path.daemon.program.log.read_text(), "status": note(path.daemon, "r1"),
                     "doctor": finding(path.daemon, "r1")["mend"]}
            assert all(re.search(r"its peer c1 has no XDP program: kernel answers are lost", texts[t]) for t in ("log", "status"))
            assert finding(path.daemon, "r1")["state"] == "fail" and note(path.daemon, "r2") == ""
            assert texts["status"] in path.daemon.ctl("status").stdout
            paste(world, world.network.resolver, texts[source])
            assert all(answered(path, address) for address in SERVICE.values())
            assert finding(path.daemon, "r1")["state"] == "ok"
            wait_until(lambda: note(path.daemon, "r1") == "", 15, "hydnsd to take its warning back")


def test_before_hydnsd_is_started(world):
    """hydnsd says it before it is ready."""
    with deaf(world.network), world.hydnsd() as daemon:
        wait_until(lambda: daemon.program.log.read_text().endswith("capacity 100000\n"), SOON, "hydnsd to say that it is ready")
        log = daemon.program.log.read_text().rsplit("hydnsd: info: attached to r1\n", 1)[1]
        assert log.startswith("hydnsd: warning: r1: its peer c1 has no XDP program")


def test_the_peer_in_the_same_namespace(world):
    resolver = world.network.resolver
    run_tool(resolver, ["sh", "-c", "ip link add near type veth peer name far && ip link set near up && ip link set far up"])
    try:
        daemon = world.hydnsd()
        daemon.interfaces = ("near",)
        with daemon:
            assert "its peer far has no XDP program" in note(daemon, "near")
            assert finding(daemon, "near")["state"] == "fail"
            paste(world, resolver, finding(daemon, "near")["mend"])
            assert finding(daemon, "near")["state"] == "ok"
    finally:
        run_tool(resolver, ["ip", "link", "del", "near"])


def test_generic_mode_loses_nothing(world):
    """The network stack sends the answers: neither a note nor a finding."""
    with deaf(world.network), kernel_path(world, daemon_options={"options": ["--attach-mode", "generic"]}) as path:
        world.heat(path.daemon, NAME)
        assert note(path.daemon, "r1") == ""
        wait_until(lambda: all(answered(path, address) for address in SERVICE.values()), SOON, "kernel answers to arrive")
        checks = json.loads(path.daemon.ctl("doctor", "--json", check=False).stdout)["checks"]
        assert "veth-peer" not in {c["check"] for c in checks}
