# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Options of named.conf that keep answers from the kernel: all of them, and hydnsctl status says why, or some."""

import pytest
from conftest import bind_path

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import SERVICE
from lab.run import replaced, wait_until
from lab.tools import Tools

NAME = "www.lab.example"
POLICY = 'zone "policy" { type primary; file "policy.zone"; };'
FILTER = 'plugin query "{plugins}/filter-aaaa.so" { filter-aaaa-on-v4 no; };'
# what the note says -> (line for the options clause, line after it)
ALL_OUT = {
    "allow-proxy": ("allow-proxy { 10.53.1.3; };", ""),
    "response-policy": ('response-policy { zone "policy"; };', POLICY),
    "catalog-zones": ('catalog-zones { zone "policy"; };', POLICY),
    "redirect zone": ("", 'zone "." { type redirect; file "redirect.zone"; };'),
    "nocookie-udp-size": ("nocookie-udp-size 500;", ""),
    "max-udp-size": ("", "server 10.53.9.9 { max-udp-size 600; };"),
    "minimal-responses": ("minimal-responses no;", ""),
    "another query plugin": ("", FILTER),
}


@pytest.fixture(scope="module")
def bind(world):
    with bind_path(world, options=["rrset-order { name \"many.lab.example\" order none; };"]) as path:
        for zone in ("policy", "redirect"):
            (path.named.dir / f"{zone}.zone").write_text("@ 60 SOA . . 1 60 60 60 60\n@ 60 NS .\n")
        yield path


def notes(bind):
    return " ".join(n for r in bind.daemon.call({"cmd": "status"})["resolvers"] for n in r["notes"])


def reconfigure(bind, text):
    bind.named.config.write_text(text)
    bind.named.control("reconfig")


@pytest.mark.parametrize("note", ALL_OUT)
def test_keeps_all_answers_out(bind, note):
    """And kernel answers come back when it is removed."""
    text = bind.named.config.read_text()
    option, statement = ALL_OUT[note]
    statement = statement.replace("{plugins}", str(Tools().bind_plugin.parent))
    bind.world.heat(bind.daemon, NAME)
    try:
        reconfigure(bind, replaced(text, "    recursion yes;", f"    recursion yes;\n    {option}") + statement + "\n")
        before = bind.daemon.reasons()["ANSWERED"]
        wait_until(lambda: ask(bind.network.client1, SERVICE[4], NAME) and note in notes(bind), 5, f"a note of {note}")
        offers = bind.daemon.offers()
        for _ in range(20):
            ask(bind.network.client1, SERVICE[4], NAME)
        assert (bind.daemon.reasons()["ANSWERED"], bind.daemon.offers()) == (before, offers)
    finally:
        reconfigure(bind, text)
    bind.world.heat(bind.daemon, NAME)


def test_order_that_the_kernel_does_not_keep(bind):
    """Only of the name that it is for; an RRset of one record has no order. With cyclic each client may get the next order."""
    many, text = "many.lab.example", bind.named.config.read_text()
    try:
        for order in ("none", "cyclic"):
            reconfigure(bind, replaced(text, "order none", f"order {order}"))
            first = [ask(bind.network.client1, SERVICE[4], many).answer[0][0].address for _ in range(20)]
            bind.world.not_offered(bind.daemon, many, "rrset-order gives its records an order that the kernel can't give")
            assert order == "none" or all(first[i] == first[i - 8] and first[i] != first[i - 1] for i in range(8, 20))
            bind.world.heat(bind.daemon, NAME)
        reconfigure(bind, replaced(text, "order none", "order random"))
        bind.world.heat(bind.daemon, many)
        orders = {tuple(rr.address for rr in ask(bind.network.client1, SERVICE[4], many).answer[0]) for _ in range(200)}
        assert len({(order[0], order[1]) for order in orders}) > 8, "the kernel gives more than rotations"
    finally:
        reconfigure(bind, text)


def test_unusual_queries(bind):
    """Queries without RD, or with CD, pass while the name is hot."""
    bind.world.heat(bind.daemon, NAME)
    for options in ({"rd": False}, {"cd": True}):
        wire = query(NAME, **options).to_wire()
        before = bind.daemon.reasons()["ANSWERED"]
        ours, theirs = (exchange(ns, SERVICE[4], wire) for ns in (bind.network.client1, bind.network.resolver))
        assert difference(ours, theirs, shuffled=True) is None
        assert bind.daemon.reasons()["ANSWERED"] == before, options
