# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Options of named.conf that say what a response holds, on a server that has a zone and recurses, and on one that has the
zone alone: the kernel's answer is named's own, from zones and from the cache, or the query goes to named. Each server
is a class, for one must end before the next begins."""

from types import SimpleNamespace

import dns.flags
import pytest
from conftest import bind_path

from lab import zones
from lab.client import ask, exchange, query
from lab.compare import difference
from lab.network import SERVICE
from lab.run import wait_until

ZONE, CACHED = zones.ZONE, "lab.example"
OPTIONS = "minimal-responses no-auth; auth-nxdomain no;"
PLAIN = [f"{q} {ZONE}" for q in ("www A", "missing A", "alias A", "many A", "mail AAAA", "@ SOA")]
NEGATIVE = [f"missing A {ZONE}", f"mail AAAA {ZONE}"]
# what named may add something to, from the zone or from the cache
ADDING = [f"{q} {ZONE}" for q in ("www MX", "@ MX", "srv SRV")]
# their own order, addresses of both families
OTHERS = [f"{q} {ZONE}" for q in ("@ NS", "mx6 MX")]
# asked without RD, for there is nobody at the servers' addresses
REFERRALS = [f"{q} {ZONE}" for q in ("www.child A", "www.child6 A")]
FROM_CACHE = [f"{q} {CACHED}" for q in ("www A", "missing A", "empty A", "chain A")]
VARIANTS = [{"rd": rd, **more} for rd in (True, False) for more in ({}, {"dnssec": True})]
ADDING_CACHED = [f"www MX {CACHED}"]
# minimal-responses, auth-nxdomain -> the questions that the kernel must answer, and those that it must without RD. To
# positive answers named adds the zone's servers, unless `minimal-responses` forbids it: with recursion their addresses may be the cache's.
RECURSIVE = {("yes", "yes"): (PLAIN + ADDING + FROM_CACHE + ADDING_CACHED, PLAIN + ADDING), ("no-auth", "no"): (PLAIN + FROM_CACHE, PLAIN),
             ("no-auth-recursive", "yes"): (PLAIN + FROM_CACHE, NEGATIVE), ("no", "no"): ([], [])}
AUTHORITATIVE = {("yes", "yes"): (PLAIN + ADDING, PLAIN + ADDING), ("no", "no"): (PLAIN + ADDING, PLAIN + ADDING)}


@pytest.fixture(scope="class")
def recursive(world):
    with bind_path(world, options=[OPTIONS], zones={ZONE: 'type primary; file "auth.zone";'}) as path:
        (path.named.dir / "auth.zone").write_text(zones.text(zones.RECORDS))
        path.named.control("reload", ZONE)
        yield path


@pytest.fixture(scope="class")
def authoritative(world):
    daemon = world.hydnsd()
    named = world.named(daemon, recursion=False, options=[OPTIONS], zones={ZONE: 'type primary; file "auth.zone";'})
    (named.dir / "auth.zone").write_text(zones.text(zones.RECORDS))
    with daemon, named:
        wait_until(lambda: ask(world.network.client1, SERVICE[4], ZONE, "SOA") and daemon.resolver_ready(), 10,
                   "BIND's plugin to register with hydnsd")
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)


def configure(path, minimal, nxdomain):
    text = path.named.config.read_text()
    begin = text.index("minimal-responses")
    path.named.config.write_text(text[:begin] + f"minimal-responses {minimal}; auth-nxdomain {nxdomain};"
                                 + text[text.index("\n", begin):])
    path.named.control("reconfig")


def ask_each(path, questions, family):
    """Every question, with each of VARIANTS, by the kernel path and by loopback; (question, RD) that the kernel answered."""
    network, seen, before = path.network, set(), path.daemon.reasons()["ANSWERED"]
    for question in questions:
        name, rdtype, zone = question.split()
        for options in VARIANTS if question not in REFERRALS else [v for v in VARIANTS if not v["rd"]]:
            wire = query(f"{name}.{zone}".removeprefix("@."), rdtype, **options).to_wire()
            ours, theirs = (exchange(ns, SERVICE[family], wire) for ns in (network.client1, network.resolver))
            assert ours and difference(ours, theirs, 0 if zone == ZONE else 1, shuffled=True) is None, (question, options)
            answered = path.daemon.reasons()["ANSWERED"]
            if answered > before:
                seen.add((question, options["rd"]))
            before = answered
    return seen


def check(path, minimal, nxdomain, hot):
    configure(path, minimal, nxdomain)
    must = {(question, rd) for rd, questions in zip((True, False), hot) for question in questions}
    seen = set()
    for turn in range(10):
        seen |= ask_each(path, PLAIN + ADDING + OTHERS + REFERRALS + FROM_CACHE + ADDING_CACHED, 4 + 2 * (turn % 2))
        if turn > 0 and seen >= must:
            break
    assert seen >= must, must - seen
    return seen


def named_by(case):
    return "-".join(case)


class TestRecursive:
    @pytest.mark.parametrize("case", RECURSIVE, ids=named_by)
    def test_same_answer(self, recursive, case):
        seen = check(recursive, *case, RECURSIVE[case])
        assert seen or case[0] == "no"
        assert case[0] != "no" or not seen
        missing = ask(recursive.network.client1, SERVICE[4], f"missing.{CACHED}")
        assert bool(missing.flags & dns.flags.AA) == (case[1] == "yes")


class TestAuthoritative:
    @pytest.mark.parametrize("case", AUTHORITATIVE, ids=named_by)
    def test_same_answer(self, authoritative, case):
        check(authoritative, *case, AUTHORITATIVE[case])
