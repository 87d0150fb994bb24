# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every command of rndc: when it has returned, the rules that it affects are withdrawn, and all others stay."""

import re

import pytest
from conftest import bind_path
from test_explain import ZONE

from lab.changing_zones import records
from lab.process import run_tool

NAME, BESIDE, OTHER = "www.lab.example", "a.kinds.example", "own.example.net"
NOTHING, NAMED, ALL = "nothing", "what it names", "everything"
# words -> what they may withdraw: nothing, NAME alone (BESIDE stays), everything
COMMANDS = {
    ("null",): NOTHING,
    ("status",): NOTHING,
    ("stats",): NOTHING,
    ("reset-stats",): NOTHING,
    ("recursing",): NOTHING,
    ("dumpdb", "-all"): NOTHING,
    ("secroots", "-"): NOTHING,
    ("zonestatus", OTHER): NOTHING,
    ("showzone", OTHER): NOTHING,
    ("notify", OTHER): NOTHING,
    ("trace", "1"): NOTHING,
    ("notrace",): NOTHING,
    ("testgen", "10"): NOTHING,
    ("tcp-timeouts",): NOTHING,
    ("fetchlimit",): NOTHING,
    ("fetchlimit", "_default"): NOTHING,
    ("memprof", "status"): NOTHING,
    ("dnstap-reopen",): NOTHING,
    ("dnstap", "-roll"): NOTHING,
    ("scan",): NOTHING,
    ("sync",): NOTHING,
    ("sync", "-clean", OTHER): NOTHING,
    ("reload", OTHER): NOTHING,
    ("refresh", OTHER): NOTHING,
    ("retransfer", OTHER): NOTHING,
    ("freeze", OTHER): NOTHING,
    ("thaw", OTHER): NOTHING,
    ("unfreeze", OTHER): NOTHING,
    ("sign", OTHER): NOTHING,
    ("signing", "-list", OTHER): NOTHING,
    ("loadkeys", OTHER): NOTHING,
    ("dnssec", "-status", OTHER): NOTHING,
    ("reload",): NOTHING,       # as long as no command below has changed something: test_bind_reload_keeps.py
    ("reconfig",): NOTHING,
    ("flushname", f"www.{OTHER}"): NOTHING,
    ("flushtree", OTHER): NOTHING,
    ("flushname", NAME): NAMED,
    ("flushtree", "lab.example"): NAMED,
    ("flush",): ALL,
    # their effects are not analysed: an unnecessary withdrawal is better than an old answer
    ("addzone", "added.example.net", '{ type primary; file "' + OTHER + '"; };'): ALL,
    ("modzone", "added.example.net", '{ type primary; file "' + OTHER + '"; };'): ALL,
    ("delzone", "added.example.net"): ALL,
    ("managed-keys", "status"): ALL,
    ("nta", "-d"): ALL,
    ("querylog", "on"): ALL,
    ("querylog", "off"): ALL,
    ("responselog", "on"): ALL,
    ("responselog", "off"): ALL,
    ("serve-stale", "status"): ALL,
    ("skr", "-import", "nothing", OTHER): ALL,
    ("validation", "status"): ALL,
}
ENDS = {"stop", "halt"}    # named, and so all of its rules: test_failure.py


@pytest.fixture(scope="module")
def bind(world):
    directory = world.run.dir / "named"
    directory.mkdir(exist_ok=True)
    (directory / OTHER).write_text(ZONE)
    world.change_lab(records(1), NAME, "A", "192.0.2.1")
    zones = {OTHER: f'type primary; file "{OTHER}"; allow-update {{ none; }};'}
    with bind_path(world, zones=zones, options=["allow-new-zones yes;"]) as path:
        yield path


def test_every_command_is_in_the_table(bind):
    listed = run_tool(bind.named.ns, bind.named.program_of("sbin/rndc"), check=False)
    names = set(re.findall(r"^ {2}([a-z-]+)(?: |$)", listed.stdout + listed.stderr, re.M))
    assert len(names) > 30
    assert names - {words[0] for words in COMMANDS} - ENDS == set()


def where(bind, name):
    return bind.daemon.explain(name)["where"]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda w: " ".join(w)[:30])
def test_command_withdraws(bind, words):
    logging = words in (("querylog", "off"), ("responselog", "off"))
    if not logging:        # nothing is offered until these
        for name in (NAME, BESIDE):
            bind.world.heat(bind.daemon, name)
    bind.named.control(*words, check=False)
    expected = {NOTHING: ("kernel", "kernel"), NAMED: ("resolver", "kernel"), ALL: ("resolver", "resolver")}
    assert (where(bind, NAME), where(bind, BESIDE)) == expected[COMMANDS[words]]
