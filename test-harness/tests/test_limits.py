# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""ip-ratelimit with kernel answers: a client has one budget, whoever answers, and what is above it is dropped as Unbound alone drops
it. Each burst goes to Unbound alone as well."""

import re
import signal
import socket
import time
from contextlib import contextmanager
from itertools import count, product
from types import SimpleNamespace

import pytest
from conftest import kernel_path

from lab.burst import burst_in_a_second, sent
from lab.client import ask, query
from lab.cookies import cookie
from lab.network import CLIENT1, CLIENT1_MORE, REFERENCE, SERVICE
from lab.run import SOON, wait_until

LIMIT = 40
SENT = 8 * LIMIT
HOT = "www.lab.example"
SECRET = bytes.fromhex("e5e973e5a6b2a43f48e7dc849e37bfcf")
CLIENT_COOKIE = bytes.fromhex("2464c4abcf10c957")
LINES = [f"ip-ratelimit: {LIMIT}", "ip-ratelimit-factor: 0", "answer-cookie: yes", f'cookie-secret: "{SECRET.hex()}"']
HEATERS = [a for a in CLIENT1_MORE if ":" not in a][4:]      # the other addresses are for tests
SILENT = 0.2        # seconds without a reply that are taken for silence, where it is expected
WINDOW = 2          # seconds that backoff looks back
LATE = 0.3          # seconds that the authoritative server takes
fresh = (f"fresh{n}.nosuch.lab.example" for n in count())


@pytest.fixture(scope="module")
def pair(world):
    options = {"server": LINES, "threads": 2}
    with kernel_path(world, unbound_options=options) as path, world.reference(**options) as reference:
        yield SimpleNamespace(path=path, daemon=path.daemon, unbound=path.unbound, reference=reference, network=path.network,
                              world=world, both=(path.unbound, reference))


def heat(pair, name=HOT):
    """From many addresses, none of which comes near the limit."""
    def hot():
        for address in HEATERS:
            ask(pair.network.client1, SERVICE[4], name, local=address)
            ask(pair.network.client1, SERVICE[4], name, local=address, edns=True)
        return pair.daemon.explain(name)["where"] == "kernel"
    wait_until(hot, 10, f"{name} to be answered in the kernel")


@contextmanager
def options_set(pair, **options):
    """Sets options of both at run time. The kernel forgets all answers then."""
    former = {k: [s.control("get_option", k).strip() for s in pair.both] for k in (o.replace("_", "-") for o in options)}
    for name, value in options.items():
        for server in pair.both:
            server.control("set_option", f"{name.replace('_', '-')}:", str(value))
    heat(pair)
    try:
        yield
    finally:
        for name, values in former.items():
            for server, value in zip(pair.both, values):
                server.control("set_option", f"{name}:", value)
        heat(pair)


def address_of(pair, server, family=4):
    return (SERVICE if server is pair.unbound else REFERENCE)[family]


def limited(server):
    return server.stats()["total.num.queries_ip_ratelimited"]


def log_lines(server, local):
    return len(re.findall(rf"ip_ratelimit exceeded {re.escape(local)} \d+", server.program.log.read_text(errors="replace")))


def spend(pair, server, wires, local=CLIENT1[4], **options):
    """What became of a burst within a second: how many replies came, and how many queries the server says it has dropped; and of the
    kernel, by reason."""
    family = 6 if ":" in local else 4
    before, dropped, lines = pair.daemon.reasons(), limited(server), log_lines(server, local)
    done = burst_in_a_second(pair.network.client1, server, address_of(pair, server, family), wires, local=local, **options)
    after = pair.daemon.reasons()
    assert limited(server) - dropped == done.tries_sent - done.tries_replied
    return SimpleNamespace(replies=len(done.replies), kernel={k: n - before[k] for k, n in after.items()},
                           lines=(log_lines(server, local) - lines) / done.tries)


def test_status(pair):
    """It is no obstacle, and shown."""
    resolver, = pair.daemon.call({"cmd": "status"})["resolvers"]
    assert resolver["notes"] == []
    assert resolver["limits"] == {"queries": LIMIT, "with_cookie": 0, "slip": 0, "backoff": False}
    assert f"{LIMIT} queries a second from one address, any number with a valid cookie\n" in pair.daemon.ctl("status").stdout
    with options_set(pair, ip_ratelimit_factor=7, ip_ratelimit_backoff="yes", ip_ratelimit_cookie=90):
        resolver, = pair.daemon.call({"cmd": "status"})["resolvers"]
        assert resolver["limits"] == {"queries": LIMIT, "with_cookie": 90, "slip": 7, "backoff": True}


@pytest.mark.parametrize("family", [4, 6])
def test_kernel_answers_are_limited(pair, family):
    """The kernel answers up to the limit and drops the rest, but for the query that crosses it, which Unbound logs."""
    heat(pair)
    ours, own = (spend(pair, s, [query(HOT).to_wire()] * SENT, CLIENT1[family]) for s in pair.both)
    assert ours.replies == own.replies == LIMIT
    assert ours.lines == own.lines == 1
    assert ours.kernel["LIMITED"] > 0 and ours.kernel["ANSWERED"] > 0
    stats = pair.daemon.call({"cmd": "stats"})
    assert stats["resolvers"][0]["limited"] == stats["reasons"]["LIMITED"]


def test_misses_are_limited_before_they_wake_the_resolver(pair):
    heat(pair)
    received = pair.unbound.received()
    ours = spend(pair, pair.unbound, [query(next(fresh)).to_wire() for _ in range(SENT)])
    own = spend(pair, pair.reference, [query(next(fresh)).to_wire() for _ in range(SENT)])
    assert ours.replies == own.replies == LIMIT and ours.lines == own.lines
    assert ours.kernel["LIMITED"] > 0
    assert pair.unbound.received() - received < SENT


def test_one_budget_for_hits_and_misses(pair):
    heat(pair)
    def wires():
        return [query(HOT if n % 2 else next(fresh)).to_wire() for n in range(SENT)]
    ours, own = (spend(pair, s, wires()) for s in pair.both)
    assert ours.replies == own.replies == LIMIT
    assert 0 < ours.kernel["ANSWERED"] and ours.kernel["MISS"] > 0


def test_one_budget_for_type_any(pair):
    """No rule answers it, but the kernel counts it with the others, and drops what is above."""
    heat(pair)
    wires = [query(HOT, "ANY" if n % 2 else "A").to_wire() for n in range(SENT)]
    ours, own = (spend(pair, s, wires) for s in pair.both)
    assert ours.replies == own.replies == LIMIT and ours.lines == own.lines
    assert 0 < ours.kernel["TYPE_ANY"] <= LIMIT and ours.kernel["LIMITED"] > 0


def test_one_budget_for_what_the_kernel_does_not_read(pair):
    """Queries with CD set pass the kernel uncounted: Unbound counts them with the others."""
    heat(pair)
    wires = [query(HOT, cd=bool(n % 2)).to_wire() for n in range(SENT)]
    ours, own = (spend(pair, s, wires) for s in pair.both)
    assert ours.replies == own.replies == LIMIT


def test_clients_have_budgets_of_their_own(pair):
    heat(pair)
    for local in CLIENT1_MORE[:2]:
        assert spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT, local).replies == LIMIT


def test_below_the_limit_nothing_is_dropped(pair):
    heat(pair)
    wires = [query(HOT if n % 2 else next(fresh)).to_wire() for n in range(LIMIT)]
    for server in pair.both:
        done = spend(pair, server, wires)
        assert done.replies == LIMIT and done.lines == 0
        assert done.kernel["LIMITED"] == done.kernel["LIMIT_REACHED"] == 0


def test_explain_and_list(pair):
    """For as long as the second lasts, both say that the client is above its limit."""
    heat(pair)
    def seen():
        spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT)
        where = pair.daemon.explain(HOT, client=CLIENT1[4])
        listed = pair.unbound.control("ip_ratelimit_list")
        found = re.search(rf"^{re.escape(CLIENT1[4])} (\d+) limit {LIMIT}$", listed, re.M)
        return found and int(found[1]) == SENT and "limit" in where["text"]
    wait_until(seen, 10, "explain and ip_ratelimit_list to name the client")


def test_slip(pair):
    """Above the limit one in two comes through, by chance, and is answered by whoever can: the odds against what is asserted are a
    thousand million to one."""
    with options_set(pair, ip_ratelimit_factor=2):
        for server, name in product(pair.both, ((lambda: HOT), (lambda: next(fresh)))):
            slipped = spend(pair, server, [query(name()).to_wire() for _ in range(SENT)]).replies - LIMIT
            above = SENT - LIMIT
            assert above / 2 - 6 * (above / 4) ** 0.5 < slipped < above / 2 + 6 * (above / 4) ** 0.5
    with options_set(pair, ip_ratelimit_factor=1):
        for server in pair.both:
            wires = [query(HOT if n % 2 else next(fresh)).to_wire() for n in range(SENT)]
            assert spend(pair, server, wires).replies == SENT


def wires_with(sent):
    return [query(HOT, cookie=sent).to_wire()] * SENT


def test_cookies(pair):
    """A valid cookie has a limit of its own, and no slip; a forged one has none of this."""
    with options_set(pair, ip_ratelimit_cookie=3 * LIMIT, ip_ratelimit_factor=1):
        for server in pair.both:
            valid = cookie(SECRET, CLIENT_COOKIE, CLIENT1[4], time.time())
            assert spend(pair, server, wires_with(valid)).replies == 3 * LIMIT
    with options_set(pair, ip_ratelimit_cookie=0):
        for server in pair.both:
            valid = cookie(SECRET, CLIENT_COOKIE, CLIENT1[4], time.time())
            assert spend(pair, server, wires_with(valid)).replies == SENT
            assert spend(pair, server, wires_with(CLIENT_COOKIE)).replies == LIMIT
            assert spend(pair, server, wires_with(valid[:-1] + bytes([valid[-1] ^ 1]))).replies == LIMIT


def test_backoff(pair):
    """A client that has been above the limit is dropped for two more seconds."""
    with options_set(pair, ip_ratelimit_backoff="yes"):
        for server in pair.both:
            spend(pair, server, [query(HOT).to_wire()] * SENT, CLIENT1_MORE[2])
            over, asked = int(time.time()), 0

            def answered():
                nonlocal asked
                asked += 1
                return ask(pair.network.client1, address_of(pair, server), HOT, local=CLIENT1_MORE[2], timeout=SILENT)
            wait_until(answered, 10, "the client to be answered again")
            assert int(time.time()) - over >= WINDOW and asked > 1


def tcp_reply(pair, server, wire):
    with pair.network.client1.entered():
        s = socket.create_connection((address_of(pair, server), 53), timeout=SOON, source_address=(CLIENT1_MORE[3], 0))
    with s:
        s.sendall(len(wire).to_bytes(2, "big") + wire)
        s.settimeout(SILENT)
        try:
            return s.recv(2)
        except TimeoutError:
            return b""


def test_tcp_is_counted_too(pair):
    """Backoff makes sure that the query by TCP still falls into the window."""
    with options_set(pair, ip_ratelimit_backoff="yes"):
        for server in pair.both:
            assert tcp_reply(pair, server, query(HOT).to_wire())
            spend(pair, server, [query(HOT).to_wire()] * SENT, CLIENT1_MORE[3])
            assert not tcp_reply(pair, server, query(HOT).to_wire())


def test_set_option(pair):
    with options_set(pair, ip_ratelimit=2 * LIMIT):
        assert spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT).replies == 2 * LIMIT
    with options_set(pair, ip_ratelimit=0):
        done = spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT)
        assert done.replies == done.kernel["ANSWERED"] == SENT
    assert spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT).replies == LIMIT


def test_statistics(pair):
    """What grows in Unbound alone grows as much with kernel answers."""
    def growth(server):
        before = server.counters()
        spend(pair, server, [query(HOT).to_wire()] * SENT)
        return {k: n - before[k] for k, n in server.counters().items() if k.startswith("total.num") and n != before[k]}
    heat(pair)
    ours, own = (growth(server) for server in pair.both)
    bursts = own["total.num.queries"] / SENT
    assert {k: n * bursts * SENT / ours["total.num.queries"] for k, n in ours.items()} == own


def test_parked_queries_are_counted_once(pair):
    """They wait for an authoritative server that is slow: each is counted when it comes, and not when it goes on."""
    ask(pair.network.client1, SERVICE[4], "lab.example", "SOA", local=HEATERS[0])
    pair.network.poll()
    pair.world.relay.delay = LATE
    try:
        for round_ in range(3):
            name, parked = f"host{100 + round_}.lab.example", pair.daemon.reasons()["PARKED"]

            def under_way():
                wait_until(lambda: pair.world.relay.count(f"{name}."), SOON, f"the authoritative server to be asked for {name}")
            done = spend(pair, pair.unbound, [query(name).to_wire()] * LIMIT, ready=under_way)
            assert done.lines == 0 and done.kernel["LIMITED"] == 0
            if pair.daemon.reasons()["PARKED"] > parked:
                return
    finally:
        pair.world.relay.behave()
        pair.network.poll(on=False)
    raise AssertionError("no query was parked")


def test_without_hydnsd(pair):
    """The kernel goes on answering, and limiting. hydnsd tells Unbound of it when it is back."""
    heat(pair)
    before = pair.unbound.stats()["total.num.queries"]
    pair.daemon.stop(signal.SIGKILL)
    with sent(pair.network.client1, SERVICE[4], [query(HOT).to_wire()] * SENT, local=CLIENT1[4]) as queries:
        pair.daemon.start()
        wait_until(pair.daemon.resolver_ready, 10, "Unbound's module to register with hydnsd")
        wait_until(lambda: pair.unbound.stats()["total.num.queries"] >= before + SENT, 10, "Unbound to know of all queries")
        assert queries.read() == LIMIT
    heat(pair)
    assert spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT).replies == LIMIT


def test_reload(pair):
    """With another limit, and with none."""
    line = f"ip-ratelimit: {LIMIT}"
    for new, expected in ((f"ip-ratelimit: {LIMIT // 2}", LIMIT // 2), ("ip-ratelimit: 0", SENT)):
        for server in pair.both:
            server.change(line, new)
        heat(pair)
        for server in pair.both:
            assert spend(pair, server, [query(HOT).to_wire()] * SENT).replies == expected
        line = new
    pair.unbound.control("set_option", "ip-ratelimit:", str(LIMIT))
    notes = [n for r in pair.daemon.call({"cmd": "status"})["resolvers"] for n in r["notes"]]
    assert any("ip-ratelimit" in n for n in notes)
    for server in pair.both:
        server.change(line, f"ip-ratelimit: {LIMIT}")
    heat(pair)
    assert spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT).replies == LIMIT


def test_logged_queries(pair):
    """A resolver that logs its clients' queries gets those above the limit as well, to log them."""
    lines = "hydns:\n", "hydns:\n    hydns-query-log: yes\n"
    server = "answer-cookie: yes", "answer-cookie: yes\n    log-queries: yes"
    for old, new in ((lines, server), (lines[::-1], server[::-1])):
        pair.unbound.change(*new)
        pair.unbound.change(*old)
        heat(pair)
        done = spend(pair, pair.unbound, [query(HOT).to_wire()] * SENT)
        assert done.replies == LIMIT and done.lines == 1
        if old == lines:
            assert done.kernel["LIMITED"] == 0 and done.kernel["LIMIT_REACHED"] > 0 and done.kernel["ANSWERED"] > 0
