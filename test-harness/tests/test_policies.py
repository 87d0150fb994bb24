# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Rewritten answers and rate-limited clients: the kernel answers only where Unbound alone would give the same answer.

RPZ and response-ip keep all answers out of the kernel, from the start or from the reload that configures them on. ip-ratelimit counts
kernel answers (test_limits.py), unless an option says that they need not count. ratelimit does not affect cached answers."""

import json
import time
from types import SimpleNamespace

import pytest
from conftest import kernel_path

from lab.batch import exchange_all
from lab.client import exchange, query
from lab.compare import difference
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

NAME, OTHER, BY_DATA = "www.lab.example", "host3.lab.example", "host8.lab.example"
NAMES = (NAME, OTHER, BY_DATA, "host9.lab.example", "chain.lab.example")
LIMIT = 3
BURST = 8 * LIMIT
SILENT = 0.2        # seconds without a reply that are taken for silence, where it is expected
CLAUSES = "remote-control:"                     # what comes before it may be clauses of their own
CLAUSE = "hydns:\n"
SERVER = "    rrset-roundrobin: yes"
RPZ_ZONE = f"""$ORIGIN rpz.example.
@ 300 SOA localhost. hostmaster.localhost. 1 3600 900 604800 300
@ 300 NS localhost.
{NAME} 300 CNAME .
{OTHER} 300 A 203.0.113.77
32.9.2.0.192.rpz-ip 300 CNAME *.
"""


@pytest.fixture(scope="module")
def pair(world):
    """The kernel path and Unbound alone, both with the module that rewrites answers and nothing for it to do."""
    zone = world.run.dir / "rpz.zone"
    zone.write_text(RPZ_ZONE)
    rpz = f'rpz:\n    name: "rpz.example."\n    zonefile: "{zone}"\n'
    options = {"server": [SERVER.strip()], "threads": 1, "respip": True}
    with kernel_path(world, unbound_options=options) as path, world.reference(**options) as reference:
        yield SimpleNamespace(path=path, daemon=path.daemon, both=(path.unbound, reference), world=world, rpz=rpz)


def change(pair, old, new):
    for unbound in pair.both:
        unbound.change(old, new)


def notes(pair):
    return [note for r in pair.daemon.call({"cmd": "status"})["resolvers"] for note in r["notes"]]


def doctor_says(pair, word):
    found = json.loads(pair.daemon.ctl("doctor", "--json", check=False).stdout)["checks"]
    return any(check["check"] == "note" and word in json.dumps(check) for check in found)


def ask_both(pair, name, **flags):
    """(kernel path's reply, difference from Unbound's, did the kernel answer)"""
    before = pair.daemon.reasons()["ANSWERED"]
    replies = [exchange(pair.path.network.client1, server[4], query(name, **flags).to_wire())
               for server in (SERVICE, REFERENCE)]
    return replies[0], difference(*replies, ttl_slack=300), pair.daemon.reasons()["ANSWERED"] - before


def assert_all_same(pair, kernel, names=NAMES):
    for name in names:
        for flags in ({}, {"dnssec": True}):
            for _ in range(4):
                _, differs, answered = ask_both(pair, name, **flags)
                assert differs is None, name
                assert answered == kernel, name


def heat(pair):
    for name in NAMES:
        pair.world.heat(pair.daemon, name)
        pair.world.heat(pair.daemon, name, dnssec=True)


def assert_kept_out(pair, word, names=NAMES):
    wait_until(lambda: any(word in note for note in notes(pair)), 10, "the note that says why")
    assert doctor_says(pair, word)
    assert_all_same(pair, kernel=0, names=names)


def rcode(reply):
    return reply[3] & 0x0F


def test_module_with_nothing_to_do_is_no_obstacle(pair):
    heat(pair)
    assert notes(pair) == []
    assert_all_same(pair, kernel=1)


def test_rpz(pair):
    change(pair, CLAUSES, pair.rpz + CLAUSES)
    assert_kept_out(pair, "rpz")
    assert rcode(ask_both(pair, NAME)[0]) == 3 and b"\xcb\x00\x71\x4d" in ask_both(pair, OTHER)[0]
    for unbound in pair.both:
        unbound.control("rpz_disable", "rpz.example.")
    assert_all_same(pair, kernel=0)
    for unbound in pair.both:
        unbound.stop()
        unbound.start()
    wait_until(pair.daemon.resolver_ready, 10, "Unbound's module to register with hydnsd")
    assert_kept_out(pair, "rpz")
    change(pair, pair.rpz, "")
    heat(pair)
    assert_all_same(pair, kernel=1)
    assert not doctor_says(pair, "rpz")


@pytest.mark.parametrize("line,word", [
    ("serve-original-ttl: yes", "serve-original-ttl"), ("disable-edns-do: yes", "disable-edns-do"),
    ("harden-short-bufsize: no", "harden-short-bufsize"), ("max-udp-size: 511", "max-udp-size"),
    ("edns-buffer-size: 511", "edns-buffer-size"), ("log-queries: yes", "hydns-allow-unlogged"),
    ("log-replies: yes", "hydns-allow-unlogged")])
def test_options_that_keep_all_answers_out(pair, line, word):
    """The kernel cannot obey the option: it answers nothing, and the note names the option."""
    line = f"\n    {line}"
    change(pair, SERVER, SERVER + line)
    assert_kept_out(pair, word, NAMES[:1])
    change(pair, line, "")


def test_ttl_limits_that_keep_all_answers_out(pair):
    lines = f"{CLAUSE}    hydns-min-ttl: 20\n    hydns-max-ttl: 10\n"
    pair.path.unbound.change(CLAUSE, lines)
    assert_kept_out(pair, "hydns-min-ttl", NAMES[:1])
    pair.path.unbound.change(lines, CLAUSE)


@pytest.mark.parametrize("action", ["redirect", "deny"])
def test_response_ip(pair, action):
    line = f"\n    response-ip: 192.0.2.9/32 {action}"
    if action == "redirect":
        line += '\n    response-ip-data: 192.0.2.9/32 "A 203.0.113.78"'
    change(pair, SERVER, SERVER + line)
    wait_until(lambda: any("response-ip" in note for note in notes(pair)), 10, "the note that says why")
    for _ in range(4):
        wire = query(BY_DATA).to_wire()
        replies = [exchange(pair.path.network.client1, server[4], wire, timeout=SILENT if action == "deny" else SOON)
                   for server in (SERVICE, REFERENCE)]
        assert (replies[0] is None) == (action == "deny")
        assert difference(*replies, ttl_slack=300) is None
    change(pair, line, "")
    heat(pair)
    assert_all_same(pair, kernel=1)


def burst(pair, server, names, **options):
    """How many of the replies to queries sent together came, and how many of them say NOERROR; and how many the
    kernel gave."""
    before = pair.daemon.reasons()["ANSWERED"]
    wires = [query(name).to_wire() for name in names]
    replies = [r for r in exchange_all(pair.path.network.client1, server[4], wires, **options) if r]
    return len(replies), sum(rcode(r) == 0 for r in replies), pair.daemon.reasons()["ANSWERED"] - before


def limited_burst(pair, server, names, limit, **options):
    """As burst(), and the most that a limit of so many a second allows: in each second in which it went on, and one."""
    begun = int(time.time())
    return *burst(pair, server, names, **options), limit * (int(time.time()) - begun + 1) + 1


def test_allow_unlimited(pair):
    """Unbound limits what it answers itself; kernel answers do not count."""
    line = f"\n    ip-ratelimit: {LIMIT}\n    ip-ratelimit-factor: 0"
    unlimited = f"{CLAUSE}    hydns-allow-unlimited: yes\n"
    change(pair, SERVER, SERVER + line)
    pair.path.unbound.change(CLAUSE, unlimited)

    def hot():
        burst(pair, SERVICE, [NAME] * LIMIT, timeout=SILENT)
        return pair.daemon.explain(NAME)["where"] == "kernel"
    wait_until(hot, 10, "the name to be hot in spite of the limit")
    assert burst(pair, SERVICE, [NAME] * BURST) == (BURST, BURST, BURST)
    replies, _, _, most = limited_burst(pair, REFERENCE, [NAME] * BURST, LIMIT, timeout=SILENT)
    assert replies <= most
    pair.path.unbound.change(unlimited, CLAUSE)
    change(pair, line, "")


def test_ratelimit(pair):
    """It limits queries to the authoritative server: new names are limited, cached ones are not, in the kernel or in
    Unbound."""
    limit = 10                                  # what the hot name itself needs is counted too
    line = f"\n    ratelimit: {limit}\n    ratelimit-factor: 0"
    change(pair, SERVER, SERVER + line)
    pair.world.heat(pair.daemon, NAME)
    ask_both(pair, NAME)
    for server in (SERVICE, REFERENCE):
        fresh = [f"host{i}.lab.example" for i in range(100, 100 + 4 * limit)]
        replies, good, _, most = limited_burst(pair, server, fresh, limit)
        assert replies == 4 * limit and 0 < good <= most
        assert burst(pair, server, [NAME] * BURST)[:2] == (BURST, BURST)
    _, differs, answered = ask_both(pair, NAME)
    assert differs is None and answered == 1
    change(pair, line, "")
