# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's hydns-preload: all that a zone has answers for is in the kernel before anybody has asked for it, stays there, and comes back by
itself when it was withdrawn."""

import random
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from test_bind_zone_versions import CLIENTS, KINDS, POLICY, RECORDS, a, changes, difference_from_named, make, parts, wait_signed

from lab import zones
from lab.batch import Wire
from lab.client import ask, query
from lab.network import SERVICE
from lab.preloaded import notes, wait_for_want_of_room, with_capacity
from lab.run import wait_until

ADMISSION = 3            # more often than the preloader asks
PRELOADED = ("unsigned.test", "nsec.test")
# That the zone has data for; of an alias and a delegation also what they lead to. Not the apex' own: named says more there.
EXISTING = ("ns A", "www A", "other A", "deep.a.b A", "*.wild A", "left.wild A", "mx MX", "alias CNAME", "alias A", "alias AAAA",
            "tree DNAME", "cut NS", "cut A", "ns.cut A", "last A")
ABSENT = ("nowhere A", "b A", "other AAAA", "x.tree A")
UNASKED = ("www A", "mx MX", "cut NS")       # by the tests themselves
# To many servers: 34 records, more than those that rotate.
SERVERS = "".join(f"wide NS {c}.wide\n{c}.wide A 192.0.2.{i}\n" for i, c in enumerate("abcdefghijklmnopq"))
VARIANTS = [(rd, do) for rd in (False, True) for do in (False, True)]


def preloads(*zone):
    return (f"hydns-preload {{ {' '.join(f'{name};' for name in zone)} }};",)


@contextmanager
def preloading(world, kinds, preloaded=None, *, statements=POLICY, text=RECORDS, admission=1000, **options):
    """named with a primary of these records for each {zone: more of its statement}, which takes updates and is signed, if it is to be.
    preloaded: the zones that are; all."""
    daemon = world.hydnsd()
    served = {zone: f'type primary; file "{zone}.zone"; allow-update {{ {CLIENTS} }}; {more}' for zone, more in kinds.items()}
    named = world.named(daemon, recursion=False, zones=served, statements=statements,
                        clause=(*preloads(*(preloaded or kinds)), f"hydns-admission {admission};"), **options)
    for zone in kinds:
        (named.dir / f"{zone}.zone").write_text(zones.text(text, origin=zone))
    with daemon, named:
        wait_until(daemon.resolver_ready, 10, "BIND's plugin to register with hydnsd")
        wait_signed(world, kinds)
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network,
                              wire=Wire(world.network.client1, "c1", world.network.resolver, "r1"))


@pytest.fixture(scope="module")
def auth(world):
    with preloading(world, KINDS, PRELOADED, text=RECORDS + SERVERS, admission=ADMISSION) as path:
        yield path


def in_kernel(auth, zone, question, rd, do):
    name, rdtype = parts(question, zone)
    found = auth.daemon.explain(name, rdtype, do=do, norec=not rd)
    return found["where"] == "kernel" and found["rule"] is not None     # of its own, and not that for what is not there


def kept(auth, zone, questions=EXISTING):
    return {(question, rd, do) for question in questions for rd, do in VARIANTS if in_kernel(auth, zone, question, rd, do)}


def everything(questions=EXISTING):
    return {(question, rd, do) for question in questions for rd, do in VARIANTS}


def wait_for(auth, zone, expected, questions=EXISTING):
    wait_until(lambda: kept(auth, zone, questions) == expected, 10,
               lambda: f"{sorted(expected ^ kept(auth, zone, questions))} of {zone}; {notes(auth)}")


def differs(auth, zone, question, rd, do):
    name, rdtype = parts(question, zone)
    return difference_from_named(auth, zone, query(name, rdtype, rd=rd, edns=True, dnssec=do, payload=1232).to_wire())


def assert_kernel_gives_nameds(auth, zone, questions=EXISTING):
    passed = set()
    for question, rd, do in everything(questions):
        before = auth.daemon.reasons()
        assert differs(auth, zone, question, rd, do) is None, (question, rd, do)
        after = auth.daemon.reasons()
        # a veth's frame has no room for the longest
        if after["ANSWERED"] == before["ANSWERED"] and after["NO_ROOM"] == before["NO_ROOM"]:
            passed.add((question, rd, do, *(reason for reason in after if after[reason] != before[reason])))
    assert not passed


@pytest.mark.parametrize("zone", PRELOADED)
def test_all_that_exists_is_there(auth, zone):
    """Before anybody has asked, and as named says it; nothing else is, and nothing of other zones."""
    wait_for(auth, zone, everything())
    assert_kernel_gives_nameds(auth, zone)
    assert not kept(auth, zone, ABSENT) and not kept(auth, "nsec3.test", UNASKED)
    assert [note for note in notes(auth) if note.startswith(f"{zone}: ") and " questions asked, " in note]
    wait_until(lambda: auth.daemon.call({"cmd": "status"})["resolvers"][0]["preloaded"] >= len(PRELOADED) * len(everything()), 10,
               "hydnsctl to count them")


@pytest.mark.parametrize("zone", PRELOADED)
def test_a_referral_to_many_servers(auth, zone):
    """It has more records than rotate, and than a client without EDNS takes."""
    questions = everything(("wide NS", "wide A", "a.wide A"))
    wait_until(lambda: all(auth.daemon.explain(*parts(question, zone), do=do, norec=not rd)["rule"] for question, rd, do in questions), 10,
               "the answers' rules")
    assert_kernel_gives_nameds(auth, zone, ("wide NS", "wide A", "a.wide A"))


@pytest.mark.parametrize("zone", PRELOADED)
def test_a_version_brings_back_what_it_withdrew(auth, zone):
    """Also answers that show a changed name, and names that have come, below one without data, too; and what has gone stays away."""
    wait_for(auth, zone, everything())
    new = ("new A", "x.y.z A")
    make(auth, zone, changes(a("www", 110), a("new", 111), a("x.y.z", 112), ("delete", "deep.a.b")))
    assert differs(auth, zone, "www A", False, False) is None
    left = [question for question in EXISTING if question != "deep.a.b A"]
    wait_for(auth, zone, everything([*left, *new]), (*EXISTING, *new))
    assert_kernel_gives_nameds(auth, zone, [*left, *new])
    make(auth, zone, changes(a("www", 10), ("delete", "new"), ("delete", "x.y.z"), a("deep.a.b", 12)))
    wait_for(auth, zone, everything(), (*EXISTING, *new))
    assert_kernel_gives_nameds(auth, zone)


CROWD = 300


def test_versions_in_a_crowd(auth):
    """Each changes one name, two at a time and without a pause: nothing that any of them or its neighbours has withdrawn stays away."""
    zone, names = "unsigned.test", [f"crowd{n}" for n in range(CROWD)]
    make(auth, zone, [a(name, 1) for name in names])
    crowd = [f"{name} A" for name in names]
    wait_for(auth, zone, everything(crowd), crowd)
    def each_of(part):
        for name in part:
            zones.update(auth.named, zone, a(name, 2))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(each_of, (names[::2], names[1::2])))
    for question in random.Random(3).sample(crowd, 20):
        assert differs(auth, zone, question, False, False) is None, question
    wait_for(auth, zone, everything([*EXISTING, *crowd]), (*EXISTING, *crowd))
    make(auth, zone, [("delete", name) for name in names])
    wait_for(auth, zone, everything())


def test_a_zone_that_is_loaded_anew(auth):
    zone = "unsigned.test"
    wait_for(auth, zone, everything())
    number, file = ask(auth.network.resolver, SERVICE[4], zone, "SOA", rd=False).answer[0][0].serial + 1, auth.named.dir / f"{zone}.zone"
    auth.named.control("freeze", zone)
    try:
        # it takes the former file's place when it is whole; what would be written before that would be lost
        wait_until(lambda: re.search(rf"hostmaster\S*[\s(]+{number - 1}\b", file.read_text()), 5, "the zone to be written")
        file.write_text(zones.text(RECORDS.replace("192.0.2.11", "192.0.2.211"), serial=number, origin=zone))
    finally:
        auth.named.control("thaw", zone)
    wait_until(lambda: ask(auth.network.resolver, SERVICE[4], zone, "SOA", rd=False).answer[0][0].serial == number, 5, "the new serial")
    assert differs(auth, zone, "other A", False, False) is None
    wait_for(auth, zone, everything())
    assert_kernel_gives_nameds(auth, zone)


MISHAPS = ("flushed", "hydnsd restarted", "hydnsd killed", "named reloaded", "named restarted")


def befall(auth, how):
    """One of MISHAPS, after which both servers are there again."""
    if how == "flushed":
        auth.daemon.call({"cmd": "flush", "all": True})
    elif how == "named reloaded":
        auth.named.control("reload")
    else:
        server = auth.named if how.startswith("named") else auth.daemon
        server.stop(signal.SIGKILL if how.endswith("killed") else signal.SIGTERM)
        server.start()
        wait_until(auth.daemon.resolver_ready, 10, "BIND's plugin to register with hydnsd")


@pytest.mark.parametrize("how", MISHAPS)
def test_all_comes_back(auth, how):
    zone = "unsigned.test"
    wait_for(auth, zone, everything())
    befall(auth, how)
    wait_for(auth, zone, everything())
    assert_kernel_gives_nameds(auth, zone)


SMALL = 300              # rules at most; the zone takes fewer than three quarters
OTHERS = 400             # questions that clients ask


def test_popular_answers_do_not_take_its_place(auth):
    """And it takes theirs no further than its share."""
    with with_capacity(auth, SMALL) as small:
        wait_for(small, "unsigned.test", everything())
        for i in range(OTHERS):
            for _ in range(ADMISSION + 1):
                ask(small.network.client1, SERVICE[4], f"n{i}.wild.nsec3.test", rd=False)
        assert kept(small, "unsigned.test") == everything()
        assert small.daemon.call({"cmd": "status"})["rules"] <= SMALL
    wait_for(auth, "unsigned.test", everything())


def test_a_zone_that_does_not_fit(auth):
    """It says so, and clients are answered as ever."""
    with with_capacity(auth, 40) as small:
        wait_for_want_of_room(small)
        assert len(kept(small, "unsigned.test")) <= 30
        for question in EXISTING:
            assert differs(small, "unsigned.test", question, False, False) is None
    wait_for(auth, "unsigned.test", everything())
