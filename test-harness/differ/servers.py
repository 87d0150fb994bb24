# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The servers that can be tested: with what they and their references are started, what is done to them, and what
may differ between their replies."""

import shutil
import zlib
from dataclasses import dataclass

from lab import answer_zones  # noqa: F401  (it makes the generator's modules known)
from lab.authoritative import zone_files
from hydnszones.zonefile import TLD_SERVER

from . import zone
from .commands import Commands, NamedCommands, UnboundCommands, ZoneCommands, shows
from .cookies import SECRET
from .judge import Rules

ROLES = ("recursive", "authoritative")
UNBOUND_CONFIG = ("answer-cookie: yes", f'cookie-secret: "{SECRET.hex()}"')
NAMED_COOKIES = (f'cookie-secret "{SECRET.hex()}";',)
# Without these named drops queries that many clients ask at once.
NAMED_CONFIG = NAMED_COOKIES + ("notify no;", "clients-per-query 0;", "max-clients-per-query 0;", "recursive-clients 10000;")
# So that rules expire all the time.
UNBOUND_CLAUSE, NAMED_CLAUSE = ("hydns-min-ttl: 1",), ("hydns-min-ttl 1;",)
# The zones have what named would refuse or mention.
NAMED_ZONES = NAMED_COOKIES + ("notify no;", "check-names primary ignore;", "check-names secondary ignore;",
                               "check-integrity no;", "check-mx ignore;", "check-dup-records ignore;")
DELEGATED = ("plain.signed.example.", "lenient.signed3.example.", "lenient.signed.example.")    # and not served
# named takes SIG for RRSIG, and looks for KEY beside an alias.
SIG, KEY = 24, 25
SERVED = 5               # of so many of the generated zones one is not served, but delegated


def _unbound(stand):
    return (stand.world.unbound(stand.daemon, server=UNBOUND_CONFIG, clause=UNBOUND_CLAUSE),
            stand.world.reference(server=UNBOUND_CONFIG))


def _pair(stand, dynamic, **options):
    """named twice. dynamic: the zone that takes updates, in the server's own directory."""
    servers = stand.world.named(stand.daemon, clause=NAMED_CLAUSE, **options), stand.world.named_reference(**options)
    for server in servers:
        shutil.copy(stand.zones.file(dynamic), server.dir)
    return servers


def _changing_bodies(stand, dynamic):
    """{zone: body of its clause}"""
    return {dynamic: f'type primary; file "{stand.zones.file(dynamic).name}"; allow-update {{ any; }};',
            zone.MOVED: f'type secondary; file "moved"; primaries {{ {zone.ADDRESS}; }};'}


def _named(stand):
    """Resolvers with some zones of their own."""
    bodies = _changing_bodies(stand, zone.OWN) | {zone.READ: f'type primary; file "{stand.zones.file(zone.READ)}";'}
    return _pair(stand, zone.OWN, options=NAMED_CONFIG, zones=bodies)


def _is_served(name):
    return name not in DELEGATED and (name.endswith("example.") or name.count(".") < 2
                                      or zlib.crc32(name.encode()) % SERVED != 0)


def _zone_bodies(stand):
    """{zone: body of its clause}: one that takes updates, one that is transferred, all others from the files there are."""
    bodies = {}
    for directory, config in ((stand.world.tree, (stand.world.tree / "nsd-zones.conf").read_text()),
                              (stand.zones.directory, stand.zones.config)):
        bodies.update((name, f'type primary; file "{file}";')
                      for name, file in zone_files(directory, config).items() if _is_served(name))
    return bodies | _changing_bodies(stand, zone.PLAIN)


def _named_zones(stand):
    return _pair(stand, zone.PLAIN, options=NAMED_ZONES, recursion=False, zones=_zone_bodies(stand))


def _registered(stand):
    return stand.daemon.resolver_ready()


def _resolves(stand):
    """In an empty cache and under load named finds the name of the servers of all TLDs in a loop of fetches, and then
    says SERVFAIL for ten seconds; so that is asked for first, alone."""
    return _loaded(stand) and all(shows(server, TLD_SERVER, "") for server in (stand.tested, stand.reference))


def _loaded(stand):
    """The transferred zone comes after the start; when its first try fails, named tries again a minute later."""
    missing = [server for server in (stand.tested, stand.reference) if not shows(server, f"settled.{zone.MOVED}", "")]
    for server in missing:
        server.control("refresh", zone.MOVED)
    return not missing and _registered(stand)


@dataclass(frozen=True)
class Server:
    name: str
    make: object             # make(stand): the server under test and its reference, not yet started
    is_ready: object         # is_ready(stand), once they are started
    commands: type[Commands]
    rules: Rules
    recursion_desired: float = 1.0   # share of plain queries with RD


SERVERS = {
    ("unbound", "recursive"): Server("Unbound", _unbound, _registered, UnboundCommands, Rules()),
    ("bind", "recursive"): Server("BIND", _named, _resolves, NamedCommands, Rules(
        shuffled=True, added_by_history=True, unrecursed_by_history=True, gives_up=True,
        by_history=Rules.by_history + (SIG, KEY))),
    ("bind", "authoritative"): Server("BIND, authoritative", _named_zones, _loaded, ZoneCommands, Rules(
        shuffled=True, cached=False, by_history=()), 0.5),
}
