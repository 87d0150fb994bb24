# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Each recipe of doc/interfaces.md as it stands: the kernel answers, as the resolver would, and a bond's failover changes nothing."""

import re
from pathlib import Path

import pytest

from bareroot import documents
from lab.process import run_tool
from lab.run import wait_until
from setups.machine import CARDS, CONFIG, PARTNERS, SLOW, ip

DOCUMENT = "doc/interfaces.md"
RECIPES = {name: (ports, interfaces.split(", ")) for name, ports, interfaces in documents.table(DOCUMENT, "Which interface to name")}
REFUSED = documents.table(DOCUMENT, "What does not work")
QUERIES = 200
LACP_DISTRIBUTING = 1 << 5      # of a port's state, the machine's or the switch's


def test_the_table_has_every_recipe():
    assert documents.servers_by_heading(DOCUMENT)["Set-ups"] == set(RECIPES)


@pytest.fixture
def bare(machine):
    """Gives a function that gets the machine ready for a recipe."""
    def ready(name):
        machine.bare(RECIPES[name][0], one_network=name == "Bond, active-backup")
        return machine
    yield ready
    machine.clear()


@pytest.mark.limit(1200)
@pytest.mark.parametrize("name", RECIPES)
def test_recipe(bare, name):
    machine, interfaces = bare(name), RECIPES[name][1]
    machine.follow(DOCUMENT, "Set-ups", name)
    assert re.findall(r"^interface: (.*)$", CONFIG.read_text(), re.M) == interfaces
    assert {i: state["attached"] for i, state in machine.interfaces().items()} == dict.fromkeys(interfaces, True)
    assert len(machine.addresses()) >= 2
    for address in machine.addresses():
        machine.as_the_resolver(address)
    under_load(machine)
    if "Bond" in name or "bond" in name:
        fails_over(machine)
    machine.stop()
    machine.nothing_left()


def under_load(machine):
    """Every query of dnsperf is answered, and the kernel has answered some for every address."""
    questions = machine.run.dir / "questions"
    questions.write_text("www.example.com A\n")
    for address in machine.addresses():
        before = machine.hits()
        said = run_tool(machine.client, [machine.tools.dnsperf, "-s", address, "-d", questions, "-n", QUERIES, "-q", 4, "-t", 30],
                        seconds=SLOW).stdout
        assert int(re.search(r"Queries completed: +(\d+)", said)[1]) == QUERIES, said
        assert machine.hits() >= before + QUERIES // 2, said


def fails_over(machine):
    """Without either cable, which both ends notice."""
    in_use(machine, *CARDS)
    for card, partner in zip(CARDS, PARTNERS):
        ip(machine.here, f"link set {card} down")
        ip(machine.switch, f"link set {partner} down")
        in_use(machine, *set(CARDS) - {card})
        for address in machine.addresses():
            machine.answered(address)
        ip(machine.switch, f"link set {partner} up")
        ip(machine.here, f"link set {card} up")
        in_use(machine, *CARDS)


def in_use(machine, *cards):
    """Waits until the bond takes these ports for good and no other; with LACP, both ends have agreed on them."""
    wait_until(lambda: [c for c in CARDS if takes(c)] == list(cards), SLOW, lambda: f"bond0 to use {cards} alone:\n{bonding()}")


def bonding():
    return Path("/proc/net/bonding/bond0").read_text()


def takes(card):
    port = re.search(rf"^Slave Interface: {card}$(.*?)(?=^Slave Interface|\Z)", bonding(), re.M | re.S)[1]
    return "MII Status: up" in port and all(int(state) & LACP_DISTRIBUTING for state in re.findall(r"port state: (\d+)", port))


@pytest.mark.limit(1200)
@pytest.mark.parametrize("recipe, interface, says, mend", REFUSED, ids=[row[1] for row in REFUSED])
def test_what_does_not_work_says_why(bare, recipe, interface, says, mend):
    """Status, doctor and log say it; the resolver answers, and another interface is not affected."""
    machine = bare(recipe)
    for command in documents.commands(DOCUMENT, "Set-ups", recipe):
        if command.text.startswith("systemctl"):
            break
        machine.do(command)
    with open(CONFIG, "a") as f:
        f.write(f"interface: {interface}\n")
    machine.start()
    assert not machine.interfaces()[interface]["attached"]
    assert says in machine.interfaces()[interface]["note"]
    assert says in machine.journal()
    doctor = run_tool(machine.here, ["hydnsctl", "doctor", interface], check=False, seconds=SLOW).stdout
    assert re.search(rf"^fail .*{re.escape(says)}", doctor, re.M) or "no such interface" in doctor, doctor
    for name in RECIPES[recipe][1]:
        assert machine.interfaces()[name]["attached"]
    machine.answered("192.0.2.1")
