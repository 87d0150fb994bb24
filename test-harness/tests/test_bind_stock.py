# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The distribution's BIND, unpatched: the kernel answers hot names as named does, and the plugin notices changes that named
does not report within the documented seconds."""

import time

import pytest
from conftest import bind_path

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.changing_zones import records
from lab.network import SERVICE
from lab.run import SOON, wait_until

NAME = "www.lab.example"
LIFE = 5             # hydns-max-ttl, by default
KINDS = [("www", "A"), ("www", "AAAA"), ("www", "TXT"), ("chain", "A"), ("many", "A"), ("empty", "A"), ("missing", "A")]


@pytest.fixture(scope="module")
def stock(world):
    with bind_path(world, stock=True, listen="10.53.0.78;") as path:
        yield path


def test_says_what_it_can_not_do(stock):
    status = stock.daemon.ctl("status").stdout
    assert "does not notify of a flush" in status and "hydns-max-ttl" in status
    assert "does not notify of a flush" in stock.named.program.log.read_text()


@pytest.mark.parametrize("options", ({}, {"edns": True}, {"dnssec": True}, {"ad": True}), ids=str)
@pytest.mark.parametrize("family", (4, 6))
def test_same_answer(stock, family, options):
    for label, rdtype in KINDS:
        name = f"{label}.lab.example"
        stock.world.heat(stock.daemon, name, rdtype, server=SERVICE[family], **options)
        wire = query(name, rdtype, **options).to_wire()

        def from_kernel():
            before = stock.daemon.reasons()["ANSWERED"]
            reply = exchange(stock.network.client1, SERVICE[family], wire)
            return reply if stock.daemon.reasons()["ANSWERED"] == before + 1 else None
        kernel = wait_until(from_kernel, SOON, "a kernel answer: one query in a while is let through for renewal")
        assert difference(kernel, exchange(stock.network.resolver, SERVICE[family], wire), shuffled=True) is None


def address(stock):
    return ask(stock.network.client1, SERVICE[4], NAME).answer[0][0].address


def passed(stock):
    """A query that the kernel never answers: such queries make the plugin check the configuration."""
    assert ask(stock.network.client1, SERVICE[4], NAME, "RRSIG")
    return True


def test_flush(stock):
    """After a rule's life no old answer is sent; then the kernel has the new answer."""
    stock.world.heat(stock.daemon, NAME)
    old = address(stock)
    stock.world.change_lab(records(7), NAME, "A", "192.0.2.7")
    try:
        stock.named.control("flush")
        end = time.monotonic() + LIFE
        while time.monotonic() < end:
            assert address(stock) in (old, "192.0.2.7")
        stock.world.heat(stock.daemon, NAME)
        assert {address(stock) for _ in range(50)} == {"192.0.2.7"}
    finally:
        stock.world.rewrite_lab(records())


def test_command_that_changes_what_is_offered(stock):
    """Query logging, which named does not report to the plugin."""
    stock.world.heat(stock.daemon, NAME)
    stock.named.control("querylog", "on")
    try:
        wait_until(lambda: passed(stock) and "queries are logged (querylog)" in stock.daemon.explain(NAME)["text"], LIFE + 1,
                   "the plugin to begin anew")
        before = stock.daemon.offers()
        for _ in range(20):
            assert address(stock)
        assert stock.daemon.explain(NAME)["where"] == "resolver"
        assert stock.daemon.offers() == before
    finally:
        stock.named.control("querylog", "off")
    stock.world.heat(stock.daemon, NAME)


def test_new_configuration(stock):
    """A reload makes a new instance, which stops the former one."""
    stock.world.heat(stock.daemon, NAME)
    stock.named.control("reconfig")
    assert stock.daemon.explain(NAME)["where"] == "resolver"
    stock.world.heat(stock.daemon, NAME)


def test_address_that_comes_and_goes(stock):
    """The plugin closes its copies of sockets that named has closed: no query may be lost in a socket that no process reads."""
    network, later = stock.network, "10.53.0.78"
    for _ in range(2):
        network.resolver.address("lo", f"{later}/32")
        stock.named.control("scan")
        stock.world.heat(stock.daemon, NAME, server=later)
        wait_until(lambda: passed(stock) and f"{later}:53" in str(stock.daemon.call({"cmd": "status"})["resolvers"]), 10,
                   "the address to be served")
        for _ in range(20):
            assert ask(network.client1, later, "host9.lab.example", "TXT"), "a query is lost"
        with network.resolver.netlink() as ip:
            ip.addr("del", index=1, address=later, prefixlen=32)
        stock.named.control("scan")
        wait_until(lambda: passed(stock) and f"{later}:53" not in str(stock.daemon.call({"cmd": "status"})["resolvers"]), 10,
                   "the address to be given up")
