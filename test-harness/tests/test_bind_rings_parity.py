# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""To named a query by a packet ring is what it is by a socket: who may ask and how often, what is counted, logged and added. The
first client's queries come by rings, the second one's by sockets; nothing is offered to the kernel."""

import re
import socket
import threading
from contextlib import ExitStack

import dns.edns
import dns.message
import dns.query
import dns.rcode
import dns.tsig
import dns.tsigkeyring
import pytest
from bind_rings import NAME, assert_answered, by_ring, counts, load, ring_path, wait_used

from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import CLIENT1, CLIENT2, DOORS, SERVICE
from lab.run import SOON, wait_until

COOKIE = bytes(range(8))
DOOR = DOORS["view"]
SECRET = "aHlkbnMgdGVzdCBrZXk="


@pytest.fixture
def pair(world):
    """Asks for both clients, and tells what rings have carried meanwhile."""
    with ExitStack() as stack:
        def start(**options):
            path = stack.enter_context(ring_path(world, **options))

            def both(wire, server=SERVICE[4], **how):
                clients = ((path.network.client1, CLIENT1), (path.network.client2, CLIENT2))
                family = 6 if ":" in server else 4
                return [by_ring(path, lambda ns=ns, a=a: exchange(ns, server, wire, local=a[family], **how)) for ns, a in clients]
            return path, both
        yield start


def growth(named, do):
    """What do() has added to named's counters of queries and responses."""
    before = named.stats()
    do()
    after = named.stats()
    return {name: n - before.get(name, 0) for name, n in after.items() if n != before.get(name, 0)}


def text_since(named, start):
    return named.program.log.read_bytes()[start:].decode()


# -- who may ask ----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("family", (4, 6))
def test_refused_at_one_address(pair, family):
    """*-on lists go by the address that was asked."""
    _, both = pair(listen=f"{DOOR};", options=[f"{gate}-on {{ {SERVICE[4]}; {SERVICE[6]}; }};" for gate in
                                               ("allow-query", "allow-query-cache", "allow-recursion")])
    wire = query(NAME).to_wire()
    (ring, took), (sock, _) = both(wire, SERVICE[family])
    assert took == (1, 1, 0) and difference(ring, sock) is None
    (ring, _), (sock, _) = both(wire, DOOR)
    assert dns.message.from_wire(ring).rcode() == dns.rcode.REFUSED and difference(ring, sock) is None


def test_refused_client(pair):
    """The kernel leaves whom it may not answer to the stack."""
    path, both = pair(clients=f"!{CLIENT1[4]}; 10.53.0.0/16; fd53::/16;")
    (ring, took), (sock, _) = both(query(NAME).to_wire())
    assert dns.message.from_wire(ring).rcode() == dns.rcode.REFUSED
    assert dns.message.from_wire(sock).rcode() == dns.rcode.NOERROR
    assert took == (0, 0, 0)
    assert growth(path.named, lambda: ask(path.network.client1, SERVICE[4], NAME, local=CLIENT1[4]))["RecQryRej"] == 1


def test_blackhole(pair):
    _, both = pair(options=(f"blackhole {{ {CLIENT1[4]}; }};",))
    (ring, _), (sock, _) = both(query(NAME).to_wire(), timeout=0.5)
    assert ring is None and sock is not None


def test_rate_limit(pair):
    """A client without a cookie is counted: some of its queries have no answer, and named says how many."""
    path, _ = pair(options=("rate-limit { responses-per-second 5; slip 0; };",))
    before, dropped = counts(path), path.named.stats().get("RateDropped", 0)
    with path.network.client1.entered():
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with s:
        for _ in range(60):
            s.sendto(query(NAME).to_wire(), (SERVICE[4], 53))

        def handled():
            sent = counts(path)["sent"] - before["sent"]
            return sent < 60 and sent + path.named.stats().get("RateDropped", 0) - dropped == 60
        wait_until(handled, SOON, "each query to be answered by the ring or dropped")
    assert counts(path)["received"] - before["received"] == 60


# -- what is in queries and responses -----------------------------------------------------------------------------------------
@pytest.mark.parametrize("required", ("no", "yes"))
def test_cookie(pair, required):
    """The server cookie is of the client's address, so that the next query with it is no longer refused."""
    path, both = pair(options=(f"require-server-cookie {required};",))
    replies = both(query(NAME, cookie=COOKIE).to_wire())
    assert [took[0] for _, took in replies] == [1, 0]
    first = [dns.message.from_wire(wire) for wire, _ in replies]
    assert {r.rcode() for r in first} == {dns.rcode.NOERROR if required == "no" else dns.rcode.BADCOOKIE}
    full = bytes(first[0].options[0].to_wire())
    assert full[:8] == COOKIE and len(full) == 24
    again, took = by_ring(path, lambda: ask(path.network.client1, SERVICE[4], NAME, local=CLIENT1[4], cookie=full))
    assert again.rcode() == dns.rcode.NOERROR and again.answer and took == (1, 1, 0)


def test_padding(pair):
    """For clients with a valid cookie."""
    path, _ = pair(options=("response-padding { any; } block-size 128;",))
    full = bytes(ask(path.network.client1, SERVICE[4], NAME, cookie=COOKIE).options[0].to_wire())
    wire = query(NAME, cookie=full)
    wire.use_edns(0, payload=1232, options=[dns.edns.GenericOption(10, full), dns.edns.GenericOption(12, b"")])
    reply, took = by_ring(path, lambda: exchange(path.network.client1, SERVICE[4], wire.to_wire()))
    assert len(reply) % 128 == 0 and took[1] == took[0]


def test_signed_queries(pair):
    """TSIG: such queries take sockets, and named verifies and signs as ever."""
    path, _ = pair()
    q = query(NAME)
    q.use_tsig(dns.tsigkeyring.from_text({"rndc.": SECRET}), algorithm=dns.tsig.HMAC_SHA256)

    def exchange_signed():
        with path.network.client1.entered():
            return dns.query.udp(q, SERVICE[4], timeout=5)
    reply, took = by_ring(path, exchange_signed)
    assert reply.had_tsig and reply.answer and took == (0, 0, 0)


def test_response_longer_than_the_mtu(world, pair):
    """It leaves by the socket, in fragments."""
    zone = 'type primary; file "long.db";'
    (world.run.dir / "named").mkdir(exist_ok=True)
    (world.run.dir / "named" / "long.db").write_text(
        "@ 300 SOA . . 1 1 1 1 1\n@ 300 NS @\n@ 300 A 192.0.2.1\n" + "".join(f'l 300 TXT "{i:0200}"\n' for i in range(10)))
    _, both = pair(zones={"long.example": zone}, options=("edns-udp-size 4096;", "max-udp-size 4096;",
                                                             "rrset-order { order none; };"))
    (ring, took), (sock, _) = both(query("l.long.example", "TXT", edns=True, payload=4096).to_wire())
    assert len(ring) > 2000 and took == (1, 0, 1)
    assert difference(ring, sock) is None


def test_proxy_protocol(pair):
    """Queries with PROXY headers, and those that lack one where they must have it."""
    path, both = pair(options=(f"listen-on proxy plain {{ {DOOR}; }};", "allow-proxy { any; };"))
    plain = query(NAME).to_wire()
    header = (b"\r\n\r\n\0\r\nQUIT\n\x21\x12\0\x0c" + bytes(map(int, CLIENT2[4].split("."))) +
              bytes(map(int, DOOR.split("."))) + (4000).to_bytes(2, "big") + (53).to_bytes(2, "big"))
    for reply, took in both(header + plain, DOOR):
        assert dns.message.from_wire(reply).answer and took == (0, 0, 0)
    assert [reply for reply, _ in both(plain, DOOR, timeout=0.5)] == [None, None]
    assert both(plain)[0][1] == (1, 1, 0)


# -- what is counted and logged -------------------------------------------------------------------------------------------------
def test_counters(pair):
    """Statistics of the same queries are the same."""
    path, both = pair(clients=None, options=("allow-query { 10.53.0.0/16; fd53::/16; };",))
    wires = [query(name, rdtype, **options).to_wire() for name, rdtype in
             ((NAME, "A"), ("many.lab.example", "A"), ("missing.lab.example", "A"), ("empty.lab.example", "A"),
              ("chain.lab.example", "A"), ("big.lab.example", "TXT"))
             for options in ({}, {"edns": True}, {"dnssec": True}, {"cookie": COOKIE}, {"rd": False}, {"cd": True})]
    for wire in wires:
        both(wire)                                   # now all is cached
    grown = []
    for ns, address in ((path.network.client1, CLIENT1), (path.network.client2, CLIENT2)):
        grown.append(growth(path.named, lambda ns=ns, address=address: [
            exchange(ns, SERVICE[family], wire, local=address[family]) for wire in wires for family in (4, 6)]))
    assert grown[0] == grown[1] and grown[0]["Response"] == 2 * len(wires)


def test_query_log(pair):
    """Names the client's address and port, and the address that was asked."""
    path, _ = pair(options=("querylog yes;",))
    start = path.named.program.log.stat().st_size
    took = by_ring(path, lambda: ask(path.network.client1, SERVICE[6], NAME, local=CLIENT1[6]))[1]
    assert took == (1, 1, 0)
    line = re.compile(rf"client @0x\w+ {CLIENT1[6]}#\d+ \({re.escape(NAME)}\): query: {re.escape(NAME)} IN A \+ \({SERVICE[6]}\)")
    wait_until(lambda: line.search(text_since(path.named, start)), SOON, "the query to be logged")


def test_recursing(pair):
    """rndc recursing names the clients that wait."""
    path, _ = pair()
    path.world.relay.delay = 2
    asked = threading.Thread(target=ask, args=(path.network.client1, SERVICE[4], "waits.wild.lab.example"),
                             kwargs={"local": CLIENT1[4]})
    asked.start()
    dump = path.named.dir / "named.recursing"

    def named():
        path.named.control("recursing")
        return f"{CLIENT1[4]}#" in dump.read_text()
    try:
        wait_until(named, SOON, "the client to wait")
    finally:
        path.world.relay.behave()
        asked.join()


# -- where named listens ------------------------------------------------------------------------------------------------------
def test_address_removed_and_added(pair):
    """named looks at the interfaces by itself; clients of other addresses lose nothing."""
    path, _ = pair(listen="10.53.1.0/24;")
    spare, resolver = "10.53.1.99", path.network.resolver
    with load(path) as asker:
        for _ in range(3):
            resolver.address("r1", f"{spare}/24")
            wait_until(lambda: exchange(path.network.client1, spare, query(NAME).to_wire(), timeout=0.5), SOON,
                       "named to listen there")
            wait_used(path)
            resolver.remove_address("r1", f"{spare}/24")
            wait_until(lambda: not exchange(path.network.client1, spare, query(NAME).to_wire(), timeout=0.2), SOON,
                       "named to cease to listen there")
            wait_used(path)
        answers = asker.result()
    assert_answered(answers)
    resolver.address("r1", f"{spare}/24")
    wait_until(lambda: by_ring(path, lambda: ask(path.network.client1, spare, NAME, timeout=0.5))[1] == (1, 1, 0), SOON,
               f"queries to {spare} to come by rings")
