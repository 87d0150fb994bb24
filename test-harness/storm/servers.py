# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The servers that can be put into the storm, and the commands of each."""

from dataclasses import dataclass

from lab.auth_zones import clause as auth_zone
from lab.changing_zones import STORM
from lab.forwarding import bind_forwards, bind_zone, forward_zone
from lab.servers import EVERY_CLIENT_WAITS

from . import judge, zone
from .zone_server import ZoneServer
from .updates import FILE, Contents, Updates

ROLES = ("recursive", "authoritative", "preloaded")
# hydns-min-ttl makes rules expire all the time.
UNBOUND_CLAUSE, NAMED_CLAUSE = ("hydns-min-ttl: 1",), ("hydns-min-ttl 1;",)
NAMED_OPTIONS = ("notify no;", "allow-new-zones yes;", EVERY_CLIENT_WAITS, "recursive-clients 10000;")
# The types that `unbound-control flush` removes, of those asked for here.
FLUSHED_TYPES = ("A", "AAAA", "CNAME")


def nothing(key, denied):
    return False


def everything(key, denied):
    return True


def denials(key, denied):
    return denied


def at(owner, types=None):
    return lambda key, denied: key.owner == owner and (types is None or key.rdtype in types)


# All ways of a query at once, beside what is on by default: a zone that the kernel forwards, little room in packet rings and for
# parked queries, and the resolver's own limits, which nobody reaches.
FRAMES, PENDING, UNREACHED = 256, 100, 1000000


def _unbound_ways(ways):
    """As _named_ways()."""
    return ((f"ip-ratelimit: {UNREACHED}",), (f"hydns-queue-frames: {FRAMES}", f"hydns-pending-max: {PENDING}")) if ways else ((), ())


def _unbound(world, daemon, ledger, seed, fault, ways):
    server, clause = _unbound_ways(ways)
    server += tuple(forward_zone(*STORM.values(), zone=zone.ZONE)) if ways else ()
    return world.unbound(daemon, server=server, clause=UNBOUND_CLAUSE + clause), ZoneServer(world, ledger, seed)


def _unbound_zone(world, daemon, ledger, seed, fault, ways, *more):
    server, clause = _unbound_ways(ways)
    unbound = world.unbound(daemon, server=server, clause=UNBOUND_CLAUSE + clause,
                            others=auth_zone(zone.ZONE[:-1], *more, file=world.run.dir / "unbound" / FILE))
    return unbound, Contents(unbound, ledger, seed, fault)


def _unbound_preloaded(*args):
    return _unbound_zone(*args, "hydns-preload: yes")


def _named_ways(ways):
    """(options, lines of the plugin's clause)"""
    limit = "rate-limit { responses-per-second 1000; exempt-clients { 10.53.0.0/16; fd53::/16; }; };"
    return ((limit,), (f"hydns-queue-frames {FRAMES};", f"hydns-pending-max {PENDING};")) if ways else ((), ())


def _named(world, daemon, ledger, seed, fault, ways):
    options, clause = _named_ways(ways)
    zones = {zone.ZONE[:-1]: bind_zone(*STORM.values())} if ways else {}
    clause += (bind_forwards(zone.ZONE[:-1]),) if ways else ()
    return (world.named(daemon, options=NAMED_OPTIONS + options, clause=NAMED_CLAUSE + clause, zones=zones),
            ZoneServer(world, ledger, seed))


def _named_zone(world, daemon, ledger, seed, fault, ways, more=""):
    options, clause = _named_ways(ways)
    body = f'type primary; file "{FILE}"; allow-update {{ any; }}; {more}'
    named = world.named(daemon, recursion=False, options=NAMED_OPTIONS + options, clause=NAMED_CLAUSE + clause, zones={zone.ZONE[:-1]: body})
    return named, Updates(named, ledger, seed, fault)


def _named_preloaded(*args):
    return _named_zone(*args, "hydns-preload yes;")


def _unbound_flush(rng):
    """(words of a command, covers(key, denied) as of a Flush)"""
    key = rng.choice((*zone.RECORDS, *zone.ALIASES))
    owner = key.owner
    return rng.choice(((("flush", owner), at(owner, FLUSHED_TYPES)),
                       (("flush_type", owner, key.rdtype), at(owner, (key.rdtype,))),
                       (("flush_zone", owner), at(owner)), (("flush_zone", zone.ZONE), everything),
                       (("flush_zone", "."), everything), (("flush_negative",), denials), (("flush_bogus",), nothing),
                       (("flush_infra", "all"), nothing)))


def _named_flush(rng):
    """As _unbound_flush(). Never flushtree of the root: by a fault of BIND the cache stays then (operator guide)."""
    owner = rng.choice((*zone.RECORDS, *zone.ALIASES)).owner
    return rng.choice(((("flush",), everything), (("flushname", owner), at(owner)), (("flushtree", owner), at(owner)),
                       (("flushtree", zone.ZONE), everything)))


def _unbound_reload(server, rng):
    """Unbound acknowledges reload before it reloads; it answers the second command afterwards."""
    word = rng.choice(("reload", "reload_keep_cache"))
    server.control(word)
    server.control("status")
    return word, everything if word == "reload" else nothing


def _named_reload(server, rng):
    word = rng.choice(("reload", "reconfig"))
    server.control(word)
    return word, nothing


@dataclass(frozen=True)
class Server:
    name: str
    make: object                  # make(world, daemon, ledger, seed, fault, ways): the server, not yet started, and its data source
    judge: type[judge.Judge]
    flush: tuple                  # words of the command that removes all
    draw_flush: object            # draw_flush(rng): words of a command, and its covers()
    reload: object                # reload(server, rng): reloads; the command, and its covers()
    letters: dict                 # options of the fourth asker: mixed case where the kernel answers that


SERVERS = {
    ("unbound", "recursive"): Server("Unbound", _unbound, judge.OfResolver, ("flush_zone", "."), _unbound_flush, _unbound_reload,
                                     {"mixed_case": True}),
    ("bind", "recursive"): Server("BIND", _named, judge.OfNamed, ("flush",), _named_flush, _named_reload, {"edns": True}),
    # without a cache, its flushes remove nothing
    **{("bind", role): Server(f"BIND, {role}", make, judge.OfZone, ("flush",), lambda rng: (_named_flush(rng)[0], nothing), _named_reload, {"edns": True})
       for role, make in (("authoritative", _named_zone), ("preloaded", _named_preloaded))},
    **{("unbound", role): Server(f"Unbound, {role}", make, judge.OfZone, ("flush_zone", "."), lambda rng: (_unbound_flush(rng)[0], nothing),
                                 _unbound_reload, {"mixed_case": True})
       for role, make in (("authoritative", _unbound_zone), ("preloaded", _unbound_preloaded))},
}
