# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Queries for a question whose resolution is under way wait in the kernel, and are answered with the first one's answer, or reach
the resolver when it has none to offer: no client goes without what the resolver alone would have given it."""

import json
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import dns.message
import dns.rcode
import dns.rrset
import pytest
from conftest import bind_path, kernel_path

from lab import parking
from lab.client import ask
from lab.crowd import gather
from lab.links import addresses_again, down
from lab.network import LINKS, SERVICE
from lab.relay import everything
from lab.run import SOON, wait_until
from lab.servers import EVERY_CLIENT_WAITS

CLIENTS, SECONDS = 2000, 0.1
SOCKET = 250             # queries that the buffer of a resolver's socket has room for
LATE = 0.2               # seconds that the authoritative server takes; resolvers ask an unknown one again after more

FLUSH = {"unbound": "flush", "bind": "flushname"}


@pytest.fixture(scope="module", params=FLUSH)
def path(world, request):
    with kernel_path(world) if request.param == "unbound" else bind_path(world, options=(EVERY_CLIENT_WAITS, "allow-new-zones yes;")) as p:
        p.kind = request.param
        p.network.poll()
        yield p
        p.network.poll(on=False)


@pytest.fixture
def late(path):
    """While it lasts, the authoritative server is slow. The resolver knows who it is, but not how fast."""
    ask(path.network.client1, SERVICE[4], "lab.example", "SOA")
    path.server.forget_servers()
    path.world.relay.delay = LATE
    try:
        yield path
    finally:
        path.world.relay.behave()
        wait_until(lambda: waiting(path) == 0, SOON, "nothing to be parked any more")


def test_auto_follows_the_resolver(path):
    """Neither's own limit of waiting clients is large here: the least that `auto` means."""
    limits = path.daemon.call({"cmd": "status"})["resolvers"][0]["parking"]
    assert (limits["most"], limits["per_question"]) == (16384, 16384)


def pending(path):
    return path.daemon.call({"cmd": "pending"})["questions"]


def waiting(path):
    return sum(q["waiting"] for q in pending(path))


def parked(path):
    return path.daemon.reasons()["PARKED"]


def counts(path):
    return path.daemon.call({"cmd": "stats"})["resolvers"][0]["parking"]


def all_answered(path, questions, clients=CLIENTS, *, family=4, **options):
    """A crowd. Each client is answered, once. Only a query that found the resolver's socket full may be lost: all queries go there,
    as without hyDNS, until the resolver gets a processor and says what is under way."""
    overflows = path.network.resolver.udp_overflows()
    c = gather(path.world, path.network.client1, SERVICE[family], questions, clients, SECONDS, **options)
    overflows = path.network.resolver.udp_overflows() - overflows
    assert c.lost <= overflows and (c.twice, c.strays) == (0, []), (c, overflows, counts(path))
    return c


def crowd(path, name, rdtype="A", **options):
    """All of them are answered alike, many without the resolver; returns the data. How many is a matter of when the resolver gets a
    processor to say what is under way."""
    before = parked(path)
    c = all_answered(path, [(name, rdtype)], **options)
    assert len(c.answers) == 1, c.answers
    assert parked(path) - before > CLIENTS // 20, "hardly any of them was parked"
    return c.answers.pop()[1:]


@contextmanager
def gathering(path, name):
    """A crowd that asks meanwhile; all are answered."""
    with ThreadPoolExecutor(1) as pool:
        clients = pool.submit(crowd, path, name)
        yield
        clients.result(SOON)


def test_a_crowd_asks_the_authoritative_server_no_more_than_one_client(late):
    ask(late.network.client1, SERVICE[4], "host0.lab.example")
    late.server.forget_servers()
    before = counts(late)
    assert crowd(late, "host1.lab.example")[0] == dns.rcode.NOERROR
    assert late.world.relay.count("host1.lab.example.") <= late.world.relay.count("host0.lab.example.")
    after = counts(late)
    came, answered, passed = (after[name] - before[name] for name in ("parked", "answered", "passed"))
    assert came == answered + passed and answered > passed, (before, after)
    assert waits(after) - waits(before) == answered
    assert 0 < after["waited"]["sum_s"] - before["waited"]["sum_s"] < answered * SOON


def waits(counted):
    """Of how many queries the histogram has the wait."""
    return sum(counted["waited"]["counts"].values())


@pytest.mark.parametrize("options", ({"family": 6}, {"edns": True}, {"dnssec": True}), ids=str)
def test_kinds_of_queries(late, options):
    name = f"host{2 + sum(map(ord, str(options))) % 40}.lab.example"
    late.server.control(FLUSH[late.kind], name)
    assert crowd(late, name, **options)[0] == dns.rcode.NOERROR


def test_capital_letters(late):
    """named answers names with capital letters itself, one by one, so they do not wait for it."""
    name = "host44.lab.example"
    late.server.control(FLUSH[late.kind], name)
    if late.kind == "unbound":
        assert crowd(late, name, mixed_case=True)[0] == dns.rcode.NOERROR
        return
    before = parked(late)
    c = gather(late.world, late.network.client1, SERVICE[4], [(name, "A")], 100, SECONDS, mixed_case=True)
    assert (c.lost, c.twice, c.strays) == (0, 0, []), c
    assert parked(late) == before


def test_names_that_do_not_exist(late):
    assert crowd(late, "nobody.lab.example")[0] == dns.rcode.NXDOMAIN


def test_many_names_at_once(late):
    names = [(f"n{i}.wild.lab.example", "A") for i in range(100)]
    assert len(all_answered(late, names).answers) == len(names)


def test_an_answer_that_is_no_rule(late):
    """Its TTL is 0: each client gets one of its own from the resolver, if late."""
    late.world.relay.change = ttl_zero
    before = counts(late)
    c = gather(late.world, late.network.client1, SERVICE[4], [("host50.lab.example", "A")], 300, SECONDS)
    assert (c.lost, c.twice, c.strays) == (0, 0, []), c
    assert {rcode for _, rcode, _ in c.answers} == {dns.rcode.NOERROR}
    after = counts(late)
    assert waits(after) - waits(before) == after["answered"] - before["answered"] < after["replayed"] - before["replayed"]


def ttl_zero(wire):
    m = dns.message.from_wire(wire)
    for rrset in m.answer:
        rrset.ttl = 0
    return m.to_wire()


def test_pending_shows_what_waits(late):
    name = "host51.lab.example"
    with gathering(late, name):
        wait_until(lambda: any(q["name"].rstrip(".") == name and q["waiting"] > 10 for q in pending(late)), SOON,
                   f"{name} to be pending")
        assert name in late.daemon.ctl("pending").stdout
    assert not pending(late)


def test_no_more_questions_are_listed_than_asked_for(late):
    late.world.relay.delay = 0.5
    with gathering(late, "host60.lab.example"), gathering(late, "host61.lab.example"):
        for ask_one in (lambda: late.daemon.call({"cmd": "pending", "limit": 1}),
                        lambda: json.loads(late.daemon.ctl("pending", "--json", "-n", "1").stdout)):
            def of_two():
                reply = ask_one()
                return len(reply["questions"]) == 1 and reply["waiting"] > reply["questions"][0]["waiting"]
            wait_until(of_two, SOON, "one of two questions to be listed")


def test_a_flush_meanwhile(late):
    """What the kernel answers then is what the resolver would, whichever data its resolution has found."""
    name = "host52.lab.example"
    with gathering(late, name):
        wait_until(lambda: waiting(late) > 10, SOON, f"{name} to be pending")
        late.world.rewrite_lab({**late.world.zones.content, "host52": ["300 A 192.0.2.99"]})
        late.server.control(FLUSH[late.kind], name)
    kernel = ask(late.network.client1, SERVICE[4], name)
    resolver = ask(late.network.client1, SERVICE[4], name, cd=True)
    assert [r.to_text() for r in kernel.answer[0]] == [r.to_text() for r in resolver.answer[0]]


def test_the_end_of_a_resolution_is_offered(late):
    """No parked query has to reach the resolver before there is a rule. (named's answer from the resolution may be a second older
    than the one from its cache: then one passes. So one name of three will do.)"""
    def all_by_the_rule(name):
        before = counts(late)
        c = gather(late.world, late.network.client1, SERVICE[4], [(name, "A")], 100, SECONDS)
        assert (c.lost, c.twice, c.strays) == (0, 0, []), c
        after = counts(late)
        came, passed = (after[field] - before[field] for field in ("parked", "passed"))
        assert came > 50, "hardly any of them was parked"
        return passed == 0
    assert any(all_by_the_rule(f"ended{n}.wild.lab.example") for n in range(3))


@pytest.mark.parametrize("path", ("bind",), indirect=True)
def test_while_many_wait_the_first_client_parks_the_next(late):
    """named reads the second query of a crowd so late then that most of the crowd has passed."""
    late.world.relay.delay = 5 * LATE
    name, before = "next.wild.lab.example", late.server.received()

    def wait_read(count):
        wait_until(lambda: late.server.received() >= before + count, SOON, f"named to read {count} queries")
    with ThreadPoolExecutor(3) as pool:
        others = pool.submit(gather, late.world, late.network.client1, SERVICE[4],
                             [(f"many{n}.wild.lab.example", "A") for n in range(200)], 200, SECONDS)
        wait_read(200)
        first = pool.submit(ask, late.network.client1, SERVICE[4], name, timeout=SOON)
        wait_read(201)
        second = pool.submit(ask, late.network.client1, SERVICE[4], name, timeout=SOON)
        wait_until(lambda: any(q["name"].rstrip(".") == name for q in pending(late)), SOON, f"{name} to be pending")
        assert first.result(SOON).answer == second.result(SOON).answer and others.result(SOON).lost == 0


def test_a_flush_of_everything_before_the_answer_comes(late):
    """The answer that the resolution brings is older than the flush, and not what the resolver gives from then on."""
    name, commands = "host53.lab.example", {"unbound": ("flush_zone", "."), "bind": ("flush",)}
    flushed = []

    def former(wire):
        m = dns.message.from_wire(wire)
        if str(m.question[0].name) != f"{name}." or flushed:
            return wire
        late.server.control(*commands[late.kind])
        flushed.append(name)
        m.answer = [dns.rrset.from_text(f"{name}.", 300, "IN", "A", "192.0.2.77")]
        return m.to_wire()
    late.world.relay.change = former
    all_answered(late, [(name, "A")], clients=100)
    kernel, resolver = (ask(late.network.client1, SERVICE[4], name, cd=cd) for cd in (False, True))
    assert flushed and [r.to_text() for r in kernel.answer[0]] == [r.to_text() for r in resolver.answer[0]]


@pytest.mark.parametrize("path", ("bind",), indirect=True)
def test_a_zone_that_is_added_before_the_answer_comes(late):
    """named answers from the zone from then on, although its cache gets what the resolution brings."""
    name, added = "host54.lab.example", []
    (late.named.dir / "added.zone").write_text("$TTL 300\n@ SOA ns hostmaster 1 3600 900 604800 120\n@ NS ns\nns A 192.0.2.53\n"
                                               "@ A 192.0.2.88\n")

    def add_first(wire):
        if not added and str(dns.message.from_wire(wire).question[0].name) == f"{name}.":
            late.server.control("addzone", name, '{ type primary; file "added.zone"; };')
            added.append(name)
        return wire
    late.world.relay.change = add_first
    try:
        all_answered(late, [(name, "A")], clients=100)
        got = [ask(late.network.client1, SERVICE[4], name, cd=cd).answer[0][0].to_text() for cd in (False, True)]
        assert added and got == ["192.0.2.88"] * 2
    finally:
        late.server.control("delzone", name)


# --- ends ---------------------------------------------------------------------------------------------------
ENDS = {
    "hydnsd killed": lambda path: path.daemon.stop(signal.SIGKILL),
    "hydnsd stopped": lambda path: path.daemon.stop(),
    "hydnsd upgraded": lambda path: path.daemon.stop(signal.SIGUSR2),
    "resolver killed": lambda path: path.server.stop(signal.SIGKILL),
    "link down and up": lambda path: link_down_and_up(path),
}


def link_down_and_up(path):
    down(path.network.resolver, LINKS[0])
    path.network.resolver.link_state(LINKS[0], up=True)
    addresses_again(path.network)


def test_a_reload_loses_none_that_is_parked(late):
    """Unbound answers nobody whose resolution a reload ends. Those that are parked go to the new configuration."""
    name, before, overflows = "host99.lab.example", late.daemon.reasons(), late.network.resolver.udp_overflows()

    def came(*reasons):
        return sum(late.daemon.reasons()[reason] - before[reason] for reason in reasons)
    late.world.relay.loses = everything
    with ThreadPoolExecutor(1) as pool:
        clients = pool.submit(gather, late.world, late.network.client1, SERVICE[4], [(name, "A")], CLIENTS, SECONDS, timeout=20)
        wait_until(lambda: came("PARKED", "MISS") >= CLIENTS, SOON, "all clients to have asked")
        left = CLIENTS - came("PARKED")
        late.server.control("reload")
        late.world.relay.behave()
        c = clients.result(SOON)
    overflows = late.network.resolver.udp_overflows() - overflows
    assert left < CLIENTS and c.lost <= left + overflows and (c.twice, c.strays) == (0, []), (c, left, overflows, counts(late))


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_when_somebody_ends(late, end):
    """Clients that are lost are those that waited, at most. What comes afterwards is answered, and nothing is parked for ever."""
    name = f"host{100 + list(ENDS).index(end)}.lab.example"
    with ThreadPoolExecutor(1) as pool:
        overflows = late.network.resolver.udp_overflows()
        clients = pool.submit(gather, late.world, late.network.client1, SERVICE[4], [(name, "A")], CLIENTS, SECONDS, timeout=3)
        wait_until(lambda: waiting(late) > 10, SOON, f"{name} to be pending")
        ENDS[end](late)
        c = clients.result(SOON)
        overflows = late.network.resolver.udp_overflows() - overflows
    assert (c.twice, c.strays) == (0, []), c
    for server in (late.daemon, late.server):
        if not server.program.running():
            server.start()
    late.world.relay.behave()
    wait_until(late.daemon.resolver_ready, SOON, "the plugin to be back")
    wait_until(lambda: waiting(late) == 0, SOON, "nothing to be parked any more")
    late.world.relay.delay = LATE
    late.server.forget_servers()
    all_answered(late, [(f"{end[:3]}{len(end)}.lab.example", "A")])
    if end in ("hydnsd stopped", "hydnsd upgraded"):
        assert c.lost <= overflows, (c, overflows)


def test_a_hydnsd_that_stands_still_parks_nothing_new(late):
    before = parked(late)
    with late.daemon.stopped():
        parking.wait_stale(late.daemon)
        c = gather(late.world, late.network.client1, SERVICE[4], [("host110.lab.example", "A")], SOCKET, SECONDS)
    assert (c.lost, c.twice, c.strays) == (0, 0, []), c
    assert parked(late) == before
