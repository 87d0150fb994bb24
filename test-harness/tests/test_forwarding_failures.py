# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Forwarded queries whose upstream servers fail, lie or are slow: clients get what the resolver gives."""

import itertools
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import dns.flags
import dns.message
import dns.rcode
import pytest
from forwarding_paths import KINDS, counts, forwarding_path, is_resolvers, state, undisturbed, usable

from lab import parking
from lab.client import ask, query
from lab.forwarding import ZONE, Upstream, answer
from lab.network import SERVICE
from lab.run import SOON, wait_until

FIRST, SECOND = "10.53.6.61", "fd53:6::62"
NUMBER = iter(range(10000))


def new_name():
    """One that nobody has asked for."""
    return f"n{next(NUMBER)}.{ZONE}"


@pytest.fixture(scope="module")
def first(world):
    with Upstream(world.network.authoritative, FIRST) as u:
        yield u


@pytest.fixture(scope="module")
def second(world):
    with Upstream(world.network.authoritative, SECOND) as u:
        yield u


@pytest.fixture(scope="module", params=KINDS)
def one(world, first, request):
    """With one upstream server."""
    with forwarding_path(world, request.param, FIRST) as p:
        yield p


@pytest.fixture
def path(one, first):
    behave(first)
    ask(one.network.client1, SERVICE[4], new_name())     # so that it is up
    wait_until(lambda: usable(one), SOON, "the upstream server to be usable")
    first.asked.clear()
    return one


def behave(*servers):
    for s in servers:
        s.delay, s.reply = 0.0, lambda q: answer(q, (300, "A", "192.0.2.7"))


def slow(path, server, seconds):
    """The server needs so long, and hydnsd knows."""
    server.delay = seconds

    def known():
        ask(path.network.client1, SERVICE[4], new_name())
        u = state(path)["upstreams"][0]
        return u["usable"] and u["timeout_ms"] > 1500 * seconds
    wait_until(known, 2 * SOON, "the server to be known as slow")
    server.asked.clear()


# -- what the upstream server may do ------------------------------------------------------------------------------
FALSE = {
    "SERVFAIL": (lambda q: answer(q, rcode=dns.rcode.SERVFAIL), "RCODE"),
    "REFUSED": (lambda q: answer(q, rcode=dns.rcode.REFUSED), "RCODE"),
    "TC": (lambda q: answer(q, flags=dns.flags.TC | dns.flags.RA), "TRUNCATED"),
    "referral": (lambda q: answer(q, authority=[(ZONE, 300, "NS", "ns.elsewhere.example.")]), "REFERRAL"),
    "negative without SOA": (answer, "REFERRAL"),
    "lame": (lambda q: answer(q, (300, "A", "192.0.2.7"), flags=0), "REFERRAL"),
    "other name": (lambda q: answer(q, ("other." + ZONE, 300, "A", "192.0.2.66")), "RECORDS"),
    "cut": (lambda q: answer(q, (300, "A", "192.0.2.7"))[:-3], "MALFORMED"),
    "trailing octets": (lambda q: answer(q, (300, "A", "192.0.2.7")) + b"12345", "MALFORMED"),
}


@pytest.mark.parametrize("kind", FALSE)
def test_a_false_answer_is_the_resolvers(path, first, kind):
    """The client gets what the resolver makes of a good one that it gets when it asks itself."""
    reply, why = FALSE[kind]
    first.reply = lambda q: answer(q, (300, "A", "192.0.2.7")) if q.ednsflags & dns.flags.DO else reply(q)

    def asked():
        first.asked.clear()
        return ask(path.network.client1, SERVICE[4], new_name())
    got, before, after = undisturbed(path, asked)
    assert [str(r) for rrset in got.answer for r in rrset] == ["192.0.2.7"]
    assert (after["relayed"], after["not_relayed"][why]) == (before["relayed"], before["not_relayed"][why] + 1), after
    assert [is_resolvers(a.wire) for a in first.asked] == [False, True]


SOA = "ns.forwarded.example. root.forwarded.example. 1 3600 900 604800 120"
SHAPES = {
    "TTLs that differ": lambda q: answer(q, (300, "A", "192.0.2.7"), (200, "A", "192.0.2.8"), (250, "A", "192.0.2.9")),
    "an alias with another TTL": lambda q: answer(q, (300, "CNAME", f"t.{ZONE}"), (f"t.{ZONE}", 100, "A", "192.0.2.7")),
    "as many addresses as a rule has": lambda q: answer(q, (300, "A", *(f"192.0.2.{i}" for i in range(32)))),
    "a SOA's TTL above its minimum": lambda q: answer(q, rcode=dns.rcode.NXDOMAIN, authority=[(ZONE, 300, "SOA", SOA)]),
    "a SOA's TTL below its minimum": lambda q: answer(q, authority=[(ZONE, 100, "SOA", SOA)]),
    "a positive answer with an authority section":
        lambda q: answer(q, (300, "A", "192.0.2.7"), authority=[(ZONE, 300, "NS", f"ns.{ZONE}")]),
}


def records(reply):
    """Those of the sections but the additional one."""
    return [[(rrset.name.to_text(), rrset.rdtype, sorted(str(r) for r in rrset)) for rrset in section]
            for section in (reply.answer, reply.authority)]


def ttls(reply):
    return [rrset.ttl for rrset in (*reply.answer, *reply.authority)]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_same_by_either_way(path, first, shape):
    """A query with DO is the resolver's: it gets the same records, with the same TTLs."""
    def reply(q):
        if q.question[0].name.labels[0] == b"t":
            return answer(q, (100, "A", "192.0.2.7"))    # BIND asks for an alias's target again
        return SHAPES[shape](q)
    first.reply = reply

    def asked():
        name = new_name()
        return name, ask(path.network.client1, SERVICE[4], name, edns=True)
    (name, kernels), before, after = undisturbed(path, asked)
    assert after["relayed"] == before["relayed"] + 1
    path.does.forget()
    theirs = ask(path.network.client1, SERVICE[4], name, dnssec=True)
    assert counts(path)["relayed"] == before["relayed"] + 1
    assert records(kernels) == records(theirs)
    assert all(abs(a - b) <= 1 for a, b in zip(ttls(kernels), ttls(theirs))), (ttls(kernels), ttls(theirs))


def test_letters_of_names(path, first):
    """BIND compresses a name only where its letters are the same, which is left to it. Clients of both see the server's letters."""
    target = f"WwW.{ZONE}"
    first.reply = lambda q: answer(q, (300, "CNAME", target), (target, 300, "A", "192.0.2.7"))
    got, before, after = undisturbed(path, lambda: ask(path.network.client1, SERVICE[4], new_name()))
    assert target in got.to_text(), got
    left = after["not_relayed"]["LETTERS"] - before["not_relayed"]["LETTERS"]
    assert (after["relayed"] - before["relayed"], left) == ((1, 0) if path.kind == "unbound" else (0, 1)), after


def test_silence_is_the_resolvers(path, first):
    before = counts(path)
    first.reply = lambda q: answer(q, (300, "A", "192.0.2.7")) if q.ednsflags & dns.flags.DO else None
    got = ask(path.network.client1, SERVICE[4], new_name())
    assert got and got.answer
    assert counts(path)["timed_out"] == before["timed_out"] + 1


def test_a_silent_server_is_left_alone(path, first):
    """After some failures the resolver alone asks it; later it is tried again, and is used once it answers."""
    first.reply = lambda q: answer(q, (300, "A", "192.0.2.7")) if q.ednsflags & dns.flags.DO else None
    for _ in range(4):
        ask(path.network.client1, SERVICE[4], new_name())
    u = state(path)["upstreams"][0]
    assert not u["usable"] and "did not answer" in u["why"]
    before = counts(path)
    ask(path.network.client1, SERVICE[4], new_name())
    after = counts(path)
    assert (after["sent"], after["left"]["UPSTREAM"]) == (before["sent"], before["left"]["UPSTREAM"] + 1)
    behave(first)

    def relayed():
        ask(path.network.client1, SERVICE[4], new_name())
        return counts(path)["relayed"] > after["relayed"]
    wait_until(relayed, SOON, "the server to be used again")


def test_a_late_answer_is_dropped(path, first):
    """Its request has ended, and its port is free or another's. The next answer comes behind it."""
    given_up = threading.Event()

    def reply(q):
        if not q.ednsflags & dns.flags.DO:
            given_up.wait(SOON)
        return answer(q, (300, "A", "192.0.2.7"))
    first.reply = reply
    before, answered = counts(path), first.answered
    with ThreadPoolExecutor(1) as pool:
        client = pool.submit(ask, path.network.client1, SERVICE[4], new_name(), timeout=SOON)
        wait_until(lambda: counts(path)["timed_out"] > before["timed_out"] and state(path)["open"] == 0, SOON, "the request to time out")
        given_up.set()
        assert client.result()
    behave(first)
    wait_until(lambda: first.answered - answered == len(first.asked), SOON, "the late answer to leave")
    assert ask(path.network.client1, SERVICE[4], new_name()).answer
    assert counts(path)["relayed"] == before["relayed"] + 1


def test_an_answer_counts_once(path, first):
    """The second copy is nobody's."""
    first.reply = lambda q: [answer(q, (300, "A", "192.0.2.7")), answer(q, (300, "A", "192.0.2.8"))]

    def asked():
        name = new_name()
        return name, ask(path.network.client1, SERVICE[4], name)
    (name, got), before, after = undisturbed(path, asked)
    assert str(got.answer[0][0]) == "192.0.2.7"
    assert str(ask(path.network.client1, SERVICE[4], name).answer[0][0]) == "192.0.2.7"
    assert after["relayed"] == counts(path)["relayed"] == before["relayed"] + 1


def test_wrong_letters_are_dropped(path, first):
    """The client waits for the true answer, which comes behind."""
    def reply(q):
        if q.ednsflags & dns.flags.DO:
            return answer(q, (300, "A", "192.0.2.7"))
        true = answer(q, (300, "A", "192.0.2.7"))
        false = bytearray(answer(q, (300, "A", "192.0.2.66")))
        letter = next(i for i in range(13, len(false)) if chr(false[i]).isalpha())
        false[letter] ^= 0x20
        return [bytes(false), true]
    first.reply = reply
    got, before, after = undisturbed(path, lambda: ask(path.network.client1, SERVICE[4], new_name()))
    assert str(got.answer[0][0]) == "192.0.2.7"
    assert (after["mismatched"], after["relayed"]) == (before["mismatched"] + 1, before["relayed"] + 1)


# -- many clients --------------------------------------------------------------------------------------------------
def sockets(path, n):
    with path.network.client1.entered():
        found = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(n)]
    for s in found:
        s.settimeout(SOON)
        s.connect((SERVICE[4], 53))
    return found


def open_requests(path, server, n):
    """Sockets of n clients, whose requests the server, now slow, has not yet answered."""
    slow(path, server, 0.1)
    server.delay = 0.3
    clients = sockets(path, n)
    for s in clients:
        s.send(query(new_name()).to_wire())
    wait_until(lambda: state(path)["open"] == n, SOON, "the requests to be open")
    return clients


def test_one_question_is_open_once(path, first):
    """All who ask meanwhile get the one answer."""
    slow(path, first, 0.2)
    before, name, clients = counts(path), new_name(), sockets(path, 50)
    for s in clients:
        s.send(query(name).to_wire())
    pending = path.daemon.call({"cmd": "pending"})["questions"]
    for s in clients:
        assert str(dns.message.from_wire(s.recv(512)).answer[0][0]) == "192.0.2.7"
        s.close()
    after = counts(path)
    assert (after["sent"] - before["sent"], after["joined"] - before["joined"]) == (1, 49), after
    assert len(first.asked) == 1
    assert [(q["name"], q["upstream"]) for q in pending] == [(name, f"{FIRST}:53")], pending


def test_a_flush_while_a_request_is_open(path, first):
    """What comes back may be older than the flush: it is not given, and the resolver asks anew."""
    slow(path, first, 0.3)
    before, name, (client,) = counts(path), new_name(), sockets(path, 1)
    client.send(query(name).to_wire())
    wait_until(lambda: state(path)["open"] == 1, SOON, "the request to be open")
    path.does.flush(name)
    assert str(dns.message.from_wire(client.recv(512)).answer[0][0]) == "192.0.2.7"
    client.close()
    after = counts(path)
    assert (after["rejected"], after["relayed"]) == (before["rejected"] + 1, before["relayed"]), after
    assert sum(is_resolvers(a.wire) for a in first.asked) == 1


def test_forward_remove_while_a_request_is_open(path, first):
    slow(path, first, 0.3)
    before, (client,) = counts(path), sockets(path, 1)
    client.send(query(new_name()).to_wire())
    wait_until(lambda: state(path)["open"] == 1, SOON, "the request to be open")
    path.does.remove_forward()
    try:
        reply = dns.message.from_wire(client.recv(512))
        assert reply.rcode() != dns.rcode.NOERROR, "it is an answer of a server that is no longer to be asked"
        assert counts(path)["relayed"] in (before["relayed"], 0), "a new session of BIND's plugin begins with 0"
    finally:
        client.close()
        path.does.add_forward()
        wait_until(lambda: usable(path), SOON, "the zone to be forwarded again")


def test_hydnsd_is_killed(path, first):
    """Queries go to the resolver until the next hydnsd knows the zones; no port and no question stays taken."""
    clients = open_requests(path, first, 20)
    path.daemon.stop(9)
    for s in clients:
        s.close()
    first.delay = 0.0
    parking.wait_stale(path.daemon)
    assert ask(path.network.client1, SERVICE[4], new_name()).answer
    path.daemon.start()
    wait_until(lambda: path.daemon.resolver_ready() and usable(path), SOON, "the zone to be forwarded again")
    before = counts(path)["relayed"]
    assert ask(path.network.client1, SERVICE[4], new_name()).answer
    assert counts(path)["relayed"] == before + 1
    assert state(path)["open"] == 0


def test_the_resolver_is_killed(path, first):
    """What is open ends, and nothing is forwarded until the next one has told its zones."""
    clients = open_requests(path, first, 20)
    path.server.stop(9)
    wait_until(lambda: not path.daemon.resolver_ready(), SOON, "hydnsd to see its end")
    for s in clients:
        s.close()
    first.delay = 0.0
    path.server.start()
    wait_until(lambda: usable(path), SOON, "the zone to be forwarded again")
    assert state(path)["open"] == 0
    before = counts(path)["relayed"]
    assert ask(path.network.client1, SERVICE[4], new_name()).answer
    assert counts(path)["relayed"] == before + 1


def test_reload(path):
    """The new configuration's zones count, and no request of the former one."""
    name = new_name()
    ask(path.network.client1, SERVICE[4], name)
    path.does.reload()
    wait_until(lambda: path.daemon.resolver_ready() and usable(path), SOON, "the zone to be forwarded again")
    assert ask(path.network.client1, SERVICE[4], name).answer


# -- several servers ----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def two(world, one, first, second):
    """Not at the same time as one, which ends first."""
    one.server.stop()
    one.daemon.stop()
    with forwarding_path(world, one.kind, FIRST, SECOND) as p:
        yield p


@pytest.fixture
def pair(two, first, second):
    behave(first, second)

    def both_used():
        ask(two.network.client1, SERVICE[4], new_name())
        return usable(two)
    wait_until(both_used, SOON, "both servers to be usable")
    first.asked.clear()
    second.asked.clear()
    return two


def test_both_are_asked(pair, first, second):
    """Each query goes to one of them, evenly: of 64 a fair coin gives 13 or fewer to one of them once in 400,000."""
    for _ in range(64):
        assert ask(pair.network.client1, SERVICE[4], new_name()).answer
    assert min(len(first.asked), len(second.asked)) > 13 and len(first.asked) + len(second.asked) == 64


def test_one_that_is_silent(pair, first, second):
    """Every client is answered, and soon nobody waits for the silent one. Of 32 a fair coin sends it fewer than the three that it takes
    once in 8 million times."""
    first.reply = lambda q: None
    for _ in range(32):
        assert ask(pair.network.client1, SERVICE[4], new_name()).answer
    assert [u["usable"] for u in state(pair)["upstreams"]] == [False, True]
    first.asked.clear()
    begun = time.monotonic()
    for _ in range(8):
        assert ask(pair.network.client1, SERVICE[4], new_name()).answer
    if time.monotonic() - begun < 0.5:   # else it is time to try it again
        assert not [a for a in first.asked if not is_resolvers(a.wire)]


def test_another_is_asked(pair, first, second):
    """When one does not answer in time, the kernel asks the other: the resolver sees none of the queries. Of 24 a fair coin sends none to
    the silent one once in 16 million times."""
    first.reply = lambda q: None
    before = counts(pair)
    for _ in range(24):
        assert ask(pair.network.client1, SERVICE[4], new_name()).answer
    after = counts(pair)
    assert after["again"] - before["again"] == after["timed_out"] - before["timed_out"] > 0, after
    assert after["relayed"] - before["relayed"] == 24 and not [a for a in second.asked if is_resolvers(a.wire)], after
    assert set(first.names().values()) == {1}, "it was asked again what it had not answered"


def test_all_wait_for_another(pair, first, second):
    """Whoever asks the same question meanwhile gets the other server's answer, too. The one that is asked first is silent. A moment when
    the other one is late as well does not count."""
    def tried():
        requests = itertools.count()

        def after_the_first(q):
            return answer(q, (300, "A", "192.0.2.7")) if next(requests) else None
        second.reply = first.reply = after_the_first
        first.asked.clear()
        second.asked.clear()
        slow, name, before = sockets(pair, 8), new_name(), counts(pair)
        for s in slow:
            s.send(query(name).to_wire())
        for s in slow:
            assert str(dns.message.from_wire(s.recv(512)).answer[0][0]) == "192.0.2.7"
            s.close()
        after = counts(pair)
        return (before, after) if after["timed_out"] == before["timed_out"] + 1 else None
    before, after = wait_until(tried, SOON, "one server alone to be late")
    assert after["again"] == before["again"] + 1 and after["relayed"] == before["relayed"] + 1, after
    assert not [a for a in (*first.asked, *second.asked) if is_resolvers(a.wire)]


def test_nobody_answers(pair, first, second):
    """Then the resolver asks."""
    def only_the_resolver(q):
        return answer(q, (300, "A", "192.0.2.7")) if q.ednsflags & dns.flags.DO else None
    first.reply = second.reply = only_the_resolver
    before = counts(pair)
    assert ask(pair.network.client1, SERVICE[4], new_name()).answer
    after = counts(pair)
    assert (after["again"] - before["again"], after["timed_out"] - before["timed_out"]) == (1, 2), after
    assert after["relayed"] == before["relayed"]


def test_a_slow_one_is_spared(pair, first, second):
    first.delay = 0.5
    for _ in range(12):
        assert ask(pair.network.client1, SERVICE[4], new_name()).answer
    assert len([a for a in second.asked if not is_resolvers(a.wire)]) >= 6
