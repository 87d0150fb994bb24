# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's authoritative role: what named says from its zones the kernel says too, and never what it has said before a
change, however that comes about."""

from types import SimpleNamespace

import pytest

from harness import zones
from harness.client import ask, exchange, query
from harness.compare import difference
from harness.network import SERVICE
from harness.run import wait_until

BODY = 'type primary; file "auth.zone"; allow-update { 10.53.0.0/16; };'
NOREC = "without RD"    # with it, named tells those with EDNS why it does not follow the alias (RFC 8914)
SAME = {   # question: whether the kernel answers it
    "www A": True, "www AAAA": True, "zero A": True, "many A": True, "www MX": True, "missing A": True,
    "alias A": True, "chain A": True, "out A": NOREC, "lost A": True, "x.wild A": True, "x.wild AAAA": True,
    "ent.below A": True, "x.below-d A": True, "www.child A": True, "ns.child A": True, "www.away A": True, "@ SOA": True,
    "@ MX": True, "mx MX": True, "srv SRV": True,
    # named rotates these records, and names of others point into them
    "@ NS": False,
    # addresses of the client's own family come first
    "www.child6 A": False, "mx6 MX": False,
}
OPTIONS = {"plain": {}, "edns": {"edns": True}, "do": {"dnssec": True}, "ad": {"ad": True}}


@pytest.fixture(scope="module")
def auth(world):
    daemon = world.hydnsd()
    named = world.named(daemon, recursion=False, zones={zones.ZONE: BODY})
    (named.dir / "auth.zone").write_text(zones.text(zones.RECORDS))
    with daemon, named:
        def ready():
            ask(world.network.client1, SERVICE[4], f"www.{zones.ZONE}")
            return daemon.resolver_ready()
        wait_until(ready, 10, "BIND's plugin to register with hydnsd")
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)


def full(name, zone=zones.ZONE):
    return f"{name}.{zone}".removeprefix("@.")


@pytest.mark.parametrize("rd", (False, True), ids=("norec", "rec"))
@pytest.mark.parametrize("question", SAME)
def test_same_answer(auth, question, rd):
    name, rdtype = full(question.split()[0]), question.split()[1]
    in_kernel = SAME[question] is True or (SAME[question] == NOREC and not rd)
    for family in (4, 6):
        for label, options in OPTIONS.items():
            if in_kernel:
                auth.world.heat(auth.daemon, name, rdtype, rd=rd, **options)
            before = auth.daemon.reasons()["ANSWERED"]
            wire = query(name, rdtype, rd=rd, **options).to_wire()
            kernel = [exchange(auth.network.client1, SERVICE[family], wire) for _ in range(3)]
            assert auth.daemon.reasons()["ANSWERED"] == before + 3 * in_kernel, label
            for reply in kernel:
                assert difference(reply, exchange(auth.network.resolver, SERVICE[family], wire), 0, shuffled=True) is None


HOT = ("www A", "missing A", "alias A", "x.wild A", "ent.below A", "www.child A", "@ SOA")


def heat(auth, questions=HOT):
    for question in questions:
        auth.world.heat(auth.daemon, full(question.split()[0]), question.split()[1], rd=False)


def in_kernel(auth, question):
    return auth.daemon.explain(full(question.split()[0]), question.split()[1], norec=True)["where"] == "kernel"


def reply_of(auth, question, ns=None):
    name, rdtype = question.split()
    return exchange(ns or auth.network.client1, SERVICE[4], query(full(name), rdtype, rd=False).to_wire())


def address(auth, name):
    reply = ask(auth.network.client1, SERVICE[4], full(name), rd=False)
    return reply.answer[-1][0].to_text() if reply.answer else None


def assert_same(auth, questions=HOT):
    for question in questions:
        assert difference(reply_of(auth, question), reply_of(auth, question, auth.network.resolver), 0,
                          shuffled=True) is None, question


def test_dynamic_update(auth):
    """What was hot is new when the update is acknowledged: the record itself, and what a wildcard, an alias, a
    proof that there is nothing, and a referral said."""
    heat(auth)
    zones.update(auth.named, zones.ZONE, ("replace", "www", 300, "A", "192.0.2.110"),
                 ("add", "missing", 300, "A", "192.0.2.111"), ("add", "x.wild", 300, "A", "192.0.2.112"),
                 ("delete", "child", "NS"), ("add", "ent.below", 300, "A", "192.0.2.113"))
    assert not any(in_kernel(auth, question) for question in HOT)
    for name, expected in (("www", 110), ("alias", 110), ("missing", 111), ("x.wild", 112), ("ent.below", 113)):
        assert address(auth, name) == f"192.0.2.{expected}"
    heat(auth, ("www A", "alias A"))
    assert address(auth, "www") == "192.0.2.110"
    assert_same(auth)
