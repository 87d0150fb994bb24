# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Clients that Unbound treats in special ways: the kernel path treats them exactly as Unbound alone does.

Every access-control action, views, tags and interface options, from IPv4 and IPv6 addresses inside and outside the netblock,
while the name is hot for all other clients; and the same after a reload."""


import pytest
from conftest import kernel_path

from lab.client import SILENCE, Asker, ask, exchange, query
from lab.compare import difference
from lab.network import CLIENT1, DOORS, REFERENCE, REFERENCE_DOORS, SERVICE, STRANGER
from lab.run import SOON, wait_until

NAME = "www.lab.example"
NET = {4: "10.53.1.", 6: "fd53:1::"}
# last part of the client's address -> what its access-control entries say; {c}: its netblock
PASSED = {
    "refuse": (3, ["access-control: {c} refuse"]),
    "deny": (4, ["access-control: {c} deny"]),
    "refuse_non_local": (5, ["access-control: {c} refuse_non_local"]),
    "deny_non_local": (6, ["access-control: {c} deny_non_local"]),
    "view": (10, ["access-control-view: {c} own"]),
    "view without data": (11, ["access-control-view: {c} static"]),
    "view-first": (12, ["access-control-view: {c} first"]),
    "view-first without data": (13, ["access-control-view: {c} elsewhere"]),
    "tag": (14, ['access-control-tag: {c} "zone"']),
    "tag of no zone": (15, ['access-control-tag: {c} "none"']),
    "tag-action": (16, ['access-control-tag: {c} "action"', "access-control-tag-action: {c} action refuse"]),
    "tag-data": (17, ['access-control-tag: {c} "data"', "access-control-tag-action: {c} data redirect",
                      'access-control-tag-data: {c} data "A 192.0.2.241"']),
    "netblock, first address": (20, []),
    "netblock, last address": (23, []),
}
ANSWERED = {
    "allow": (2, []),
    "allow_snoop": (7, ["access-control: {c} allow_snoop"]),
    "allow_setrd": (8, ["access-control: {c} allow_setrd"]),
    "before the netblock": (19, []),
    "inside, allowed again": (22, ["access-control: {c} allow"]),
    "behind the netblock": (30, []),
}
CASES = {**PASSED, **ANSWERED}
SILENT = ("deny", "deny_non_local")
NETBLOCKS = ["access-control: 10.53.1.20/30 refuse", "access-control: fd53:1::20/124 refuse",
             "access-control: fd53:2::/64 refuse"]
ZONES = ['define-tag: "zone none action data"', f'local-zone: "{NAME}." redirect',
         f'local-data: "{NAME}. A 192.0.2.240"', f'local-zone-tag: "{NAME}." "zone action data"']
VIEWS = ["view:", '    name: "own"', f'    local-zone: "{NAME}." redirect', f'    local-data: "{NAME}. A 192.0.2.242"',
         "view:", '    name: "static"', '    local-zone: "lab.example." static',
         "view:", '    name: "first"', "    view-first: yes", f'    local-data: "{NAME}. A 192.0.2.243"',
         "view:", '    name: "elsewhere"', "    view-first: yes", '    local-data: "elsewhere.lab.example. A 192.0.2.244"']
VARIANTS = {"plain": {}, "edns": {"edns": True}, "do": {"dnssec": True}, "no-rd": {"rd": False}}


def configuration(doors):
    """Unbound's configuration for its further addresses: the same for the resolver under test and the reference."""
    lines = [line.format(c=f"{NET[f]}{last}/{32 if f == 4 else 128}")
             for last, entries in CASES.values() for line in entries for f in NET]
    doors_say = [f"interface-action: {doors['action']} allow", f"interface-action: {doors['view']} allow",
                 f"interface-view: {doors['view']} own", f"interface-action: {doors['tag']} allow",
                 f'interface-tag: {doors["tag"]} "zone"']
    return [*(f"interface: {a}" for a in doors.values()), *NETBLOCKS, *ZONES, *lines, *doors_say, *VIEWS]


@pytest.fixture(scope="module")
def guarded(world):
    """threads=1: the thread that obeys unbound-control's reload is the one that answers."""
    with kernel_path(world, unbound_options={"server": configuration(DOORS), "threads": 1}) as path, \
            world.reference(server=configuration(REFERENCE_DOORS)):
        world.heat(path.daemon, NAME, "A")
        world.heat(path.daemon, NAME, "A", dnssec=True)
        yield path


def both(path, wire, servers, **options):
    """The same query to the kernel path and to Unbound alone: (octets, number of kernel answers, difference)."""
    before = path.daemon.reasons()["ANSWERED"]
    replies = [exchange(path.network.client1, server, wire, **options) for server in servers]
    # the other instance cached the name at another second
    return replies[0], path.daemon.reasons()["ANSWERED"] - before, difference(*replies, ttl_slack=300)


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("case", CASES)
def test_as_unbound_alone(guarded, case, family):
    client = f"{NET[family]}{CASES[case][0]}"
    for variant, flags in VARIANTS.items():
        reply, answered, differs = both(guarded, query(NAME, **flags).to_wire(), (SERVICE[family], REFERENCE[family]),
                                        local=client, timeout=0.03 if case in SILENT else SILENCE)
        assert differs is None, variant
        assert (reply is None) == (case in SILENT), variant
        assert answered == (case in ANSWERED and variant != "no-rd"), variant


@pytest.mark.parametrize("case,address", [("view", "192.0.2.242"), ("view-first", "192.0.2.243"), ("tag", "192.0.2.240"),
                                          ("tag-data", "192.0.2.241"), ("allow", "192.0.2.1")])
def test_each_has_data_of_its_own(guarded, case, address):
    """Otherwise the comparison above would compare nothing."""
    reply = ask(guarded.network.client1, SERVICE[4], NAME, local=f"{NET[4]}{CASES[case][0]}")
    assert [str(rr[0]) for rr in reply.answer] == [address]


@pytest.mark.parametrize("door", DOORS)
def test_let_in_by_the_interface(guarded, door):
    """The client's address is in no access-control entry: the interface's action counts, and Unbound answers."""
    for _ in range(20):
        reply, answered, differs = both(guarded, query(NAME).to_wire(), (DOORS[door], REFERENCE_DOORS[door]),
                                        local=STRANGER[4])
        assert reply and differs is None
        assert answered == 0


@pytest.mark.parametrize("door", DOORS)
def test_access_control_before_the_interface(guarded, door):
    """An allowed client is allowed, whatever the interface's view or tag would give."""
    _, answered, differs = both(guarded, query(NAME).to_wire(), (DOORS[door], REFERENCE_DOORS[door]), local=CLIENT1[4])
    assert differs is None and answered == 1


@pytest.mark.parametrize("family", (4, 6))
def test_strangers_are_refused(guarded, family):
    _, answered, differs = both(guarded, query(NAME).to_wire(), (SERVICE[family], REFERENCE[family]),
                                local=STRANGER[family])
    assert differs is None and answered == 0


def test_ipv6_network_refused(guarded):
    wire = query(NAME, "A").to_wire()
    ours, theirs = (exchange(guarded.network.client2, service[6], wire) for service in (SERVICE, REFERENCE))
    assert difference(ours, theirs, ttl_slack=300) is None
    assert ours[3] & 0x0F == 5, "REFUSED expected"


def test_refused_clients_are_counted(guarded):
    before = guarded.daemon.reasons()["ACL"]
    exchange(guarded.network.client1, SERVICE[4], query(NAME, "A").to_wire(), local="10.53.1.3")
    assert guarded.daemon.reasons()["ACL"] == before + 1


# --- reload ---------------------------------------------------------------------------------------------------
MOVED = "10.53.1.25"
RATE, AROUND = 4000, 2000      # queries a second, and how many come before the change, and again after it


def let_come(path):
    begun = path.daemon.reasons()
    wait_until(lambda: sum(path.daemon.reasons()[r] - begun[r] for r in ("ANSWERED", "ACL")) > AROUND, SOON, "the load to come")


def answers_around(path, old, new):
    """Changes the configuration under load of the moved client; returns the answers to queries sent after the change."""
    with Asker(path.world, path.network.client1, SERVICE[4], [(NAME, "A")], RATE, local=MOVED) as asker:
        let_come(path)
        effect = path.unbound.change(old, new)
        path.world.heat(path.daemon, NAME, "A")
        let_come(path)
        answers = asker.result()
    return ([a for a in answers if a.sent < effect and a.latency is not None],
            [a for a in answers if a.sent > effect and a.latency is not None])


def test_reload_changes_access_under_load(guarded):
    lines = "access-control: 10.53.1.25/32 refuse", "access-control: 10.53.1.25/32 allow"
    guarded.unbound.change(NETBLOCKS[0], f"{NETBLOCKS[0]}\n    {lines[1]}")
    guarded.world.heat(guarded.daemon, NAME, "A")
    before, after = answers_around(guarded, lines[1], lines[0])
    assert len(before) > AROUND / 2 and len(after) > AROUND / 2
    assert not [a for a in after if a.rdata is not None], "answered by the ACL before the reload"
    before, after = answers_around(guarded, *lines)
    assert len(before) > AROUND / 2 and len(after) > AROUND / 2
    assert not [a for a in after if a.rdata is None], "refused by the ACL before the reload"
    was = guarded.daemon.reasons()["ANSWERED"]
    assert ask(guarded.network.client1, SERVICE[4], NAME, local=MOVED).rcode() == 0
    assert guarded.daemon.reasons()["ANSWERED"] == was + 1


def test_what_keeps_all_answers_out(guarded):
    """When local zones depend on the client's address, the kernel answers nothing."""
    line, word = f'local-zone-override: "{NAME}." 10.53.1.26/32 refuse', "local-zone-override"
    guarded.unbound.change(NETBLOCKS[1], f"{NETBLOCKS[1]}\n    {line}")
    try:
        wait_until(lambda: any(word in note for r in guarded.daemon.call({"cmd": "status"})["resolvers"]
                               for note in r["notes"]), 10, "the note that says why")
        before = guarded.daemon.reasons()["ANSWERED"]
        for _ in range(30):
            assert ask(guarded.network.client1, SERVICE[4], NAME).rcode() == 0
        assert guarded.daemon.reasons()["ANSWERED"] == before
    finally:
        guarded.unbound.change(f"\n    {line}", "")
    guarded.world.heat(guarded.daemon, NAME, "A")
