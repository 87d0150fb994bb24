# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's hydns-preload in a zone's own statement: in named.conf, in views, and in what rndc adds and changes."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from lab import zones
from lab.client import ask
from lab.network import DOORS, SERVICE
from lab.preloaded import notes, wait_registered
from lab.run import wait_until

SELDOM = "hydns-admission 1000000;"           # more often than anybody asks here: what the kernel answers was preloaded
NAMES = ("www", "other", "x.y")
PRELOAD = "hydns-preload yes;"
DOOR = DOORS["view"]


def records(octet):
    return f"@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.{octet}\nother A 192.0.2.{octet}\nx.y A 192.0.2.{octet}\n"


def primary(file, more=""):
    return f'{{ type primary; file "{file}"; {more} }};'


def body(file, more=""):
    return primary(file, more)[1:-2]


@contextmanager
def serving(world, *, files=("one",), **options):
    """BIND with files that any zone may have: their addresses' last octets are 1, 2, ..., in their order."""
    daemon = world.hydnsd()
    named = world.named(daemon, recursion=False, clause=(SELDOM, *options.pop("clause", ())), **options)
    for n, file in enumerate(files, 1):
        (named.dir / file).write_text(f"$TTL 300\n@ SOA ns hostmaster 1 3600 900 604800 60\n{records(n)}")
    with daemon, named:
        yield SimpleNamespace(world=world, daemon=daemon, named=named, network=world.network)


def in_kernel(at, zone, octet, address=SERVICE[4]):
    """How many of the names the kernel answers, each of which is asked for once; all replies are right."""
    before = at.daemon.reasons()["ANSWERED"]
    for name in NAMES:
        reply = ask(at.network.client1, address, f"{name}.{zone}", rd=False)
        assert [str(rr) for rrset in reply.answer for rr in rrset] == [f"192.0.2.{octet}"], (zone, name)
    return at.daemon.reasons()["ANSWERED"] - before


def wait_served(at, zone, address=SERVICE[4]):
    wait_until(lambda: ask(at.network.client1, address, f"www.{zone}", rd=False).answer, 10, f"{zone} to be loaded")


def wait_preloaded(at, zone, octet, address=SERVICE[4]):
    wait_served(at, zone, address)
    wait_until(lambda: in_kernel(at, zone, octet, address) == len(NAMES), 10, lambda: f"{zone} to be in the kernel; {notes(at)}")


def notes_of(at, zone):
    return [note for note in notes(at) if note.startswith(f"{zone}: ")]


def wait_settled(at, zone):
    """The zone is loaded, so that of others none will come that is not there."""
    wait_until(lambda: any(" questions asked, the answers to 0 of them not taken" in note for note in notes_of(at, zone)), 10,
               lambda: f"{zone} to be preloaded: {notes(at)}")


def test_the_statement_and_the_clause(world):
    """Either, or both; where neither is, nothing."""
    served = {"statement.test": body("one", PRELOAD), "clause.test": body("one"), "both.test": body("one", PRELOAD),
              "neither.test": body("one"), "no.test": body("one", "hydns-preload no;")}
    with serving(world, zones=served, clause=('hydns-preload { "clause.test"; "Both.Test."; };',)) as at:
        wait_registered(at.daemon)
        for zone in ("statement.test", "clause.test", "both.test"):
            wait_preloaded(at, zone, 1)
            assert len(notes_of(at, zone)) == 1
        for zone in ("neither.test", "no.test"):
            assert in_kernel(at, zone, 1) == 0 and not notes_of(at, zone)


def reconfigure(at, *changes):
    text = at.named.config.read_text()
    for former, new in changes:
        assert text.count(former) == 1
        text = text.replace(former, new)
    at.named.config.write_text(text)
    at.named.control("reconfig")


def test_reconfig_takes_it_out_and_puts_it_in(world):
    with serving(world, zones={"one.test": body("one", PRELOAD), "two.test": body("two")}, files=("one", "two")) as at:
        wait_preloaded(at, "one.test", 1)
        assert in_kernel(at, "two.test", 2) == 0
        reconfigure(at, (body("one", PRELOAD), body("one")), (body("two"), body("two", PRELOAD)))
        wait_preloaded(at, "two.test", 2)
        wait_settled(at, "two.test")
        assert in_kernel(at, "one.test", 1) == 0 and not notes_of(at, "one.test")
        reconfigure(at, (body("two", PRELOAD), body("two")))
        wait_until(lambda: in_kernel(at, "two.test", 2) == 0 and not notes_of(at, "two.test"), 10, "two.test to leave the kernel")


def test_zones_that_rndc_adds(world):
    """And changes, and deletes; and named has them again when it is restarted."""
    with serving(world, zones={"one.test": body("one", PRELOAD)}, files=("one", "two"), options=("allow-new-zones yes;",)) as at:
        wait_preloaded(at, "one.test", 1)
        at.named.control("addzone", "added.test", primary("two", PRELOAD))
        wait_preloaded(at, "added.test", 2)
        wait_preloaded(at, "one.test", 1)
        at.named.control("modzone", "added.test", primary("two"))
        wait_served(at, "added.test")
        wait_settled(at, "one.test")
        assert in_kernel(at, "added.test", 2) == 0 and not notes_of(at, "added.test")
        at.named.control("modzone", "added.test", primary("two", PRELOAD))
        wait_preloaded(at, "added.test", 2)
        at.named.stop()
        at.named.start()
        wait_preloaded(at, "added.test", 2)
        at.named.control("delzone", "added.test")
        wait_until(lambda: not notes_of(at, "added.test") and ask(at.network.client1, SERVICE[4], "www.added.test", rd=False).rcode(), 10,
                   "the zone to be gone")
        wait_preloaded(at, "one.test", 1)


def test_the_first_zone_that_is_preloaded_is_added(world):
    """To a named that has not preloaded any."""
    with serving(world, zones={"one.test": body("one")}, files=("one", "two"), options=("allow-new-zones yes;",)) as at:
        wait_served(at, "one.test")
        wait_registered(at.daemon)
        at.named.control("addzone", "added.test", primary("two", PRELOAD))
        wait_preloaded(at, "added.test", 2)
        assert in_kernel(at, "one.test", 1) == 0


def statement(zone, file, more=""):
    return f'zone "{zone}" {primary(file, more)}'


def test_views(world):
    """Each has its own zones of a name: one preloads what the other does not. A zone that a view has from another goes with it. One
    is secondary to the other's."""
    secondary = f"type secondary; primaries {{ {DOOR}; }}; {PRELOAD}"
    views = {"door": ([f"match-destinations {{ {DOOR}; }};", statement("one.test", "one", PRELOAD), statement("two.test", "one"),
                       statement("shared.test", "one", PRELOAD), statement("copied.test", "one", "allow-transfer { any; };")], True),
             "all": ([statement("one.test", "two"), statement("two.test", "two", PRELOAD), 'zone "shared.test" { in-view "door"; };',
                      f'zone "copied.test" {{ {secondary} }};'], True)}
    with serving(world, views=views, files=("one", "two"), listen=f"{DOOR};") as at:
        wait_until(lambda: at.daemon.resolvers_ready() == 2, 10, "both views to register with hydnsd")
        wait_preloaded(at, "one.test", 1, DOOR)
        wait_preloaded(at, "two.test", 2)
        wait_preloaded(at, "copied.test", 1)
        for address in (DOOR, SERVICE[4]):
            wait_preloaded(at, "shared.test", 1, address)
        assert in_kernel(at, "one.test", 2) == 0 and in_kernel(at, "two.test", 1, DOOR) == 0
        assert in_kernel(at, "copied.test", 1, DOOR) == 0
