# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The servers that can be tested: how they and their references start, which commands they get, and how their replies may
differ."""

import shutil
import zlib
from dataclasses import dataclass

from lab import answer_zones  # noqa: F401  (it makes the generator's modules known)
from lab.authoritative import zone_files
from lab.forwarding import bind_forwards, bind_zone, forward_zone, is_ready
from lab.network import CLIENT1, CLIENT2, SERVICE
from lab.servers import EVERY_CLIENT_WAITS
from lab.tools import unbound_release
from hydnszones.zonefile import TLD_SERVER

from . import zone
from .commands import Commands, NamedCommands, UnboundCommands, ZoneCommands, shows
from .cookies import SECRET
from .judge import Rules

ROLES = ("recursive", "authoritative")
UNBOUND_CONFIG = ("answer-cookie: yes", f'cookie-secret: "{SECRET.hex()}"')
# The 1.26 series refuses a query without RD, or says BADVERS, only if its thread has sent fewer than 100 errors in that second, and is
# silent otherwise. So there the clients may look into the cache without RD.
UNBOUND_LIMITS = unbound_release() >= (1, 26)
UNBOUND_CLIENTS = tuple(f"access-control: {address} allow_snoop" for client in (CLIENT1, CLIENT2, SERVICE)
                        for address in client.values()) * UNBOUND_LIMITS
# Without texts in extended errors: they name the server that a resolver happened to ask. With them no zone is forwarded.
UNBOUND_ERRORS = ("ede: yes", "log-servfail: no")
NAMED_COOKIES = (f'cookie-secret "{SECRET.hex()}";',)
# With servers that are silent: how soon a resolver gives up, so that a run sees many failures; and for how many seconds after a
# silence it may fail (ledger.py). Unbound takes a server for dead when queries in a row had no answer
# within 376, 752 and 1504 ms, asks it again after infra-host-ttl, for two seconds, and remembers a failure for five. (A smaller
# infra-cache-max-rtt would make slow servers dead ones.) named tries for four seconds, and remembers for one.
UNBOUND_IMPATIENT, NAMED_IMPATIENT = ("infra-cache-max-rtt: 2000", "infra-host-ttl: 2"), ("resolver-query-timeout 4000;",)
UNBOUND_REMEMBERS, NAMED_REMEMBERS = 12, 6
# Longer than a resolver tries a silent server, in ms. Since 1.23 Unbound takes a server for dead by type of question, each of
# which it tries at infra-cache-max-rtt up to five times; and before it gives up it asks for an IPv6 address of the server's name,
# in the same way. (Without hyDNS 1.26 took up to 15.5 seconds, 1.22 up to 2.7.)
UNBOUND_PATIENCE_MS, NAMED_PATIENCE_MS = 20000 if unbound_release() >= (1, 23) else 8000, 8000
NAMED_CONFIG = NAMED_COOKIES + ("notify no;", EVERY_CLIENT_WAITS, "recursive-clients 10000;")
# So that rules expire all the time.
UNBOUND_CLAUSE, NAMED_CLAUSE = ("hydns-min-ttl: 1",), ("hydns-min-ttl 1;",)
# The zones have data that named would otherwise refuse or warn of.
NAMED_ZONES = NAMED_COOKIES + ("notify no;", "check-names primary ignore;", "check-names secondary ignore;",
                               "check-integrity no;", "check-mx ignore;", "check-dup-records ignore;")
# zones that named delegates and does not serve
DELEGATED = ("plain.signed.example.", "lenient.signed3.example.", "lenient.signed.example.")
# named treats SIG as RRSIG, and looks for KEY beside an alias.
SIG, KEY = 24, 25
PRELOADED_MOST = 512     # zones of one hydns-preload
SERVED = 5               # of so many generated zones one is delegated and not served


def _forwarding(stand, in_kernel):
    """Lines of unbound.conf after the server: clause. Answers of a zone with a trust anchor above it would be validated."""
    return (f'domain-insecure: "{zone.PLAIN}"', *forward_zone(zone.ADDRESS, zone=zone.PLAIN, forward=in_kernel)) * stand.forward


def _unbound(stand):
    config = UNBOUND_CONFIG + UNBOUND_CLIENTS + UNBOUND_ERRORS * (not stand.forward) + UNBOUND_IMPATIENT * stand.slow
    return (stand.world.unbound(stand.daemon, server=config + _forwarding(stand, True), clause=UNBOUND_CLAUSE),
            stand.world.reference(server=config + _forwarding(stand, False)))


def _pair(stand, dynamic, clause=(), **options):
    """Two named. dynamic: the zone that takes updates; each server gets a copy of its file. clause: more of the plugin's lines."""
    servers = stand.world.named(stand.daemon, clause=NAMED_CLAUSE + clause, **options), stand.world.named_reference(**options)
    for server in servers:
        shutil.copy(stand.zones.file(dynamic), server.dir)
    return servers


def _changing_bodies(stand, dynamic):
    """{zone: body of its clause} of the zone that takes updates and of the transferred one."""
    return {dynamic: f'type primary; file "{stand.zones.file(dynamic).name}"; allow-update {{ any; }};',
            zone.MOVED: f'type secondary; file "moved"; primaries {{ {zone.ADDRESS}; }};'}


def _named(stand):
    """Two resolvers that also serve some zones."""
    bodies = _changing_bodies(stand, zone.OWN) | {zone.READ: f'type primary; file "{stand.zones.file(zone.READ)}";'}
    options = NAMED_CONFIG + NAMED_IMPATIENT * stand.slow
    if not stand.forward:
        return _pair(stand, zone.OWN, options=options, zones=bodies)
    return _pair(stand, zone.OWN, options=(*options, f'validate-except {{ "{zone.PLAIN}"; }};'), clause=(
        bind_forwards(zone.PLAIN),), zones=bodies | {zone.PLAIN: bind_zone(zone.ADDRESS)})


def _is_served(name):
    return name not in DELEGATED and (name.endswith("example.") or name.count(".") < 2
                                      or zlib.crc32(name.encode()) % SERVED != 0)


def _zone_bodies(stand):
    """{zone: body of its clause}: one zone takes updates, one is transferred, all others are read from their files."""
    bodies = {}
    for directory, config in ((stand.world.tree, (stand.world.tree / "nsd-zones.conf").read_text()),
                              (stand.zones.directory, stand.zones.config)):
        bodies.update((name, f'type primary; file "{file}";')
                      for name, file in zone_files(directory, config).items() if _is_served(name))
    return bodies | _changing_bodies(stand, zone.PLAIN)


def _named_zones(stand):
    bodies = _zone_bodies(stand)
    preload = "hydns-preload { " + " ".join(f'"{name}";' for name in list(bodies)[-PRELOADED_MOST:]) + " };"
    return _pair(stand, zone.PLAIN, (preload,) * stand.preload, options=NAMED_ZONES, recursion=False, zones=bodies)


def _registered(stand):
    return stand.daemon.resolver_ready() and (not stand.forward or is_ready(stand.daemon))


def _resolves(stand):
    """With an empty cache under load, named finds the name of the TLDs' servers in a loop of fetches, and then sends SERVFAIL
    for ten seconds. So this asks for that name first, without load."""
    return _loaded(stand) and all(shows(server, TLD_SERVER, "") for server in (stand.tested, stand.reference))


def _loaded(stand):
    """Both have the transferred zone and the plugin is registered. After a failed first transfer named would wait a minute, so
    this asks for a refresh."""
    missing = [server for server in (stand.tested, stand.reference) if not shows(server, f"settled.{zone.MOVED}", "")]
    for server in missing:
        server.control("refresh", zone.MOVED)
    return not missing and _registered(stand)


@dataclass(frozen=True)
class Server:
    name: str
    make: object             # make(stand): the server under test and its reference, not yet started
    is_ready: object         # is_ready(stand): may the queries begin?
    commands: type[Commands]
    rules: Rules
    recursion_desired: float = 1.0   # share of plain queries with RD
    remembers: float = 0             # seconds, of a failure; 0: it resolves nothing
    patience: float = 20             # seconds until it must be ready
    patience_ms: int = NAMED_PATIENCE_MS     # without a reply from slow_zones.py, after which a query counts as unanswered


AUTHORITATIVE = Rules(shuffled=True, cached=False, by_history=(), failures=False)
SERVERS = {
    ("unbound", "recursive"): Server("Unbound", _unbound, _registered, UnboundCommands, Rules(
        unrecursed_by_history=UNBOUND_LIMITS, limits_badvers=UNBOUND_LIMITS), remembers=UNBOUND_REMEMBERS, patience_ms=UNBOUND_PATIENCE_MS),
    ("bind", "recursive"): Server("BIND", _named, _resolves, NamedCommands, Rules(
        shuffled=True, added_by_history=True, unrecursed_by_history=True, gives_up=True,
        by_history=Rules.by_history + (SIG, KEY)), remembers=NAMED_REMEMBERS),
    ("bind", "authoritative"): Server("BIND, authoritative", _named_zones, _loaded, ZoneCommands, AUTHORITATIVE, 0.5),
}
