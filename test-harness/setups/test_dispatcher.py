# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hyDNS beside another XDP program through libxdp's dispatcher (doc/interfaces.md), in any order of start and end. The other one
(count.bpf.c) counts queries over IPv4."""

import json
import re

import pytest

from bareroot import documents
from lab.client import ask
from lab.process import run_tool
from lab.run import wait_until
from setups.machine import DROP_INS, NAME, PINS, SLOW
from setups.test_setups import DOCUMENT

BEFORE, BEHIND = 10, 90       # priorities; ours has 50
QUERIES = 10
ADDRESS = "192.0.2.1"
SECTION = "Other XDP programs"


class Other:
    """The other program on eth0."""

    def __init__(self, machine, name, priority):
        self.machine, self.priority = machine, priority
        self.pins = PINS.parent / name

    def __enter__(self):
        before = self.ids()
        run_tool(self.machine.here, ["xdp-loader", "load", "--mode", "native", "--prio", self.priority, "--pin-path", self.pins,
                                     "eth0", self.machine.tools.built("test-harness/setups/count.bpf.o")], seconds=SLOW)
        [self.id] = self.ids() - before
        return self

    def __exit__(self, *exc):
        if self.id in self.ids():
            self.unload()
        (self.pins / "queries").unlink(missing_ok=True)

    def ids(self):
        return {int(n) for n in re.findall(r"count_queries +(\d+)", loaded(self.machine))}

    def unload(self):
        run_tool(self.machine.here, ["xdp-loader", "unload", "eth0", "--id", self.id], seconds=SLOW)

    def counted(self):
        done = run_tool(self.machine.here, ["bpftool", "--json", "map", "dump", "pinned", self.pins / "queries"])
        return json.loads(done.stdout)[0]["formatted"]["value"]


def loaded(machine):
    return run_tool(machine.here, ["xdp-loader", "status", "eth0"]).stdout


def ours(machine):
    return loaded(machine).count("hydns_xdp")


@pytest.fixture
def card(machine):
    """One card, by its recipe, with hydnsd's file as the document's section leaves it; nothing runs yet."""
    machine.bare("access")
    for command in documents.commands(DOCUMENT, "Set-ups", "One card"):
        if not command.text.startswith("systemctl"):
            machine.do(command)
        else:
            break
    yield machine
    machine.clear()
    machine.nothing_left()
    assert not list(PINS.parent.glob("xdp/dispatch*"))


def configure(machine):
    """The document's commands, up to the restart."""
    for command in documents.commands(DOCUMENT, SECTION):
        if command.text == "systemctl restart hydnsd":
            break
        machine.do(command)


def check(machine, *others):
    """The kernel answers each query, and each other program has seen what comes to its place."""
    machine.answered(ADDRESS)
    hits, before = machine.hits(), [other.counted() for other in others]
    for _ in range(QUERIES):
        assert ask(machine.client, ADDRESS, NAME).answer
    assert machine.hits() == hits + QUERIES
    assert [other.counted() - n for other, n in zip(others, before)] == [QUERIES if o.priority == BEFORE else 0 for o in others]
    run_tool(machine.here, ["hydnsctl", "pause"])
    before = [other.counted() for other in others]
    assert ask(machine.client, ADDRESS, NAME).answer
    assert [other.counted() - n for other, n in zip(others, before)] == [1] * len(others)
    run_tool(machine.here, ["hydnsctl", "resume"])


def attached(machine):
    state = machine.interfaces()["eth0"]
    assert state["attached"] and state["mode"] == "dispatcher", state["note"]
    assert ours(machine) == 1


@pytest.mark.limit(1200)
@pytest.mark.parametrize("priority", [BEFORE, BEHIND], ids=["before", "behind"])
def test_ours_first(card, priority):
    """The other comes, goes while ours runs, and comes again; ours ends first."""
    configure(card)
    card.start()
    attached(card)
    check(card)
    with Other(card, "other", priority) as other:
        check(card, other)
        other.unload()
        check(card)
    with Other(card, "other", priority) as other:
        check(card, other)
        card.stop()
        assert ours(card) == 0 and other.ids() == {other.id}
        before = other.counted()
        assert ask(card.client, ADDRESS, NAME).answer
        assert other.counted() == before + 1


@pytest.mark.limit(1200)
@pytest.mark.parametrize("priority", [BEFORE, BEHIND], ids=["before", "behind"])
def test_the_other_first(card, priority):
    """Ours is restarted while the other runs, stopped, and started again; the other ends first."""
    configure(card)
    with Other(card, "other", priority) as other:
        card.start()
        attached(card)
        check(card, other)
        card.restart()
        attached(card)
        check(card, other)
        card.stop()
        assert ours(card) == 0 and other.ids() == {other.id}
        card.start()
        check(card, other)
        other.unload()
        check(card)


@pytest.mark.limit(1200)
def test_between_two(card):
    configure(card)
    with Other(card, "one", BEFORE) as one:
        card.start()
        with Other(card, "two", BEHIND) as two:
            attached(card)
            check(card, one, two)


@pytest.mark.limit(1200)
def test_beside_another_by_default(card):
    """With the default, hydnsd leaves the interface to the other and says what to do; the document's commands then do it."""
    with Other(card, "other", BEFORE) as other:
        card.start()
        state = card.interfaces()["eth0"]
        assert not state["attached"] and "use mode dispatcher" in state["note"]
        doctor = run_tool(card.here, ["hydnsctl", "doctor", "eth0"], check=False, seconds=SLOW).stdout
        assert re.search(r"mend: +attach-mode: dispatcher", doctor), doctor
        card.follow(DOCUMENT, SECTION)
        attached(card)
        check(card, other)
        wait_until(lambda: card.interfaces()["eth0"]["note"] == "", SLOW, "hydnsd to have nothing to say of it")


@pytest.mark.limit(1200)
def test_without_the_right(card):
    """As shipped, hydnsd has no right to use the dispatcher: it says so, and attaches nothing."""
    configure(card)
    for drop_in in DROP_INS.glob("*.conf"):
        drop_in.unlink()
    card.start()
    state = card.interfaces()["eth0"]
    assert not state["attached"] and "Other XDP programs" in state["note"]
    assert "No XDP program" in loaded(card) or "xdp_dispatcher" not in loaded(card)
