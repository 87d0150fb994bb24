# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The storm (test-harness/chaos): what its judge finds wrong and what not, that it finds faults in running servers, and a
minute of it. Losses and times without kernel answers are shown, and not judged here: the machine has a part in them."""

import json
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.client import Answer, Asker, Stray
from lab.crowd import Crowd
from lab.network import CLIENT1, DEFAULT_HOPS, RESOLVER_HOPS
from lab.others import kind_of
from storm import clocks, configuration, forwarded, limits, network, parked, report, zone
from storm.growth import RESOLVER, Growth
from storm.judge import CONFIGURATION, ERROR, HOMELESS, OfNamed, OfResolver, OfZone
from storm.ledger import SECOND, Event, Flush, Ledger, Regime, Span
from storm.servers import SERVERS as STORM_SERVERS
from storm.servers import at, denials, everything, nothing
from storm.session import Result, Row, Session
from storm.shrink import TRIES, Shrinker
from storm.zone import Key, Question

CHAOS = Path(__file__).resolve().parent.parent / "chaos"
FRESH, STEADY, GHOST = zone.FRESH[0], zone.STEADY[0], zone.GHOSTS[0]
ALIAS = Question(Key(zone.name("alias0"), "A"), STEADY)
UNBOUND = STORM_SERVERS["unbound", "recursive"]
CLIENT = SimpleNamespace(name="client", link="r1", family=4)
T = 1000 * SECOND                 # when the authoritative server was asked


class Case:
    """A ledger made by hand, and replies judged by it. The judge reads the ledger when it is made: at the first reply."""

    def __init__(self, judge):
        self.ledger, self.kind, self._judge = Ledger(), judge, None

    def version(self, key, *fetches, present=True, acknowledged=None):
        """A new version; its stamp."""
        stamp, datum = self.ledger.new(key, present=present)
        datum.begun, datum.fetches, datum.acknowledged = acknowledged or 0, list(fetches), acknowledged
        return stamp

    def lost(self, seconds):
        self._judge = self._judge or self.kind(self.ledger)
        self._judge.lost(Answer(T + int(seconds * SECOND), None, 0, None, None, None))

    def reply(self, key, stamp, seconds, ttl=None, *, hops=DEFAULT_HOPS, rcode=0, question=None, denied=False,
              alias_ttl=None, latency=10**6):
        """What is wrong with a reply to a query sent so many seconds after T."""
        self._judge = self._judge or self.kind(self.ledger)
        shown = zone.SOA if denied else key
        octets = stamp.to_bytes(4, "big").hex()
        ttl = zone.ttl(shown) if ttl is None else ttl
        answer = Answer(T + int(seconds * SECOND), latency, 0, rcode, ttl, octets if shown.rdtype != "AAAA" else
                        f"20010db8{16 * '0'}{octets}", hops, None if denied else ttl if alias_ttl is None else alias_ttl)
        wrong = self._judge.of(CLIENT, question or Question(key, key), answer)
        return wrong and wrong.kind


def test_data():
    """Wrong are another name's data, unknown data, another question's, an error from the kernel, and an unknown hop limit."""
    case = Case(OfResolver)
    mine, other = case.version(STEADY, T), case.version(zone.STEADY[2], T)
    assert case.reply(STEADY, mine, 1) is None
    assert case.reply(STEADY, other, 1) == "data" and case.reply(STEADY, mine + 5, 1) == "data"
    assert case.reply(STEADY, mine, 1, rcode=-1) == "question"
    assert case.reply(STEADY, mine, 1, hops=17) == "hop limit"
    assert case.reply(STEADY, mine, 1, rcode=2) == "error from the kernel"
    assert case.reply(STEADY, mine, 1, rcode=2, hops=RESOLVER_HOPS) is None


def test_ttl_of_a_resolver():
    """It counts down from the zone's TTL, and starts again only with new data."""
    whole = zone.ttl(FRESH)
    case = Case(OfResolver)
    stamp = case.version(FRESH, T)
    assert case.reply(FRESH, stamp, 0, whole) is None
    assert case.reply(FRESH, stamp, 0.1, whole + 1) == "TTL", "above the zone's"
    assert case.reply(FRESH, stamp, 0.1, whole + 1, hops=RESOLVER_HOPS) == "TTL"
    assert case.reply(FRESH, stamp, whole - 1, 1) is None
    assert case.reply(FRESH, stamp, whole - 0.5, whole) == "TTL", "it has not counted down"
    assert case.reply(FRESH, stamp, whole + 3, 0) == "expired"
    steady = case.version(zone.STEADY[6], T, T + 20 * SECOND)
    whole = zone.ttl(zone.STEADY[6])
    assert case.reply(zone.STEADY[6], steady, 20.1, whole) is None, "fetched again"
    assert case.reply(zone.STEADY[6], steady, 24, whole - 4) is None
    assert case.reply(zone.STEADY[6], steady, 24.5, whole) == "TTL"


def test_named_may_be_a_second_ahead():
    """Its own replies, not the kernel's."""
    whole = zone.ttl(FRESH)
    case = Case(OfNamed)
    stamp = case.version(FRESH, T)
    assert case.reply(FRESH, stamp, 0.1, whole + 1, hops=RESOLVER_HOPS) is None
    assert case.reply(FRESH, stamp, 0.1, whole + 1) == "TTL"
    assert case.reply(FRESH, stamp, 0.1, whole + 2, hops=RESOLVER_HOPS) == "TTL"
    assert case.reply(FRESH, stamp, 1.1, whole + 1, hops=RESOLVER_HOPS) == "TTL"


def test_a_ttl_does_not_grow():
    """Even when it was lower than allowed before."""
    case = Case(OfResolver)
    stamp = case.version(zone.FRESH[6], T)
    assert case.reply(zone.FRESH[6], stamp, 2, 10) is None
    assert case.reply(zone.FRESH[6], stamp, 3, 10) is None, "seconds are whole, and a change of one second is not announced"
    assert case.reply(zone.FRESH[6], stamp, 5, 20) == "TTL"
    case = Case(OfResolver)
    stamp = case.version(zone.STEADY[4], T, T + 14 * SECOND)
    assert case.reply(zone.STEADY[4], stamp, 15.5, 1) is None, "of a rule that was made before the second fetch"
    assert case.reply(zone.STEADY[4], stamp, 16, 13) is None


def test_the_alias_ttl_counts_too():
    case = Case(OfResolver)
    stamp = case.version(STEADY, T + 18 * SECOND)
    case.version(Key(ALIAS.key.owner, "CNAME"), T)
    assert case.reply(STEADY, stamp, 19, 3, question=ALIAS, alias_ttl=1) is None
    assert case.reply(STEADY, stamp, 19, 3, question=ALIAS, alias_ttl=zone.ALIAS_TTL) == "TTL"


def test_a_stopped_resolver_counts_later():
    case = Case(OfResolver)
    stamp = case.version(FRESH, T)
    case.ledger.stopped.append(Span("stopped", T - SECOND // 10, T + 3 * SECOND))
    assert case.reply(FRESH, stamp, 4, zone.ttl(FRESH)) is None
    assert case.reply(FRESH, stamp, 7, zone.ttl(FRESH)) == "TTL"


def test_data_wait_for_a_busy_authoritative_server_and_resolver():
    """The judge takes the time when the authoritative server had sent them, and the clients that waited for the resolver
    then."""
    whole = zone.ttl(FRESH)
    case = Case(OfResolver)
    stamp = case.version(FRESH, T)
    case.ledger.sent[T] = T + 2 * SECOND
    assert case.reply(FRESH, stamp, 3.5, whole) is None
    assert case.reply(FRESH, stamp, 4.5, whole) == "TTL"
    case = Case(OfResolver)
    stamp, steady = case.version(FRESH, T + 2 * SECOND), case.version(STEADY, T - SECOND)
    assert case.reply(STEADY, steady, 1, 1, hops=RESOLVER_HOPS, latency=3 * SECOND) is None
    assert case.reply(STEADY, steady, 1.5, 1, hops=RESOLVER_HOPS, latency=SECOND) is None
    assert case.reply(FRESH, stamp, 5.5, whole) is None
    assert case.reply(FRESH, stamp, 6.5, whole) == "TTL"
    case = Case(OfResolver)
    stamp = case.version(FRESH, T + SECOND)
    case.lost(0.5)
    assert case.reply(FRESH, stamp, 4.5, whole) is None, "a query without a reply waits for two seconds"
    assert case.reply(FRESH, stamp, 5.5, whole) == "TTL"
    case = Case(OfResolver)
    stamp = case.version(zone.FRESH[6], T + SECOND)
    for seconds in (0.5, 2, 3.5):
        case.lost(seconds)
    whole6 = zone.ttl(zone.FRESH[6])
    assert case.reply(zone.FRESH[6], stamp, 7, whole6) is None, "whoever waited when another gave up, and so on"
    assert case.reply(zone.FRESH[6], stamp, 8, whole6) == "TTL"
    for how in ({"hops": DEFAULT_HOPS, "latency": 3 * SECOND}, {"hops": RESOLVER_HOPS, "latency": SECOND // 3}):
        case = Case(OfResolver)
        stamp, steady = case.version(FRESH, T + 2 * SECOND), case.version(STEADY, T - SECOND)
        assert case.reply(STEADY, steady, 1.9, 1, **how) is None
        assert case.reply(FRESH, stamp, 5.5, whole) == "TTL"


@pytest.mark.parametrize("covers, wrong", (
    (everything, "flushed"), (at(FRESH.owner), "flushed"), (at(FRESH.owner, ("A",)), "flushed"),
    (at(FRESH.owner, ("AAAA",)), None), (denials, None), (nothing, None)))
def test_flush(covers, wrong):
    """Of data fetched, or seen, before it; not of data that it does not cover, nor before it has returned."""
    for fetched, seen in ((-1.5, None), (-0.2, -0.1)):
        case = Case(OfResolver)
        stamp = case.version(FRESH, T + int(fetched * SECOND))
        later = case.version(FRESH, T + SECOND // 100)
        case.ledger.flushes.append(Flush("flush", T, T + SECOND // 20, covers))
        if seen:
            assert case.reply(FRESH, stamp, seen, 3) is None
        assert case.reply(FRESH, stamp, 0.04, 2) is None
        assert case.reply(FRESH, stamp, 0.06, 2) == wrong
        assert case.reply(FRESH, later, 0.06) is None


def test_fetched_while_a_flush_began():
    """The authoritative server's reply may have been on its way."""
    case = Case(OfResolver)
    stamp = case.version(FRESH, T - SECOND // 100)
    case.ledger.flushes.append(Flush("flush", T, T + SECOND // 20, everything))
    assert case.reply(FRESH, stamp, 0.06) is None


def test_denials_of_a_resolver():
    case = Case(OfResolver)
    soa = case.version(zone.SOA, T)
    case.ledger.denials[GHOST].append(T)
    text = Key(STEADY.owner, "TXT")
    case.ledger.denials[text].append(T)
    assert case.reply(GHOST, soa, 1, 5, rcode=3, denied=True) is None
    assert case.reply(GHOST, soa, 1, 5, denied=True) == "data", "no such name"
    assert case.reply(text, soa, 1, 5, denied=True) is None
    assert case.reply(text, soa, 1, 5, rcode=3, denied=True) == "data"
    assert case.reply(STEADY, soa, 1, 5, denied=True) == "data", "never denied"
    late = case.version(zone.SOA, T + 8 * SECOND)
    assert case.reply(GHOST, late, 9, 5, rcode=3, denied=True) == "expired", "another's SOA"
    case = Case(OfResolver)
    soa = case.version(zone.SOA, T)
    case.ledger.denials[GHOST].append(T)
    case.ledger.flushes.append(Flush("flush_negative", T + 2 * SECOND, T + 2 * SECOND, denials))
    assert case.reply(GHOST, soa, 1, 5, rcode=3, denied=True) is None
    assert case.reply(GHOST, soa, 3, 3, rcode=3, denied=True) == "flushed"


def test_where_the_kernel_must_not_answer():
    case = Case(OfResolver)
    stamp = case.version(zone.FRESH[6], T)
    case.ledger.mute.append(Span("paused", T + SECOND, T + 2 * SECOND))
    case.ledger.homeless.append(Span("gone", T + 3 * SECOND, T + 4 * SECOND, family=4))
    assert case.reply(zone.FRESH[6], stamp, 0.9) is None
    assert case.reply(zone.FRESH[6], stamp, 1.5, 28) == "answered in the kernel"
    assert case.reply(zone.FRESH[6], stamp, 1.5, 28, hops=RESOLVER_HOPS) is None
    assert case.reply(zone.FRESH[6], stamp, 2.1, 27) is None
    assert case.reply(zone.FRESH[6], stamp, 3.5, 26) == HOMELESS


def test_a_configuration():
    """While it stands nothing else is right; while a command is at work, either is; later only what was before."""
    def refused(question, answer):
        return answer.rcode == 5
    case = Case(OfResolver)
    stamp = case.version(zone.FRESH[6], T)
    other = Regime("other", *(T + n * SECOND for n in (1, 2, 3, 4)), "r1", 4, lambda question: question.key == zone.FRESH[6], refused)
    case.ledger.regimes += [other, Regime("elsewhere", *(T + n * SECOND for n in (5, 6, 7, 8)), "r2", None, lambda question: True, refused)]
    for seconds, ttl, wrong in ((0.5, 29, None), (1.5, 28, None), (2.5, 27, CONFIGURATION), (3.5, 26, None), (4.5, 25, None), (6.5, 23, None)):
        assert case.reply(zone.FRESH[6], stamp, seconds, ttl) == wrong, seconds
    for seconds, wrong in ((0.5, ERROR), (1.5, None), (2.5, None), (3.5, None), (4.5, ERROR), (6.5, ERROR)):
        assert case.reply(zone.FRESH[6], stamp, seconds, rcode=5) == wrong, seconds


def test_a_remembered_failure():
    """The kernel may repeat what the resolver was seen to fail at, for some seconds, until a flush."""
    case = Case(OfResolver)
    case.version(STEADY, T)
    assert case.reply(STEADY, 0, 1, rcode=2) == ERROR, "nobody has seen it"
    assert case.reply(STEADY, 0, 2, rcode=2, hops=RESOLVER_HOPS) is None
    assert case.reply(STEADY, 0, 3, rcode=2) is None and case.reply(STEADY, 0, 3, rcode=5) == ERROR
    assert case.reply(zone.STEADY[2], 0, 3, rcode=2) == ERROR, "another name"
    assert case.reply(STEADY, 0, 9, rcode=2) == ERROR, "too long"
    case = Case(OfResolver)
    case.ledger.flushes.append(Flush("flush", T + 3 * SECOND, T + 3 * SECOND, everything))
    assert case.reply(STEADY, 0, 2, rcode=2, hops=RESOLVER_HOPS) is None and case.reply(STEADY, 0, 2.5, rcode=2) is None
    assert case.reply(STEADY, 0, 4, rcode=2) == ERROR, "flushed"


def test_a_zone():
    """An update's data from its sending on, only these from its acknowledgement on, and TTLs as they stand."""
    case = Case(OfZone)
    first = case.version(STEADY, acknowledged=1)
    stamp, datum = case.ledger.new(STEADY)
    datum.begun, datum.acknowledged = T, T + SECOND
    unknown, lost = case.ledger.new(STEADY)
    lost.begun = T + 2 * SECOND
    assert case.reply(STEADY, first, 0.5) is None and case.reply(STEADY, stamp, 0.5) is None
    assert case.reply(STEADY, first, 1.5) == "outdated" and case.reply(STEADY, stamp, 1.5) is None
    assert case.reply(STEADY, stamp, 3) is None and case.reply(STEADY, unknown, 3) is None, "nobody knows"
    assert case.reply(STEADY, unknown, 1.5) == "outdated", "from the future"
    assert case.reply(STEADY, stamp, 1.5, zone.ttl(STEADY) - 1) == "TTL"


def test_denials_of_a_zone():
    case = Case(OfZone)
    serials = [case.version(zone.SOA, acknowledged=1), case.version(zone.SOA, acknowledged=T)]
    case.version(GHOST, acknowledged=1)
    case.version(GHOST, present=False, acknowledged=T)
    assert case.reply(GHOST, serials[0], -1, rcode=3, denied=True) == "data", "it was there"
    assert case.reply(GHOST, serials[1], 1, rcode=3, denied=True) is None
    assert case.reply(GHOST, serials[0], 1, rcode=3, denied=True) == "outdated"


def test_verdict():
    """Anything but losses makes it bad; losses do when the resolver alone loses fewer."""
    def faults(alone=None, **found):
        return report.figures("Unbound", 1, 1, Result(found.pop("rows", {}), replies=1, **found), alone)["faults"]
    assert not faults()
    for found in ({"wrong": {"TTL": 1}}, {"strays": {"twice": 1}}, {"strays": {"address": 1}}, {"left": ["a pin"]}, {"grown": ["pins"]}):
        assert faults(**found)
    lossy = {"hogs": Row(1, lost=100, lost_there=30)}
    assert not faults(rows=lossy) and not faults(Result({"hogs": Row(1, lost_there=25)}), rows=lossy)
    few = Result({"hogs": Row(1, lost_there=5)})
    assert faults(few, rows=lossy) and faults(few, rows=lossy, parked=10) and not faults(few, rows=lossy, parked=20)


class Judged:
    """The Result of a storm made by hand, of one event of a second and one client."""

    def __init__(self, kind):
        self.session = Session(UNBOUND, "1", 4000)
        self.ledger = self.session.ledger = Ledger()
        self.ledger.events.append(Event(1, kind, T, T + SECOND, ""))
        self.session.growth = SimpleNamespace(findings=[], figures=dict)
        self.session.finished = T + 5 * SECOND

    def result(self, answers=(), strays=()):
        question = Question(STEADY, STEADY)
        clients = SimpleNamespace(all=[CLIENT], strays=lambda: [(CLIENT, stray) for stray in strays],
                                  replies=lambda: ((CLIENT, question, answer) for answer in answers))
        return self.session._judge(clients, [])


@pytest.mark.parametrize("dropped, lost, there", ((3, 3, 0), (2, 3, 1), (0, 3, 3)))
def test_a_dropped_packet_may_lose_a_query(dropped, lost, there):
    """And no more than one; nor one when nothing is dropped."""
    judged = Judged(network.LOST)
    judged.ledger.lossy.append(Span(dropped, T, T + SECOND, "r1"))
    silent = [Answer(T + SECOND // 2 + n, None, 0, None, None, None) for n in range(lost)]
    result = judged.result(silent)
    assert (result.lost, result.lost_there) == (lost, there)
    assert judged.result([answer._replace(sent=answer.sent + 2 * SECOND) for answer in silent]).lost_there == lost


def test_two_replies_to_a_doubled_query():
    judged = Judged("packets doubled")
    judged.ledger.doubled.append(Span("doubled", T, T + SECOND, "r1"))
    for seconds, why, found in ((0.5, "twice", {}), (0.5, "address", {"address": 1}), (3, "twice", {"twice": 1})):
        assert judged.result(strays=[Stray(T + int(seconds * SECOND), why, DEFAULT_HOPS, "somebody")]).strays == found


def test_how_long_a_name_is_away():
    """Of the kernel's answers to one question at one client, by the event before."""
    judged = Judged("hogs")
    stamp, datum = judged.ledger.new(STEADY)
    datum.begun, datum.fetches = 0, [T]
    octets = stamp.to_bytes(4, "big").hex()
    kernel, resolver = (Answer(T, 10**6, 0, 0, 3, octets, hops, 3) for hops in (DEFAULT_HOPS, RESOLVER_HOPS))
    answers = [one._replace(sent=T + int(at * SECOND)) for at, one in ((0.1, kernel), (1.1, resolver), (2.1, kernel), (2.3, kernel))]
    assert judged.result(answers).rows["hogs"].names == 2.0


def test_asker_watches(world):
    """With -w asker records late and second replies, other senders, unasked datagrams, and hop limits."""
    ns = world.network.client1

    def bound(address):
        with ns.entered():
            s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, 5300))
        s.settimeout(5)
        return s

    def serve(server, other):
        for number in range(4):
            wire, client = server.recvfrom(512)
            reply = wire[:2] + b"\x81\x80" + wire[4:6] + b"\0\1" + wire[8:] + b"\xc0\x0c\0\1\0\1\0\0\0\7\0\4\x0a\0\0\1"
            if number == 0:
                server.sendto(reply, client)
                server.sendto(reply, client)
            elif number == 1:
                other.sendto(reply, client)
            elif number == 2:
                server.sendto(bytes((wire[0] ^ 0x40, wire[1])) + reply[2:], client)

    for first, second in ((CLIENT1[4], "10.53.1.3"), (CLIENT1[6], "fd53:1::3")):
        with bound(first) as server, bound(second) as other:
            thread = threading.Thread(target=serve, args=(server, other))
            thread.start()
            asker = Asker(world, ns, first, [("a.example", "A")], 20, seconds=0.2, timeout=0.5, watch=True)
            asker.argv += ["-p", 5300]
            with asker:
                answers = asker.result()
            thread.join()
        got = [a for a in answers if a.latency is not None]
        assert len(answers) == 4 and len(got) == 1
        assert (got[0].rcode, got[0].ttl, got[0].first_ttl, got[0].rdata, got[0].hops) == (0, 7, 7, "0a000001", DEFAULT_HOPS)
        assert sorted((s.why, s.sender) for s in asker.strays) == [("address", second), ("twice", first), ("unasked", first)]


def chaos(*arguments, shrink=0):
    """The finished process. shrink: for so many seconds."""
    done = subprocess.run([sys.executable, CHAOS, "--shrink", str(shrink), *map(str, arguments)], capture_output=True, text=True)
    print(done.stdout[-8000:], done.stderr[-2000:])
    return done


def test_a_leak_is_found(tmp_path):
    """Pins and connections that stay, in the kernel and in hydnsd."""
    file = tmp_path / "figures.json"
    done = chaos("--seconds", 3, "--no-comparison", "--fault", "leak", "--kind", "hydnsd reloaded", "--json", file)
    found = json.loads(file.read_text())
    assert done.returncode == 1 and not found["wrong"] and not found["left"]
    assert {what for what in ("pins", "descriptors of hydnsd") if any(what in one for one in found["grown"])} == \
        {"pins", "descriptors of hydnsd"}, found["grown"]


MIB = 1 << 20


@pytest.mark.parametrize("samples, found", [
    ((80, 90, 90, 90), 0), ((80, 90, 120, 110, 140), 0),        # before it has settled; peaks
    ((80, 90, *range(91, 100)), 1), ((80, 90, 120, 140, *range(141, 149)), 1),  # with each; beside peaks
    ((80, 90, 160), 1), ((80,), 0), ((80, 90), 0)],
    ids=("at first", "peaks", "a leak", "a leak and peaks", "much", "one sample", "two samples"))
def test_how_a_resolver_may_grow(samples, found):
    growth = Growth(None, SimpleNamespace(call=lambda request: {"daemon_bytes": 0}), None, lambda text: None)
    growth.lives = {(RESOLVER, 1): [n * MIB for n in samples]}
    growth.end()
    assert len(growth.findings) == found, growth.findings


FAULTS = {"flush": ("flushed", "flushes"), "rule": ("data", "hydnsd reloaded"), "ttl": ("TTL", "hydnsd reloaded")}
SERVERS = {"unbound": (), "bind": ("--server", "bind"),
           **{f"bind-{role}": ("--server", "bind", "--role", role) for role in ("authoritative", "preloaded")},
           "unbound-preloaded": ("--role", "preloaded")}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("server", ("unbound", "bind-authoritative"))
def test_a_fault_is_found(tmp_path, server, fault):
    """Made in running servers."""
    kind, event = FAULTS[fault]
    file = tmp_path / "figures.json"
    done = chaos("--seconds", 8, "--no-comparison", "--fault", fault, "--kind", event, "--json", file, *SERVERS[server])
    if server == "bind-authoritative" and fault == "flush":
        kind = "outdated"
    assert done.returncode == 1 and set(json.loads(file.read_text())["wrong"]) == {kind}
    assert f"wrong: {kind}" in done.stdout.splitlines()[-1]


def test_a_change_that_is_not_made_is_found(tmp_path):
    """A client's address is refused by the ledger alone."""
    file = tmp_path / "figures.json"
    done = chaos("--seconds", 3, "--no-comparison", "--fault", "flush", "--kind", "access changed", "--json", file)
    assert done.returncode == 1 and set(json.loads(file.read_text())["wrong"]) == {CONFIGURATION}


@pytest.mark.parametrize("needed", ([3], [1, 4], [0, 2, 6], [7], []))
def test_the_fewest_events(needed):
    """Of eight; and none when they do not make it again. No events are tried again that have made none."""
    tried = []

    def again(events):
        tried.append(tuple(events))
        return bool(needed) and set(needed) <= set(events)
    events = list(range(8))
    assert Shrinker(again, 60, lambda text: None).smallest(events) == (needed or None)
    assert all(tried.count(one) <= TRIES for one in tried)
    assert Shrinker(again, 0, lambda text: None).smallest(events) is None, "no time"


@pytest.mark.limit(240)
def test_a_wrong_reply_is_shrunk(tmp_path):
    """To the event after which it comes, with the command that makes it; without the one before. Number 36 flushes all."""
    file = tmp_path / "figures.json"
    events = ("--event", "1:rules flushed", "--event", "36:flushes")
    done = chaos("--no-comparison", "--fault", "flush", *events, "--json", file, shrink=60)
    found = json.loads(file.read_text())
    assert done.returncode == 1 and found["events"] == [[1, "rules flushed"], [36, "flushes"]]
    assert found["smallest"] == [[36, "flushes"]] and found["command"] in done.stdout


def test_all_ways_at_once(tmp_path):
    """A forwarded zone, small rings, little room to wait, limits of clients: some seconds of it."""
    file = tmp_path / "figures.json"
    done = chaos("--seconds", 6, "--no-comparison", "--all-ways", "--json", file)
    found = json.loads(file.read_text())
    assert done.returncode == 0 and found["kernel_share"] > 0, done.stdout[-8000:]


PARTS = {"clocks": (clocks, 6, "unbound"), "limits": (limits, 12, "unbound"), "network": (network, 14, "unbound"),
         "configuration": (configuration, 9, "bind")}


@pytest.mark.limit(180)
@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_the_storm(tmp_path, part):
    """Its kinds, as many as there is time for."""
    module, seconds, server = PARTS[part]
    file = tmp_path / "figures.json"
    kinds = [word for kind in module.KINDS for word in ("--kind", kind)]
    done = chaos("--seconds", seconds, "--no-comparison", "--json", file, *kinds, *SERVERS[server])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert json.loads(file.read_text())["disruptions"]


@pytest.mark.limit(180)
@pytest.mark.parametrize("server", SERVERS)
def test_a_storm(tmp_path, server):
    """A third of a minute with each server: nothing wrong, doubled or left."""
    file = tmp_path / "figures.json"
    done = chaos("--seconds", 20, "--no-comparison", "--seed", server, "--json", file, *SERVERS[server])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    found = json.loads(file.read_text())
    assert not found["faults"] and found["disruptions"] and found["kernel_share"] > 0
    assert done.stdout.splitlines()[-1].endswith("0 wrong, 0 doubled, nothing left, nothing grown")


@pytest.mark.parametrize("victim, lost, missing, wrong", [
    (parked.UPSTREAM, 0, 0, 0), (parked.UPSTREAM, 1, 0, 1), (parked.UPSTREAM, 0, 1, 1), (parked.UPSTREAM, 0, -1, 1),
    (parked.RESOLVER, 9, 0, 0), (parked.RESOLVER, 9, 1, 1), (parked.HYDNSD, 9, 9, 0), (parked.HYDNSD, 10, 9, 1),
    (parked.HYDNSD, 40, 40, 0), (parked.HYDNSD, 41, 41, 1)])
def test_which_queries_may_be_lost_beside_a_kill(victim, lost, missing, wrong):
    """40 were parked. What a killed hydnsd had, and what a killed resolver had read; no other."""
    p = parked.Parked("unbound", "1", lambda text: None)
    p._judge(victim, Crowd(150, lost, 0, [], set(), 0.0, [], True), parked.Round(missing, 0, 40, 0, 0, 20))
    assert len(p.result.wrong) == wrong, p.result.wrong
    p._judge(victim, Crowd(150, 0, 1, [], set(), 0.0, [], True), parked.Round(0, 0, 40, 0, 0, 20))
    assert len(p.result.wrong) == wrong + 1, "a second reply"


@pytest.mark.parametrize("kind, wrong", (("unbound", 0), ("bind", 1)))
def test_what_a_reload_may_lose(kind, wrong):
    """What Unbound had read; named goes on."""
    f = forwarded.Forwarded(kind, "1", lambda text: None)
    f._judge(forwarded.RELOAD, Crowd(150, 9, 0, [], set(), 0.0, [], True), parked.Round(0, 0, 40, 0, 0, 20))
    assert len(f.result.wrong) == wrong, f.result.wrong


@pytest.mark.parametrize("victim", (parked.UPSTREAM, parked.RESOLVER, parked.HYDNSD))
@pytest.mark.parametrize("missing, others, wrong", [(-1, 1, 0), (-2, 1, 1), (0, 5, 0)])
def test_two_ends_are_a_neighbours_frames_or_a_fault(victim, missing, others, wrong):
    p = parked.Parked("unbound", "1", lambda text: None)
    p._judge(victim, Crowd(150, 0, 0, [], set(), 0.0, [], True), parked.Round(missing, others, 40, 0, 0, 20))
    assert len(p.result.wrong) == wrong, p.result.wrong


def test_whom_the_kernel_answers_has_a_reply():
    """Also beside a killed resolver."""
    p = parked.Parked("unbound", "1", lambda text: None)
    for lost, wrong in ((30, 0), (31, 1)):
        p._judge(parked.RESOLVER, Crowd(150, lost, 0, [], set(), 0.0, [], True), parked.Round(0, 0, 120, 120, 0, 20))
        assert len(p.result.wrong) == wrong, p.result.wrong


@pytest.mark.parametrize("frame, kind", [
    (b"\xff" * 12 + b"\x08\x06" + bytes(46), "Ethernet type 0806"),
    (bytes(12) + b"\x08\x00\x45" + bytes(8) + b"\x11" + bytes(10) + b"\x12\x34\x00\x35", ""),
    (bytes(12) + b"\x08\x00\x45" + bytes(8) + b"\x01" + bytes(10) + b"\x03\x03\x00\x35", "IP protocol 1"),
    (bytes(12) + b"\x86\xdd\x60" + bytes(5) + b"\x3a" + bytes(33) + b"\x87\x00\x00\x35", "IP protocol 58"),
    (bytes(12) + b"\x86\xdd\x60" + bytes(5) + b"\x11" + bytes(33) + b"\x12\x34\x00\x35", "")],
    ids=("ARP", "query", "ICMP", "neighbour discovery", "query by IPv6"))
def test_frames_that_are_no_queries(frame, kind):
    assert kind_of(frame) == kind


@pytest.mark.limit(180)
@pytest.mark.parametrize("server", ("unbound", "bind"))
def test_kills_beside_parked_queries(tmp_path, server):
    """A few rounds; a thousand by command (COOKBOOK.md)."""
    file = tmp_path / "figures.json"
    done = chaos("--parked", 8, "--server", server, "--json", file)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    found = json.loads(file.read_text())
    assert not found["faults"] and found["parked"] and sum(found["rounds"].values()) == 8


@pytest.mark.limit(180)
@pytest.mark.parametrize("server", ("unbound", "bind"))
def test_kills_beside_forwarded_queries(tmp_path, server):
    file = tmp_path / "figures.json"
    done = chaos("--parked", 8, "--forward", "--server", server, "--json", file)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    found = json.loads(file.read_text())
    assert not found["faults"] and found["rounds_with_forwarded"] and sum(found["rounds"].values()) == 8


def test_data_of_another_round_are_found():
    """The judge knows which data a round has, and what a failure is."""
    for rcode, rdata, wrong in ((0, "c0000206", 0), (2, None, 0), (0, "c0000205", 1), (3, None, 1)):
        f = forwarded.Forwarded("unbound", "1", lambda text: None)
        f.asked = 5
        f._judge_answers("here", Crowd(150, 0, 0, [], {(0, rcode, rdata)}, 0.0, [], True))
        assert len(f.result.wrong) == wrong, (rcode, rdata, f.result.wrong)
