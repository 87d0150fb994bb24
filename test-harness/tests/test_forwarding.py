# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Queries for names in a forwarded zone go from the kernel to an upstream server, and their clients get what the same resolver gives
without hyDNS, octet by octet but for id, TTLs by a second, and order within an RRset."""

import socket
from itertools import count
from types import SimpleNamespace

import dns.message
import pytest
from forwarding_paths import KINDS, counts, forwarding_path, reference, state, undisturbed, usable

from lab.client import ask, exchange, query
from lab.compare import difference, without_cookie
from lab.forwarding import MANY, SERVERS, ZONE, nsd
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until


@pytest.fixture(scope="module")
def zone_server(world):
    with nsd(world):
        yield


PATHS = {f"{kind} over {family}": (kind, server) for kind in KINDS for family, server in zip(("IPv4", "IPv6"), SERVERS)}


@pytest.fixture(scope="module", params=PATHS)
def path(world, zone_server, request):
    """With the same resolver, without hyDNS, beside it. Its upstream server is reached over one family."""
    kind, server = PATHS[request.param]
    with forwarding_path(world, kind, server) as p, reference(world, kind, server) as p.reference:
        yield p


def both(path, name, rdtype="A", family=4, **options):
    """The replies of the resolver under test, and of the reference; what forwarding counted for the first."""
    wire = query(name, rdtype, **options).to_wire()
    tries = count()

    def asked():
        if next(tries):
            forget(path)
        return exchange(path.network.client1, SERVICE[family], wire)
    ours, before, after = undisturbed(path, asked)
    theirs = exchange(path.network.client1, REFERENCE[family], wire)
    assert ours is not None and theirs is not None, (ours, theirs)
    if path.kind == "bind":            # each has a secret of its own
        (ours, _), (theirs, _) = without_cookie(ours), without_cookie(theirs)
    return SimpleNamespace(different=difference(ours, theirs, shuffled=path.kind == "bind"),
                           **{name: after[name] - before[name] for name in ("sent", "relayed", "timed_out", "rejected")},
                           left={why: n - before["left"][why] for why, n in after["left"].items() if n != before["left"][why]},
                           not_relayed={why: n - before["not_relayed"][why] for why, n in after["not_relayed"].items()
                                        if n != before["not_relayed"][why]})


def forget(path):
    path.does.forget()
    path.does.forget(server=path.reference)


def whole(name):
    return ZONE if name == "@" else f"{name}.{ZONE}"


# -- what is relayed -----------------------------------------------------------------------------------------
RELAYED = (("www", "A"), ("www", "AAAA"), ("one", "A"), ("four", "A"), ("text", "TXT"), ("alias", "A"), ("alias2", "AAAA"),
           ("alias", "CNAME"), ("@", "MX"), ("@", "SOA"), ("@", "TXT"), ("service", "SRV"), ("service", "HTTPS"), ("ptr", "PTR"),
           ("caa", "CAA"), ("short", "A"), ("anything.wild", "A"), ("nothing", "A"), ("a.b.nothing", "AAAA"), ("www", "TXT"),
           ("below", "A"), ("mail", "AAAA"), ("WwW", "A"), ("NoThing", "A"))


# BIND adds the addresses of hosts if it has them, and answers capital letters with those that it knows.
BINDS_OWN = (("@", "MX"), ("service", "SRV"), ("service", "HTTPS"))


@pytest.mark.parametrize("name,rdtype", RELAYED, ids=" ".join)
@pytest.mark.parametrize("options", ({}, {"edns": True}, {"ad": True}, {"family": 6}, {"cookie": b"8 octets"}),
                         ids=("plain", "edns", "ad", "ipv6", "cookie"))
def test_relayed_as_the_resolver_does(path, name, rdtype, options):
    forget(path)
    b = both(path, whole(name), rdtype, **options)
    assert b.different is None
    if path.kind == "bind" and name != name.lower():
        assert (b.sent, b.left) == (0, {"QUESTION": 1}), b
    elif path.kind == "bind" and (name, rdtype) in BINDS_OWN:
        assert (b.sent, b.relayed, b.not_relayed) == (1, 0, {"TYPE": 1}), b
    else:
        assert (b.sent, b.relayed) == (1, 1), b


def test_the_answer_is_a_rule(path):
    """From then on the kernel gives it, counted down as the resolver counts down its own."""
    forget(path)
    both(path, whole("www"))
    answered = path.daemon.reasons()["ANSWERED"]
    for _ in range(3):
        b = both(path, whole("WWW" if path.kind == "unbound" else "www"), edns=True)
        assert (b.sent, b.different) == (0, None)
    assert path.daemon.reasons()["ANSWERED"] == answered + 3
    assert path.daemon.explain(whole("www"), "A")["where"] == "kernel"


def test_the_resolvers_own_statistics(path):
    """They count what the kernel has forwarded and answered, as a query that the resolver has answered itself."""
    def counted():
        stats = path.server.stats()
        names = ("total.num.queries",) if path.kind == "unbound" else ("Requestv4", "Requestv6", "QrySuccess", "QryNXDOMAIN", "Response")
        return [stats.get(name, 0) for name in names]
    forget(path)
    first = counted()
    both(path, whole("www"))
    second = counted()
    both(path, whole("nothing"), family=6)
    third = counted()
    changes = [[b - a for a, b in zip(*pair)] for pair in ((first, second), (second, third))]
    assert changes == ([[1], [1]] if path.kind == "unbound" else [[1, 0, 1, 0, 1], [0, 1, 0, 1, 1]])


def test_explain(path):
    """Before anybody has asked, and of a query that is not forwarded."""
    forget(path)
    text = path.daemon.explain(whole("nobody"), "A")["text"]
    assert text.endswith("the kernel sends the next query to an upstream server of its forwarded zone"), text
    assert "forwarded" not in path.daemon.explain(whole("nobody"), "A", do=True)["text"]
    assert "forwarded" not in path.daemon.explain("host1.lab.example", "A")["text"]


def test_rotation(path):
    """Each record comes first, as Unbound does with rrset-roundrobin, and BIND at random."""
    forget(path)
    times = 8 if path.kind == "unbound" else 200
    first = {str(ask(path.network.client1, SERVICE[4], whole("four")).answer[0][0]) for _ in range(times)}
    assert len(first) == 4


# -- what is the resolver's ------------------------------------------------------------------------------------------
NOT_RELAYED = (("outside", "A", "ALIAS"), ("dangling", "A", "ALIAS"), ("@", "NS", "TYPE"), ("big", "A", "TRUNCATED"),
               ("never", "A", "TTL"), ("delegated", "A", "REFERRAL"))


@pytest.mark.parametrize("name,rdtype,why", NOT_RELAYED, ids=lambda p: p)
def test_left_to_the_resolver_after_the_answer(path, name, rdtype, why):
    forget(path)
    b = both(path, whole(name), rdtype, edns=True)
    assert b.different is None
    assert (b.sent, b.relayed, b.not_relayed) == (1, 0, {why: 1}), b


def test_an_order_that_a_rule_does_not_have(path):
    """A record's name is compressed against another's, so the kernel can't rotate them: no rule is made of the answer."""
    forget(path)
    b = both(path, whole("pointers"), "PTR")
    assert b.different is None
    assert (b.sent, b.relayed, b.rejected) == (1, 0, 1), b


def test_a_long_ttl(path):
    """Each resolver has a limit of its own, a day or a week, and lowers what is above it."""
    for name, unbound, bind in (("day", 1, 1), ("long", 0, 1), ("longer", 0, 0)):
        forget(path)
        b = both(path, whole(name))
        assert b.different is None
        assert (b.sent, b.relayed) == (1, unbound if path.kind == "unbound" else bind), (name, b)


@pytest.mark.parametrize("options", ({"dnssec": True}, {"rd": False}, {"rdtype": "DS"}), ids=("DO", "no RD", "DS"))
def test_left_to_the_resolver_before(path, options):
    forget(path)
    b = both(path, whole("www"), **options)
    if path.kind == "unbound" or options.get("rd", True):    # BIND refers to what it happens to know
        assert b.different is None
    assert (b.sent, b.left) == (0, {"QUESTION": 1}), b


def test_other_names_are_not_forwarded(path):
    b = both(path, "host1.lab.example")
    assert b.different is None
    assert (b.sent, b.left) == (0, {}), b


# -- what ends a rule ---------------------------------------------------------------------------------------------
COMMANDS = {
    "unbound": (("flush", whole("www")), ("flush_type", whole("www"), "A"), ("flush_zone", "example"), ("flush_zone", ZONE),
                ("set_option", "verbosity:", "1")),
    "bind": (("flushname", whole("www")), ("flushtree", "example"), ("flushtree", ZONE), ("flush",), ("querylog", "off")),
}


@pytest.mark.parametrize("number", range(5))
def test_withdrawn_when_the_command_returns(path, number):
    forget(path)
    both(path, whole("www"))
    assert path.daemon.explain(whole("www"), "A")["where"] == "kernel"
    path.server.control(*COMMANDS[path.kind][number])
    assert path.daemon.explain(whole("www"), "A")["where"] != "kernel"
    assert state(path)["zones"] == [ZONE]


@pytest.mark.parametrize("how", ("removed", "reloaded"))
def test_withdrawn_when_the_zone_is(path, how):
    """But BIND's rules stay where a reload changes nothing."""
    keeps = how == "reloaded" and path.kind == "bind"
    forget(path)
    both(path, whole("www"))
    assert path.daemon.explain(whole("www"), "A")["where"] == "kernel"
    if how == "removed":
        path.does.remove_forward()
    else:
        path.server.control("reload")
        path.server.control("status")      # Unbound acknowledges reload before it reloads
    assert (path.daemon.explain(whole("www"), "A")["where"] == "kernel") == keeps
    if how == "removed":
        wait_until(path.daemon.resolver_ready, SOON, "the resolver to be ready")
        assert state(path)["zones"] == []
        path.does.add_forward()
    wait_until(lambda: usable(path), SOON, "the zone to be forwarded again")


# -- many --------------------------------------------------------------------------------------------------------
def ask_at_once(path, names):
    """Each client gets the answer to its own question."""
    forget(path)
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


def test_many_names_at_once(path):
    names = [whole(f"host{i}") for i in range(MANY)]
    _, before, after = undisturbed(path, lambda: ask_at_once(path, names))
    assert (after["sent"] - before["sent"], after["relayed"] - before["relayed"]) == (MANY, MANY)
    assert sum(after["took"]["counts"].values()) - sum(before["took"]["counts"].values()) == MANY
