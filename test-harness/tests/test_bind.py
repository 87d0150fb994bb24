# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND as the resolver: the kernel answers a hot name as named answers it over loopback, and a flush withdraws before rndc
returns."""

import time

import dns.rcode
import pytest
from conftest import bind_path

from lab.client import Asker, ask, exchange, query
from lab.compare import difference
from lab.changing_zones import records
from lab.network import SERVICE
from lab.run import SOON, wait_until

NAME = "www.lab.example"


@pytest.fixture(scope="module")
def bind(world):
    with bind_path(world) as path:
        yield path


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
    assert difference(kernel, exchange(bind.network.resolver, SERVICE[4], wire), shuffled=True) is None


@pytest.mark.parametrize("command", (("flushname", NAME), ("flushtree", "lab.example"), ("flush",)), ids=" ".join)
def test_flush(bind, command, generation=[1]):
    generation[0] += 1
    bind.world.heat(bind.daemon, NAME)
    bind.world.change_lab(records(generation[0]), NAME, "A", f"192.0.2.{generation[0]}")
    bind.named.control(*command)
    reply = ask(bind.network.client1, SERVICE[4], NAME)
    assert reply.answer[0][0].address == f"192.0.2.{generation[0]}"


@pytest.mark.parametrize("command", (("flushname", NAME), ("flushtree", "lab.example"), ("flush",)), ids=" ".join)
def test_flush_while_hydnsd_hangs(bind, command, generation=[30]):
    """The frames about the cache's changes wait in the ring then; the flush does not return before all rules are withdrawn."""
    generation[0] += 1
    bind.world.heat(bind.daemon, NAME)
    bind.world.change_lab(records(generation[0]), NAME, "A", f"192.0.2.{generation[0]}")
    with bind.daemon.stopped():
        bind.named.control(*command)
        reply = ask(bind.network.client1, SERVICE[4], NAME)
    assert reply.answer[0][0].address == f"192.0.2.{generation[0]}"
    bind.world.heat(bind.daemon, NAME)


def test_flushtree_of_the_root(bind):
    """All rules are withdrawn. Then the kernel answers as named: with the former data, until flush (bind-patches/README.md)."""
    def addresses():
        return [ask(ns, SERVICE[4], NAME, **local).answer[0][0].address
                for ns, local in ((bind.network.client1, {}), (bind.network.resolver, {"local": SERVICE[4]}))]
    bind.world.heat(bind.daemon, NAME)
    bind.world.change_lab(records(99), NAME, "A", "192.0.2.99")
    bind.named.control("flushtree", ".")
    assert bind.daemon.explain(NAME)["where"] == "resolver"
    bind.world.heat(bind.daemon, NAME)
    kernel, own = addresses()
    assert kernel == own
    bind.named.control("flush")
    assert addresses() == ["192.0.2.99"] * 2


def test_other_commands(bind):
    """A command that is not known as harmless withdraws everything; query logging ends all offers until it is off."""
    bind.world.heat(bind.daemon, NAME)
    bind.named.control("serve-stale", "off")
    assert bind.daemon.explain(NAME)["where"] == "resolver"
    bind.world.heat(bind.daemon, NAME)
    bind.named.control("status")
    assert bind.daemon.explain(NAME)["where"] == "kernel"
    bind.named.control("querylog", "on")
    try:
        before = bind.daemon.reasons()["ANSWERED"], bind.daemon.offers()
        for _ in range(30):
            ask(bind.network.client1, SERVICE[4], NAME)
        assert bind.daemon.explain(NAME)["where"] == "resolver"
        assert (bind.daemon.reasons()["ANSWERED"], bind.daemon.offers()) == before
    finally:
        bind.named.control("querylog", "off")
    bind.world.heat(bind.daemon, NAME)


@pytest.mark.parametrize("rr", (("www", "MX"), ("@", "NS")), ids=lambda rr: rr[1])
def test_what_may_be_added_is_not_offered(bind, rr):
    name = f"{rr[0]}.lab.example".removeprefix("@.")
    for cached in (True, False):       # the address; without it nothing is added, until somebody asks for it
        if not cached:
            bind.named.control("flushname", "mail.lab.example")
        before = bind.daemon.offers()
        bind.world.not_offered(bind.daemon, name, "named adds what its cache happens to hold", rr[1])
        assert bind.daemon.offers() == before


def test_statistics(bind):
    """named's counters include kernel answers, in every form in which named shows them."""
    shown = {"Requestv4": "IPv4 requests received", "Requestv6": "IPv6 requests received", "QryUDP": "UDP queries received",
             "ReqEdns0": "requests with EDNS(0) received", "Response": "responses sent",
             "QryNoauthAns": "queries resulted in non authoritative answer",
             "QrySuccess": "queries resulted in successful answer"}
    ways = {"json": bind.named.stats, "xml": bind.named.stats_xml, "rndc": bind.named.stats_command}
    bind.world.heat(bind.daemon, NAME, edns=True)
    before, kernel = {way: read() for way, read in ways.items()}, bind.daemon.reasons()["ANSWERED"]
    for family in (4, 6):
        for _ in range(10):
            ask(bind.network.client1, SERVICE[family], NAME, edns=True)
    assert bind.daemon.reasons()["ANSWERED"] - kernel >= 18      # one may pass for refresh
    for way, read in ways.items():
        now, names = read(), shown.values() if way == "rndc" else shown
        grown = [now.get(name, 0) - before[way].get(name, 0) for name in names]
        assert grown == [10, 10, 20, 20, 20, 20, 20], way


def test_data_replaced_without_a_flush(bind):
    """When the authoritative server denies a name, all its data are withdrawn, whatever their TTLs."""
    network = bind.network
    bind.world.heat(bind.daemon, "mail.lab.example")
    content = records()
    del content["mail"]
    bind.world.rewrite_lab(content)
    try:
        assert ask(network.client1, SERVICE[4], "mail.lab.example").answer
        assert ask(network.resolver, SERVICE[4], "mail.lab.example", "TXT").rcode() == dns.rcode.NXDOMAIN
        wait_until(lambda: ask(network.client1, SERVICE[4], "mail.lab.example").rcode() == dns.rcode.NXDOMAIN, SOON,
                   "the kernel path to forget the address")
    finally:
        bind.world.rewrite_lab(records())


def test_prefetch(bind):
    """named refreshes a hot name in the last two seconds of its TTL, for one query that the kernel passes, and no client waits
    for it."""
    name, ttl, slow = "soon.lab.example", 10, 0.4
    bind.world.rewrite_lab({**records(), "soon": [f"{ttl} A 192.0.2.210"]})
    bind.world.relay.delay = slow
    try:
        bind.world.heat(bind.daemon, name, timeout=3)
        begun, waited = time.monotonic(), bind.named.recursions()
        with Asker(bind.world, bind.network.client1, SERVICE[4], [(name, "A")], 200, timeout=SOON) as asker:
            wait_until(lambda: bind.world.relay.count(f"{name}.", since=begun), SOON, "named to renew the name")
            wait_until(lambda: ask(bind.network.client1, SERVICE[4], name).answer[0].ttl > ttl - 4, SOON, "the new TTL")
            before = bind.daemon.reasons()["ANSWERED"]
            wait_until(lambda: bind.daemon.reasons()["ANSWERED"] > before + 100, SOON, "the kernel to go on with it")
            answers = asker.result()
        waited = bind.named.recursions() - waited
    finally:
        bind.world.relay.delay = 0.0
        bind.world.rewrite_lab(records())
    assert bind.world.relay.count(f"{name}.", since=begun) == 1
    assert all(a.latency is not None and a.rcode == 0 for a in answers)
    assert waited == 0, f"{waited} queries have waited for the authoritative server"      # by named's own count
