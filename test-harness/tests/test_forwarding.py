# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Queries for names in a forwarded zone go from the kernel to an upstream server, and their clients get what the same Unbound gives
without hyDNS, octet by octet but for id, TTLs by a second, and rotation."""

import socket
from types import SimpleNamespace

import dns.message
import pytest
from conftest import kernel_path

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.forwarding import MANY, SERVERS, ZONE, forward_zone, nsd
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

@pytest.fixture(scope="module")
def zone_server(world):
    with nsd(world):
        yield


@pytest.fixture(scope="module", params=SERVERS, ids=("over IPv4", "over IPv6"))
def path(world, zone_server, request):
    """With the same Unbound, without hyDNS, beside it. Its upstream server is reached over one family."""
    with kernel_path(world, unbound_options={"server": forward_zone(request.param)}) as p, \
            world.reference(server=forward_zone(request.param, forward=False)) as p.reference:
        p.upstream = request.param
        wait_until(lambda: usable(p), SOON, "the upstream server to be usable")
        yield p


def forwarding(path):
    return path.daemon.call({"cmd": "stats"})["resolvers"][0]["forwarding"]


def state(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["forwarding"]


def usable(path):
    upstreams = state(path)["upstreams"]
    return bool(upstreams) and all(u["usable"] for u in upstreams)


def both(path, name, rdtype="A", family=4, **options):
    """The replies of the resolver under test, and of the reference; what forwarding counted for the first."""
    wire = query(name, rdtype, **options).to_wire()
    before = forwarding(path)
    ours = exchange(path.network.client1, SERVICE[family], wire)
    after = forwarding(path)
    theirs = exchange(path.network.client1, REFERENCE[family], wire)
    assert ours is not None and theirs is not None, (ours, theirs)
    return SimpleNamespace(ours=ours, theirs=theirs, **{name: after[name] - before[name]
                                                        for name in ("sent", "relayed", "timed_out", "rejected")},
                           left={why: n - before["left"][why] for why, n in after["left"].items() if n != before["left"][why]},
                           not_relayed={why: n - before["not_relayed"][why] for why, n in after["not_relayed"].items()
                                        if n != before["not_relayed"][why]})


def forget(path):
    path.unbound.control("flush_zone", ZONE)
    path.reference.control("flush_zone", ZONE)


def whole(name):
    return ZONE if name == "@" else f"{name}.{ZONE}"


# -- what is relayed -----------------------------------------------------------------------------------------
RELAYED = (("www", "A"), ("www", "AAAA"), ("one", "A"), ("four", "A"), ("text", "TXT"), ("alias", "A"), ("alias2", "AAAA"),
           ("alias", "CNAME"), ("@", "MX"), ("@", "SOA"), ("@", "TXT"), ("service", "SRV"), ("service", "HTTPS"), ("ptr", "PTR"),
           ("caa", "CAA"), ("short", "A"), ("anything.wild", "A"), ("nothing", "A"), ("a.b.nothing", "AAAA"), ("www", "TXT"),
           ("below", "A"), ("mail", "AAAA"), ("WwW", "A"), ("NoThing", "A"))


@pytest.mark.parametrize("name,rdtype", RELAYED, ids=" ".join)
@pytest.mark.parametrize("options", ({}, {"edns": True}, {"ad": True}, {"family": 6}, {"cookie": b"8 octets"}),
                         ids=("plain", "edns", "ad", "ipv6", "cookie"))
def test_relayed_as_unbound_does(path, name, rdtype, options):
    forget(path)
    b = both(path, whole(name), rdtype, **options)
    assert difference(b.ours, b.theirs) is None
    assert (b.sent, b.relayed) == (1, 1), b


def test_the_answer_is_a_rule(path):
    """From then on the kernel gives it, counted down as Unbound counts down its own."""
    forget(path)
    received = path.unbound.received()
    both(path, whole("www"))
    for _ in range(3):
        b = both(path, whole("WWW"), edns=True)
        assert (b.sent, difference(b.ours, b.theirs)) == (0, None)
    assert path.unbound.received() == received
    assert path.daemon.explain(whole("www"), "A")["where"] == "kernel"


def test_explain(path):
    """Before anybody has asked, and of a query that is not forwarded."""
    forget(path)
    text = path.daemon.explain(whole("nobody"), "A")["text"]
    assert text.endswith("the kernel sends the next query to an upstream server of its forwarded zone"), text
    assert "forwarded" not in path.daemon.explain(whole("nobody"), "A", do=True)["text"]
    assert "forwarded" not in path.daemon.explain("host1.lab.example", "A")["text"]


def test_rotation(path):
    """Each record comes first, as Unbound does with rrset-roundrobin."""
    forget(path)
    first = {str(ask(path.network.client1, SERVICE[4], whole("four")).answer[0]) for _ in range(8)}
    assert len(first) == 4


# -- what is Unbound's ------------------------------------------------------------------------------------------
NOT_RELAYED = (("outside", "A", "ALIAS"), ("dangling", "A", "ALIAS"), ("@", "NS", "TYPE"), ("big", "A", "TRUNCATED"),
               ("never", "A", "TTL"), ("long", "A", "TTL"), ("delegated", "A", "REFERRAL"))


@pytest.mark.parametrize("name,rdtype,why", NOT_RELAYED, ids=lambda p: p)
def test_left_to_unbound_after_the_answer(path, name, rdtype, why):
    forget(path)
    b = both(path, whole(name), rdtype, edns=True)
    assert difference(b.ours, b.theirs) is None
    assert (b.sent, b.relayed, b.not_relayed) == (1, 0, {why: 1}), b


@pytest.mark.parametrize("options", ({"dnssec": True}, {"rd": False}, {"rdtype": "DS"}), ids=("DO", "no RD", "DS"))
def test_left_to_unbound_before(path, options):
    forget(path)
    b = both(path, whole("www"), **options)
    assert difference(b.ours, b.theirs) is None
    assert (b.sent, b.left) == (0, {"QUESTION": 1}), b


def test_other_names_are_not_forwarded(path):
    b = both(path, "host1.lab.example")
    assert difference(b.ours, b.theirs) is None
    assert (b.sent, b.left) == (0, {}), b


# -- what ends a rule ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("command", (("flush", whole("www")), ("flush_type", whole("www"), "A"), ("flush_zone", "example"),
                                     ("flush_zone", ZONE), ("forward_remove", ZONE), ("set_option", "verbosity:", "1")),
                         ids=" ".join)
def test_withdrawn_when_the_command_returns(path, command):
    forget(path)
    both(path, whole("www"))
    assert path.daemon.explain(whole("www"), "A")["where"] == "kernel"
    path.unbound.control(*command)
    assert path.daemon.explain(whole("www"), "A")["where"] != "kernel"
    if command[0] == "forward_remove":
        assert state(path)["zones"] == []
        path.unbound.control("forward_add", ZONE, *[u for u in SERVERS if (":" in u) == (":" in path.upstream)])
        wait_until(lambda: usable(path), SOON, "the zone to be forwarded again")


# -- many --------------------------------------------------------------------------------------------------------
def test_many_names_at_once(path):
    """Each client gets the answer to its own question."""
    forget(path)
    names = [whole(f"host{i}") for i in range(MANY)]
    before = forwarding(path)
    with path.network.client1.entered():
        sockets = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in names]
    try:
        for s, name in zip(sockets, names):
            s.settimeout(SOON)
            s.connect((SERVICE[4], 53))
            s.send(query(name).to_wire())
        for i, s in enumerate(sockets):
            reply = dns.message.from_wire(s.recv(65535))
            assert [str(r) for r in reply.answer[0]] == [f"198.51.100.{i}"]
    finally:
        for s in sockets:
            s.close()
    after = forwarding(path)
    assert (after["sent"] - before["sent"], after["relayed"] - before["relayed"]) == (MANY, MANY)
