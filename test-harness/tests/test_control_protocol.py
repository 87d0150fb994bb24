# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Replies and requests of the control protocol are as hydnsd/control/protocol.def lists them. (hydnsctl is compiled against that
list, and doc/control-protocol.md is compared with it by doc/report.)"""

import json
import re
import signal
import sys
import threading

import pytest
from conftest import kernel_path

from lab.client import ask
from lab.crowd import gather
from lab.forwarding import forward_zone
from lab.network import SERVICE
from lab.plugin import PluginClient, hello
from lab.run import HarnessError, wait_until
from lab.tools import TOP

sys.path.insert(0, str(TOP / "doc"))
from tables.protocol import PROTOCOL  # noqa: E402

NAME, ABSENT_ADDRESS = "www.lab.example", "10.53.0.99"
HYDNSD, HYDNSCTL, PINS = {"REPLY", "BOTH"}, {"REPLY", "BOTH", "HYDNSCTL"}, {"BOTH", "PINS", "HYDNSCTL"}
JSON_TYPES = {"TEXT": str, "INTEGER": int, "NUMBER": float, "TRUTH": bool, "NOTHING": type(None)}


class Checker:
    """Compares replies with the list. seen: the objects that were in them."""

    def __init__(self):
        self.seen = set()

    def fault(self, value, types, where):
        """None, or how the value differs from every one of these types."""
        faults = [self.fault_of_one(value, t, where) for t in re.findall(r"\w+(?:\([^)]*\))?", types)]
        return None if None in faults else "; or ".join(faults)

    def fault_of_one(self, value, kind, where):
        inner = re.fullmatch(r"(LIST|OBJECT)\((.*)\)", kind)
        if inner and inner[1] == "OBJECT":
            return self.object_fault(value, inner[2], where)
        if inner:
            return "no list" if type(value) is not list else next(filter(None, (self.fault(v, inner[2], where) for v in value)), None)
        if kind == "COUNTS":
            return None if type(value) is dict and all(type(v) is int for v in value.values()) else "no counts by name"
        if kind in JSON_TYPES:
            return None if type(value) is JSON_TYPES[kind] or (kind == "NUMBER" and type(value) is int) else f"{value!r} is no {kind}"
        return self.object_fault(value, kind, where)

    def object_fault(self, value, thing, where):
        fields = {f.name: f for f in PROTOCOL.fields(thing)}
        assert fields, f"protocol.def has no object {thing}"
        if type(value) is not dict:
            return f"{value!r} is no {thing}"
        must = {name for name, f in fields.items() if f.where in where}
        may = must | ({name for name, f in fields.items() if f.where == "SOMETIMES"} if "REPLY" in where else set())
        if set(value) - may or must - set(value):
            return f"{thing}: not listed: {sorted(set(value) - may)}, missing: {sorted(must - set(value))}"
        fault = next((f"{thing}.{name}: {why}" for name, v in value.items() if (why := self.fault(v, fields[name].types, where))), None)
        if not fault:
            self.seen.add(thing)
        return fault


CHECKER = Checker()


def check(daemon, command, **arguments):
    """Sends the request; its reply, which matches the list."""
    reply = daemon.call({"cmd": command, **arguments})
    assert reply.pop("ok") is True
    assert not CHECKER.object_fault(reply, command, HYDNSD)
    return reply


def check_printed(daemon, command, where):
    assert not CHECKER.object_fault(json.loads(daemon.ctl(command, "--json").stdout), command, where)


def check_names(daemon):
    """A rule, and when that was flushed a question without one."""
    check(daemon, "rules", limit=1, resolver=0)
    assert check(daemon, "top", limit=5)["names"][0]["where"] == "kernel"
    check(daemon, "explain", name=NAME, type="A", do=False, norec=False, edns=1232, cookie="0123456789abcdef")
    check(daemon, "explain", name=NAME, type=1, client="192.0.2.1")
    check(daemon, "explain", client="192.0.2.1")
    assert check(daemon, "flush", name=NAME)["withdrawn"]
    assert "reason" in check(daemon, "top")["names"][0]
    check(daemon, "explain", name=NAME, type="A", edns=True, cookie=True)


def check_pending(path):
    """A question for which clients wait, while the authoritative server is slow."""
    ask(path.network.client1, SERVICE[4], "lab.example", "SOA")
    path.world.relay.delay = 0.5
    crowd = [("pending.wild.lab.example", "A")], 200, 0.1
    clients = threading.Thread(target=gather, args=(path.world, path.network.client1, SERVICE[4], *crowd))
    clients.start()
    try:
        wait_until(lambda: check(path.daemon, "pending", limit=5)["questions"], 10, "clients to wait")
        check_printed(path.daemon, "pending", HYDNSCTL)
    finally:
        clients.join()
        path.world.relay.behave()


def check_other_version(daemon):
    """A plugin of another ABI."""
    with PluginClient(daemon.plugin_socket) as plugin:
        assert plugin.call("HELLO", hello(abi=1))[0] == "REFUSED"
        assert check(daemon, "status")["other_versions"]
        check_printed(daemon, "status", HYDNSCTL)


def check_guard(path):
    """A network above its limit, and a guarded suffix."""
    assert check(path.daemon, "guard", set="nosuch.lab.example", queries=5, action="drop", seconds=60, resolver=0)["changed"] == 1
    def above():
        ask(path.network.client1, SERVICE[4], NAME)
        return check(path.daemon, "guard", limit=5)["clients"]
    wait_until(above, 10, "a network above its limit")
    check_printed(path.daemon, "guard", HYDNSCTL)
    assert path.daemon.ctl("guard").stdout.strip()
    assert check(path.daemon, "guard", lift="nosuch.lab.example")["changed"] == 1


def test_replies(world):
    """Every reply and object of the list, also as hydnsctl prints it with and without hydnsd."""
    absent = ["ip-freebind: yes", f"interface: {ABSENT_ADDRESS}", *forward_zone("10.53.3.2")]
    options = ["--ipv6", "no", "--monitor", "yes", "--monitor-window", "1", "--monitor-analyser", "clients always", "--guard", "count",
               "--guard-client-queries", "1"]
    with kernel_path(world, daemon_options={"options": options}, unbound_options={"server": absent}) as path:
        def is_hot():
            ask(path.network.client1, SERVICE[4], NAME)
            return [r for r in path.daemon.call({"cmd": "rules"})["rules"] if r["hits"]]
        wait_until(is_hot, 20, f"hits of {NAME}")
        wait_until(lambda: is_hot() and any(a["findings"] for a in path.daemon.call({"cmd": "stats"})["monitor"]["analyses"]), 20, "findings")
        check(path.daemon, "stats", swept=True)
        for command in (*PROTOCOL.reports, "stats"):
            check(path.daemon, command)
            check_printed(path.daemon, command, HYDNSCTL)
            assert path.daemon.ctl(command).stdout.strip()
        check_names(path.daemon)
        check_pending(path)
        check_guard(path)
        check_other_version(path.daemon)
        for command in ("pause", "resume", "flush", "reload"):
            check(path.daemon, command, **({"all": True} if command == "flush" else {}))
        path.daemon.stop(signal.SIGKILL)
        try:
            for command in ("status", "stats"):
                check_printed(path.daemon, command, PINS)
        finally:
            path.daemon.start()
        wait_until(path.daemon.resolver_ready, 10, "Unbound's module to register again")
    with kernel_path(world, unbound_options={"server": ["log-queries: yes"]}) as path:
        wait_until(lambda: check(path.daemon, "top")["notes"], 10, "a note")
        assert check(path.daemon, "status")["resolvers"][0]["obstacles"]
    parts = {other for others in PROTOCOL.included.values() for other in others} - set(PROTOCOL.commands)
    assert set(PROTOCOL.own) | set(PROTOCOL.included) <= CHECKER.seen | parts
    assert set(PROTOCOL.commands) <= CHECKER.seen


def test_a_wrong_reply_is_noticed():
    """The comparison itself."""
    good = {"paused": True, "state_dir": "/"}
    assert not CHECKER.object_fault(good, "pause", HYDNSD) and not CHECKER.object_fault(good | {"not_kept": "x"}, "resume", HYDNSD)
    for wrong in ({"paused": True}, good | {"more": 1}, good | {"paused": 1}, good | {"not_kept": None}, [good]):
        assert CHECKER.object_fault(wrong, "pause", HYDNSD), wrong


@pytest.fixture(scope="module")
def daemon(world):
    with world.hydnsd() as running:
        yield running


@pytest.mark.parametrize("request_, why", [
    ({"cmd": "status", "limit": 1}, "status has no argument limit: see"),
    ({"cmd": "top", "resolver": 0}, "top has no argument resolver: see"),
    ({"cmd": "pause", "\u00e9" * 600: 1}, "pause has no argument \u00e9"),
    ({"cmd": "rules", "limit": "5"}, "limit of rules is not an integer: correct"),
    ({"cmd": "rules", "resolver": None}, "resolver of rules is not an integer: correct"),
    ({"cmd": "flush", "all": 1}, "all of flush is not true or false: correct"),
    ({"cmd": "flush", "name": ["a"]}, "name of flush is not a string: correct"),
    ({"cmd": "explain", "name": NAME, "type": True}, "type of explain is not a string or an integer: correct"),
    ({"cmd": "explain", "name": NAME, "type": 65537}, "type is not a record type"),
    ({"cmd": "explain", "name": NAME, "type": "A", "edns": "yes"}, "edns of explain is not true, false or an integer: correct"),
    ({"cmd": "explain", "name": NAME, "type": "A", "cookie": 1}, "cookie of explain is not true, false or a string: correct"),
    ({"cmd": "doctor"}, "unknown cmd"), ({"cmd": 1}, "unknown cmd")], ids=lambda v: str(v)[:30])
def test_wrong_requests(daemon, request_, why):
    with pytest.raises(HarnessError, match=re.escape(why)):
        daemon.call(request_)
