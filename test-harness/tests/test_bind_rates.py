# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's rate-limit with kernel answers: a client has one balance for each kind of response, whoever answers, and what is above it is
dropped, or answered with TC, as named alone does. Each burst goes to named alone as well."""

import re
import time
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import dns.flags
import dns.message
import pytest
from conftest import bind_path

from lab.burst import sent
from lab.client import ask, query
from lab.cookies import cookie
from lab.network import CLIENT1, CLIENT1_MORE, CLIENT2, REFERENCE, SERVICE
from lab.run import wait_until

RATE, WINDOW, SLIP, SENT = 20, 5, 2, 100      # SENT: queries of a burst
SECRET = bytes.fromhex("e5e973e5a6b2a43f48e7dc849e37bfcf")
COOKIE_SECRET = f'cookie-secret "{SECRET.hex()}";'
CLIENT_COOKIE = bytes.fromhex("2464c4abcf10c957")
EXEMPT = CLIENT1_MORE[1]
ZONE = """$TTL 300
@ SOA ns hostmaster 1 3600 900 604800 300
@ NS ns
ns A 192.0.2.53
www A 192.0.2.1
www AAAA 2001:db8::1
*.wild A 192.0.2.2
below NS ns.below
ns.below A 192.0.2.54
"""
# Each kind of response: what is asked, and how named's log calls it.
KINDS = {"responses": ("www.rate.example", "A", "responses"), "nodata": ("www.rate.example", "TXT", "NODATA responses"),
         "nxdomains": ("nosuch.rate.example", "A", "NXDOMAIN responses"),
         "referrals": ("x.below.rate.example", "A", "referral responses")}
LOG = """logging { channel log { file "rates.log"; severity info; print-time yes; print-category yes; };
    category default { log; }; category rate-limit { log; }; category query-errors { null; }; };"""


@contextmanager
def named_pair(world, *lines, log=LOG, clause=(), both=(), recursion=False, zone=ZONE, prefix=True, **more):
    """named with the kernel, and named alone. lines: of rate-limit."""
    file = world.run.dir / "rate.zone"
    file.write_text(zone)
    lines = [*lines, *(["ipv4-prefix-length 32;", "ipv6-prefix-length 64;"] if prefix else [])]
    options = {"options": [f"rate-limit {{ {' '.join(lines)} }};", COOKIE_SECRET, *both], "logs": True, "statements": [log],
               "recursion": recursion, "zones": {"rate.example": f'type primary; file "{file}";'}, "threads": 2} | more
    with bind_path(world, first="www.rate.example", clause=clause, **options) as path, world.named_reference(**options) as alone:
        yield SimpleNamespace(path=path, daemon=path.daemon, named=path.named, alone=alone, network=path.network, both=(path.named, alone),
                              rate=RATE)


def heat(pair, name="www.rate.example", rdtype="A", edns=False):
    """From an address that is for this, below the limit."""
    def hot():
        for _ in range(4):
            ask(pair.network.client2, SERVICE[4], name, rdtype, local=CLIENT2[4], edns=edns)
        return pair.daemon.explain(name, rdtype)["where"] == "kernel"
    wait_until(hot, 20, f"{name} {rdtype} to be answered in the kernel")


def kind_of(wire):
    return "TC" if dns.message.from_wire(wire, ignore_trailing=True, continue_on_error=True).flags & dns.flags.TC else "answer"


def address_of(pair, server, family=4):
    return (SERVICE if server is pair.named else REFERENCE)[family]


def log_lines(server, prefix):
    """Lines of category rate-limit for a client's network, without the time."""
    text = (server.dir / "rates.log").read_text(errors="replace")
    return [m for m in re.findall(r"rate-limit: (.*)", text) if f" to {prefix} " in m + " "]


def burst(pair, server, wires, local):
    """What came back for queries that were sent within a second, and how many named says it has dropped and slipped."""
    family, begun = 6 if ":" in local else 4, server.stats()
    def grown(name):
        return server.stats().get(name, 0) - begun.get(name, 0)
    before = pair.daemon.reasons()
    ns = pair.network.client2 if local in CLIENT2.values() else pair.network.client1
    with sent(ns, address_of(pair, server, family), wires, local=local) as queries:
        wait_until(lambda: queries.read() + grown("RateDropped") >= len(wires), 10,
                   lambda: f"a reply or a drop for each: {len(queries.replies)}, {grown('RateDropped')}")
        seconds = queries.seconds()
        kinds = Counter(map(kind_of, queries.replies))
    after = pair.daemon.reasons()
    return SimpleNamespace(answers=kinds["answer"], slipped=kinds["TC"], dropped=grown("RateDropped"), counted_slips=grown("RateSlipped"),
                           requests=grown(f"Requestv{family}"), seconds=seconds, begun=queries.begun,
                           kernel=Counter({k: n - before[k] for k, n in after.items()}))


def next_burst(pair, server, make, local, after):
    """A burst in the second after the one in which another began, or None if it was late, or did not end with its second."""
    done = burst(pair, server, make(), local)
    return done if done.seconds == 1 and after in (None, done.begun - 1) else None


def spend(pair, make, local, rounds=2, tries=10):
    """Bursts to named with the kernel and to named alone in turn, in seconds that follow each other, from balances that are full.
    Returns for each round what became of both."""
    for _ in range(tries):
        rest()
        done = []
        for server in pair.both * rounds:
            done.append(next_burst(pair, server, make, local, done[-1].begun if done else None))
            if done[-1] is None:
                break
        else:
            return list(zip(done[::2], done[1::2]))
    raise AssertionError(f"in none of {tries} tries did the bursts keep to their seconds")


def rest(seconds=WINDOW + 2):
    """Until all balances are as new: the window is over."""
    end = time.time() + seconds
    wait_until(lambda: time.time() > end, seconds + 5, "the window to be over")


VERDICTS = ("answers", "slipped", "dropped", "counted_slips", "requests")


def both_same(rounds):
    """The verdicts of both, which are the same; and what the kernel has done."""
    for ours, own in rounds:
        assert [getattr(ours, what) for what in VERDICTS] == [getattr(own, what) for what in VERDICTS], (ours, own)
    return [ours for ours, _ in rounds], sum((Counter(ours.kernel) for ours, _ in rounds), Counter())


def same_lines(pair, prefix):
    """What both have logged of a client is the same, but for the number of its lines: tries differ in length."""
    ours, own = ([re.sub(r"\([0-9a-f]{8}\)", "", line) for line in log_lines(s, prefix)] for s in pair.both)
    assert set(ours) == set(own) and ours, (ours, own)
    return set(ours)


@pytest.fixture(scope="module")
def pair(world):
    lines = [f"responses-per-second {RATE};", f"nodata-per-second {RATE + 1};", f"nxdomains-per-second {RATE + 2};",
             f"referrals-per-second {RATE + 3};", f"window {WINDOW};", f"slip {SLIP};", f"exempt-clients {{ {EXEMPT}; }};"]
    with named_pair(world, *lines) as p:
        for name, rdtype, _ in KINDS.values():
            heat(p, name, rdtype)
        yield p


@pytest.mark.parametrize("kind,rate", [(k, RATE + n) for n, k in enumerate(KINDS)])
def test_kinds(pair, kind, rate):
    """Each kind has its rate. Of what is above, one in two is answered with TC, by named; the kernel drops the others once named has
    logged the client."""
    name, rdtype, words = KINDS[kind]
    heat(pair, name, rdtype)
    local = CLIENT1_MORE[4]
    (first, second), kernel = both_same(spend(pair, lambda: [query(name, rdtype).to_wire()] * SENT, local))
    assert first.answers == rate and second.answers == 0
    assert kernel["ANSWERED"] and kernel["LIMITED"] and kernel["LIMIT_SLIP"] and kernel["LIMIT_REACHED"]
    assert any(f"limit {words} to {local}/32" in line for line in same_lines(pair, f"{local}/32"))


def test_one_balance_for_all_ways(pair):
    """Queries with CD set pass the kernel unread: named debits the same balance."""
    heat(pair)
    rounds = spend(pair, lambda: [query("www.rate.example", cd=bool(n % 2)).to_wire() for n in range(SENT)], CLIENT1_MORE[5])
    (first, _), kernel = both_same(rounds)
    assert first.answers == RATE and kernel["ANSWERED"] and kernel["DNS_UNUSUAL"]


def test_ipv6_networks(pair):
    """A /64 is one client."""
    heat(pair)
    (first, _), kernel = both_same(spend(pair, lambda: [query("www.rate.example").to_wire()] * SENT, CLIENT1_MORE[-1]))
    assert first.answers == RATE and kernel["LIMITED"]
    assert burst(pair, pair.named, [query("www.rate.example").to_wire()] * RATE, CLIENT1_MORE[-2]).answers < RATE
    same_lines(pair, "fd53:1::/64")


def test_exempt_clients(pair):
    heat(pair)
    done = burst(pair, pair.named, [query("www.rate.example").to_wire()] * SENT, EXEMPT)
    assert done.answers == SENT and done.kernel["ANSWERED"] > 0


@pytest.mark.parametrize("valid", [True, False])
def test_cookies(pair, valid):
    """Clients with a valid cookie are not counted; to others with one named sends BADCOOKIE instead of TC."""
    heat(pair, edns=True)
    local = CLIENT1_MORE[6]
    data = CLIENT_COOKIE + cookie(SECRET, CLIENT_COOKIE, local, int(time.time()))[8:] if valid else CLIENT_COOKIE
    wires = [query("www.rate.example", edns=True, cookie=data).to_wire()] * SENT
    rest()
    ours, own = (burst(pair, s, wires if s is pair.named or not valid else wires, local) for s in pair.both)
    if valid:
        assert ours.answers == own.answers == SENT and ours.kernel["ANSWERED"] > 0
    else:
        (first, _), kernel = both_same(spend(pair, lambda: wires, local))
        assert kernel["ANSWERED"] and kernel["LIMITED"]
