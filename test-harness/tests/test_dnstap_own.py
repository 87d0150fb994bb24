# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""dnstap of what a resolver answers by itself: the plugin's thread writes its messages, and they are the resolver's own, field by field."""

import re
import signal
from collections import Counter
from contextlib import contextmanager

import dns.query
import pytest
from conftest import bind_path, kernel_path
from test_dnstap_zones import zones_of

from lab.batch import exchange_all
from lab.client import exchange, query
from lab.dnstap import Collector, bind_lines, in_full, unbound_lines
from lab.dnstap import of as counts
from lab.network import SERVICE
from lab.run import SOON, wait_until

# What differs between two equal queries.
VARYING = re.compile(r"(?:query|response)_time: \S+(?: \S+)?|query_port: \d+|\t\d+(?=\tIN\t)|(?<= )\d+(?= IN )")
NAMES = ("www.lab.example", "host3.lab.example", "none.lab.example")
OF_ZONE = ("www.own.example", "none.own.example")       # of zones_of()
WARMING, COMPARED = 1000, 2000       # ids, from these on
AT_ONCE = 1000
BY_TCP = 1                            # of the queries
BY_LOOPBACK = query("www.lab.example")


@pytest.fixture
def collector(world):
    with Collector(world, world.network.resolver, "collector-own") as c:
        yield c


def unbound(world, collector, ours):
    lines = [*unbound_lines(collector.socket, "client"), "dnstap-send-identity: yes", 'dnstap-identity: "one of two"',
             "dnstap-send-version: yes"]
    unlogged = [] if ours else ["hydns-dnstap: no", "hydns-allow-unlogged: yes"]
    return kernel_path(world, unbound_options={"clause": unlogged, "others": lines})


def bind(world, collector, ours):
    return bind_path(world, options=[*bind_lines(collector.socket, "client", "auth"), 'dnstap-identity "one of two";'],
                     zones=zones_of(world),
                     clause=[] if ours else ["hydns-dnstap no;", "hydns-allow-unlogged yes;"])


@contextmanager
def taps(world, server, collector, ours=True):
    with server(world, collector, ours) as path:
        wait_until(lambda: not ours or log_of(path)["connected"], SOON, "the collector to be reached")
        yield path


def log_of(path):
    [resolver] = path.daemon.call({"cmd": "status"})["resolvers"]
    return resolver["log"]


def queries(server, first_id):
    made = [query(name, rdtype, edns=edns, rd=rd) for name in NAMES + OF_ZONE * (server is bind) for rdtype in ("A", "TXT")
            for edns in (False, True) for rd in (False, True)]
    for number, q in enumerate(made, first_id):
        q.id = number
    return made


def ask_all(path, asked):
    """Past the kernel: by loopback, over both families, and the first also by TCP. Returns how many by UDP."""
    with path.network.resolver.entered():
        assert dns.query.tcp(asked[0], SERVICE[4], timeout=SOON)
    replies = [exchange(path.network.resolver, SERVICE[family], q.to_wire()) for family in (4, 6) for q in asked]
    assert all(replies)
    return len(replies)


def written(collector, sent, check=False):
    """The messages of these queries in its file. check: which has an end."""
    asked_for = re.compile(rf"\bid: +({'|'.join(str(q.id) for q in sent)})\b")
    return [text for text in in_full(collector.file, check) if asked_for.search(text)]


def own_messages(world, server, name, ours):
    """What the collector got, each as a text, and how many of these the plugin's thread has written."""
    with Collector(world, world.network.resolver, name) as collector:
        with taps(world, server, collector, ours) as path:
            ask_all(path, queries(server, WARMING))            # so that each is in the cache
            before, sent = counts(path.daemon)["own"], queries(server, COMPARED)
            asked = ask_all(path, sent)

            def all_written():
                """Each of them: those of the harness's own queries come, too."""
                collector.flush()
                return len(kinds(written(collector, sent))) == 2 * (asked + BY_TCP)
            wait_until(all_written, SOON, "all messages to be written")
            own = counts(path.daemon)["own"] - before
            path.server.stop()
        collector.messages()
        return written(collector, sent, check=True), own, asked


def kinds(messages):
    """Without what differs between two equal queries."""
    return {VARYING.sub("(varies)", text) for text in messages}


@pytest.mark.parametrize("server", (unbound, bind))
def test_messages_are_those_of_the_resolver(world, server):
    ours, own, asked = own_messages(world, server, "collector-ours", True)
    assert own == 2 * asked              # those by TCP stay the resolver's
    theirs, own, _ = own_messages(world, server, "collector-theirs", False)
    assert own == 0
    assert kinds(ours) == kinds(theirs) and len(kinds(ours)) >= 2 * len(queries(server, COMPARED))
    if server is bind:
        assert {zone for text in theirs for zone in re.findall(r"query_zone: (\S+)", text)} == {"own.example."}


def test_messages_of_each_view(world, collector):
    """Its plugin takes them, and no other."""
    views = {name: ([f"match-destinations {{ {SERVICE[family]}; }};"], True) for name, family in (("first", 4), ("second", 6))}
    with bind_path(world, options=bind_lines(collector.socket, "client"), views=views) as path:
        def ask_each():
            assert all(exchange(path.network.resolver, SERVICE[family], BY_LOOPBACK.to_wire()) for family in (4, 6, 6))

        def own():
            return {r["identity"]: r["log"]["own"] for r in path.daemon.call({"cmd": "stats"})["resolvers"]}

        def ready():
            ask_each()
            resolvers = path.daemon.call({"cmd": "status"})["resolvers"]
            return len(resolvers) == len(views) and all(r["log"]["connected"] for r in resolvers)
        wait_until(ready, SOON, "both views to have their connections")
        before = own()
        ask_each()
        assert {name: n - before[name] for name, n in own().items()} == {"named, view first": 2, "named, view second": 4}


def test_more_than_there_is_room_for(world, collector):
    """While the collector stands still, Unbound keeps the rest itself, as it always has; when it goes on, each is written once."""
    wire = query("www.lab.example", "MX").to_wire()
    with taps(world, unbound, collector) as path:
        collector.program.popen.send_signal(signal.SIGSTOP)
        asked, own, before = 0, 0, counts(path.daemon)["own"]
        while own == 2 * asked:
            assert all(exchange_all(path.network.resolver, SERVICE[4], [wire] * AT_ONCE))
            asked, own = asked + AT_ONCE, counts(path.daemon)["own"] - before
        assert 0 < own < 2 * asked
        collector.program.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: collector.count("CR", question="www.lab.example/IN/MX") == asked, SOON, "all messages to be written")
        path.server.stop()
    assert Counter(m.type for m in collector.messages() if m.wire[12:].startswith(wire[12:])) == {"CQ": asked, "CR": asked}
