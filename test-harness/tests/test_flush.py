# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""After a flush has returned, no query under load is answered with former data.

Each test changes the data at the authoritative server first, then gives the command, while queries are under way at a
fixed rate; the moment at which the command has returned is compared with the moment each query was sent."""

import re
import signal
import subprocess
import time
from collections import namedtuple

import pytest

from lab.attempts import Inconclusive, Ticks, until_conclusive
from lab.client import Answer, Asker, ask, exchange, query
from lab.compare import difference
from lab.changing_zones import records
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

RATE = 10000           # queries a second
AROUND = 5000          # queries that are answered before the command, and again after it
NAME = "www.lab.example"


class Generation:
    """A new last octet of the address of www.lab.example for each test."""
    last = 1

    @classmethod
    def next(cls):
        cls.last += 1
        return cls.last


def address(generation):
    return f"c00002{generation:02x}"


def answered(path):
    """By the kernel or by Unbound."""
    return path.daemon.reasons()["ANSWERED"] + path.unbound.received()


def lost_by_reload(answers, given, returned):
    """Unbound alone loses what arrives while it reloads: until it first answered a query sent after the command had
    returned."""
    again = min(a.sent + a.latency for a in answers if a.sent > returned and a.latency is not None)
    return [a for a in answers if a.latency is None and given < a.sent < again]


def under_load(path, command, expected, question=(NAME, "A"), generation=None, hot_again=True, **options):
    """Runs the command under load; checks every query sent after it returned, and that the kernel was in it."""
    path.world.heat(path.daemon, *question, **options)
    before = path.daemon.reasons()["ANSWERED"]
    with Asker(path.world, path.network.client1, SERVICE[4], [question], RATE, **options) as asker:
        wait_until(lambda: path.daemon.reasons()["ANSWERED"] > before + AROUND, SOON, "the kernel to answer the load")
        if generation:
            path.world.change_lab(records(generation), NAME, "A", f"192.0.2.{generation}")
        given = time.monotonic_ns()
        path.unbound.control(*command)
        if command == ("reload",):
            # Unbound acknowledges reload before it reloads; it answers this command afterwards
            path.unbound.control("status")
        returned = time.monotonic_ns()
        before = answered(path)
        wait_until(lambda: answered(path) > before + AROUND, SOON, "the load after the command")
        answers = asker.result()
    after = [a for a in answers if a.sent > returned]
    assert len(after) > AROUND / 2
    old = [a for a in after if a.latency is not None and a.rdata != expected]
    assert not old, f"{len(old)} of {len(after)} answers from before, the last sent " \
                    f"{(old[-1].sent - returned) / 1e6:.1f} ms after the command returned: {old[-1]}"
    excused = lost_by_reload(answers, given, returned) if command == ("reload",) else []
    lost = [a for a in answers if a.latency is None and a not in excused]
    assert not lost, f"{len(lost)} of {len(answers)} queries without an answer"
    failed = [a for a in answers if a.rcode not in (None, 0)]
    assert not failed, f"{len(failed)} answers with an error, the first sent {(failed[0].sent - given) / 1e6:.1f} ms " \
                       f"after the command was given: {failed[0]}"
    if hot_again:
        path.world.heat(path.daemon, *question, **options)


@pytest.mark.parametrize("command", [("flush", NAME), ("flush_type", NAME, "A"), ("flush_zone", "lab.example"),
                                     ("flush_zone", "."), ("reload",)], ids=" ".join)
def test_flush(path, command):
    g = Generation.next()
    under_load(path, command, address(g), generation=g)


def starts_of_service(path):
    return path.unbound.program.log.read_text().count("start of service")


def test_reload_by_a_signal(path):
    """A signal does not return when the reload is done; but once Unbound answers by the new configuration, the kernel gives no
    former answers."""
    g = Generation.next()
    path.world.heat(path.daemon, NAME, "A")
    starts = starts_of_service(path)
    with Asker(path.world, path.network.client1, SERVICE[4], [(NAME, "A")], RATE) as asker:
        before = path.daemon.reasons()["ANSWERED"]
        wait_until(lambda: path.daemon.reasons()["ANSWERED"] > before + AROUND, SOON, "the kernel to answer the load")
        path.world.change_lab(records(g), NAME, "A", f"192.0.2.{g}")
        path.unbound.program.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: starts_of_service(path) > starts, SOON, "Unbound to reload")
        path.unbound.control("status")
        before = answered(path)
        wait_until(lambda: answered(path) > before + AROUND, SOON, "the load after the reload")
        answers = sorted((a for a in asker.result() if a.latency is not None), key=lambda a: a.sent)
    new = next(i for i, a in enumerate(answers) if a.rdata == address(g))
    replied = answers[new].sent + answers[new].latency
    old = [a for a in answers[new:] if a.rdata != address(g) and a.sent > replied]
    assert answers[0].rdata != address(g)
    assert not old, f"{len(old)} answers of {len(answers)} by the former data after the first by the new: {old[0]}"


@pytest.fixture
def tls(path, tmp_path):
    """Unbound with its control channel over TLS, as unbound-control-setup sets it up."""
    setup, text = path.world.tools.unbound_control.with_name("unbound-control-setup"), path.unbound.config.read_text()
    subprocess.run([setup, "-d", tmp_path], check=True, capture_output=True)
    lines = ["control-use-cert: yes", "    control-interface: 127.0.0.1",
             *(f'    {who}-{kind}-file: "{tmp_path}/unbound_{who}.{end}"' for who in ("server", "control")
               for kind, end in (("key", "key"), ("cert", "pem")))]
    path.unbound.stop()
    path.unbound.config.write_text(re.sub(r"control-use-cert: no\n +control-interface: .*", "\n".join(lines), text))
    path.unbound.start()
    yield path
    if path.unbound.program.running():
        path.unbound.stop()
    path.unbound.config.write_text(text)
    path.unbound.start()
    wait_until(path.daemon.resolver_ready, SOON, "Unbound's module to register with hydnsd")


def test_ok_over_tls(tls):
    """reload and stop are answered by another thread than all other commands, over the same connection."""
    for _ in range(3):
        assert tls.unbound.control("reload") == "ok\n"
        assert "is running" in tls.unbound.control("status")
    assert tls.unbound.control("reload_keep_cache") == "ok\n"
    assert tls.unbound.control("stop") == "ok\n"
    assert tls.unbound.program.popen.wait(SOON) == 0


SHORT = {f"short{i}": [f"{1 + i % 3} A 192.0.2.{i + 1}"] for i in range(50)}
RESOLUTION = 0.02      # seconds that the authoritative server takes, so that clients wait when a reload comes
LATELY = 1.0           # seconds before a reload, whose queries tell how long clients wait for Unbound
MOST = 1.0             # seconds: what was sent longer than that before a reload is never excused

Reload = namedtuple("Reload", "begun given left stall")
"""Moments in ns: from which on the former reload has no part in what happens; of the command; of its return, when Unbound has
left its loop. stall: seconds for which this process was held up meanwhile, or lately."""


@pytest.mark.limit(300)
def test_reload_under_load_of_short_ttls(path):
    """Of all queries only such may be lost as Unbound was resolving when it left its loop for the reload, which Unbound
    alone loses as well. What comes from then on waits in its sockets."""
    world = path.world
    world.rewrite_lab({**records(), **SHORT})
    world.relay.delay = RESOLUTION
    try:
        until_conclusive(lambda number, pace: reload_under_load(path))
    finally:
        world.relay.behave()
        world.rewrite_lab(records())


def reload_under_load(path):
    questions, reloads, begun = [(f"{label}.lab.example", "A") for label in SHORT], [], 0
    with Ticks() as ticks, Asker(path.world, path.network.client1, SERVICE[4], questions, 2000, timeout=SOON) as asker:
        for _ in range(5):
            before = path.daemon.reasons()["ANSWERED"]
            wait_until(lambda: path.daemon.reasons()["ANSWERED"] > before + 2000, SOON, "the kernel to answer the load")
            given = time.monotonic_ns()
            path.unbound.control("reload")     # Unbound has left its loop when this returns
            left = time.monotonic_ns()
            path.unbound.control("status")
            reloads.append(Reload(begun, given, left, ticks.longest(given / 1e9 - LATELY)))
            begun = time.monotonic_ns()
        answers = asker.result()
    lost = [a for a in answers if a.latency is None]
    print(f"{len(lost)} of {len(answers)} queries were lost in {len(reloads)} reloads")
    assert not [a for a in answers if a.rcode not in (None, 0)]
    by_reload = [[a for a in lost if r.begun < a.sent < r.left] for r in reloads]
    other = [a for a in lost if not any(a in some for some in by_reload)]
    assert not other, f"{len(other)} queries were lost after a reload: {other[:3]}"
    for reload, some in zip(reloads, by_reload):
        judge_lost(reload, some, [a for a in answers if reload.begun < a.sent and a.latency is not None])


def waiting_time(reload, answered):
    """Seconds for which a client may have been waiting for Unbound at the reload: twice what the slowest answer took of
    late, and what this machine has taken."""
    lately = [min(a.latency, reload.left - a.sent) / 1e9 for a in answered if -LATELY * 1e9 < a.sent - reload.given < 0]
    waits = 2 * max(RESOLUTION, *lately) + reload.stall
    if waits > MOST:
        raise Inconclusive(f"clients wait for up to {waits:.2f} s")
    return waits


def is_cached(lost, reload, answered):
    """The same question was answered before, with a TTL that outlived the reload: Unbound had nothing to resolve. A TTL's last
    second may be under way, and the kernel's may be one more."""
    return any(a.question == lost.question and a.sent + a.latency < lost.sent
               and a.sent + a.latency + (a.ttl - 2) * 1e9 > reload.left for a in answered)


def judge_lost(reload, lost, answered):
    """Queries lost before Unbound left its loop must be those that it was resolving then."""
    if not lost:
        return
    waits = waiting_time(reload, answered)
    never = [a for a in lost if a.sent < reload.given - MOST * 1e9 or is_cached(a, reload, answered)]
    assert not never, f"{len(never)} of {len(lost)} queries were lost that Unbound was not resolving: {never[:3]}"
    early = [(reload.given - a.sent) / 1e9 for a in lost if a.sent < reload.given - waits * 1e9]
    if early:
        raise Inconclusive(f"{len(early)} of {len(lost)} lost queries were sent up to {max(early):.2f} s before the reload, "
                           f"and clients waited for up to {waits:.2f} s")


# A query of each kind: seconds before the reload, seconds that its answer took (None: lost), the answer's TTL.
CALM = [(-0.5, 0.001, 1), (-0.4, RESOLUTION, 1)]


@pytest.mark.parametrize("queries, verdict", [
    ([*CALM, (-0.01, None, None)], None),
    ([*CALM, (-1.2, None, None)], AssertionError),
    ([*CALM, (-9.0, 8.0, 1), (-1.2, None, None)], AssertionError),
    ([*CALM, (-0.3, 0.001, 3), (-0.01, None, None)], AssertionError),
    ([*CALM, (-0.5, None, None)], Inconclusive),
    ([*CALM, (-0.9, 0.8, 1), (-0.01, None, None)], Inconclusive)],
    ids=("being resolved", "long before", "beside a slow one", "of a cached name", "too early", "while all is slow"))
def test_losses_are_judged(queries, verdict):
    """The judge of the test above."""
    def ns(seconds):
        return int((100 + seconds) * 1e9)
    asked = [Answer(ns(at), None if took is None else int(took * 1e9), 0, None if took is None else 0, ttl, None)
             for at, took, ttl in queries]
    lost, answered = ([a for a in asked if (a.latency is None) == is_lost] for is_lost in (True, False))
    reload = Reload(ns(-50), ns(0), ns(0.01), 0.0)
    if verdict:
        with pytest.raises(verdict):
            judge_lost(reload, lost, answered)
    else:
        judge_lost(reload, lost, answered)


def test_flush_with_dnssec_ok(path):
    g = Generation.next()
    under_load(path, ("flush", NAME), address(g), generation=g, dnssec=True)


def test_flush_of_a_target_reaches_its_aliases(path):
    g = Generation.next()
    under_load(path, ("flush", NAME), address(g), question=("chain.lab.example", "A"), generation=g)


def test_local_data(path):
    """local_data takes precedence from the moment it returned; after its removal the name can be hot again."""
    path.unbound.control("flush", NAME)
    under_load(path, ("local_data", f"{NAME}. 300 IN A 203.0.113.9"), "cb007109", hot_again=False)
    path.unbound.control("local_data_remove", NAME)
    path.world.heat(path.daemon, NAME, "A")
    reply = ask(path.network.client1, SERVICE[4], NAME)
    assert reply.answer[0][0].address.startswith("192.0.2.")


def test_local_zone(path):
    """A local zone refuses what the kernel has just answered, and its removal brings the answer back."""
    name = "host2.lab.example"
    path.world.heat(path.daemon, name, "A")
    path.unbound.control("local_zone", f"{name}.", "always_nxdomain")
    assert ask(path.network.client1, SERVICE[4], name).rcode() == 3
    path.unbound.control("local_zone_remove", f"{name}.")
    assert ask(path.network.client1, SERVICE[4], name).rcode() == 0


# --- the middle of an alias chain -----------------------------------------------------------------------------
# commands about the middle of a chain, way -> hop -> www
COMMANDS = {
    "flush_type": [("flush_type", "{hop}", "CNAME")],
    "local_data": [("local_data", "{hop}. 300 A 203.0.113.10"), ("local_data_remove", "{hop}")],
    "local_zone": [("local_zone", "{hop}.", "always_nxdomain"), ("local_zone_remove", "{hop}.")],
    "local_datas": [("local_datas",), ("local_datas_remove",)],
    "flush_negative": [("flush_negative",)],
    "flush_bogus": [("flush_bogus",)],
}
ON_STDIN = {"local_datas": "{hop}. 300 A 203.0.113.11\n", "local_datas_remove": "{hop}.\n"}
VARIANTS = ({}, {"dnssec": True})


def chain(number):
    return [f"{label}{number}.lab.example" for label in ("way", "hop")]


@pytest.fixture(scope="module")
def chains(path):
    """Hot, and in the cache of Unbound alone; yields the two resolvers."""
    with path.world.reference() as reference:
        for flags in VARIANTS:
            for number in range(len(COMMANDS)):
                for name in chain(number):
                    path.world.heat(path.daemon, name, **flags)
        yield path.unbound, reference


def assert_as_unbound_alone(path, names):
    for name in names:
        for flags in VARIANTS:
            wire = query(name, **flags).to_wire()
            ours, theirs = (exchange(path.network.client1, s[4], wire) for s in (SERVICE, REFERENCE))
            assert difference(ours, theirs, ttl_slack=300) is None, name


def places(path, names):
    return {path.daemon.explain(name, do=bool(flags))["where"] for name in names for flags in VARIANTS}


@pytest.mark.parametrize("command", COMMANDS)
def test_middle_of_a_chain(path, chains, command):
    """A command about an alias also withdraws the answers that lead through it before it returns."""
    names = chain(list(COMMANDS).index(command))
    for flags in VARIANTS:
        for name in names:
            path.world.heat(path.daemon, name, **flags)
    assert_as_unbound_alone(path, names)
    for words in COMMANDS[command]:
        for unbound in chains:
            unbound.control(*(word.format(hop=names[1]) for word in words),
                            text=ON_STDIN.get(words[0], "").format(hop=names[1]))
        assert places(path, names) == {"resolver"}
        assert_as_unbound_alone(path, names)
