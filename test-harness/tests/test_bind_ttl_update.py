# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND refreshes or replaces a shared RRset for one answer: all others show it. Also what needs this configuration: refused
clients, and addresses and zones that come and go."""

import threading
import time

import dns.flags
import dns.message
import dns.rcode
import dns.rdatatype
import pytest
from conftest import bind_path

from lab.attempts import Inconclusive, until_conclusive
from lab.client import ask, exchange, must_ask, must_exchange, query
from lab.compare import difference, rrsets, ttls
from lab.answer_zones import SEED, Key, sign
from lab.changing_zones import LAB, records
from lab.network import SERVICE
from lab.relay import nothing
from lab.run import SOON, wait_until

ALIASES = {"to-twenty": "twenty", "shift": "shifted"}    # the targets live twenty seconds; the address of shifted changes
PREFETCH = 10                   # the most that BIND takes: so many seconds before the end of a TTL
GIVES_UP = 30                   # seconds after which BIND ends a resolution, the most that it takes

STALL = 1.0                     # seconds without a look, after which these may not have been enough
REFUSED, LATER = "10.53.1.5", "10.53.0.78"


@pytest.fixture(scope="module")
def bind(world):
    """BIND refreshes by itself: its prefetch, for any query in the last seconds of a TTL."""
    with bind_path(world, options=["allow-new-zones yes;", f"prefetch {PREFETCH} {PREFETCH + 6};",
                                   f"resolver-query-timeout {GIVES_UP * 1000};"], clause=["hydns-refresh 0;"],
                   clients=f"!{REFUSED}; !fd53:2::/64; 10.53.0.0/16; fd53::/16;", listen=f"{LATER};") as path:
        yield path


def test_refused_clients(bind):
    """While the name is hot for all other clients."""
    bind.world.heat(bind.daemon, "www.lab.example")
    before = bind.daemon.reasons()
    refused = (ask(bind.network.client1, SERVICE[4], "www.lab.example", local=REFUSED),
               ask(bind.network.client2, SERVICE[6], "www.lab.example"))
    assert [reply.rcode() for reply in refused] == [dns.rcode.REFUSED] * 2
    assert bind.daemon.reasons()["ACL"] == before["ACL"] + 2
    assert ask(bind.network.client1, SERVICE[4], "www.lab.example").rcode() == dns.rcode.NOERROR
    assert bind.daemon.reasons()["ANSWERED"] == before["ANSWERED"] + 1


def test_address_that_comes_and_goes(bind):
    """named closes its sockets there and opens new ones: no query may be lost in a socket that only the plugin has."""
    network = bind.network
    for _ in range(2):
        network.resolver.address("lo", f"{LATER}/32")
        try:
            wait_until(lambda: ask(network.client1, LATER, "www.lab.example", timeout=0.1), 10, "BIND to listen there")
            bind.world.heat(bind.daemon, "www.lab.example", server=LATER)
            # more sources than sockets, so that each socket would be chosen
            for _ in range(20):
                assert ask(network.client1, LATER, "host9.lab.example", "TXT"), "a query is lost"
        finally:
            network.resolver.remove_address("lo", f"{LATER}/32")
        wait_until(lambda: ask(network.client1, SERVICE[4], "www.lab.example") and f"{LATER}:53" not in
                   str(bind.daemon.call({"cmd": "status"})["resolvers"]), 10, "the address to be given up")


def test_zone_that_comes_and_goes(bind):
    """A zone covers what was cached below its name, in the kernel too; it goes with all its answers."""
    world, name = bind.world, "host5.lab.example"
    zone = bind.named.dir / "lab.zone"
    zone.write_text("$TTL 300\n@ SOA ns hostmaster 1 3600 900 604800 300\n@ NS ns\nns A 192.0.2.53\nhost5 A 192.0.2.99\n")
    world.heat(bind.daemon, name)
    bind.named.control("addzone", "lab.example", f'{{ type primary; file "{zone}"; }};')
    for _ in range(20):
        reply = ask(bind.network.client1, SERVICE[4], name)
        assert reply.answer[0][0].address == "192.0.2.99" and reply.flags & dns.flags.AA
    world.heat(bind.daemon, name)
    bind.named.control("delzone", "lab.example")
    wait_until(lambda: last(bind.network.client1, "host5")[0] == "192.0.2.6", SOON, "the authoritative server's own data")
    world.heat(bind.daemon, name)


def last(namespace, name):
    """The last address in the answer, and its TTL."""
    rrset = must_ask(namespace, SERVICE[4], f"{name}.lab.example").answer[-1]
    return rrset[0].address, rrset.ttl


@pytest.mark.limit(300)
def test_ttl_update_from_another_question(bind):
    network, world = bind.network, bind.world
    world.heat(bind.daemon, "many.lab.example")
    wire = query("many.lab.example").to_wire()
    assert difference(exchange(network.client1, SERVICE[4], wire), exchange(network.resolver, SERVICE[4], wire),
                      shuffled=True) is None
    try:
        until_conclusive(lambda number, pace: renew_for_another_question(bind, pace, 77 + number), STALL)
    finally:
        world.rewrite_lab(records())


def renew_for_another_question(bind, pace, octet):
    """octet: the new address's last."""
    network, world, new = bind.network, bind.world, f"192.0.2.{octet}"

    def lasts(namespace, names=ALIASES):
        pace.look()
        return [last(namespace, name) for name in names]

    for alias, target in ALIASES.items():
        for label in (alias, target):
            bind.named.control("flushname", f"{label}.lab.example")      # of an attempt before
        exchange(network.resolver, SERVICE[4], query(f"{target}.lab.example").to_wire())
        world.heat(bind.daemon, f"{alias}.lab.example")
    world.rewrite_lab(records(octet))
    # less by one: both may be in it, though cached a second apart
    wait_until(lambda: max(ttl for _, ttl in lasts(network.client1)) < PREFETCH, 15, "the last seconds of the targets' TTLs")
    rules_end = time.monotonic() + min(ttl for _, ttl in lasts(network.client1)) - 1
    assert last(network.client1, "shift")[0] != new
    assert all(bind.daemon.explain(f"{alias}.lab.example")["where"] == "kernel" for alias in ALIASES)
    # the aliases are not asked there: BIND would offer them again
    wait_until(lambda: min(ttl for _, ttl in lasts(network.resolver, ALIASES.values())) > PREFETCH, SOON, "BIND to renew the targets")
    wait_until(lambda: lasts(network.client1)[0][1] > PREFETCH, SOON, "the kernel path to show the renewal")
    wait_until(lambda: lasts(network.client1)[1][0] == new, SOON, "the kernel path to show the new address")
    if time.monotonic() >= rules_end:
        raise Inconclusive("the rules may have come to their own end")


APART = 3                       # seconds between two fetches of the same; more than all slack of TTLs


@pytest.fixture
def signed_lab(world):
    """lab.example. with signatures that cannot be validated, except for its aliases, which named without validation does not
    cache if they are signed. world.relay.loses may be set."""
    def has_signatures():
        reply = ask(world.network.authoritative, LAB, "www.lab.example", dnssec=True, timeout=0.5)
        return reply and "RRSIG" in str(reply.answer)
    world.zones.write(records())
    file = world.zones.directory / "lab.zone"
    sign(Key("lab.example", SEED), file, world.zones.directory / "keys")
    file.write_text("".join(line for line in file.read_text().splitlines(True) if "\tRRSIG\tCNAME " not in line))
    world.nsd.reload("lab.example.", has_signatures)
    yield world
    world.relay.loses = nothing
    world.rewrite_lab(records())


@pytest.mark.limit(300)
def test_signatures_that_come_again_without_their_rrset(bind, signed_lab):
    """named fetches all types of a name for one client, and its addresses for others. The answer that comes seconds later,
    for datagrams were lost, leaves the addresses in its cache as they are, and replaces their signatures: no address lives
    longer for that."""
    until_conclusive(lambda number, pace: signatures_come_again(bind, signed_lab.relay))


def is_for_all_types(wire):
    return dns.message.from_wire(wire).question[0].rdtype == dns.rdatatype.ANY


def signatures_come_again(bind, relay):
    network, name, alias = bind.network, "www.lab.example", "alias.lab.example"

    def address_ttl():
        return ttls(must_exchange(network.resolver, SERVICE[4], query(name).to_wire()))[-1]

    def meanwhile():
        for dnssec in (False, True):
            bind.world.heat(bind.daemon, alias, dnssec=dnssec)
        fetched = address_ttl()
        wait_until(lambda: address_ttl() <= fetched - APART, SOON, f"the address to be {APART} s older than what comes now")
    fetch_all_types_late(bind, relay, name, meanwhile)

    def signatures_and_address():
        wire = must_exchange(network.resolver, SERVICE[4], query(name, dnssec=True).to_wire())
        return [of_each[0] for _, _, of_each in rrsets(wire)[:2]]
    address, signatures = signatures_and_address()
    assert signatures >= address + APART - 1, "named has not replaced the signatures alone"
    plain, signed = query(alias).to_wire(), query(alias, dnssec=True).to_wire()
    watched = time.monotonic() + 1
    while time.monotonic() < watched:
        most = ttls(must_exchange(network.resolver, SERVICE[4], plain))[-1] + 1     # first, for it falls meanwhile
        assert ttls(must_exchange(network.client1, SERVICE[4], plain))[-1] <= most
    wait_until(lambda: difference(must_exchange(network.client1, SERVICE[4], signed),
                                  must_exchange(network.resolver, SERVICE[4], signed)) is None, SOON,
               "the kernel path to show the signatures' TTL")


def fetch_all_types_late(bind, relay, name, meanwhile):
    """Has named fetch all types of a name, which come after meanwhile() has returned."""
    bind.named.control("flush")
    replies = []

    def ask_for_all_types():
        wire = query(name, "ANY").to_wire()
        replies.append(exchange(bind.network.resolver, SERVICE[4], wire, timeout=GIVES_UP + 10))
    late = threading.Thread(target=ask_for_all_types, daemon=True)
    relay.loses = is_for_all_types
    late.start()
    try:
        begun = time.monotonic()
        wait_until(lambda: relay.count(f"{name}.", begun), SOON, "named to fetch all types")
        meanwhile()
    finally:
        found = time.monotonic()
        relay.loses = nothing
        late.join(GIVES_UP + 20)
    assert not late.is_alive() and replies[0], "no reply to the query for all types"
    asked_again = any(at >= found and what == [f"{name}.", dns.rdatatype.ANY] for at, *what in list(relay.asked))
    if dns.message.from_wire(replies[0]).rcode() != dns.rcode.NOERROR or not asked_again:
        raise Inconclusive("named has given up before its queries were answered again")
