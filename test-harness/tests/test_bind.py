# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND as the resolver: a hot name is answered in the kernel as named answers it by loopback, and a flush
withdraws before rndc returns."""

from types import SimpleNamespace

import pytest

from harness.client import ask, exchange, query
from harness.compare import difference
from harness.lab import records
from harness.network import SERVICE
from harness.run import wait_until

NAME = "www.lab.example"


@pytest.fixture(scope="module")
def bind(world):
    daemon = world.hydnsd()
    with daemon, world.named(daemon) as named:
        def ready():
            ask(world.network.client1, SERVICE[4], NAME)    # the plugin starts with the first response
            return daemon.resolver_ready()
        wait_until(ready, 10, "BIND's plugin to register with hydnsd")
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)


@pytest.mark.parametrize("options", ({}, {"edns": True}, {"dnssec": True}, {"ad": True}), ids=str)
@pytest.mark.parametrize("family", (4, 6))
def test_same_answer(bind, family, options):
    bind.world.heat(bind.daemon, NAME, server=SERVICE[family], **options)
    before = bind.daemon.reasons()["ANSWERED"]
    wire = query(NAME, "A", **options).to_wire()
    kernel = exchange(bind.network.client1, SERVICE[family], wire)
    assert bind.daemon.reasons()["ANSWERED"] == before + 1
    assert difference(kernel, exchange(bind.network.resolver, SERVICE[family], wire)) is None


@pytest.mark.parametrize("rr", (("www", "AAAA"), ("www", "TXT"), ("chain", "A"), ("many", "A"), ("empty", "A"),
                                ("missing", "A")), ids=lambda rr: "-".join(rr))
def test_same_answer_of_every_kind(bind, rr):
    name = f"{rr[0]}.lab.example"
    bind.world.heat(bind.daemon, name, rr[1])
    wire = query(name, rr[1]).to_wire()
    kernel = exchange(bind.network.client1, SERVICE[4], wire)
    assert difference(kernel, exchange(bind.network.resolver, SERVICE[4], wire)) is None


@pytest.mark.parametrize("command", (("flushname", NAME), ("flushtree", "lab.example"), ("flush",)), ids=" ".join)
def test_flush(bind, command, generation=[1]):
    generation[0] += 1
    bind.world.heat(bind.daemon, NAME)
    bind.world.change_lab(records(generation[0]), NAME, "A", f"192.0.2.{generation[0]}")
    bind.named.control(*command)
    reply = ask(bind.network.client1, SERVICE[4], NAME)
    assert reply.answer[0][0].address == f"192.0.2.{generation[0]}"


@pytest.mark.parametrize("command", ("reconfig", "reload"))
def test_new_configuration(bind, command):
    """The former configuration's rules are gone when rndc returns, and the plugin offers again."""
    bind.world.heat(bind.daemon, NAME)
    bind.named.control(command)
    assert bind.daemon.explain(NAME)["where"] == "resolver"
    bind.world.heat(bind.daemon, NAME)
