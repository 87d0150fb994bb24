# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""dnstap of what Unbound answers by itself: the plugin's thread writes its messages, and they are Unbound's own, field by field."""

import re
import signal
from collections import Counter
from contextlib import contextmanager

import dns.query
import pytest
from conftest import kernel_path

from lab.batch import exchange_all
from lab.client import exchange, query
from lab.dnstap import Collector, in_full, unbound_lines
from lab.dnstap import of as counts
from lab.network import SERVICE
from lab.run import SOON, wait_until

# What differs between two equal queries.
VARYING = re.compile(r"(?:query|response)_time: \S+(?: \S+)?|query_port: \d+|\t\d+(?=\tIN\t)")
NAMES = ("www.lab.example", "host3.lab.example", "none.lab.example")
BY_UDP = [query(name, rdtype, edns=edns, rd=rd) for name in NAMES for rdtype in ("A", "TXT") for edns in (False, True) for rd in (False, True)]
AT_ONCE = 1000


@pytest.fixture
def collector(world):
    with Collector(world, world.network.resolver, "collector-own") as c:
        yield c


@contextmanager
def taps(world, collector, *clause):
    lines = [*unbound_lines(collector.socket, "client"), "dnstap-send-identity: yes", 'dnstap-identity: "one of two"',
             "dnstap-send-version: yes"]
    with kernel_path(world, unbound_options={"clause": [*clause, *lines]}) as path:
        wait_until(lambda: "hydns-dnstap: no" in clause or log_of(path)["connected"], SOON, "the collector to be reached")
        yield path


def log_of(path):
    [resolver] = path.daemon.call({"cmd": "status"})["resolvers"]
    return resolver["log"]


def ask_unbound(path):
    """Past the kernel: by loopback, over both families, and the first also by TCP. Returns how many by UDP."""
    with path.network.resolver.entered():
        assert dns.query.tcp(BY_UDP[0], SERVICE[4], timeout=SOON)
    replies = [exchange(path.network.resolver, SERVICE[family], q.to_wire()) for family in (4, 6) for q in BY_UDP]
    assert all(replies)
    return len(replies)


def own_messages(world, name, *clause):
    """What the collector got, without what varies, and how many of these the plugin's thread has written."""
    with Collector(world, world.network.resolver, name) as collector:
        with taps(world, collector, *clause) as path:
            ask_unbound(path)            # so that each is in the cache
            before = counts(path.daemon)["own"]
            asked = ask_unbound(path)
            wait_until(lambda: collector.count("CR", transport="TCP") == 2 and collector.count("CR", transport="UDP") >= 2 * asked, SOON,
                       "all messages to be written")
            own = counts(path.daemon)["own"] - before
            path.unbound.stop()
        collector.messages()
        asked_for = re.compile(rf"\bid: +({'|'.join(str(q.id) for q in BY_UDP)})\b")
        return Counter(VARYING.sub("(varies)", t) for t in in_full(collector.file) if asked_for.search(t)), own, asked


def test_messages_are_those_of_unbound(world):
    ours, own, asked = own_messages(world, "collector-ours")
    assert own == 2 * asked              # those by TCP stay Unbound's
    theirs, own, _ = own_messages(world, "collector-theirs", "hydns-dnstap: no", "hydns-allow-unlogged: yes")
    assert own == 0
    assert ours.keys() == theirs.keys() and len(ours) >= 2 * len(BY_UDP)


def test_more_than_there_is_room_for(world, collector):
    """While the collector stands still, Unbound keeps the rest itself, as it always has; when it goes on, each is written once."""
    wire = query("www.lab.example", "MX").to_wire()
    with taps(world, collector) as path:
        collector.program.popen.send_signal(signal.SIGSTOP)
        asked, own, before = 0, 0, counts(path.daemon)["own"]
        while own == 2 * asked:
            assert all(exchange_all(path.network.resolver, SERVICE[4], [wire] * AT_ONCE))
            asked, own = asked + AT_ONCE, counts(path.daemon)["own"] - before
        assert 0 < own < 2 * asked
        collector.program.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: collector.count("CR") >= asked, SOON, "all messages to be written")
        path.unbound.stop()
    assert Counter(m.type for m in collector.messages() if m.wire[12:].startswith(wire[12:])) == {"CQ": asked, "CR": asked}
