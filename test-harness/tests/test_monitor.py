# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The monitor on the real path: distinct clients and names of a window, and conditions that begin and end by themselves."""

import json

import pytest
from conftest import bind_path, kernel_path

from lab.client import ask
from lab.network import SERVICE
from lab.run import wait_until

NAMES = ["www.lab.example", *(f"m{i}.wild.lab.example" for i in range(9))]
MONITOR = ["--monitor", "yes", "--monitor-window", "1"]


def ask_all(path, names=NAMES):
    """Each name from four clients: two hosts, by IPv4 and IPv6; in turns of letters."""
    for i, name in enumerate(names):
        for ns in (path.network.client1, path.network.client2):
            for service in SERVICE.values():
                ask(ns, service, name.upper() if i % 2 else name)


def monitor(path):
    return path.daemon.call({"cmd": "stats"})["monitor"]


def condition(path, name):
    return next(c for c in monitor(path)["conditions"] if c["condition"] == name)


def analysis(path, name):
    return next(a for a in monitor(path)["analyses"] if a["analyser"] == name)


def found(path, name):
    return {f["what"]: f["least"] for f in analysis(path, name)["findings"]}


def counted(path, clients, names):
    """Whether there was a window in which all asked. Letters of BIND's queries make no other name."""
    ask_all(path)
    return [w for w in monitor(path)["windows"] if (w["clients"], w["names"]) == (clients, names)]


@pytest.mark.parametrize("resolver", [kernel_path, bind_path], ids=["unbound", "bind"])
def test_clients_and_names(world, resolver):
    with resolver(world, daemon_options={"options": MONITOR}) as path:
        windows = wait_until(lambda: counted(path, 4, len(NAMES)), 30, "a window with all clients and names")
        assert windows[0]["queries"] >= windows[0]["answered"] > 0
        wait_until(lambda: counted(path, 4, len(NAMES)) and monitor(path)["clients"] == 4, 30, "the last window to have all")
        assert json.loads(path.daemon.ctl("stats", "--json").stdout)["monitor"]["on"]
        assert "distinct clients" in path.daemon.ctl("stats").stdout
        assert " clients   " in path.daemon.ctl("watch", "--once").stdout


@pytest.mark.parametrize("resolver", [kernel_path, bind_path], ids=["unbound", "bind"])
def test_findings(world, resolver):
    options = [*MONITOR, *(o for name in ("clients", "suffixes", "types", "sizes", "rcodes", "amplification", "sample")
                           for o in ("--monitor-analyser", f"{name} always"))]
    with resolver(world, daemon_options={"options": options}) as path:
        def all_found():
            ask_all(path)
            return len(found(path, "clients")) == 4 and "octets of replies" in found(path, "amplification")
        wait_until(all_found, 30, "findings about all clients")
        assert {net.rpartition("/")[2] for net in found(path, "clients")} == {"24", "56"}
        assert set(found(path, "suffixes")) == {"wild.lab.example.", "www.lab.example."}
        assert set(found(path, "types")) == {"A"} and "NOERROR" in found(path, "rcodes")
        assert all(what.split()[0] in ("query", "reply") for what in found(path, "sizes"))
        ratio = found(path, "amplification")
        assert ratio["octets of replies"] > ratio["octets of queries"] and ratio["percent of the queries' octets"] > 100
        assert all(what.split()[1].endswith("lab.example.") for what in found(path, "sample"))
        assert "networks that ask most" in path.daemon.ctl("stats").stdout


def test_off(world):
    with kernel_path(world) as path:
        ask_all(path)
        m = monitor(path)
        assert (m["on"], m["counted"], m["windows"], m["conditions"], m["analyses"]) == (False, False, [], [], [])
        assert "monitor" not in path.daemon.ctl("stats").stdout


def test_a_condition_begins_and_ends(world):
    """Nobody has rules for names that are asked for once: all are misses. Then the same name again and again."""
    told = world.run.dir / "told"
    told.unlink(missing_ok=True)
    hook = world.run.dir / "hook"
    hook.write_text(f"#!/bin/sh\necho $HYDNS_EVENT $HYDNS_CONDITION $(id -u) $(grep CapEff /proc/self/status) >>{told}\n")
    hook.chmod(0o755)
    options = [*MONITOR, "--monitor-condition", "misses 90 50 1", "--monitor-condition", "names off", "--monitor-hook", hook]
    with kernel_path(world, daemon_options={"options": options}) as path:
        fresh = iter(range(1 << 30))

        def missing():
            for _ in range(20):
                ask(path.network.client1, SERVICE[4], f"x{next(fresh)}.wild.lab.example")
            return condition(path, "misses")["holds"]
        wait_until(missing, 30, "the condition to begin")
        wait_until(lambda: missing() and analysis(path, "suffixes")["findings"], 30, "analysers to find something")
        assert analysis(path, "clients")["running"] and not analysis(path, "types")["running"]
        assert analysis(path, "suffixes")["findings"][0]["what"] == "wild.lab.example."
        assert "condition misses begins" in path.daemon.program.log.read_text()
        assert "misses: OUT OF THE ORDINARY" in path.daemon.ctl("watch", "--once").stdout

        def hitting():
            ask_all(path, NAMES[:1] * 20)
            return not condition(path, "misses")["holds"]
        wait_until(hitting, 30, "the condition to end")
        assert "condition misses has ended" in path.daemon.program.log.read_text()
        assert condition(path, "names")["off"]
        assert not [a for a in monitor(path)["analyses"] if a["running"]]
        assert analysis(path, "clients")["findings"], "what was found last stays"
        wait_until(lambda: told.read_text().count("\n") == 2, 10, "the hook to have run twice")
        assert told.read_text() == "".join(f"{event} misses 0 CapEff: {0:016x}\n" for event in ("begin", "end"))
        assert monitor(path)["hook"] == {"run": 2, "failed": 0, "killed": 0, "left_out": 0}
