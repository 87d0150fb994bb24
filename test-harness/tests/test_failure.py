# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Whatever dies, fills up or goes away: no wrong answer, and none lost that Unbound alone would have given."""

import json
import signal
import socket
import time

import pytest
from conftest import kernel_path

from lab.client import Asker, ask
from lab.changing_zones import records
from lab.network import CLIENT_LINKS, SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until

HOSTS = [(f"host{i}.lab.example", "A") for i in range(20)]
EXPECTED = [f"c00002{i % 250 + 1:02x}" for i in range(20)]
RATE = 4000
HEARTBEAT_LIMIT = 1.0  # seconds after which the rules of a killed resolver do not count


@pytest.fixture
def fresh(world):
    """A kernel path for one test, which may kill its programs."""
    with kernel_path(world) as p:
        yield p


def heat_hosts(path, hosts=HOSTS):
    for name, rdtype in hosts:
        path.world.heat(path.daemon, name, rdtype)


def load(path, questions=HOSTS, rate=RATE, **options):
    return Asker(path.world, path.network.client1, SERVICE[4], questions, rate, **options)


def assert_right(answers, expected=EXPECTED):
    wrong = [a for a in answers if a.latency is not None and (a.rcode != 0 or a.rdata != expected[a.question])]
    assert not wrong, f"{len(wrong)} wrong answers, the first: {wrong[0]}"


def assert_none_lost(answers):
    lost = [a for a in answers if a.latency is None]
    assert not lost, f"{len(lost)} of {len(answers)} queries without an answer"


def let_run(seconds):
    """Load for a while; what is tested is that nothing happens in it."""
    time.sleep(seconds)


def kernel_answers(path):
    """By the program's counter, with or without hydnsd."""
    return json.loads(path.daemon.ctl("stats", "--json").stdout)["reasons"]["ANSWERED"]


def let_kernel_answer(path, count):
    before = kernel_answers(path)
    wait_until(lambda: kernel_answers(path) >= before + count, SOON, f"the kernel to answer {count} queries")


def test_daemon_killed_and_restarted(fresh):
    heat_hosts(fresh)
    with load(fresh) as asker:
        let_run(0.3)
        fresh.daemon.stop(signal.SIGKILL)
        let_kernel_answer(fresh, RATE)
        logged = fresh.daemon.program.log.stat().st_size
        fresh.daemon.start()
        wait_until(fresh.daemon.resolver_ready, 10, "the module to register again")
        let_run(0.5)
        answers = asker.result()
    assert_right(answers)
    assert_none_lost(answers)
    for name, rdtype in HOSTS:
        assert fresh.daemon.explain(name, rdtype)["where"] == "kernel", "rules were not taken over"
    log = fresh.daemon.program.log.read_text()[logged:]
    assert "is ready, with what a former one left" in log and "is released" not in log


def test_flush_while_daemon_is_dead(fresh):
    name = "www.lab.example"
    fresh.world.change_lab(records(1), name, "A", "192.0.2.1")
    fresh.world.heat(fresh.daemon, name, "A")
    with load(fresh, [(name, "A")], 10000) as asker:
        let_run(0.2)
        fresh.daemon.stop(signal.SIGKILL)
        fresh.world.change_lab(records(99), name, "A", "192.0.2.99")
        fresh.unbound.control("flush", name)
        returned = time.monotonic_ns()
        let_run(0.5)
        fresh.daemon.start()
        wait_until(fresh.daemon.resolver_ready, 10, "the module to register again")
        let_run(0.5)
        answers = asker.result()
    assert_none_lost(answers)
    after = [a for a in answers if a.sent > returned]
    assert after and all(a.rdata == "c0000263" for a in after)
    fresh.world.heat(fresh.daemon, name, "A")


def test_unbound_killed_and_restarted(fresh):
    name = "www.lab.example"
    fresh.world.change_lab(records(1), name, "A", "192.0.2.1")
    fresh.world.heat(fresh.daemon, name, "A")
    with load(fresh, [(name, "A")]) as asker:
        let_run(0.3)
        fresh.unbound.stop(signal.SIGKILL)
        killed = time.monotonic_ns()      # it has ended, so its heartbeat is no younger
        fresh.world.change_lab(records(98), name, "A", "192.0.2.98")
        let_run(HEARTBEAT_LIMIT + 1)
        restarting = time.monotonic_ns()
        fresh.unbound.start()
        started = time.monotonic_ns()
        wait_until(fresh.daemon.resolver_ready, 10, "the new Unbound to register")
        fresh.world.heat(fresh.daemon, name, "A")
        answers = asker.result()
    dead = [a for a in answers if killed + HEARTBEAT_LIMIT * 1e9 < a.sent < restarting]
    assert dead and all(a.latency is None or a.sent + a.latency > restarting for a in dead), \
        "the rules of a dead resolver went on answering"
    again = [a for a in answers if a.sent > started]
    assert_none_lost(again)
    assert again and all(a.rdata == "c0000262" for a in again), "an answer from before the death"


def test_clean_stop_of_unbound_takes_rules_along(fresh):
    heat_hosts(fresh)
    fresh.unbound.stop()
    assert ask(fresh.network.client1, SERVICE[4], HOSTS[0][0], timeout=0.3) is None


def test_interface_down_and_up(fresh):
    heat_hosts(fresh)
    resolver = fresh.network.resolver
    with load(fresh, timeout=0.5) as asker:
        let_run(0.2)
        resolver.link_state("r1", up=False)
        let_run(0.3)
        resolver.link_state("r1", up=True)
        wait_until(lambda: ask(fresh.network.client1, SERVICE[4], HOSTS[0][0], timeout=0.2), 10, "the link to work")
        up = time.monotonic_ns()
        let_kernel_answer(fresh, RATE // 2)
        answers = asker.result()
    resolver.address("r1", "fd53:1::1/64")  # the kernel removes IPv6 addresses of a link that goes down, and all routes
    fresh.network.route_to_strangers()
    assert_right(answers)
    assert_none_lost([a for a in answers if a.sent > up])
    assert fresh.daemon.attached()


def test_ring_full(fresh):
    """A stopped daemon reads no offers: the rings fill, and Unbound goes on."""
    heat_hosts(fresh)
    many = [(f"ring{i}.kinds.example", "A") for i in range(6000)]
    with load(fresh, many, 1500, seconds=4) as asker:      # first answers, which had to be looked up, are not offered
        asker.result()
    before = fresh.daemon.call({"cmd": "stats"})["offers"]["received"]
    with fresh.daemon.stopped():
        # of a zone that is not behind the relay, which follows no faster than its Python thread is given time
        with load(fresh, many, 1500, seconds=4) as asker, load(fresh, rate=RATE // 2, seconds=4) as hot:
            missing, known = asker.result(), hot.result()
        fresh.unbound.control("flush", HOSTS[0][0])     # returns though the daemon does not answer
    assert_none_lost(missing)
    assert all(a.rcode == 3 for a in missing)
    assert_none_lost(known)
    assert_right(known)
    wait_until(fresh.daemon.resolver_ready, 10, "the module and the daemon to find each other")
    # every name was offered with its second answer; what found no room was dropped
    stats = fresh.daemon.call({"cmd": "stats"})
    received = stats["offers"]["received"] - before
    assert 0 < received < len(many), "the rings have not been full: the test proves nothing"
    plugin = stats["resolvers"][0]
    assert plugin["dropped_offers"] > 0 and plugin["offered"] > 0 and plugin["queries_seen"] > len(many)
    assert "dropped_offers" in fresh.daemon.ctl("stats").stdout
    fresh.world.heat(fresh.daemon, *HOSTS[1])


def test_store_full(world):
    """Judged once all of it has happened: fewer queries than would fill a socket's buffer while a resolver waits for a
    processor, for as long as it takes."""
    capacity, few = 64, 1000
    hosts = [(f"host{i}.lab.example", "A") for i in range(200)]
    expected = [f"c00002{i % 250 + 1:02x}" for i in range(200)]
    with kernel_path(world, daemon_options={"capacity": capacity}) as path:
        def choices():
            """How often the store had to choose."""
            offers = path.daemon.call({"cmd": "stats"})["offers"]
            return offers["evicted"] + sum(offers["rejected"][why] for why in ("FULL", "RESOLVER_FULL", "NO_SLOT"))

        def cached(name):
            reply = ask(world.network.client1, SERVICE[4], name)
            return reply and reply.answer

        for name, _ in hosts:      # the authoritative server may wait longer for a processor than Unbound waits for it
            wait_until(lambda name=name: cached(name), 15, f"Unbound to cache {name}")
        with load(path, hosts) as asker:
            wait_until(lambda: choices() > 0, SOON, "the store to be full")
            let_kernel_answer(path, few)
            answers = asker.result()
        assert_right(answers, expected)
        assert_none_lost(answers)
        assert 0 < path.daemon.call({"cmd": "status"})["rules"] <= capacity


def test_nothing_left_after_a_clean_stop(world):
    with kernel_path(world) as path:
        world.heat(path.daemon, *HOSTS[0])
        resolver, pins = world.network.resolver, path.daemon.pins
        assert all(resolver.xdp_attached(link) for link in CLIENT_LINKS) and pins.exists()
        path.daemon.ctl("doctor", check=False)
        assert path.daemon.stop() == 0
        assert not any(resolver.xdp_attached(link) for link in CLIENT_LINKS)
        assert not pins.exists() or not list(pins.iterdir())
        assert not path.daemon.control_socket.exists() and not path.daemon.plugin_socket.exists()
        assert ask(world.network.client1, SERVICE[4], HOSTS[0][0]).answer, "Unbound alone goes on"


def test_clean_removes_what_a_killed_daemon_left(world):
    with kernel_path(world) as path:
        path.daemon.stop(signal.SIGKILL)
        resolver = world.network.resolver
        assert all(resolver.xdp_attached(link) for link in CLIENT_LINKS)
        run_tool(resolver, [*path.daemon.argv(), "--clean"])
        assert not any(resolver.xdp_attached(link) for link in CLIENT_LINKS)
        assert not path.daemon.pins.exists() or not list(path.daemon.pins.iterdir())


def test_loop_feeds_the_watchdog(world):
    """The unit's WatchdogSec needs that."""
    path = world.run.dir / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(path))
        manager.settimeout(SOON)
        daemon = world.hydnsd()
        argv = daemon.argv()
        daemon.argv = lambda: ["env", f"NOTIFY_SOCKET={path}", "WATCHDOG_USEC=10000000", *argv]
        with daemon:
            assert manager.recv(100) == b"READY=1"
            for _ in range(3):
                assert manager.recv(100) == b"WATCHDOG=1"
    path.unlink()
