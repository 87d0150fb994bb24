# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every remote control command that changes Unbound's answers: when it has returned, the rules that it affects are withdrawn,
and others stay. Local data and flushes are in test_flush.py, under load."""

import pytest
from conftest import kernel_path

from lab import answer_zones
from lab.client import ask
from lab.changing_zones import LAB, records
from lab.network import CLIENT1, CLIENT2, SERVICE
from lab.run import wait_until

NAME = "www.lab.example"
VIEW = "inner"
# command, with %s for a name of lab.example. -> it concerns that name, or those below lab.example., alone (else all)
COMMANDS = {
    ("view_local_zone", VIEW, "%s.", "static"): True,
    ("view_local_zone_remove", VIEW, "%s."): True,
    ("view_local_data", VIEW, "%s. 300 IN A 203.0.113.8"): True,
    ("view_local_data_remove", VIEW, "%s."): True,
    ("forward_add", "lab.example.", LAB): True,
    ("forward_remove", "lab.example."): True,
    ("stub_add", "lab.example.", LAB): True,
    ("stub_remove", "lab.example."): True,
    ("insecure_add", "lab.example."): True,
    ("insecure_remove", "lab.example."): True,
    ("flush_bogus",): False,
    ("flush_negative",): False,
    ("set_option", "log-servfail:", "yes"): False,
}
BESIDE = [f"{label}.kinds.example" for label in ("a a3 meta mail typed blocked over ttl-day step12 step11 step10 step9 "
                                                 "step8 step7").split()]
LATE = "other.example"        # in a file that comes while Unbound runs
LATE_ZONE = f"""$ORIGIN {LATE}.
@ 300 SOA ns hostmaster 1 3600 900 604800 300
@ 300 NS ns
ns 300 A {answer_zones.SERVER[4]}
a 300 A 203.0.113.77
"""


@pytest.fixture(scope="module")
def hot(world):
    late = world.run.dir / "late.zone"
    late.unlink(missing_ok=True)
    server = [f"access-control-view: {CLIENT2[4]}/32 {VIEW}",
              # its primary refuses transfers
              "auth-zone:", f'name: "{LATE}."', f"primary: {answer_zones.SERVER[4]}", f'zonefile: "{late}"',
              "for-downstream: yes", "for-upstream: no", "fallback-enabled: yes",
              "auth-zone:", 'name: "lab.example."', f"primary: {LAB}", "for-downstream: no", "for-upstream: yes",
              "fallback-enabled: yes",
              "view:", f'name: "{VIEW}"', "view-first: yes"]
    with kernel_path(world, unbound_options={"server": server}) as path:
        path.late = late
        yield path


def where(path, name):
    return path.daemon.explain(name, "A")["where"]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_command_withdraws(hot, command):
    """Each command has names of its own: answers that Unbound still has are not offered again at once."""
    number = list(COMMANDS).index(command)
    name, beside = f"host{number}.lab.example", BESIDE[number]
    for n in (name, beside):
        hot.world.heat(hot.daemon, n, "A")
    hot.unbound.control(*(word.replace("%s", name) for word in command))
    assert where(hot, name) == "resolver"
    assert where(hot, beside) == ("kernel" if COMMANDS[command] else "resolver")


def test_data_of_a_view_are_its_clients_alone(hot):
    """A view's answers never become rules, and its clients never get the kernel's answers for others."""
    client2 = hot.network.client2
    hot.unbound.control("view_local_data", VIEW, f"{NAME}. 300 IN A 203.0.113.8")
    hot.world.heat(hot.daemon, NAME, "A")
    for _ in range(20):
        assert ask(client2, SERVICE[4], NAME, local=CLIENT2[4]).answer[0][0].address == "203.0.113.8"
        assert ask(hot.network.client1, SERVICE[4], NAME, local=CLIENT1[4]).answer[0][0].address.startswith("192.0.2.")
    hot.unbound.control("view_local_data_remove", VIEW, f"{NAME}.")
    assert ask(client2, SERVICE[4], NAME, local=CLIENT2[4]).answer[0][0].address.startswith("192.0.2.")


def test_transferred_zone_withdraws(hot):
    """The command only starts the transfer: the rules are withdrawn when the zone is transferred."""
    hot.world.heat(hot.daemon, NAME, "A")
    hot.world.change_lab(records(77), NAME, "A", "192.0.2.77")
    hot.unbound.control("auth_zone_transfer", "lab.example.")
    wait_until(lambda: where(hot, NAME) == "resolver", 5, "the transferred zone to withdraw the rules")


def test_zone_from_a_file_answers_at_once(hot):
    """At first there is no zone, so its names are resolved and hot; then Unbound answers from the zone."""
    name = f"a.{LATE}"
    hot.world.heat(hot.daemon, name, "A")
    assert ask(hot.network.client1, SERVICE[4], name).answer[0][0].address == "192.0.2.40"
    hot.late.write_text(LATE_ZONE)
    hot.unbound.control("auth_zone_reload", f"{LATE}.")
    for _ in range(20):
        assert ask(hot.network.client1, SERVICE[4], name).answer[0][0].address == "203.0.113.77"
    hot.world.heat(hot.daemon, name, "A")
    assert ask(hot.network.client1, SERVICE[4], name).answer[0][0].address == "203.0.113.77"
