# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsctl explain says of BIND: the exact reason, in the words of named's own options, for a name and for a client;
and what hydnsctl status shows of commands that end all offers."""

import pytest
from conftest import bind_path
from test_explain import NAME, SENTINEL, ZONE, check_client, explained, obstacle_comes_and_goes

from lab.network import CLIENT1

NAMES = [
    ("WWW.lab.example", "AAAA", "the question had capital letters"),
    ("brief.lab.example", "A", "its TTL of 5 is below hydns-min-ttl 10"),
    (NAME, "MX", "named adds what its cache happens to hold to this answer (minimal-responses)"),
    (NAME, "RRSIG", "answers to questions of this type depend on what the resolver's cache happens to hold"),
    ("big.lab.example", "TXT", "the answer was cut short (TC)"),
    ("www.own.example.net", "A", "its zone has an allow-query or allow-query-on of its own"),
    ("www.unloaded.test", "A", "the answer is an error (rcode 2)"),
    SENTINEL,
]
CLIENTS = [
    ("10.53.1.8", "resolver", "clients of 10.53.1.8/32 are, or may be, in blackhole"),
    ("10.53.1.9", "resolver", "clients of 10.53.1.9/32 are named by sortlist"),
    (CLIENT1[4], "kernel", "clients of 10.53.1.0/24 are in exempt-clients of rate-limit"),
    ("10.53.2.5", "kernel", "clients of 10.53.0.0/16 are counted by rate-limit"),
    ("192.0.2.1", "resolver", "clients of this address are not surely let in by allow-query"),
    ("fd53:1::9", "resolver", "clients of fd53:1::9/128 are not surely let in by allow-recursion"),
    ("fd53::1", "kernel", "clients of fd53::/16 are counted by rate-limit"),
]


@pytest.fixture(scope="module")
def bind(world):
    options = ["rate-limit { responses-per-second 1000; exempt-clients { 10.53.1.0/24; }; };", "sortlist { 10.53.1.9; };",
               "blackhole { 10.53.1.8; };"]
    zones = {"own.example.net": 'type primary; file "own.example.net"; allow-query { 10.53.0.0/16; };',
             "unloaded.test": 'type primary; file "there-is-none";'}
    directory = world.run.dir / "named"
    directory.mkdir(exist_ok=True)
    (directory / "own.example.net").write_text(ZONE)
    with bind_path(world, options=[*options, "allow-recursion { !fd53:1::9; 10.53.0.0/16; fd53::/16; };"], zones=zones,
                   clause=["hydns-min-ttl 10;"], without=("allow-recursion",)) as path:
        yield path


@pytest.mark.parametrize("name,rdtype,text", NAMES, ids=lambda v: str(v)[:20])
def test_name(bind, name, rdtype, text):
    explained(bind, name, rdtype, text)


@pytest.mark.parametrize("address,where,text", CLIENTS, ids=lambda v: str(v)[:20])
def test_client(bind, address, where, text):
    check_client(bind, address, where, text)


@pytest.mark.parametrize("command,text", [("querylog", "queries are logged (querylog)"),
                                          ("responselog", "responses are logged (responselog)")])
def test_obstacle_by_rndc(bind, command, text):
    obstacle_comes_and_goes(bind, text, lambda: bind.named.control(command, "on"),
                            lambda: bind.named.control(command, "off"))
