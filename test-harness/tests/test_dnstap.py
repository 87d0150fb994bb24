# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""dnstap of kernel answers: a real collector gets a query and a response for each reply that a client got, whoever gave it, octet for
octet, from either resolver; what finds no room is left to the resolver, or counted. And the same for lines of the query log."""

import signal
from collections import Counter
from contextlib import contextmanager

import pytest
from conftest import bind_path, kernel_path

from lab import certificates
from lab.batch import exchange_all
from lab.client import exchange, query
from lab.dnstap import Collector, TlsFront, all_written, bind_lines, read, unbound_lines
from lab.dnstap import of as counts
from lab.network import SERVICE
from lab.run import wait_until

NAMES = ("www.lab.example", "host3.lab.example", "host8.lab.example", "host9.lab.example")
QUERIES, REPLIES = ("CQ", "AQ"), ("CR", "AR")
IDENTITY = "the resolver"
COLLECTOR = "collector.lab.example"      # as its certificate has it
LATE = 0.2               # seconds that the authoritative server takes


@pytest.fixture
def collector(world):
    with Collector(world, world.network.resolver) as c:
        yield c


@contextmanager
def unbound_taps(world, collector, *clause, to=()):
    """to: lines of the clause dnstap: that say where else than to the collector's socket."""
    lines = [*unbound_lines(collector.socket, "client"), "dnstap-send-identity: yes", f'dnstap-identity: "{IDENTITY}"', *to]
    with kernel_path(world, unbound_options={"clause": clause, "others": lines}) as path:
        yield path


def messages_of(n):
    """n queries for the names, with other flags from one round to the next."""
    return [query(NAMES[i % len(NAMES)], edns=i // len(NAMES) % 2 == 1, ad=i // len(NAMES) % 3 == 1).to_wire() for i in range(n)]


def exchange_many(path, n):
    """What was sent and what came for each of n queries; the id is the number."""
    wires = messages_of(n)
    sent = [i.to_bytes(2, "big") + wire[2:] for i, wire in enumerate(wires)]
    got = exchange_all(path.network.client1, SERVICE[4], wires)
    assert all(got), f"{got.count(None)} of {n} queries were not answered"
    return sent, got


def heat_all(world, path):
    for name in NAMES:
        world.heat(path.daemon, name)


def assert_logged(collected, sent, got):
    """Each of these is among the messages."""
    for kinds, wires in ((QUERIES, sent), (REPLIES, got)):
        missing = Counter(wires) - Counter(m.wire for m in collected if m.type in kinds)
        assert not missing, (f"{missing.total()} of {len(wires)} {kinds} are missing",
                             [m for m in collected if any(m.wire[12:] == w[12:] for w in missing)][-4:])


def assert_each_message(world, path, collector):
    heat_all(world, path)
    before = counts(path.daemon)["answered"]
    sent, got = exchange_many(path, 200)
    for wire in (query(NAMES[0], edns=True).to_wire(), query("host20.lab.example").to_wire()):
        sent.append(wire)
        got.append(exchange(path.network.client1, SERVICE[6], wire))
    assert counts(path.daemon)["answered"] - before >= 150
    wait_until(lambda: all_written(path.daemon), 10, "all answers to be written")
    assert counts(path.daemon)["lost"] == counts(path.daemon)["skipped"] == 0
    wait_until(lambda: collector.has(*sent, *got), 10, "the resolver's own messages to be written")
    path.server.stop()
    messages = collector.messages()
    assert_logged(messages, sent, got)
    asked = set(sent)
    assert {m.service for m in messages if m.wire in asked} == {SERVICE[4], SERVICE[6]}
    assert all(m.service_port == 53 and m.transport == "UDP" for m in messages if m.wire in asked)
    return messages


def test_each_message_of_unbound(world, collector):
    with unbound_taps(world, collector) as path:
        assert_each_message(world, path, collector)
    text = collector.file.read_bytes()
    assert text.count(IDENTITY.encode()) >= 400


@pytest.fixture
def authority(world):
    return certificates.authority(world.run.dir)


def by_tls(world, authority):
    """Lines for a collector that is certified as COLLECTOR by the authority, and asks for a certificate."""
    client = certificates.signed(world.run.dir, authority, "resolver.lab.example")
    return [f"dnstap-ip: ::1@{TlsFront.PORT}", "dnstap-tls: yes", f'dnstap-tls-server-name: "{COLLECTOR}"',
            f'dnstap-tls-cert-bundle: "{authority.certificate}"', f'dnstap-tls-client-cert-file: "{client.certificate}"',
            f'dnstap-tls-client-key-file: "{client.key}"']


def test_each_message_of_unbound_by_tls(world, collector, authority):
    with TlsFront(collector, certificates.signed(world.run.dir, authority, COLLECTOR), authority), \
            unbound_taps(world, collector, to=by_tls(world, authority)) as path:
        assert_each_message(world, path, collector)


def test_nothing_for_a_collector_of_another_name(world, collector, authority):
    """Until the right one is there the ring keeps what is logged."""
    with unbound_taps(world, collector, to=by_tls(world, authority)) as path:
        with TlsFront(collector, certificates.signed(world.run.dir, authority, "other.lab.example"), authority):
            heat_all(world, path)
            sent, got = exchange_many(path, 50)
            wait_until(lambda: "certificate of the dnstap collector: hostname mismatch" in path.unbound.program.log.read_text(), 10,
                       "Unbound to refuse it")
            assert counts(path.daemon)["written"] == 0
            assert "complete, NOT CONNECTED" in path.daemon.ctl("status").stdout
        with TlsFront(collector, certificates.signed(world.run.dir, authority, COLLECTOR), authority):
            wait_until(lambda: all_written(path.daemon) and collector.has(*sent, *got), 20, "all answers to be written")
            path.unbound.stop()


STOCK = pytest.mark.parametrize("stock", (False, True), ids=("patched", "stock"))


@STOCK
def test_each_message_of_bind(world, collector, stock):
    lines = [*bind_lines(collector.socket, "client"), f'dnstap-identity "{IDENTITY}";']
    with bind_path(world, options=lines, stock=stock) as path:
        assert_each_message(world, path, collector)
    assert collector.file.read_bytes().count(IDENTITY.encode()) >= 400


def test_queries_that_were_parked(world, collector):
    """Those who waited in the kernel for a resolution, and were answered with its answer, have their messages."""
    sent, got = [], []

    def some_were_parked():
        """By a crowd for a new name; whether the resolver sees its second query in time is the machine's affair."""
        wires = [query(f"none{len(got)}.lab.example").to_wire()] * 200
        sent.extend(i.to_bytes(2, "big") + wire[2:] for i, wire in enumerate(wires))
        got.extend(exchange_all(path.network.client1, SERVICE[4], wires))
        return path.daemon.reasons()["PARKED"]

    with unbound_taps(world, collector) as path:
        path.network.poll()
        world.relay.delay = LATE
        try:
            wait_until(some_were_parked, 20, "queries to be parked")
        finally:
            world.relay.behave()
            path.network.poll(on=False)
        assert all(got)
        wait_until(lambda: all_written(path.daemon) and collector.has(*sent, *got), 10, "all answers to be written")
        path.unbound.stop()
    assert_logged(collector.messages(), sent, got)


def test_responses_alone(world, collector):
    """What Unbound does not log, nobody does."""
    with unbound_taps(world, collector) as path:
        path.unbound.change("dnstap-log-client-query-messages: yes", "dnstap-log-client-query-messages: no")
        wait_until(path.daemon.resolver_ready, 10, "Unbound to be ready again")
        heat_all(world, path)
        _, got = exchange_many(path, 50)
        wait_until(lambda: all_written(path.daemon) and collector.has(*got), 10, "all answers to be written")
        path.unbound.stop()
    messages = collector.messages()
    assert_logged(messages, [], got)
    assert not [m for m in messages if m.type in QUERIES and m.client == messages[-1].client]


def test_complete_leaves_to_the_resolver_what_finds_no_room(world, collector):
    """The collector stands still: kernel answers end when the ring is full, clients are answered, and nothing is lost."""
    with unbound_taps(world, collector, "hydns-log-buffer: 1") as path:
        heat_all(world, path)
        collector.program.popen.send_signal(signal.SIGSTOP)
        for _ in range(10):
            sent, got = exchange_many(path, 4000)
            if path.daemon.reasons()["LOG_FULL"]:
                break
        assert path.daemon.reasons()["LOG_FULL"] > 0
        collector.program.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: all_written(path.daemon), 20, "all answers to be written")
        state = counts(path.daemon)
        assert state["lost"] == 0 and state["logged"] == state["answered"]
        full = path.daemon.reasons()["LOG_FULL"]
        sent, got = exchange_many(path, 40)
        assert path.daemon.reasons()["LOG_FULL"] == full
        wait_until(lambda: all_written(path.daemon) and collector.has(*sent, *got), 20, "all answers to be written")
        path.unbound.stop()
    assert_logged(collector.messages(), sent, got)


def test_sample_counts_what_is_lost(world, collector):
    with unbound_taps(world, collector, "hydns-log-buffer: 1", "hydns-dnstap: sample", "hydns-dnstap-one-in: 2") as path:
        heat_all(world, path)
        collector.program.popen.send_signal(signal.SIGSTOP)
        for _ in range(20):
            exchange_many(path, 4000)
            if counts(path.daemon)["lost"]:
                break
        collector.program.popen.send_signal(signal.SIGCONT)
        wait_until(lambda: all_written(path.daemon), 20, "all answers to be written")
        state = counts(path.daemon)
        assert state["lost"] > 0 and not path.daemon.reasons()["LOG_FULL"]
        assert state["logged"] + state["lost"] + state["skipped"] == state["answered"]


def test_collector_comes_late_and_goes(world, collector):
    """Until there is a collector the ring keeps what is logged; hydnsd's end loses nothing."""
    collector.program.stop()
    collector.file.unlink()
    with unbound_taps(world, collector) as path:
        heat_all(world, path)
        sent, got = exchange_many(path, 100)
        assert counts(path.daemon)["written"] == 0
        assert "complete, NOT CONNECTED" in path.daemon.ctl("status").stdout
        path.daemon.stop(signal.SIGKILL)
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, 10, "Unbound's module to register again")
        collector.start()
        more, answers = exchange_many(path, 100)
        wait_until(lambda: all_written(path.daemon) and collector.has(*sent, *more, *got, *answers), 20, "all answers to be written")
        assert "NOT CONNECTED" not in path.daemon.ctl("status").stdout and "logged answers" in path.daemon.ctl("stats").stdout
        path.unbound.stop()
    assert_logged(collector.messages(), sent + more, got + answers)


@STOCK
def test_file_of_bind(world, stock):
    """Beside named's own file; when named rolls that, another begins, and the former one is kept."""
    file = world.run.dir / "named" / f"messages{int(stock)}.tap"
    lines = [f'dnstap-output file "{file}";', "dnstap { client; };"]
    with bind_path(world, options=lines, stock=stock) as path:
        heat_all(world, path)
        sent, got = exchange_many(path, 100)
        wait_until(lambda: all_written(path.daemon), 10, "all answers to be written")
        path.named.control("dnstap", "-roll")
        beside = file.with_name(file.name + ".hydns")
        wait_until(lambda: len(list(file.parent.glob(beside.name + ".*"))) == 1, 10, "the former file to be kept")
        more, answers = exchange_many(path, 100)
        wait_until(lambda: all_written(path.daemon), 10, "all answers to be written")
        assert counts(path.daemon)["own"] == 0          # named's own are in its own file
        path.named.stop()
    files = [f for f in file.parent.glob(file.name + "*") if f.stat().st_size]
    assert_logged([m for f in files for m in read(f)], sent + more, got + answers)
    assert len(read(beside)) >= 150


def test_lines_of_the_query_log(world):
    """log-queries and log-replies have a line for each, as Unbound writes them."""
    options = {"server": ["log-queries: yes", "log-replies: yes"], "clause": ["hydns-query-log: yes"]}
    with kernel_path(world, unbound_options=options) as path:
        heat_all(world, path)
        before = counts(path.daemon)["answered"]
        exchange_many(path, 100)
        answered = counts(path.daemon)["answered"]
        assert answered - before >= 90
        wait_until(lambda: all_written(path.daemon), 10, "all answers to be written")
        lines = path.unbound.program.log.read_text().splitlines()
        for name in NAMES:
            queries = [line for line in lines if line.endswith(f" {name}. A IN")]
            replies = [line for line in lines if f" {name}. A IN NOERROR 0.000000 1 " in line]
            assert len(queries) >= 25 and len(replies) >= 25


def test_hydns_dnstap_no(world, collector):
    with unbound_taps(world, collector, "hydns-dnstap: no") as path:
        [r] = path.daemon.call({"cmd": "status"})["resolvers"]
        assert [n for n in r["obstacles"] if "hydns-dnstap" in n]
