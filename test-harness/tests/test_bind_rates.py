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
import dns.rcode
import pytest
from conftest import bind_path
from test_bind_preload import preloads

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
def named_pair(world, *lines, log=LOG, clause=(), both=(), recursion=False, zone=ZONE, prefix=True, listen=("", ""), **more):
    """named with the kernel, and named alone. lines: of rate-limit; listen: more addresses of each."""
    file = world.run.dir / "rate.zone"
    file.write_text(zone)
    lines = [*lines, *(["ipv4-prefix-length 32;", "ipv6-prefix-length 64;"] if lines and prefix else [])]
    limit = [f"rate-limit {{ {' '.join(lines)} }};"] if lines else []
    options = {"options": [*limit, COOKIE_SECRET, *both], "logs": True, "statements": [log],
               "recursion": recursion, "zones": {"rate.example": f'type primary; file "{file}";'}, "threads": 2} | more
    with (bind_path(world, first="www.rate.example", clause=clause, listen=listen[0], **options) as path,
          world.named_reference(listen=listen[1], **options) as alone):
        for server in path.named, alone:     # a former server's log may be there
            file = server.dir / "rates.log"
            server.rates_from = file.stat().st_size if file.exists() else 0
        yield SimpleNamespace(path=path, daemon=path.daemon, named=path.named, alone=alone, network=path.network, both=(path.named, alone),
                              rate=RATE)


def heat(pair, name="www.rate.example", rdtype="A", *, edns=False, dnssec=False, rd=True, ad=False):
    """From an address that is for this, below the limit."""
    def hot():
        for _ in range(4):
            ask(pair.network.client2, SERVICE[4], name, rdtype, local=CLIENT2[4], edns=edns, dnssec=dnssec, rd=rd, ad=ad)
        return pair.daemon.explain(name, rdtype, dnssec, not rd, edns=edns)["where"] == "kernel"
    wait_until(hot, 20, f"{name} {rdtype} to be answered in the kernel")


def kind_of(wire):
    return "TC" if dns.message.from_wire(wire, ignore_trailing=True, continue_on_error=True).flags & dns.flags.TC else "answer"


def without_cd(wire):
    return wire[:3] + bytes([wire[3] & 0xef]) + wire[4:]


def address_of(pair, server, family=4):
    return (SERVICE if server is pair.named else REFERENCE)[family]


def log_lines(server, prefix):
    """Lines of category rate-limit for a client's network, without the time."""
    text = (server.dir / "rates.log").read_text(errors="replace")[server.rates_from:]
    return [m for m in re.findall(r"rate-limit: (.*)", text) if f" to {prefix} " in m + " "]


def burst(pair, server, wires, local, sent_all=lambda queries: None, **options):
    """What came back for queries that were answered within a second, and how many named says it has dropped and slipped. sent_all: called
    with them before any reply is awaited. options: of lab.burst.Sent."""
    family, begun = 6 if ":" in local else 4, server.stats()
    def grown(name):
        return server.stats().get(name, 0) - begun.get(name, 0)
    before = pair.daemon.reasons()
    ns = pair.network.client2 if local in CLIENT2.values() else pair.network.client1
    with sent(ns, address_of(pair, server, family), wires, local=local, **options) as queries:
        sent_all(queries)
        wait_until(lambda: queries.read() + grown("RateDropped") >= len(wires), 10,
                   lambda: f"a reply or a drop for each: {len(queries.replies)}, {grown('RateDropped')}")
        seconds = queries.seconds()
        kinds = Counter(map(kind_of, queries.replies))
        truncated = {without_cd(wire)[2:] for wire in queries.replies if kind_of(wire) == "TC"}
    after = pair.daemon.reasons()
    return SimpleNamespace(answers=kinds["answer"], slipped=kinds["TC"], dropped=grown("RateDropped"), counted_slips=grown("RateSlipped"),
                           requests=grown(f"Requestv{family}"), truncated=truncated, seconds=seconds, begun=queries.begun,
                           kernel=Counter({k: n - before[k] for k, n in after.items()}))


def next_burst(pair, server, make, local, after):
    """A burst in the second after the one in which another began, or None if it was late, or did not end with its second."""
    done = burst(pair, server, make(), local)
    return done if done.seconds == 1 and after in (None, done.begun - 1) else None


def from_full_balances(bursts, tries=10):
    """What bursts() returns, unless it is None: then they were late, and are tried again."""
    for _ in range(tries):
        rest()
        done = bursts()
        if done is not None:
            return done
    raise AssertionError(f"in none of {tries} tries did the bursts keep to their seconds")


def in_turn(pair, next_one, rounds=2):
    """Bursts to named with the kernel and to named alone in turn, in seconds that follow each other: next_one(server, that of the last).
    Returns for each round what became of both; None: one was late."""
    done = []
    for server in pair.both * rounds:
        done.append(next_one(server, done[-1].begun if done else None))
        if done[-1] is None:
            return None
    return list(zip(done[::2], done[1::2]))


def spend(pair, make, local, rounds=2, begin=lambda: None):
    """The same with bursts of one client, from balances that are full. begin: called before each try."""
    def bursts():
        begin()
        return in_turn(pair, lambda server, after: next_burst(pair, server, make, local, after), rounds)
    return from_full_balances(bursts)


def rest(seconds=WINDOW + 2):
    """Until all balances are as new: the window is over."""
    end = time.time() + seconds
    wait_until(lambda: time.time() > end, seconds + 5, "the window to be over")


VERDICTS = ("answers", "slipped", "truncated", "dropped", "counted_slips", "requests")


def both_same(rounds, verdicts=VERDICTS):
    """The verdicts of both, which are the same; and what the kernel has done."""
    for ours, own in rounds:
        assert [getattr(ours, what) for what in verdicts] == [getattr(own, what) for what in verdicts], (ours, own)
    return [ours for ours, _ in rounds], sum((Counter(ours.kernel) for ours, _ in rounds), Counter())


def same_lines(pair, prefix):
    """What both have logged of a client is the same, but for the number of its lines, and for ends: tries differ in length."""
    ours, own = ([re.sub(r"\([0-9a-f]{8}\)", "", line) for line in log_lines(s, prefix) if "stop limiting" not in line]
                 for s in pair.both)
    assert set(ours) == set(own) and ours, (ours, own)
    return set(ours)


@pytest.fixture(scope="class")
def pair(world):
    lines = [f"responses-per-second {RATE};", f"nodata-per-second {RATE + 1};", f"nxdomains-per-second {RATE + 2};",
             f"referrals-per-second {RATE + 3};", f"window {WINDOW};", f"slip {SLIP};", f"exempt-clients {{ {EXEMPT}; }};"]
    with named_pair(world, *lines) as p:
        for name, rdtype, _ in KINDS.values():
            heat(p, name, rdtype)
        yield p


WIRES = [query("www.rate.example").to_wire()] * SENT
RESPONSES = f"responses-per-second {RATE};", f"window {WINDOW};"


class TestTogether:
    """One configuration. Each test has a client of its own."""

    @pytest.mark.parametrize("kind,rate", [(k, RATE + n) for n, k in enumerate(KINDS)])
    def test_kinds(self, pair, kind, rate):
        """Each kind has its rate. Once named has logged the client, the kernel drops one in two of what is above, and answers the others
        with TC, but for a referral's: then named does."""
        name, rdtype, words = KINDS[kind]
        heat(pair, name, rdtype)
        local = CLIENT1_MORE[4]
        (first, second), kernel = both_same(spend(pair, lambda: [query(name, rdtype).to_wire()] * SENT, local))
        assert first.answers == rate and second.answers == 0
        assert kernel["ANSWERED"] and kernel["LIMITED"] and kernel["LIMIT_REACHED"]
        assert kernel["LIMIT_SLIP" if kind == "referrals" else "LIMIT_TRUNCATED"]
        assert any(f"limit {words} to {local}/32" in line for line in same_lines(pair, f"{local}/32"))

    @pytest.mark.parametrize("edns,dnssec,ad,rd", [(True, False, False, True), (True, True, False, True), (False, False, True, True),
                                               (True, False, True, False)])
    def test_truncated_replies(self, pair, edns, dnssec, ad, rd):
        """They are named's to the octet (both_same() compares)."""
        for name, rdtype, _ in KINDS.values():
            heat(pair, name, rdtype, edns=edns, dnssec=dnssec, ad=ad, rd=rd)
        wires = [query(*KINDS[kind][:2], edns=edns, dnssec=dnssec, ad=ad, rd=rd).to_wire() for kind in KINDS] * SENT
        (first, second), kernel = both_same(spend(pair, lambda: wires, CLIENT1_MORE[3]))
        assert len(first.truncated | second.truncated) == len(KINDS) and kernel["LIMIT_TRUNCATED"]

    def test_one_balance_for_all_ways(self, pair):
        """Queries with CD set pass the kernel unread: named debits the same balance."""
        heat(pair)
        rounds = spend(pair, lambda: [query("www.rate.example", cd=bool(n % 2)).to_wire() for n in range(SENT)], CLIENT1_MORE[5])
        (first, _), kernel = both_same(rounds)
        assert first.answers == RATE and kernel["ANSWERED"] and kernel["DNS_UNUSUAL"]

    def test_ipv6_networks(self, pair):
        """A /64 is one client."""
        heat(pair)
        (first, _), kernel = both_same(spend(pair, lambda: [query("www.rate.example").to_wire()] * SENT, CLIENT1_MORE[-1]))
        assert first.answers == RATE and kernel["LIMITED"]
        assert burst(pair, pair.named, [query("www.rate.example").to_wire()] * RATE, CLIENT1_MORE[-2]).answers < RATE
        same_lines(pair, "fd53:1::/64")

    def test_exempt_clients(self, pair):
        heat(pair)
        done = burst(pair, pair.named, [query("www.rate.example").to_wire()] * SENT, EXEMPT)
        assert done.answers == SENT and done.kernel["ANSWERED"] > 0

    @pytest.mark.parametrize("valid", [True, False])
    def test_cookies(self, pair, valid):
        """Clients with a valid cookie are not counted; to others with one named sends BADCOOKIE instead of TC."""
        heat(pair, edns=True)
        local = CLIENT1_MORE[6]
        data = CLIENT_COOKIE + cookie(SECRET, CLIENT_COOKIE, local, int(time.time()))[8:] if valid else CLIENT_COOKIE
        wires = [query("www.rate.example", edns=True, cookie=data).to_wire()] * SENT
        if valid:
            rest()
            ours, own = (burst(pair, s, wires, local) for s in pair.both)
            assert ours.answers == own.answers == SENT and ours.kernel["ANSWERED"] > 0
        else:
            (first, _), kernel = both_same(spend(pair, lambda: wires, local))
            assert kernel["ANSWERED"] and kernel["LIMITED"]

    def test_statistics_and_status(self, pair):
        """What the kernel drops, or answers with TC, is counted by named as its own, and shown."""
        for name, rdtype, _ in KINDS.values():
            heat(pair, name, rdtype, edns=True)
        resolver, = pair.daemon.call({"cmd": "status"})["resolvers"]
        assert resolver["notes"] == []
        assert resolver["rates"] == {"responses": RATE, "nodata": RATE + 1, "nxdomains": RATE + 2, "referrals": RATE + 3, "errors": RATE,
                                     "all": 0, "window": WINDOW, "slip": SLIP, "log_only": False, "log_drops": False,
                                     "ipv4_prefix": 32, "ipv6_prefix": 64}
        assert f"{RATE} responses a second" in pair.daemon.ctl("status").stdout
        wires = [query(*KINDS[kind][:2], edns=True).to_wire() for kind in KINDS] * SENT
        before = []

        def begin():
            before[:] = [s.stats_xml() for s in pair.both]
        spend(pair, lambda: wires, CLIENT1_MORE[7], begin=begin)
        ours, own = ({k: n - b[k] for k, n in s.stats_xml().items()} for s, b in zip(pair.both, before))
        assert not {k: (ours[k], own[k]) for k in ours if k.startswith(("Qry", "Rate", "Req", "Resp", "Truncated")) and ours[k] != own[k]}
        for name in ("RateDropped", "RateSlipped", "QryDropped", "QryUDP", "TruncatedResp", "Response", "QryAuthAns", "QryNXDOMAIN"):
            assert ours[name] > 0, name

    def test_no_false_drop(self, pair):
        """Nine tenths of each limit, for some seconds."""
        heat(pair)
        rest()
        for _ in range(4):
            done = burst(pair, pair.named, WIRES[:RATE * 9 // 10], CLIENT1_MORE[8])
            assert done.answers == RATE * 9 // 10


# --- other configurations: each has a pair of its own ---------------------------------------------------------------

def test_all_per_second(world):
    """Above the limit of all responses together none slips, whatever its kind."""
    with named_pair(world, f"responses-per-second {2 * RATE};", f"all-per-second {RATE};", f"window {WINDOW};", f"slip {SLIP};") as pair:
        heat(pair)
        heat(pair, *KINDS["nodata"][:2])
        mixed = [query(*KINDS["nodata"][:2]).to_wire() if n % 2 else WIRES[0] for n in range(SENT)]
        (first, _), kernel = both_same(spend(pair, lambda: mixed, CLIENT1_MORE[4]))
        assert first.answers == RATE and first.slipped == 0 and kernel["LIMITED"]
        assert any("limit all responses" in line for line in same_lines(pair, f"{CLIENT1_MORE[4]}/32"))


@pytest.mark.parametrize("slip", [0, 1, 3])
def test_slip(world, slip):
    with named_pair(world, *RESPONSES, f"slip {slip};") as pair:
        heat(pair)
        (first, second), kernel = both_same(spend(pair, lambda: WIRES, CLIENT1_MORE[4]))
        assert first.answers == RATE and (second.slipped > 0) == (slip > 0)
        assert bool(kernel["LIMITED"]) == (slip != 1)


def test_log_only(world):
    """Everything is answered, most of it by the kernel, and logged as named alone does."""
    with named_pair(world, *RESPONSES, "log-only yes;") as pair:
        heat(pair)
        ours = [burst(pair, pair.named, WIRES, CLIENT1_MORE[4]) for _ in range(2)]
        own = [burst(pair, pair.alone, WIRES, CLIENT1_MORE[4]) for _ in range(2)]
        assert all(b.answers == SENT for b in ours + own)
        assert ours[1].kernel["ANSWERED"] > RATE
        assert any("would limit responses" in line for line in same_lines(pair, f"{CLIENT1_MORE[4]}/32"))


@pytest.mark.parametrize("log,clause,drops", [("", (), False), ("", ("hydns-allow-unlogged yes;",), True),
                                              ('logging { category default { default_debug; }; };', (), True)])
def test_drops_that_named_logs(world, log, clause, drops):
    """named logs each response that it drops (query-errors), unless it is told not to: then they pass, with the same verdicts."""
    with named_pair(world, *RESPONSES, log=log, clause=clause) as pair:
        heat(pair)
        (first, _), kernel = both_same(spend(pair, lambda: WIRES, CLIENT1_MORE[4]))
        assert first.answers == RATE and bool(kernel["LIMITED"]) == drops
        notes = pair.daemon.call({"cmd": "status"})["resolvers"][0]["notes"]
        assert any("query-errors" in note for note in notes) != drops


@pytest.mark.limit(240)
def test_the_end_is_logged(world):
    """A minute after the last response named logs the end, also if it has not seen that response: the kernel lets a query pass for it."""
    with named_pair(world, *RESPONSES) as pair:
        heat(pair)
        spend(pair, lambda: WIRES, CLIENT1_MORE[4])
        def ends(server):
            return sum("stop limiting" in line and not line.startswith("*") for line in log_lines(server, f"{CLIENT1_MORE[4]}/32"))
        begun, before = time.time(), [ends(server) for server in pair.both]    # a try may have been over long before the one that counts

        def both_ended():
            for server in pair.both:
                ask(pair.network.client2, address_of(pair, server), "www.rate.example", local=CLIENT2[4])
            return all(ends(server) > n for server, n in zip(pair.both, before))
        wait_until(both_ended, 90, "both to log the end")
        assert time.time() - begun >= 55
        same_lines(pair, f"{CLIENT1_MORE[4]}/32")


def test_cached_answers(world):
    """A resolver's answers from its cache."""
    with named_pair(world, *RESPONSES, f"nxdomains-per-second {RATE + 2};", recursion=True) as pair:
        for name, rdtype, rate in (("www.lab.example", "A", RATE), ("nosuch.lab.example", "A", RATE + 2)):
            heat(pair, name, rdtype)
            ask(pair.network.client2, REFERENCE[4], name, rdtype, local=CLIENT2[4])
            wires = [query(name, rdtype).to_wire()] * SENT
            (first, _), kernel = both_same(spend(pair, lambda w=wires: w, CLIENT1_MORE[4]))
            assert first.answers == rate and kernel["ANSWERED"] and kernel["LIMITED"]


@pytest.mark.limit(240)
def test_failures(world):
    """A failure that is remembered (RFC 9520) is answered by the kernel, and counted as an error. named slips none."""
    name = "fails.lab.example"
    with named_pair(world, f"errors-per-second {RATE};", f"window {WINDOW};", f"slip {SLIP};", recursion=True,
                    both=["servfail-ttl 30;"]) as pair:
        world.relay.change = lambda wire: wire[:3] + bytes([wire[3] & 0xf0 | dns.rcode.SERVFAIL]) + wire[4:]
        try:
            heat(pair, name)
            ask(pair.network.client2, REFERENCE[4], name, local=CLIENT2[4])
            (first, second), kernel = both_same(spend(pair, lambda: [query(name).to_wire()] * SENT, CLIENT1_MORE[4]))
        finally:
            world.relay.behave()
        assert first.answers == RATE and second.answers == first.slipped == 0 and kernel["ANSWERED"] and kernel["LIMITED"]


def test_hydnsd_away_and_back(world):
    """Balances outlive hydnsd."""
    with named_pair(world, f"responses-per-second {RATE};", "window 60;", "slip 0;") as pair:
        heat(pair)
        local = CLIENT1_MORE[4]
        for _ in range(20):
            if burst(pair, pair.named, WIRES, local).kernel["LIMITED"]:
                break
        pair.daemon.stop()
        pair.daemon.start()
        wait_until(pair.daemon.resolver_ready, 20, "named to be connected again")
        heat(pair)
        done = burst(pair, pair.named, WIRES, local)
        assert done.answers == 0 and done.dropped == SENT


def test_other_rates_after_reconfig(world):
    with named_pair(world, *RESPONSES, "slip 0;") as pair:
        heat(pair)
        assert both_same(spend(pair, lambda: WIRES, CLIENT1_MORE[4]))[0][0].answers == RATE
        for old, new, rate in ((f"responses-per-second {RATE};", f"responses-per-second {3 * RATE};", 3 * RATE),
                               ("    rate-limit {", "    # rate-limit {", SENT)):
            for server in pair.both:
                server.config.write_text(server.config.read_text().replace(old, new))
                server.control("reconfig")
            heat(pair)
            ours, own = spend(pair, lambda: WIRES, CLIENT1_MORE[4], rounds=1)[0]
            assert ours.answers == own.answers == rate and ours.kernel["ANSWERED"]


def test_qps_scale_is_left_to_named(world):
    """It counts what named itself answers: clients need a cookie for kernel answers."""
    with named_pair(world, *RESPONSES, "qps-scale 250;") as pair:
        done = burst(pair, pair.named, WIRES, CLIENT1_MORE[4])
        assert done.kernel["ANSWERED"] == 0
        assert any("qps-scale" in note for note in pair.daemon.call({"cmd": "status"})["resolvers"][0]["notes"])




@pytest.fixture(scope="class")
def preloaded(world):
    lines = [f"responses-per-second {RATE};", f"window {WINDOW};", f"slip {SLIP};"]
    with named_pair(world, *lines, clause=preloads("rate.example")) as p:
        wait_until(lambda: p.daemon.explain("nosuch.rate.example", norec=False)["where"] == "kernel", 20, "the zone to be preloaded")
        yield p


class TestPreloaded:
    def test_names_that_do_not_exist(self, preloaded):
        """named has one balance for all of a zone, and so has the kernel's template."""
        def different():
            return [query(f"n{n}.rate.example").to_wire() for n in range(SENT)]
        rounds = spend(preloaded, different, CLIENT1_MORE[4])
        (first, second), kernel = both_same(rounds, set(VERDICTS) - {"truncated"})       # to which questions is chance
        assert first.answers == RATE and second.answers == 0 and kernel["ANSWERED"]
        for each in (reply for both in rounds for one in both for reply in one.truncated):
            assert each[:2] == bytes([0x87, dns.rcode.NXDOMAIN])

    def test_referrals(self, preloaded):
        """Also to questions about the delegation's own name: named has one balance for all of a delegation."""
        def different():
            return [query(f"{name}.rate.example", rdtype).to_wire() for n in range(SENT // 2)
                    for name, rdtype in (("below", "TXT"), (f"x{n}.below", "A"))]
        assert preloaded.daemon.explain("below.rate.example", "TXT", norec=False)["where"] == "kernel"
        (first, second), kernel = both_same(spend(preloaded, different, CLIENT1_MORE[2]), set(VERDICTS) - {"truncated"})
        assert first.answers == RATE and second.answers == 0 and kernel["ANSWERED"]

    def test_types_that_do_not_exist(self, preloaded):
        """named has a balance for each name, and a template is none name's: it answers."""
        for name in ("www", "ns"):
            assert preloaded.daemon.explain(f"{name}.rate.example", "TXT", norec=False)["where"] != "kernel"
        def different():
            return [query(f"{name}.rate.example", "AAAA").to_wire() for name in ("ns", "rate.example") for _ in range(SENT // 2)]
        both_same(spend(preloaded, different, CLIENT1_MORE[3]))
