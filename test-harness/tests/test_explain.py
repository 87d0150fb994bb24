# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsctl explain says: the exact reason, in the words of the resolver's own options, for a name, for a client,
and for a configuration; and what hydnsctl status shows of it while the resolver runs."""

import pytest
from conftest import kernel_path

from lab.client import ask
from lab.network import SERVICE
from lab.run import wait_until

NAME = "www.lab.example"
# name, type, what explain says
SENTINEL = ("root-key-sentinel-is-ta-20326.lab.example", "A", "its first label asks for the resolver's trust anchors (root-key-sentinel)")
UNBOUND = [
    ("a.local.test", "A", "local data of the resolver answer it (local-zone, local-data)"),
    ("nothing.local.test", "AAAA", "local data of the resolver answer it (local-zone, local-data)"),
    ("x.tree.own.example.net", "A", "an auth-zone of the resolver answers it with a failure, or with an alias in"),
    ("alias.test", "A", "local data of the resolver lead to it by an alias"),
    ("host1.lab.example", "A", "a local zone logs the queries for it (type inform"),
    ("brief.lab.example", "A", "its TTL of 5 is below hydns-min-ttl 10"),
    (NAME, "NSEC", "answers to questions of this type depend on what the resolver's cache happens to hold"),
    ("www.dead.example.net", "A", "the answer is an error (rcode 2)"),
    SENTINEL,
]
ZONE = """$ORIGIN own.example.net.
@ 300 SOA ns hostmaster 1 3600 900 604800 300
@ 300 NS ns
ns 300 A 192.0.2.53
tree 300 DNAME www.example.net.
"""
UNBOUND_CLIENTS = [
    ("10.53.1.3", "resolver", "clients of 10.53.1.3/32 are refused (access-control: refuse)"),
    ("10.53.1.4", "kernel", "clients of 10.53.1.4/32 are answered in the kernel with a valid DNS cookie alone"),
    ("10.53.1.5", "resolver", "clients of 10.53.1.5/32 have a view of their own (access-control-view)"),
    ("10.53.1.6", "resolver", "clients of 10.53.1.6/32 have tags (access-control-tag)"),
    ("10.53.1.7", "kernel", "clients of 10.53.0.0/16 are allowed"),
    ("192.0.2.1", "resolver", "clients of this address stand in no access-control entry"),
    ("fd53:1::3", "resolver", "clients of fd53:1::/64 get no answer (access-control: deny)"),
    ("fd53::7", "kernel", "clients of fd53::/16 are allowed"),
    ("2001:db8::1", "resolver", "clients of this address stand in no access-control entry"),
    ("127.0.0.1", "resolver", "the kernel path answers no query with this source address"),
]


@pytest.fixture(scope="module")
def unbound(world):
    zone = world.run.dir / "own.example.net"
    zone.write_text(ZONE)
    server = ['local-zone: "local.test." static', 'local-data: "a.local.test. 300 IN A 192.0.2.9"',
              'local-zone: "alias.test." redirect', f'local-data: "alias.test. 300 IN CNAME {NAME}."',
              'local-zone: "host1.lab.example." inform', 'define-tag: "some"',
              "access-control: 10.53.1.3/32 refuse", "access-control: 10.53.1.4/32 allow_cookie",
              "access-control-view: 10.53.1.5/32 own", 'access-control-tag: 10.53.1.6/32 "some"',
              "access-control: fd53:1::/64 deny",
              "auth-zone:", 'name: "own.example.net."', f'zonefile: "{zone}"', "for-downstream: yes", "for-upstream: no",
              "stub-zone:", 'name: "dead.example.net."', "stub-addr: 127.0.0.1@1",   # which Unbound does not ask
              "view:", 'name: "own"']
    with kernel_path(world, unbound_options={"server": server, "clause": ["hydns-min-ttl: 10"]}) as path:
        yield path


def said(path, *words):
    return path.daemon.ctl("explain", *words).stdout


def explained(path, name, rdtype, text):
    """Asks until explain gives this reason: what is asked first may be in the cache for nobody else yet."""
    def says_it():
        for options in ({}, {"dnssec": True}):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1, **options)
        return text in said(path, name, rdtype)
    wait_until(says_it, 10, f"explain {name} {rdtype} to say: {text}")
    assert "answered by the resolver" in said(path, name, rdtype)


@pytest.mark.parametrize("name,rdtype,text", UNBOUND, ids=lambda v: str(v)[:20])
def test_name(unbound, name, rdtype, text):
    explained(unbound, name, rdtype, text)


@pytest.mark.parametrize("address,where,text", UNBOUND_CLIENTS, ids=lambda v: str(v)[:20])
def test_client(unbound, address, where, text):
    check_client(unbound, address, where, text)


def check_client(path, address, where, text):
    """The client alone, and the client's question for a name that others are answered in the kernel."""
    alone = path.daemon.call({"cmd": "explain", "client": address})
    assert alone["where"] == where and alone["text"].startswith(text), alone
    path.world.heat(path.daemon, NAME)
    asks = path.daemon.call({"cmd": "explain", "client": address, "name": NAME, "type": "A"})
    assert asks["text"].startswith(text) and asks["rule"], asks
    if "with a valid DNS cookie alone" in alone["text"]:
        assert (asks["where"], asks["reason"]) == ("resolver", "COOKIE")   # because it has sent none
    else:
        assert asks["where"] == where and (asks["reason"] in ("ACL", "BAD_SOURCE")) == (where == "resolver")


def test_a_name_that_nobody_asked_for(unbound):
    assert "nobody whom the kernel may answer has asked for it lately" in said(unbound, "never.lab.example", "A")


def test_a_newer_reason_counts(unbound):
    """A former not-offered reason is not shown once the name has a rule."""
    explained(unbound, "host2.lab.example", "NSEC", "answers to questions of this type")
    unbound.world.heat(unbound.daemon, "host2.lab.example")
    assert "answered in kernel" in said(unbound, "host2.lab.example", "A")


def test_words(unbound):
    for words in (["--client", "10.53"], [NAME, "A", "--client", "nobody"]):
        done = unbound.daemon.ctl("explain", *words, check=False)
        assert done.returncode == 1 and "not an IPv4 or IPv6 address" in done.stderr
    for words in ([], [NAME], ["--do", "--client", "10.53.1.3"]):
        assert unbound.daemon.ctl("explain", *words, check=False).returncode == 2


def notes(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["notes"]


def obstacle_comes_and_goes(path, text, come, go):
    """A command that ends all offers is shown in status before it returns, and so is its end."""
    path.world.heat(path.daemon, NAME)
    assert not any(text in n for n in notes(path))
    come()
    try:
        assert any(text in n for n in notes(path))
        answer = said(path, NAME, "A")
        assert text in answer and "nothing is offered to the kernel while this holds" in answer
        assert text in path.daemon.ctl("status").stdout
    finally:
        go()
    assert not any(text in n for n in notes(path))
    path.world.heat(path.daemon, NAME)


@pytest.mark.parametrize("option,text", [("log-queries:", "log-queries is yes"), ("log-replies:", "log-replies is yes")])
def test_obstacle_by_set_option(unbound, option, text):
    obstacle_comes_and_goes(unbound, text, lambda: unbound.unbound.control("set_option", option, "yes"),
                            lambda: unbound.unbound.control("set_option", option, "no"))
