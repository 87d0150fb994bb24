# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND with packet rings, for tests of them: paths by which nothing is offered to the kernel, so that every query is named's to
answer, and what rings have carried. EITHER is for tests that Unbound must pass, too."""

import sys
from collections import Counter
from contextlib import contextmanager

import dns.rcode
import pytest
from conftest import bind_path, unbound_rings

from lab import capture, links, pinned, ring_load, rings
from lab.client import Asker, ask
from lab.network import SERVICE, UPSTREAM_PORTS
from lab.process import Program
from lab.run import SOON, replaced, wait_until
from lab.servers import EVERY_CLIENT_WAITS

NAME = "www.lab.example"
NOTHING = "hydns-admission 1000000;"
FRAMES = "hydns-queue-frames 256;"       # the fewest: soon full
CLIENTS = "hydns-queue-upstream no;"
LINKS = ("r1",)
LANES = {"links": LINKS}
UP_LINKS = ("r1", "ra")  # for named's own queries, too
RATE = 2000
FRESH_RATE = 300         # of names that nobody has asked before
LOCAL_DATA = "@ 300 SOA . . 1 1 1 1 1\n@ 300 NS @\n@ 300 A 192.0.2.1\n* 60 A 192.0.2.99\n"     # of ring_load.LOCAL


@contextmanager
def ring_path(world, *, daemon=LANES, options=(), frames=FRAMES, **more):
    with bind_path(world, clause=(NOTHING, frames, CLIENTS), daemon_options=daemon, options=(EVERY_CLIENT_WAITS, *options),
                   **more) as p:
        rings.wait_open(p.daemon)
        try:
            yield p
        finally:
            world.relay.behave()


def counts(path):
    """What the rings of all resolvers have carried."""
    found = [r["packet_rings"] for r in path.daemon.call({"cmd": "stats"})["resolvers"]]
    return {name: sum(f[name] for f in found) for name in ("received", "sent")} | \
        {"detours": sum(sum(f["detours"].values()) for f in found)}


def by_ring(path, do):
    """Its result, and how many queries and responses took rings, and datagrams detours, while do() ran."""
    before = counts(path)
    result = do()
    after = counts(path)
    return result, tuple(after[name] - before[name] for name in ("received", "sent", "detours"))


def load(path, rate=RATE, *, server=SERVICE[4], **options):
    return Asker(path.world, path.network.client1, server, [(NAME, "A")], rate, **options)


def assert_answered(answers, rcode=dns.rcode.NOERROR, **options):
    ring_load.assert_answered(answers, rcode, **options)


def wait_used(path, queries=200):
    used = rings.counted(path.daemon).queries
    wait_until(lambda: rings.counted(path.daemon).queries >= used + queries, SOON, f"{queries} queries to come by rings")


def rewrite(path, old, new):
    path.named.config.write_text(replaced(path.named.config.read_text(), old, new))
    path.named.control("reconfig")


@contextmanager
def another_object(path):
    """named has a configuration that says something else, and so another plugin object."""
    rewrite(path, NOTHING, "hydns-admission 999999;")
    try:
        yield
    finally:
        change(path, "hydns-admission 999999;", NOTHING)


def change(path, old, new):
    rewrite(path, old, new)
    ask(path.network.client1, SERVICE[4], NAME)      # the plugin starts with the first response


# -- named's own queries --------------------------------------------------------------------------------------------------------
@contextmanager
def upstream_path(world, *, daemon=None, **options):
    with bind_path(world, **{"clause": (NOTHING, FRAMES), "threads": 1} | options,
                   daemon_options={"links": UP_LINKS} | (daemon or {})) as p:
        settle(p)
        try:
            yield p
        finally:
            world.relay.behave()


def upstream_alone(world, **options):
    """Rings for named's own queries alone."""
    return upstream_path(world, **{"clause": (NOTHING, FRAMES, "hydns-queue no;")} | options, daemon={"links": ("ra",)})


def settle(path):
    """Until all lanes are open and answers come by rings."""
    ring_load.settle(path, queries=False)


@contextmanager
def bind_rings(world, *, daemon=None, frames=512, **options):
    """For ring_load.Paths. A ring of so few frames would soon have none left if any were lost."""
    folder = world.run.dir / "named"
    folder.mkdir(exist_ok=True)
    (folder / "here.db").write_text(LOCAL_DATA)
    with bind_path(world, daemon_options=daemon, clause=(NOTHING, f"hydns-queue-frames {frames};"),
                   options=("recursive-clients 20000;",), zones={ring_load.LOCAL: 'type primary; file "here.db";'}, **options) as p:
        p.local_rate = 1024      # twice the frames: a reload of named takes moments
        yield p


EITHER = pytest.mark.parametrize("ring_paths", (unbound_rings, bind_rings), indirect=True, ids=("unbound", "bind"), scope="module")


def own_counts(path):
    found = [r["packet_rings"] for r in path.daemon.call({"cmd": "stats"})["resolvers"]]
    return {name: sum(f[name] for f in found) for name in ("sent_upstream", "received_answers", "strays")} | \
        {"sockets": path.named.sockets()} | {why: sum(f["detours"][why] for f in found) for why in found[0]["detours"]}


def grown(path, do):
    """Its result, and by how much each of own_counts() has grown; those that have not are left out, and read as 0. For a few
    seconds at most: no query has to ask for a next hop meanwhile."""
    links.confirm_neighbours(path.network.resolver)
    before = own_counts(path)
    result = do()
    return result, Counter({name: n - before[name] for name, n in own_counts(path).items() if n != before[name]})


def recursions(path, count=50, zone="kinds.example", **options):
    """Replies to names that nobody has asked before."""
    return [ask(path.network.client1, SERVICE[4], name, rdtype, timeout=8, **options)
            for name, rdtype in rings.never_asked(count, zone)]


def warm(path, zone):
    """Until queries to the zone's servers leave by rings: their next hop is known then."""
    wait_until(lambda: grown(path, lambda: recursions(path, 1, zone))[1]["sent_upstream"], SOON,
               f"queries for {zone} to leave by rings")


def fresh(path, **options):
    return rings.load(path.world, FRESH_RATE, **options)


def wait_answers(path, answers=100):
    before = rings.counted(path.daemon).answers
    wait_until(lambda: rings.counted(path.daemon).answers >= before + answers, SOON, f"{answers} answers to come by rings")


@contextmanager
def all_ports_taken(path):
    first, last = (int(port) for port in UPSTREAM_PORTS.split("-"))
    taken, free = b"\xff" * rings.WORD * (last - first + 1), bytes(rings.WORD) * (last - first + 1)
    wait_until(lambda: not rings.claimed(path.daemon), SOON, "all ports to be free")
    with pinned.writable(path.daemon.pins / "hydns_ports") as words:
        assert words[first * rings.WORD:(last + 1) * rings.WORD] == free
        words[first * rings.WORD:(last + 1) * rings.WORD] = taken
        yield
        words[first * rings.WORD:(last + 1) * rings.WORD] = free


def with_senders(path, do, count):
    """Its result, and from which addresses and ports named asked authoritative servers while do() ran, count times or more."""
    file = path.world.run.dir / "senders.capture"
    file.unlink(missing_ok=True)
    program = Program(path.world.run, path.network.authoritative, "capture", [sys.executable, capture.__file__, "u0", file])

    def seen():
        return [m.source for m in capture.messages(file) if m.to[1] == capture.PORT]
    try:
        program.wait_ready(file.exists, SOON)
        result = do()
        wait_until(lambda: len(seen()) >= count, SOON, f"{count} queries to be captured")
    finally:
        program.stop()
    return result, seen()
