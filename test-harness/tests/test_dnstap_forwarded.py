# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""dnstap of queries that the kernel forwards itself: their clients have their messages, once. Messages of forwarders would lack the
kernel's requests, so where they are wanted, the resolver forwards."""

from collections import Counter

import pytest
from forwarding_paths import KINDS, NAME, counts, expect_refused, forwarding_path

from lab.batch import exchange_all
from lab.client import ask, query
from lab.dnstap import Collector, all_written, bind_lines, unbound_lines
from lab.forwarding import SERVERS, ZONE, nsd
from lab.network import SERVICE
from lab.run import SOON, wait_until

QUESTIONS = [f"host{i}.{ZONE}" for i in range(50) for _ in range(4)]     # each name four times, one after the other


@pytest.fixture(scope="module", autouse=True)
def zone_server(world):
    with nsd(world):
        yield


@pytest.fixture
def collector(world):
    with Collector(world, world.network.resolver, "collector-forwarded") as c:
        yield c


def taps(kind, collector, *messages):
    """Options of forwarding_path()."""
    if kind == "unbound":
        return {"more": {"others": unbound_lines(collector.socket, *messages)}}
    return {"lines": bind_lines(collector.socket, *messages)}


@pytest.mark.parametrize("kind", KINDS)
def test_clients_messages_come_once(world, collector, kind):
    """Of those whose query the kernel forwarded, and of those who waited with it; messages of resolvers do not matter."""
    with forwarding_path(world, kind, SERVERS[0], **taps(kind, collector, "client", "resolver")) as path:
        wires = [query(name).to_wire() for name in QUESTIONS]
        got = exchange_all(path.network.client1, SERVICE[4], wires)
        assert all(got) and counts(path)["relayed"] > 0
        sent = [i.to_bytes(2, "big") + wire[2:] for i, wire in enumerate(wires)]
        wait_until(lambda: all_written(path.daemon) and collector.has(*sent, *got), SOON, "all messages to be written")
        path.server.stop()
    messages = Counter((m.type, m.wire) for m in collector.messages())
    assert {messages["CQ", wire] for wire in sent} == {messages["CR", wire] for wire in got} == {1}


@pytest.mark.parametrize("kind", KINDS)
def test_messages_of_forwarders_are_the_resolvers(world, collector, kind):
    """It says why it forwards by itself, and logs these queries as a forwarder's, never as a resolver's."""
    with forwarding_path(world, kind, SERVERS[0], waits=False, **taps(kind, collector, "client", "resolver", "forwarder")) as path:
        expect_refused(path, "dnstap records forwarder messages")
        doctor = path.daemon.ctl("doctor", check=False).stdout
        assert "dnstap records forwarder messages" in doctor
        answer = ask(path.network.client1, SERVICE[4], NAME)
        assert answer.answer
        wait_until(lambda: {"FQ", "FR"} <= upstream(collector), SOON, "the forwarder's messages to be written")
        assert not {"RQ", "RR"} & upstream(collector)
        path.server.stop()


def upstream(collector):
    """Of which types the messages to the zone's server are."""
    return {kind for kind in ("FQ", "FR", "RQ", "RR") if collector.count(kind, None, SERVERS[0])}
