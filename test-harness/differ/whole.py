# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One zone of lab/whole_zones.py, preloaded (--zone): its questions, its changes, and its servers.

A primary, which no client asks, signs the zone if its kind is signed, and takes the updates. Two servers transfer each version from it,
two named or two Unbound with an auth-zone: the one under test, which preloads the zone, and the reference. So both have the same
signatures. Clients' queries come in frames with room for long replies."""

import itertools
import re
import shutil

import dns.name
import dns.rdatatype
import dns.update

from lab import auth_zones, preloaded, whole_zones
from lab.authoritative import send_update
from lab.client import ask
from lab.network import REFERENCE, SERVICE
from lab.run import HarnessError, wait_until
from lab.servers import Named
from lab.world import World

from . import servers
from .commands import BindCommands, Commands
from .queries import Style
from .questions import COMMON_TYPES, Data, Pool, to_wire, zone_lines
from .session import Phase, Stand

NS, DS, NSEC3, NSEC3PARAM = 2, 43, 50, 51
PRIMARY = {4: "10.53.4.20", 6: "fd53:4::20"}
NAMES = 5_000                  # of a zone, or that it delegates, if nothing else is said
QUICK_NAMES = 500
CHANGED = 100                  # names whose addresses change
FEW = 20                       # delegations that get DS records and lose them, those below names without data first
MIXED = 0.005                  # share of queries in mixed case: named answers these with the zone's letters, which the kernel can't
TRANSFERRED = r"'%s/IN'.* Transfer completed: "
# Who asks authoritative servers is mostly a resolver that validates.
STYLE = {"brief": 0.0, "hot": 0.6, "plain": 0.98, "any_type": 0.002, "opts": (12, 12, 62, 6, 2, 6)}
PHASES = (
    Phase("steady", 0.40, Style(**STYLE)),
    Phase("unusual", 0.02, Style(hot=0.6, brief=0.0, plain=0.25, any_type=0.2, damage=0.015, rate=2500)),
    Phase("updated", 0.40, Style(changing=0.1, **STYLE), "flush"),
    Phase("reloading", 0.04, Style(changing=0.1, **STYLE), "reload"),
    Phase("afterwards", 0.14, Style(changing=0.1, **STYLE)),
)


def origin_of(zone):
    """In wire format."""
    return to_wire(zone.origin.removesuffix(".") + ".")


class Questions:
    """hot: what the zone has, each name and type alike; changing: names that updates change; cold: what it does not have, at every
    depth, and names below its cuts, DNAMEs and wildcards."""

    crowds = None

    def __init__(self, data, zone, changed, rng, count):
        self.owners = [owner for owner, types in data.owners.items() if NSEC3 not in types]
        self.hot = Pool([(owner, t) for owner in self.owners for t in data.owners[owner] if t != NSEC3PARAM])
        self.changing = Pool([(to_wire(name), rng.choice((1, 1, 1, 28, 16))) for name in changed for _ in range(3)])
        kinds = [self._types(rng, count, zone), self._below(rng, count, zone),
                 [(to_wire(f"{name}."), 1) for name, _ in zone.absent(rng, count)], self._ds(data, rng, count, zone)]
        self.cold = Pool([q for q in itertools.chain(*kinds) if len(q[0]) <= 255])

    def pools(self, style):
        return [(self.hot, style.hot, MIXED), (self.changing, style.changing, MIXED), (self.cold, 1 - style.hot - style.changing, MIXED)]

    def _types(self, rng, count, zone):
        """Types that names need not have; of their parents in the zone, too, which need not have data. (A name above it comes from a cache,
        whose TTLs are not the same in two servers.)"""
        origin = origin_of(zone)
        for _ in range(count):
            name = rng.choice(self.owners)
            if rng.random() < 0.3 and name != origin:
                name = name[1 + name[0]:]
            yield name, rng.choice(COMMON_TYPES[:-1])

    def _ds(self, data, rng, count, zone):
        """DS of delegations, of which some have it."""
        cuts = [owner for owner in self.owners if NS in data.owners[owner] and owner != origin_of(zone)]
        return [(owner, DS) for owner in rng.choices(cuts, k=count)] if cuts else []

    def _below(self, rng, count, zone):
        """Names of one to three labels more than one of the zone, or the name above that, which need not have data."""
        origin = origin_of(zone)
        for _ in range(count):
            name = rng.choice(self.owners)
            if rng.random() < 0.3 and name != origin:
                name = name[1 + name[0]:]
            for _ in range(rng.choice((1, 1, 2, 3))):
                label = rng.choice((b"*", b"w", b"%x" % rng.getrandbits(rng.choice((4, 20, 60)))))
                name = bytes((len(label),)) + label + name
            yield name, rng.choice((1, 1, 28, 16))


class Changes(Commands):
    """Each is one version, or more, of the zone, which both secondaries have when it returns."""

    REFRESH = ""             # command

    def __init__(self, stand, asked, seed):
        super().__init__(stand, asked, seed)
        self.servers = stand.tested, stand.reference
        self.added = []          # names
        self.secured = set()     # delegations that have a DS record by an update

    def actions(self, kind):
        return (self.address, self.address, self.come, self.go) + (self.secure,) * bool(self.stand.insecure)

    def _serial(self, server):
        reply = ask(server.ns, server.service[4], self.stand.zone.origin, "SOA", local=server.service[4], timeout=0.5)
        return reply and reply.answer and reply.answer[0][0].serial

    def _update(self, what, fill):
        message = dns.update.Update(self.stand.origin)
        fill(message)
        primary, before = self.stand.primary, self._serial(self.stand.primary)
        send_update(primary, message)
        serial = self._serial(primary)
        for server in self.servers if serial != before else ():
            server.control(self.REFRESH, self.stand.origin)
            wait_until(lambda: self._serial(server) == serial, 10, f"{server.name} to serve version {serial}")
        return f"update: {what}"

    def _address(self):
        return f"192.0.2.{self.rng.randrange(1, 250)}"

    def address(self):
        """Of up to three names."""
        names, address = self.rng.sample(self.stand.changed, min(3, len(self.stand.changed))), self._address()
        return self._update(f"{' '.join(names)} become {address}", lambda message: [
            message.replace(dns.name.from_text(name), whole_zones.TTL, "A", address) for name in names])

    def come(self):
        """A name comes, or a name below it, with an address, or a wildcard, a cut or a DNAME."""
        labels = ".".join(whole_zones.random_label(self.rng)[:3] for _ in range(self.rng.choice((1, 1, 2, 3))))
        parent = self.rng.choice((self.stand.origin, self.rng.choice(self.added or self.stand.changed)))
        name = self.rng.choice((labels, labels, labels, f"*.{labels}")) + "." + parent.removeprefix("*.").lstrip(".")
        rdtype, rdata = self.rng.choice((("A", self._address()), ("A", self._address()), ("TXT", '"here"'), ("NS", "ns.elsewhere.test."),
                                         ("DNAME", whole_zones.ELSEWHERE)))
        if "*" in name and rdtype in ("NS", "DNAME"):
            rdtype, rdata = "A", self._address()
        self.added.append(name)
        for _ in range(10):
            self.asked.changing.add(to_wire(name), dns.rdatatype.from_text(rdtype))
        below = to_wire(name)
        self.asked.changing.add(b"\x05below" + below, 1)
        return self._update(f"{name} comes with {rdtype} {rdata}", lambda message: message.add(
            dns.name.from_text(name), whole_zones.TTL, rdtype, rdata))

    def secure(self):
        """With opt-out the delegation gets or loses an NSEC3 record, and so may names without data above it."""
        name = self.rng.choice(self.stand.insecure)
        if name in self.secured:
            self.secured.remove(name)
            return self._update(f"{name} loses its DS record", lambda message: message.delete(dns.name.from_text(name), "DS"))
        self.secured.add(name)
        return self._update(f"{name} gets a DS record", lambda message: message.add(
            dns.name.from_text(name), whole_zones.TTL, *whole_zones.ds(self.rng)))

    def go(self):
        name = self.added.pop(self.rng.randrange(len(self.added))) if self.added else self.rng.choice(self.stand.changed)
        return self._update(f"{name} goes", lambda message: message.delete(dns.name.from_text(name)))


class BindChanges(Changes, BindCommands):
    REFRESH = "refresh"

    def actions(self, kind):
        return (self.reload, self.retransfer, self.withdraw) if kind == "reload" else super().actions(kind)

    def retransfer(self):
        """Of the whole zone."""
        for server in self.servers:
            pattern = TRANSFERRED % re.escape(self.stand.zone.origin)
            before = len(re.findall(pattern, server.program.log.read_text()))
            server.control("retransfer", self.stand.origin)
            wait_until(lambda: len(re.findall(pattern, server.program.log.read_text())) > before, 60,
                       f"{server.name} to have transferred the zone again")
        return "retransfer"


class UnboundChanges(Changes):
    REFRESH = "auth_zone_transfer"

    def actions(self, kind):
        return (self.withdraw,) if kind == "reload" else super().actions(kind)


class WholeStand(Stand):
    """zone: of whole_zones, with the path of its file; changed: names whose addresses change, absolute; insecure: delegations of a signed
    zone that have no DS records, a few."""

    phases = PHASES

    def __init__(self, seed, server, kind, names=None, quick=False):
        super().__init__(seed, server, preload=True)
        self.kind, self.names = whole_zones.KINDS[kind], names or (QUICK_NAMES if quick else NAMES)
        self.world = World()

    def _start_authorities(self, stack):
        world, there = self.world, self.world.network.authoritative
        world.network.with_room(world.tools.room_object)
        self.zone = whole_zones.write(self.kind, world.run.dir / "whole.zone", self.names, self.seed)
        if self.kind.algorithm:
            whole_zones.sign(world.tools, self.zone, self.kind)
        self.origin = self.zone.origin.removesuffix(".") + "."
        self.expected = preloaded.estimate(world.tools, self.zone)
        there.address("lo", f"{PRIMARY[4]}/32", f"{PRIMARY[6]}/128")
        self.primary = Named(world, there, "primary", PRIMARY, world.hints, recursion=False, clients="any;", options=(
            "notify no;", "allow-transfer { any; };", "check-names primary ignore;"), zones={self.origin: self._primary_body()})
        shutil.copy(self.zone.path, self.primary.dir / "whole.zone")
        stack.enter_context(self.primary)

    def _primary_body(self):
        keys = f'key-directory "{self.zone.path.with_suffix(".keys")}"; ' if self.kind.algorithm else ""
        return f'type primary; file "whole.zone"; allow-update {{ any; }}; max-journal-size unlimited; {keys}'

    def capacity(self):
        return max(100_000, self.expected["capacity"])

    def questions(self, data, rng, queries):
        owners = [self.zone.full(owner) + "." for owner, types in self.zone.names[2:] if "A" in types and "*" not in owner] or \
            [self.zone.full(owner) + "." for owner, _ in self.zone.names[2:]]
        self.changed = rng.sample(owners, min(CHANGED, len(owners)))
        self.insecure = [self.zone.full(owner) + "." for owner, types in self.zone.names[1:] if "NS" in types and "DS" not in types
                         ] * bool(self.kind.algorithm)
        self.insecure = [name for name in self.insecure if name.count(".") > self.origin.count(".") + 1][:FEW] or self.insecure[:FEW]
        return Questions(data, self.zone, self.changed, rng, max(1000, queries // 50))

    def data(self):
        return Data(zone_lines(self.zone.path))


def _named(stand):
    body = f'type secondary; file "whole"; primaries {{ {PRIMARY[4]}; }};'
    options = {"options": servers.NAMED_COOKIES + ("notify no;", "minimal-responses yes;", "preferred-glue A;"), "recursion": False,
               "zones": {stand.origin: body}}
    clause = servers.NAMED_CLAUSE + (f'hydns-preload {{ "{stand.origin}"; }};',)
    return stand.world.named(stand.daemon, clause=clause, **options), stand.world.named_reference(**options)


def _unbound(stand):
    server = (*servers.UNBOUND_CONFIG, *servers.UNBOUND_CLIENTS, "rrset-roundrobin: no", "minimal-responses: yes")
    lines = f"primary: {PRIMARY[4]}", "for-upstream: no"
    return (stand.world.unbound(stand.daemon, server=server, others=auth_zones.clause(stand.zone.origin, *lines, "hydns-preload: yes"),
                                clause=servers.UNBOUND_CLAUSE),
            stand.world.reference(server=server, others=auth_zones.clause(stand.zone.origin, *lines)))


def _is_ready(stand):
    for server in (stand.tested, stand.reference):
        server.program.must_run()
        reply = ask(server.ns, server.service[4], stand.zone.origin, "SOA", local=server.service[4], timeout=0.5)
        if not reply or not reply.answer:
            return False
    return preloaded.is_done(stand.daemon) and stand.daemon.resolver_ready()


SERVERS = {
    "bind": servers.Server("BIND, a whole zone", _named, _is_ready, BindChanges, servers.AUTHORITATIVE, 0.5, patience=300),
    "unbound": servers.Server("Unbound, a whole zone", _unbound, _is_ready, UnboundChanges, servers.AUTHORITATIVE, 0.5, patience=300),
}
