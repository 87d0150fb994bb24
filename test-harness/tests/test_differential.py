# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The differential tester (test-harness/differential): a short run of it, and proofs that it can fail."""

import json
import math
import random
import socket
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from pathlib import Path
from types import SimpleNamespace

import dns.message
import dns.rrset
import pytest

from conftest import bind_path, kernel_path
from differ import clocks, cookies, judge, slow_zones, zone
from differ.asking import (AGAIN, DIFFERS_KERNEL, DIFFERS_REFERENCE, DIRECT, FULL, KERNEL, REFERENCE_ASKED, TOGETHER, Flow, Group,
                           Twins)
from differ.authorities import DELAY, LATE, Authorities
from differ.commands import Commands
from differ.crowds import Crowds
from differ.ledger import SECOND, Ledger
from differ.questions import Data, zone_lines
from differ.record import Recorder, asked_upstream
from differ.servers import SERVERS
from differ.session import PATIENT_MS, Found, Session
from lab import changing_zones, pinned
from lab.attempts import Inconclusive, until_conclusive
from lab.client import ask, query
from lab.compare import Difference, difference, ttls
from lab.network import CLIENT1, SERVICE
from lab.relay import Relay, everything, nothing
from lab.run import SOON, wait_until
from lab.servers import EVERY_CLIENT_WAITS
from lab.whole_zones import KINDS

TESTER = Path(__file__).resolve().parent.parent / "differential"
HOT = "www.lab.example"
RECORDED = "host77.lab.example"
ANSWER = f"{RECORDED}. 300 IN A "
AROUND = "10.53.0.79"           # where a relay is
HELD_UP = 2.2                   # seconds


def reply(*, opt=True, rotate=0, swap=False, ttl=300, flags="QR RD RA"):
    """A reply with a chain, two addresses, a signature, an authoritative server and additional records."""
    addresses = ["192.0.2.1", "192.0.2.2", "192.0.2.3"]
    text = f"id 1\nopcode QUERY\nrcode NOERROR\nflags {flags}\n" + ("edns 0\npayload 1232\n" if opt else "")
    chain = [f"a.example. {ttl} IN CNAME b.example.", f"b.example. {ttl} IN CNAME c.example."]
    lines = ["a.example. IN A", ";ANSWER", *(reversed(chain) if swap else chain),
             *(f"c.example. {ttl} IN A {a}" for a in addresses[rotate:] + addresses[:rotate]),
             ";AUTHORITY", "example. 600 IN NS ns.example.", ";ADDITIONAL", "ns.example. 600 IN A 192.0.2.53"]
    m = dns.message.from_text(text + ";QUESTION\n" + "\n".join(lines) + "\n", one_rr_per_rrset=True)
    return m.to_wire()


def flip(wire, at, bit=0x01):
    return wire[:at] + bytes((wire[at] ^ bit,)) + wire[at + 1:]


def flow(kernel, direct, again=None, by_kernel=True):
    return Flow(1, Group(1, 4, 0), DIFFERS_KERNEL, by_kernel, b"", b"", (1, 2, 3, 0), (2, 3, 4, 0),
                (direct, kernel, again if again else direct, None))


def test_clocks_are_read_together(monkeypatch):
    """A thread that is held up between them reads both again."""
    at = iter((0, 0, 50_000_000, 60_000_000, 60_000_010, 60_000_020))      # ns: of what is read, one after the other
    monkeypatch.setattr(clocks, "time", SimpleNamespace(monotonic_ns=lambda: next(at), time_ns=lambda: next(at) + 7 * 10**18))
    assert clocks.to_wall() == 7 * 10**18 + 10


def test_every_octet_counts():
    """A bit changed anywhere but in the id or a TTL's last is found, and nothing is found where nothing differs."""
    whole = reply()
    assert difference(whole, flip(whole, 0)) is None, "the id may differ"
    silent = [at for at in range(2, len(whole)) if difference(whole, flip(whole, at)) is None]
    ttls = [at for at in range(len(whole) - 4) if whole[at:at + 4] in ((300).to_bytes(4, "big"), (600).to_bytes(4, "big"))]
    assert silent == [at + 3 for at in ttls], "only a TTL may be one second off"
    assert all(difference(whole, flip(whole, at + 3, 0x02)).kind in ("older TTL", "TTL") for at in ttls)


@pytest.mark.parametrize("altered, kind", [
    (reply(opt=False), "header"), (reply(flags="QR RD RA AD"), "header"), (reply(swap=True), "RRsets"),
    (reply(ttl=298), "older TTL"), (reply(ttl=302), "TTL"), (reply()[:-1], "unreadable"), (reply() + b"\0", "rest"),
    (None, "silence")])
def test_alterations_are_found(altered, kind):
    assert difference(altered, reply()).kind == kind


def test_what_may_differ():
    assert difference(reply(rotate=1), reply(rotate=2)) is None, "rotations of an RRset"
    assert difference(reply(ttl=299), reply()) is None and difference(reply(ttl=301), reply()) is None
    order = reply().replace(bytes.fromhex("c0000201"), b"\xff\xff\xff\xff").replace(
        bytes.fromhex("c0000202"), bytes.fromhex("c0000201")).replace(b"\xff\xff\xff\xff", bytes.fromhex("c0000202"))
    assert difference(order, reply()).kind == "order", "any other order is no rotation"


def test_between_two_replies():
    """The kernel's reply must be one of the resolver's two."""
    judged = judge.Judge(Data([]))
    assert judged.of(flow(reply(ttl=300), reply(ttl=5), reply(ttl=300))) is None
    assert judged.of(flow(reply(ttl=5), reply(ttl=5), reply(ttl=300))) is None
    assert judged.of(flow(reply(ttl=100), reply(ttl=5), reply(ttl=300))).kind in ("TTL", "older TTL")
    assert judged.of(flow(None, reply())).kind == "silence"
    assert judged.of(flow(flip(reply(), 40), reply())) is not None


def test_one_of_two_replies_is_missing():
    """The cache was refreshed after the reply before, and the reply after was lost: a second look decides."""
    judged, renewed = judge.Judge(Data([])), flow(reply(ttl=300), reply(ttl=298))
    before, kernel, *_ = renewed.replies
    assert judged.of(renewed).kind == "TTL"
    for missing in (judge.AGAIN, judge.DIRECT):
        replies = [kernel if place == judge.KERNEL else before for place in range(4)]
        replies[missing] = None
        assert judged.of(renewed._replace(replies=tuple(replies))).kind == "silence"
    assert judged.of(flow(reply(), reply())._replace(replies=(None, reply(), reply(), None))) is None


def test_ttls_count_down_between_two_replies():
    """However much time passes between them, no TTL may be higher than that time allows."""
    def held_up(kernel, before, after, since, until):
        """sent and got: seconds that DIRECT's reply, and AGAIN's, may have been under way."""
        at = [10**9 * s for s in (0, since, since, since + until)]
        return judge.Judge(Data([])).of(flow(*(reply(ttl=t) for t in (kernel, before, after)))._replace(
            sent=(at[0], at[1], at[2], 0), got=(at[0], at[1], at[3], 0)))
    assert held_up(298, 302, 296, 4, 0) is None and held_up(298, 302, 294, 0, 4) is None
    assert held_up(298, 302, 296, 0, 0).kind == "TTL" and held_up(298, 304, 302, 4, 0).kind == "older TTL"
    assert held_up(298, 302, 292, 0, 4).kind == "TTL", "it counts down no faster than time passes"
    assert held_up(300, 298, 298, 4, 4) is None and held_up(300, 298, 298, 4, 0).kind == "TTL", "before it TTLs were not lower"


def test_a_second_off_is_explained():
    """By the clock when its second changed meanwhile, otherwise by an end that moved by one: a difference with --strict."""
    now = time.monotonic_ns()
    turn = now + 10**9 - time.time_ns() % 10**9          # when the wall clock's second changes
    early, late = turn - 500 * 10**6, turn + 300 * 10**6
    for begin, end, why in ((early, late, "clock"), (early, early + 10**6, "end")):
        off = flow(reply(ttl=299), reply())._replace(sent=(begin,) * 4, got=(end,) * 4)
        judged, strict = judge.Judge(Data([])), judge.Judge(Data([]), strict=True)
        assert judged.of(off) is None and judged.second_off == {why: 1}
        assert (strict.of(off) is None) == (why == "clock")
    between = judge.Judge(Data([]))
    assert between.of(flow(reply(ttl=299), reply(), reply(ttl=299))) is None and not between.second_off


def test_limits_and_moments():
    data = Data(["c.example. 300 IN A 192.0.2.1"])
    assert judge.above_zone(data, reply()) is None
    assert judge.above_zone(data, reply(ttl=301)).kind == "TTL above the zone's"
    refused = bytearray(reply(ttl=301))
    refused[3] |= 1
    assert judge.above_zone(data, bytes(refused)) is None, "what looks like a record in a FORMERR is the query's"
    older, other = flow(reply(ttl=100), reply()), flow(reply().replace(b"\xc0\0\2\1", b"\xc0\0\2\7"), reply())
    assert judge.of_a_moment(older, judge.Judge(data).of(older))
    assert not judge.of_a_moment(other, judge.Judge(data).of(other)), "other data are never of a moment"
    assert not judge.of_a_moment(flow(reply(), reply(ttl=100)), difference(reply(ttl=100), reply()))


def test_end_taken_back():
    """The kernel's reply has higher TTLs than the resolver's before and after it, and nothing else differs."""
    def taken_back(kernel, before, after):
        asked = flow(kernel, before, after)
        return judge.taken_back(asked, judge.Judge(Data([])).of(asked))
    assert taken_back(reply(ttl=300), reply(ttl=290), reply(ttl=290))
    assert not taken_back(reply(ttl=290), reply(ttl=300), reply(ttl=300))
    other = reply(ttl=290).replace(b"\xc0\0\2\1", b"\xc0\0\2\7")
    assert not taken_back(reply(ttl=300), reply(ttl=290), other)
    assert not taken_back(reply(ttl=300), other, reply(ttl=290))
    by_resolver = flow(reply(ttl=300), reply(ttl=290), reply(ttl=290))._replace(by_kernel=False)
    assert not judge.taken_back(by_resolver, judge.Judge(Data([])).of(by_resolver))


def test_cookies_are_judged():
    """Each place's cookie must be its own client's, of the same time."""
    def with_cookie(address, when):
        m = dns.message.from_wire(reply())
        m.use_edns(0, options=[dns.edns.GenericOption(10, cookies.make(b"12345678", address, when))])
        return m.to_wire()
    good = with_cookie(CLIENT1[4], 1000)
    assert cookies.taken_out(flow(good, with_cookie(SERVICE[4], 1000)))[1] is None
    assert cookies.taken_out(flow(good, with_cookie(SERVICE[4], 1003)))[1].kind == "cookie"
    assert cookies.taken_out(flow(with_cookie(SERVICE[4], 1000), with_cookie(SERVICE[4], 1000)))[1].kind == "cookie"
    # one that becomes half an hour old between two replies is renewed for the later
    mine = query(HOT, cookie=cookies.make(b"12345678", CLIENT1[4], 1000)).to_wire()
    for late, right in ((2801, True), (2805, False), (2700, False)):
        renewed = flow(with_cookie(CLIENT1[4], late), with_cookie(SERVICE[4], 1000))._replace(wire=mine)
        assert (cookies.taken_out(renewed)[1] is None) == right
    assert cookies.taken_out(renewed._replace(wire=b"", replies=flow(with_cookie(CLIENT1[4], 2801), with_cookie(
        SERVICE[4], 1000)).replies))[1].kind == "cookie"
    # a query sent back with an error has its client's own
    mine, direct = with_cookie(CLIENT1[4], 1000), cookies.make(b"12345678", SERVICE[4], 1000)
    theirs = mine[:-len(direct)] + direct
    assert judge.Judge(Data([])).of(flow(mine, theirs)._replace(wire=mine, direct_wire=theirs)) is None


NAMED = SERVERS["bind", "recursive"].rules
UNCHECKED = reply(flags="QR RD RA CD")
LETTERS = reply().replace(b"\x02ns", b"\x02NS")


def cut_short(wire):
    return flip(wire, 2, judge.TC)


def servfail(wire):
    return flip(wire, 3, judge.SERVFAIL)


def without_additional():
    m = dns.message.from_wire(reply(), one_rr_per_rrset=True)
    m.additional = []
    return m.to_wire()


@pytest.mark.parametrize("good, other, rule", [
    (reply(), without_additional(), judge.ADDED), (reply(), cut_short(reply()), judge.CUT),
    (UNCHECKED, reply(flags="QR RD RA CD AD"), judge.UNCHECKED), (reply(), LETTERS, judge.ORDERED),
    (reply(), servfail(reply()), "gave up")], ids=("additional", "cut short", "AD", "letters", "SERVFAIL"))
def test_what_a_rule_allows_the_reference_is_found_in_the_kernel(good, other, rule):
    """A rule that lets the reference's reply pass does not let a kernel answer pass, even when the reference says the same."""
    judged = judge.Judge(Data([]), rules=NAMED)
    asked = flow(good, good)
    by_reference = asked._replace(differs=DIFFERS_REFERENCE, sent=(1, 2, 0, 2), got=(2, 3, 0, 3))
    assert judged.of(by_reference._replace(replies=(good, good, None, other))) is None
    assert judged.used[rule] == 1 or rule == "gave up" and judged.gave_up == {"reference": 1}
    assert judged.of(by_reference._replace(differs=DIFFERS_KERNEL, replies=(good, other, good, other)))
    # nor when named itself says so past the kernel path: such a reply is never offered
    never = rule in (judge.CUT, "gave up")
    assert bool(judged.of(by_reference._replace(replies=(other, other, None, other)))) == never


def test_failures_that_the_kernel_may_give():
    """Those that a resolver remembers have no records; an authoritative server remembers none."""
    failure = dns.message.from_text("id 1\nopcode QUERY\nrcode SERVFAIL\nflags QR RD RA\n;QUESTION\na.example. IN A\n").to_wire()
    zones = judge.Rules(shuffled=True, cached=False, by_history=(), failures=False)
    for rules in (judge.Rules(), NAMED):
        assert judge.Judge(Data([]), rules=rules).of(flow(failure, failure)._replace(differs=0)) is None
    for rules, given in ((judge.Rules(), servfail(reply())), (NAMED, servfail(reply())), (zones, failure)):
        assert judge.Judge(Data([]), rules=rules).of(flow(given, given)._replace(differs=0)).kind == "never the kernel's"


def test_other_letters_are_named_s_alone():
    """Which client's question brought its letters into the cache does not matter to the kernel, but what it has."""
    judged = judge.Judge(Data([]), rules=NAMED)
    assert judged.of(flow(LETTERS, reply(), by_kernel=False)) is None and judged.used[judge.LETTERS] == 1
    assert judged.of(flow(LETTERS, reply())) is not None


def test_refetch_in_other_letters():
    """The kernel's TTLs must be those of the reply after, whatever letters that has, its data those of both."""
    def of_a_moment(kernel, before, after, rules=NAMED):
        asked = flow(kernel, before, after)
        return judge.of_a_moment(asked, judge.Judge(Data([]), rules=rules).of(asked), rules)
    after = reply(ttl=300).replace(b"\x02ns", b"\x02NS")
    assert of_a_moment(reply(ttl=300), reply(ttl=290), after)
    assert not of_a_moment(reply(ttl=300), reply(ttl=290), after, judge.Rules())
    assert not of_a_moment(reply(ttl=303), reply(ttl=290), after)
    assert not of_a_moment(reply(ttl=297), reply(ttl=290), after)
    assert not of_a_moment(reply(ttl=300).replace(b"\xc0\0\2\1", b"\xc0\0\2\7"), reply(ttl=290), after)


def nodata(order, ttl):
    """A signed denial whose authority section has these RRsets in this order."""
    records = {"SOA": f"s.example. {ttl} IN SOA ns.s.example. h.s.example. 1 2 3 4 5\n",
               "NSEC": f"b.s.example. {ttl} IN NSEC c.s.example. A RRSIG NSEC\n"}
    text = "id 1\nopcode QUERY\nrcode NOERROR\nflags QR RD RA\n;QUESTION\nb.s.example. IN TXT\n;ANSWER\n;AUTHORITY\n" \
           + "".join(records[name] for name in order)
    return dns.message.from_text(text).to_wire()


def test_denial_made_of_cached_records():
    """Unbound's own denials begin with the NSEC; the kernel's TTLs must be theirs, its records those of both."""
    def of_a_moment(kernel, before, after):
        asked = flow(kernel, before, after)
        found = judge.Judge(Data([]), rules=judge.Rules()).of(asked)
        assert found.kind == "TTL"
        return judge.of_a_moment(asked, found, judge.Rules())
    asked_for, made = ("SOA", "NSEC"), ("NSEC", "SOA")
    assert of_a_moment(nodata(asked_for, 30), nodata(asked_for, 20), nodata(made, 30))
    assert not of_a_moment(nodata(asked_for, 33), nodata(asked_for, 20), nodata(made, 30))
    assert not of_a_moment(nodata(asked_for, 27), nodata(asked_for, 20), nodata(made, 30))
    assert not of_a_moment(nodata(asked_for, 30), nodata(asked_for, 20), nodata(made[:1], 30))
    assert not of_a_moment(nodata(asked_for, 30), nodata(asked_for, 20), nodata(made, 30).replace(b"\1c\1s", b"\1C\1s"))


def denial(owner, following="c.example.", labels=2):
    """NXDOMAIN, with the NSEC of a wildcard at that owner."""
    text = f"id 1\nopcode QUERY\nrcode NXDOMAIN\nflags QR RD RA\n;QUESTION\nb.s.example. IN A\n;ANSWER\n;AUTHORITY\n" \
           f"{owner} 3 IN NSEC {following} A RRSIG NSEC\n" \
           f"{owner} 3 IN RRSIG NSEC 15 {labels} 3 20370101000000 20200101000000 1 example. AAAA\n"
    return dns.message.from_text(text).to_wire()


def test_a_wildcard_s_proof_at_another_name():
    """A proof that another question brought into the cache is allowed in the reference's reply, never in the kernel's."""
    used = Counter()
    assert judge.from_reference(denial("a.s.example."), denial("*.s.example."), NAMED, used) is None
    assert used[judge.WILDCARD] == 1
    for other in (denial("*.s.example.", following="d.example."), denial("*.t.example."), denial("a.t.example.")):
        assert judge.from_reference(denial("a.s.example."), other, NAMED).kind == "authority"
    assert judge.from_reference(denial("a.s.example.", labels=3), denial("*.s.example."), NAMED).kind == "authority"
    assert judge.from_reference(denial("a.s.example."), denial("*.s.example."), judge.Rules()).kind == "authority"
    assert judge.Judge(Data([]), rules=NAMED).of(flow(denial("a.s.example."), denial("*.s.example."))) is not None


@pytest.mark.parametrize("rdtype", NAMED.by_history)
def test_types_of_history_are_compared_past_the_kernel(rdtype):
    """The reference is not asked for them, but what the kernel says must be named's own."""
    wire = query("a.example.", rdtype).to_wire()
    assert judge.asks_by_history(wire, NAMED) == judge.BY_TYPE
    assert judge.asks_by_history(query("a.example.", "A").to_wire(), NAMED) == ""
    assert judge.Judge(Data([]), rules=NAMED).of(flow(without_additional(), reply())._replace(wire=wire)) is not None


@pytest.fixture(params=("unbound", "bind"))
def pair(world, request):
    """(the kernel path of the server, whose reference runs beside it; what the two may differ in)"""
    path, reference, options = {"unbound": (kernel_path, world.reference, {}),
                                "bind": (bind_path, world.named_reference, {"options": (EVERY_CLIENT_WAITS,)})}[request.param]
    with path(world, **options) as tested, reference(**options) as beside:
        tested.reference, tested.tested = beside, getattr(tested, "unbound", None) or tested.named
        wait_until(lambda: ask(beside.ns, beside.service[4], HOT), 10, f"the reference to know {HOT}")
        yield tested, SERVERS[request.param, "recursive"].rules


@pytest.fixture(scope="module")
def relay(world):
    """Reaches the server past the kernel path, at AROUND."""
    with Relay(world.network.resolver, AROUND, SERVICE[4]) as r:
        yield r


def ask_around(world, timeout_ms):
    """The flow of one question, asked past the kernel path by the relay, and that path's TTLs: before, in the kernel, after
    (None: silence)."""
    with Twins(world, {**SERVICE, 4: AROUND}) as twins:
        twins.write(twins.frame(1, query(HOT).to_wire(), timeout_ms, 0, FULL))
        twins.close()
        found, = (f for _, _, f in twins.reports() if f)
    return found, [found.replies[place] and ttls(found.replies[place])[0] for place in (DIRECT, KERNEL, AGAIN)]


def ask_many(world, count, name=HOT):
    """So many flows of one question."""
    wire = query(name).to_wire()
    with Twins(world) as twins:
        twins.write(b"".join(twins.frame(n, wire, 700, n % len(twins.groups), FULL) for n in range(1, count + 1)))
        twins.close()
        return [f for _, _, f in twins.reports() if f]


def until_older(world, by=HELD_UP):
    """Returns when the kernel's TTL of HOT has come down by more than that; without by, than all that a judge lets pass."""
    def ttl():
        return ask(world.network.client1, SERVICE[4], HOT).answer[-1].ttl
    first = ttl()
    wait_until(lambda: ttl() < first - by, SOON, f"the TTL of {HOT} to fall by more than {by} s")


def test_an_asker_that_is_held_up(world, pair, relay):
    """Between the three replies to one question lie more than two seconds each, as when the tester waits for a processor:
    their TTLs are that far apart, and right."""
    path, rules = pair
    world.heat(path.daemon, HOT)

    def late(wire):
        until_older(world)
        return wire
    relay.delay, relay.loses, relay.change = HELD_UP, nothing, late
    found, (before, kernel, after) = ask_around(world, 30000)
    assert found.by_kernel and before - 2 >= kernel >= after + 2
    assert judge.Judge(Data([]), rules=rules).of(found) is None


def test_a_ttl_update_whose_later_reply_is_lost(world, pair, relay):
    """The kernel shows what came into the cache after the reply before; the one after, which would show it too, is lost."""
    until_conclusive(lambda number, pace: lose_the_witness(world, *pair, relay))


def lose_the_witness(world, path, rules, relay):
    world.heat(path.daemon, HOT)
    until_older(world, by=2 * HELD_UP)

    def renewed(wire):
        path.tested.control({"unbound": "flush", "named": "flushname"}[path.tested.name], HOT)
        world.heat(path.daemon, HOT)
        relay.loses = everything
        return wire
    relay.delay, relay.loses, relay.change = 0.0, nothing, renewed
    found, (before, kernel, after) = ask_around(world, 700)
    assert found.by_kernel and after is None
    if before + 2 > kernel:
        raise Inconclusive(f"the name was hot again so late that its TTL is {kernel} s in the kernel, and was {before} s before")
    assert judge.Judge(Data([]), rules=rules).of(found).kind == "silence"


def test_every_server_of_a_delegation_is_there(tmp_path):
    """A question about a zone that nobody serves takes a resolver's full time, and one of two resolvers may answer sooner."""
    zone.Zones(tmp_path, "1")
    lines = [line.split() for line in zone_lines(tmp_path / "example.zone")]
    addresses = {fields[4] for fields in lines if fields[3] in ("A", "AAAA")}
    assert addresses and addresses <= {*zone.ADDRESSES, *changing_zones.ROOT.values()}, addresses - {*zone.ADDRESSES}



def test_a_difference_is_recorded(world, pair, tmp_path):
    """What the record of one says: who was asked and answered when, what both caches hold, what the authoritative server was asked."""
    path, name = pair[0], RECORDED
    stand = SimpleNamespace(seed="s", world=world, daemon=path.daemon, tested=path.tested, reference=path.reference)
    with Recorder(stand, Data([f"{name}. 300 IN A 192.0.2.1"]), tmp_path) as recorder:
        asked, = ask_many(world, 1, name)
        wire = dns.name.from_text(name).to_wire()
        wait_until(lambda: "\n".join(asked_upstream(recorder.packets, {wire}, 0)).count(ANSWER) >= 2, SOON, "both to have asked")
        recorder.record(Found(Difference("TTL", "to be recorded"), asked, "phase", "", False))
        for thread in recorder.threads:
            thread.join(30)
            assert not thread.is_alive(), "the record has not come to its end"
        recorded = {file.name: file.read_text() for file in (tmp_path / "seed-s-1").iterdir()}
        # what cannot be had leaves the rest
        recorder.record(Found(Difference("TTL", "without times"), asked._replace(sent=()), "phase", "", False))
        recorder.threads[-1].join(30)
        assert not recorder.threads[-1].is_alive()
        partly = {file.name: file.read_text() for file in (tmp_path / "seed-s-2").iterdir()}
    assert partly["difference"].startswith("not to be had: IndexError") and name in partly["cache-under-test"]
    assert partly.keys() == recorded.keys()
    assert name in recorded["cache-under-test"] and name in recorded["cache-reference"]
    assert recorded["upstream"].count(ANSWER) >= 2, recorded["upstream"]
    assert "got -" in recorded["difference"] and "(zone: 300)" in recorded["difference"]
    assert "to be recorded" in recorded["difference"] and "past it, before: asked -" in recorded["difference"]
    assert json.loads(recorded["stats"])["ok"] and "rules" in json.loads(recorded["rules"])
    assert "not to be had" not in "".join(recorded.values())


# --- forwarded names ------------------------------------------------------------------------------------------
NAME = f"a.wild.{zone.PLAIN}"


def address(ttl, last=60, name=NAME):
    return dns.message.from_text(f"id 1\nopcode QUERY\nrcode NOERROR\nflags QR RD RA\n;QUESTION\n{name} IN A\n;ANSWER\n"
                                 f"{name} {ttl} IN A 192.0.2.{last}\n").to_wire()


def forwarded_flow(kernel, other, *, name=NAME, by_kernel=True, at=100):
    """All places were asked at that second."""
    return flow(kernel, other, by_kernel=by_kernel)._replace(
        wire=query(name).to_wire(), sent=(at * SECOND,) * 3 + (0,), got=(at * SECOND + SECOND // 10,) * 3 + (0,))


def judge_of_forwarded(*flushed):
    data = Data([f"*.wild.{zone.PLAIN} 5 IN A 192.0.2.60", f"a.{zone.SIGNED} 5 IN A 192.0.2.60"])
    return judge.Judge(data, forwarded=judge.Forwarded(zone.PLAIN, [(begin * SECOND, end * SECOND) for begin, end in flushed], 300))


def test_a_forwarded_answer_has_a_time_of_its_own():
    """Its TTL may be any up to the zone's, and nothing else may differ."""
    judged = judge_of_forwarded()
    assert judged.of(forwarded_flow(address(5), address(1))) is None
    assert judged.of(forwarded_flow(address(1), address(5))) is None
    assert judged.used[judge.FORWARDED] == 2
    assert judged.of(forwarded_flow(address(9), address(5))).kind == "TTL above the zone's"
    assert judged.of(forwarded_flow(address(5, last=61), address(5))).kind == "data"
    assert judged.of(forwarded_flow(None, address(5))).kind == "silence"


def test_other_answers_have_the_resolvers_time():
    """Those of the resolver itself, and of names that are not forwarded."""
    judged, other = judge_of_forwarded(), f"a.{zone.SIGNED}"
    assert judged.of(forwarded_flow(address(5), address(1), by_kernel=False)).kind == "TTL"
    assert judged.of(forwarded_flow(address(5, name=other), address(1, name=other), name=other)).kind == "TTL"


def test_what_a_flush_has_outlived():
    """The flush began at 97.5 s: an RRset of 94 s is older, and one that may be of 98 s is not. One that had not returned proves
    nothing."""
    judged = judge_of_forwarded((97.5, 99))
    assert judged.of(forwarded_flow(address(0), address(5))).kind == judge.OUTLIVED
    assert judged.of(forwarded_flow(address(3), address(5))) is None
    assert judge_of_forwarded((97.5, 101)).of(forwarded_flow(address(0), address(5))) is None
    assert judge_of_forwarded().of(forwarded_flow(address(0), address(5))) is None
    assert judged.of(forwarded_flow(address(0), address(0))) is None, "the resolver's own is as old"


# --- slow and silent servers --------------------------------------------------------------------------------
FICKLE, REMEMBERED = slow_zones.FICKLE[0], 5
ASKED_FOR = f"a.ttl60.{FICKLE}"
SENT, SILENT = 1000, (1010, 1020)        # seconds: when the server sent the answer, and when it was silent
FAILURE = dns.message.from_text(f"id 1\nopcode QUERY\nrcode SERVFAIL\nflags QR RD RA\n;QUESTION\n{ASKED_FOR} IN A\n").to_wire()


def answered(ttl=60, address="192.0.2.61"):
    return dns.message.from_text(f"id 1\nopcode QUERY\nrcode NOERROR\nflags QR RD RA\n;QUESTION\n{ASKED_FOR} IN A\n;ANSWER\n"
                                 f"{ASKED_FOR} {ttl} IN A {address}\n").to_wire()


def denied(ttl, rcode="NXDOMAIN"):
    return dns.message.from_text(f"id 1\nopcode QUERY\nrcode {rcode}\nflags QR RD RA\n;QUESTION\n{ASKED_FOR} IN A\n;ANSWER\n"
                                 f";AUTHORITY\n{FICKLE} {ttl} IN SOA ns.{FICKLE} h.{FICKLE} 1 2 3 4 5\n").to_wire()


def judge_with_ledger(*sent):
    """The server has sent these at SENT, and was silent later."""
    ledger = Ledger(REMEMBERED)
    for wire in sent:
        ledger.was_sent(wire, SENT * SECOND)
    ledger.falls_silent(FICKLE, SILENT[0] * SECOND)
    ledger.comes_back(FICKLE, SILENT[1] * SECOND)
    return judge.Judge(Data([]), ledger=ledger)


def asked_at(second, kernel, other, *, by_reference=False, again=None):
    """All places were asked at this second and answered a moment later. other: the reply past the kernel path, or by_reference."""
    replies = {DIRECT: kernel if by_reference else other, KERNEL: kernel, AGAIN: None if by_reference else again or other,
               REFERENCE_ASKED: other if by_reference else None}
    sent = [second * SECOND * (replies[place] is not None) for place in range(4)]
    return flow(kernel, other)._replace(
        differs=DIFFERS_REFERENCE if by_reference else DIFFERS_KERNEL, wire=query(ASKED_FOR).to_wire(), sent=tuple(sent),
        got=tuple(at and at + SECOND // 10 for at in sent), replies=tuple(replies[place] for place in range(4)))


@pytest.mark.parametrize("by_reference", (False, True), ids=("past", "reference"))
def test_a_failure_and_an_answer_are_both_true(by_reference):
    """While the server is silent, and as long as that is remembered: the answer of before, with its TTL."""
    judged = judge_with_ledger(answered())
    for second, ttl in ((1015, 45), (1022, 38)):
        for one, other in ((answered(ttl), FAILURE), (FAILURE, answered(ttl))):
            assert judged.of(asked_at(second, one, other, by_reference=by_reference)) is None
    assert judged.used[judge.BOTH_TRUE] == 4


@pytest.mark.parametrize("by_reference", (False, True), ids=("past", "reference"))
@pytest.mark.parametrize("second, wrong", [(1015, answered(45, "192.0.2.62")), (1015, answered(60)), (1015, answered(30)),
                                           (1015, denied(3)), (1005, FAILURE), (1040, FAILURE)],
                         ids=("data", "too fresh", "too old", "denial", "failure before", "failure long after"))
def test_what_is_not_true_is_found_beside_a_failure_or_an_answer(second, wrong, by_reference):
    judged = judge_with_ledger(answered())
    right = answered(60 - (second - SENT)) if wrong == FAILURE else FAILURE
    for one, other in ((wrong, right), (right, wrong)):
        assert judged.of(asked_at(second, one, other, by_reference=by_reference)), f"as the {'kernel' if one is wrong else 'other'}"


@pytest.mark.parametrize("wrong", (answered(45, "192.0.2.62"), answered(60), answered(30), denied(3)),
                         ids=("data", "too fresh", "too old", "denial"))
def test_what_no_server_has_sent_is_untrue_though_all_say_so(wrong):
    judged = judge_with_ledger(answered())
    assert judged.of(asked_at(1015, wrong, wrong)).kind == judge.UNTRUE
    assert judged.of(asked_at(1015, answered(45), answered(45))) is None


@pytest.mark.parametrize("earlier_ms, kind", ((50, None), (-300, judge.UNTRUE)), ids=("changes", "stays"))
def test_a_ttl_may_exceed_its_rrset_s_while_the_second_changes(monkeypatch, earlier_ms, kind):
    monkeypatch.setattr(judge.clocks, "to_wall", lambda: 0)
    judged = judge_with_ledger(answered())
    flow = asked_at(SENT + 1, answered(61), answered(61))
    moved = flow._replace(**{name: tuple(at and at - earlier_ms * SECOND // 1000 for at in getattr(flow, name)) for name in ("sent", "got")})
    found = judged.of(moved)
    assert (found and found.kind) == kind


EMPTIED = 1030           # seconds: when the server under test lost its cache; the silence is forgotten


def judge_of_an_emptied(rules=NAMED):
    judged = judge_with_ledger(answered())
    judged.rules, judged.emptied = rules, [EMPTIED * SECOND]
    return judged


def test_named_fails_when_it_has_lost_its_cache():
    judged = judge_of_an_emptied()
    assert judged.of(asked_at(EMPTIED, FAILURE, FAILURE)) is None
    both = asked_at(EMPTIED + 14, FAILURE, answered(16), by_reference=True)
    assert judged.of(both._replace(replies=(FAILURE, FAILURE, None, answered(16)))) is None
    assert judged.gave_up == {"under test, emptied": 1}


@pytest.mark.parametrize("second, rules, other", [(EMPTIED, judge.Rules(), FAILURE), (EMPTIED - 1, NAMED, FAILURE),
                                                  (EMPTIED + 16, NAMED, FAILURE), (EMPTIED + 1, NAMED, answered(29))],
                         ids=("Unbound", "before", "long after", "the kernel path alone"))
def test_other_failures_are_untrue(second, rules, other):
    assert judge_of_an_emptied(rules).of(asked_at(second, FAILURE, other))


def failure(*options, payload=1232):
    """With these EDNS options (code, data)."""
    m = dns.message.from_wire(FAILURE)
    m.use_edns(0, payload=payload, options=[dns.edns.GenericOption(code, data) for code, data in options])
    return m.to_wire()


class Starved(Authorities):
    """When something has come it gets no processor until it would be late."""

    def ready(self, seconds):
        found = super().ready(seconds)
        late = time.monotonic() + DELAY[1] + LATE
        wait_until(lambda: not found or time.monotonic() > late, SOON, "the answer to be late")
        return found


@pytest.mark.parametrize("kind, place, silent", ((Authorities, "authoritative", False), (Starved, "client2", True)),
                         ids=("ordinary", "starved"))
def test_a_server_without_a_processor_was_silent(world, kind, place, silent):
    ns, ledger, question = getattr(world.network, place), Ledger(0), query("a.slow2.example").to_wire()
    ns.address("lo", f"{slow_zones.DATA}/32")
    with ns.entered():
        data, client = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    with data, client, kind(ns, ledger, "1"):
        for s in (data, client):
            s.settimeout(SOON)
        data.bind((slow_zones.DATA, 53))
        sent = time.monotonic_ns()
        client.sendto(question, (slow_zones.SERVER["slow2.example."], 53))
        wire, server = data.recvfrom(512)
        data.sendto(wire, server)
        assert client.recv(512) == question
    failed = bytearray(question)
    failed[2:4] = 0x81, judge.SERVFAIL
    assert ledger.is_true(question, bytes(failed), sent, time.monotonic_ns()) is silent


def test_a_remembered_failure_has_no_extended_error():
    """named's; nothing else of it may differ, and no other server's."""
    error = 15, b"\0\x16"
    named, unbound = judge_with_ledger(), judge_with_ledger()
    named.rules = NAMED
    assert named.of(asked_at(1015, failure(), failure(error))) is None and named.used[judge.REMEMBERED] == 1
    assert named.of(asked_at(1015, failure(error), failure())) is None
    assert named.of(asked_at(1015, failure(), failure(error, (3, b"name")))).kind == "OPT"
    assert named.of(asked_at(1015, failure(payload=512), failure(error))).kind == "OPT"
    assert unbound.of(asked_at(1015, failure(), failure(error))).kind == "OPT"


def test_what_is_not_to_be_checked_may_have_been_found_bogus():
    """With CD, at the reference or here; and nothing else of the OPT record may differ, nor the extended error without CD."""
    def with_options(flags, *options):
        m = dns.message.from_wire(reply(flags=flags))
        m.use_edns(0, payload=1232, options=[dns.edns.GenericOption(code, data) for code, data in options])
        return m.to_wire()
    checked, unchecked, bogus = "QR RD RA", "QR RD RA CD", (15, b"\0\x06")
    assert judge.from_reference(with_options(unchecked), with_options(unchecked, bogus)) is None
    assert judge.from_reference(with_options(unchecked, bogus), with_options(unchecked)) is None
    assert judge.from_reference(with_options(checked), with_options(checked, bogus)).kind == "OPT"
    assert judge.from_reference(with_options(unchecked), with_options(unchecked, (3, b"name"))).kind == "OPT"


@pytest.mark.parametrize("rules", (NAMED, judge.Rules()), ids=("named", "Unbound"))
def test_the_reference_may_fail_in_its_own_way(rules):
    """At the same server; but nothing else of the failure may differ, nor the resolver's own replies."""
    error, other = (15, b"\0\x16"), (15, b"\0\x17")
    judged = judge_with_ledger()
    judged.rules = rules

    def of(reference, kernel=failure(error), ledger=judged.ledger):
        judged.ledger = ledger
        found = judged.of(asked_at(1015, kernel, reference, by_reference=True))
        return found and found.kind
    assert of(failure(error)) is of(failure(other)) is of(failure()) is None
    assert of(failure(payload=512)) == of(failure(other), ledger=None) == of(failure(), failure(error, (3, b"name"))) == "reference, OPT"


def test_denials_end_with_their_ttl():
    """A later denial of another name brings its SOA, not this one's life."""
    later = denied(3).replace(b"\1a\5ttl60", b"\1b\5ttl60")
    judged = judge_with_ledger(denied(3))
    judged.ledger.was_sent(later, (SENT + 8) * SECOND)
    assert judged.of(asked_at(1002, denied(1), denied(1))) is None
    assert judged.of(asked_at(1009, denied(2), denied(2))).kind == judge.UNTRUE
    assert judged.of(asked_at(1002, denied(1, "NOERROR"), denied(1, "NOERROR"))).kind == judge.UNTRUE


def test_a_query_that_only_the_kernel_path_loses():
    judged = judge_with_ledger(answered())
    assert judged.of(asked_at(1005, None, answered(55))).kind == judge.LOST
    assert judged.of(asked_at(1005, None, None)).kind == "silence"
    assert judge.Judge(Data([])).of(asked_at(1005, None, None)) is None


def test_errors_that_unbound_limits():
    """Since 1.26 BADVERS is among them: a reply past the kernel path says nothing of one that did not come. It may have no OPT record."""
    judged = judge_with_ledger()

    def of(version, limits):
        judged.rules = judge.Rules(limits_badvers=limits)
        asked = query(ASKED_FOR)
        asked.use_edns(version, payload=0)
        return judged.of(asked_at(1005, None, denied(3, "NOERROR"))._replace(wire=asked.to_wire())).kind
    assert of(1, limits=True) == "silence"
    assert of(0, limits=True) == of(1, limits=False) == of(-1, limits=True) == judge.LOST


def count_lost(seconds, dropped=0, restarts=()):
    """How many of the lost queries that were asked at these seconds are differences. A flush is under way; the kernel has dropped so many
    datagrams; restarts: (begin, end) in seconds."""
    session = Session.__new__(Session)
    session.strict, session.rules, session.kinds, session.found, session.recorder = False, judge.Rules(), Counter(), [], None
    session.starts, session._again = [(1, SimpleNamespace(name="steady"))], deque()
    session.disturber = SimpleNamespace(overlaps=lambda begin, end: "flush")
    drops = iter([True] * dropped)
    session.losses = SimpleNamespace(explain=lambda: next(drops, False))
    session.commands = Commands(None, None, "1")
    session.commands.restarts += [[begin * SECOND, end * SECOND] for begin, end in restarts]
    for second in seconds:
        asked = asked_at(second, None, answered(55))._replace(sent=(second * SECOND,) * 4)
        session._judge_first(asked, Difference(judge.LOST, "no reply"))
    return session.kinds[judge.LOST]


def test_what_explains_a_lost_query():
    """Each dropped datagram one query; a restart all that were asked before its end, however long they would have waited."""
    assert count_lost((1005, 1006)) == 2, "a flush answers everybody"
    assert count_lost((1005, 1006, 1007), dropped=2) == 1
    assert count_lost((1005, 1011), restarts=[(1009, 1010)]) == 1
    assert count_lost((1005, 1011), restarts=[(1010, math.inf)]) == 0


def test_slow_questions_get_the_patience_of_their_server():
    """Those of crowds, and each that is asked again; other queries that are asked again get less."""
    wires = [query(name, "A").to_wire() for name in ("a.ttl5.dead0.example", f"settled.{zone.PLAIN}")]
    crowds = Crowds(random.Random(1), SimpleNamespace(one=lambda *_: wires[0]), 12345)
    assert crowds.batch(None, 9) == [(wires[0], 12345)] * 9
    session = Session.__new__(Session)
    session.stand = SimpleNamespace(ledger=judge_with_ledger().ledger, server=SimpleNamespace(patience_ms=12345))
    session.disturber, session.rules, session.alone = SimpleNamespace(begun=None), judge.Rules(), Counter()
    session.repeated, session._waiting, asked = 0, {}, []
    session.twins = SimpleNamespace(frame=lambda number, wire, timeout, *_: (wire, timeout), write=asked.append)
    session._again = deque(Found(None, asked_at(1005, None, None)._replace(wire=wire), "", "", False) for wire in wires)
    session._ask_again()
    assert asked == [(wires[0], 12345), (wires[1], PATIENT_MS)]


def test_the_last_difference_gets_its_second_look():
    """Of two queries one was asked again, so that two have finished when the other one's difference is found."""
    asked, closed = threading.Event(), threading.Event()
    session = Session.__new__(Session)
    session.total, session.finished, session.repeated = 2, 2, 1
    session._again, session._waiting, session._turn, session.error = deque(), {}, threading.Condition(), None
    session.rules, session.alone, session.disturber = judge.Rules(), Counter(), SimpleNamespace(begun=None)
    session.stand = SimpleNamespace(ledger=None, phases=())
    session.twins = SimpleNamespace(frame=lambda *_: b"", write=lambda _: asked.set(), close=closed.set)

    def finish(count):
        with session._turn:
            session.finished += count
            session._turn.notify_all()
    feeder = threading.Thread(target=session._feed)
    feeder.start()
    session._again.append(Found(Difference("data", "x"), asked_at(1005, answered(55), FAILURE), "steady", "", False))
    finish(1)
    assert asked.wait(SOON) and not closed.is_set()
    finish(1)
    feeder.join(SOON)
    assert closed.is_set() and session.error is None


def test_all_places_at_once(world, pair):
    """A crowd's queries, 1,000 a second, wait for a resolution at all places: the kernel path's are parked, and all replies are the same."""
    path, rules = pair
    before = path.daemon.reasons()["PARKED"]
    world.relay.delay = 0.3
    try:
        with Twins(world) as twins:
            for n in range(1, 201):
                twins.write(twins.frame(n, query("host78.lab.example").to_wire(), 8000, n % len(twins.groups), FULL | TOGETHER))
                time.sleep(0.001)
            twins.close()
            flows = [f for _, _, f in twins.reports() if f]
    finally:
        world.relay.behave()
    judged = judge.Judge(Data([]), rules=rules)
    assert len(flows) == 200 and all(f.sent[KERNEL] < f.got[DIRECT] for f in flows[:1])
    assert all(f.replies[KERNEL] for f in flows) and [judged.of(f) for f in flows if judged.of(f)] == []
    assert path.daemon.reasons()["PARKED"] > before


def alter_rule(daemon, address):
    """Changes the address in the pinned store, two words so that the checksum stays right. Rules altered."""
    name = dns.name.from_text(HOT).to_wire()
    first, second = address[:2], address[2:]
    other = (int.from_bytes(first, "big") + 1).to_bytes(2, "big") + (int.from_bytes(second, "big") - 1).to_bytes(2, "big")
    altered = 0
    with pinned.writable(daemon.pins / "hydns_slots") as memory:
        at = memory.find(name + b"\0\1\0\1")
        while at >= 0:
            found = memory.find(address, at, at + 100)
            if found >= 0:
                memory[found:found + 4] = other
                altered += 1
            at = memory.find(name + b"\0\1\0\1", at + 1)
    return altered


def test_an_altered_rule_is_found(world, pair):
    """End to end: one rule in the kernel's memory gets another address while it is in use."""
    path, rules = pair
    world.heat(path.daemon, HOT)
    judged = judge.Judge(Data([]), rules=rules)
    before = ask_many(world, 64)
    assert len(before) == 64 and any(f.by_kernel for f in before)
    assert [judged.of(f) for f in before if judged.of(f)] == []
    address = dns.message.from_wire(before[0].replies[0]).answer[0][0].to_wire()
    assert alter_rule(path.daemon, address), "the rule was not found in the store"
    after = [(f, judged.of(f)) for f in ask_many(world, 64)]
    assert all(found and found.kind == "data" for f, found in after if f.by_kernel)
    assert any(f.by_kernel for f, _ in after) and not any(found for f, found in after if not f.by_kernel)
    path.daemon.ctl("flush", HOT)
    assert not any(judged.of(f) for f in ask_many(world, 64))


@pytest.mark.limit(300)
@pytest.mark.parametrize("server", (["--role", "recursive"], ["--role", "recursive", "--server", "bind", "--queries", "30000"],
                                    ["--role", "authoritative", "--server", "bind", "--queries", "30000"]),
                         ids=("unbound", "bind", "bind-authoritative"))
def test_short_run(tmp_path, server):
    """All phases, 100,000 queries or as many as it says, thousands of them answered in the kernel, no difference."""
    done = subprocess.run([sys.executable, TESTER, "--quick", "--kernel-share", "0", "--until-found", "1", *server,
                           "--json", tmp_path / "figures.json"], capture_output=True, text=True)
    print(done.stdout[-8000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["queries"] >= 30000 and figures["answered_in_kernel"] >= 3000 and figures["differences"] == 0
    assert figures["commands"], "no flush or reload went on meanwhile"


@pytest.mark.limit(300)
@pytest.mark.parametrize("server, kind", [*(("bind", kind) for kind in KINDS), ("unbound", "nsec"), ("unbound", "nsec3"),
                                          ("unbound", "optout")])
def test_short_run_of_a_whole_zone(tmp_path, server, kind):
    """It is preloaded, and changes meanwhile. Long replies have room: the queries' frames are as long as a network card's buffers."""
    done = subprocess.run([sys.executable, TESTER, "--server", server, "--role", "authoritative", "--zone", kind, "--quick", "--queries", "15000",
                           "--kernel-share", "0", "--until-found", "1", "--json", tmp_path / "figures.json"], capture_output=True, text=True)
    print(done.stdout[-8000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["differences"] == 0 and figures["answered_in_kernel"] >= 3000 and figures["commands"]["update"]
    assert "NO_ROOM" not in figures["reasons"]


@pytest.mark.limit(300)
@pytest.mark.parametrize("server", ("unbound", "bind"))
def test_short_run_with_slow_authorities(tmp_path, server):
    """Crowds ask for names of slow, silent and fickle servers, and queries are parked. What these did decides what is true."""
    done = subprocess.run([sys.executable, TESTER, "--quick", "--slow-authorities", "--kernel-share", "0", "--parked-share", "0",
                           "--queries", "30000", "--server", server, "--until-found", "1", "--json", tmp_path / "figures.json"],
                          capture_output=True, text=True)
    print(done.stdout[-8000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["differences"] == 0 and figures["parked"]["parked"] >= 100 and figures["answered_in_kernel"] >= 3000


@pytest.mark.limit(300)
@pytest.mark.parametrize("server", ("unbound", "bind"))
def test_short_run_with_a_forwarded_zone(tmp_path, server):
    """The kernel forwards a zone's queries while its data change and its caches are flushed."""
    done = subprocess.run([sys.executable, TESTER, "--quick", "--forward", "--kernel-share", "0", "--queries", "30000",
                           "--server", server, "--until-found", "1", "--json", tmp_path / "figures.json"], capture_output=True, text=True)
    print(done.stdout[-8000:])
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["differences"] == 0 and figures["forwarded"]["relayed"] >= 1000, figures["forwarded"]
