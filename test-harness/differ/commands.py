# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What is done to the servers while queries go on: their own commands, changes at the authoritative server, and flushes of
hydnsd's rules. Each returns a description once it has taken effect."""

import math
import random
import re
import time
from contextlib import contextmanager

import dns.name
import dns.rdatatype
import dns.update

from lab.authoritative import send_update
from lab.client import ask
from lab.network import SERVICE
from lab.run import HarnessError, wait_until
from lab.tools import unbound_has_fast_reload

from . import zone

CROWDS = 1 / 3           # share of flushed names that crowds ask for, so that there are parked queries
CHANGED = zone.PLAIN, zone.SIGNED        # zones of the authoritative server whose names change


def shows(server, name, text):
    """Does the server's answer, past the kernel path, hold the text?"""
    reply = ask(server.ns, server.service[4], name, local=server.service[4], timeout=0.5)
    return reply and any(text in str(rrset) for rrset in reply.answer)


def has_serial(server, origin, text):
    """Does the zone file's text have the serial that the server serves? named writes the file some time after the freeze."""
    reply = ask(server.ns, server.service[4], origin, "SOA", local=server.service[4], timeout=0.5)
    return reply and reply.answer and re.search(rf"\b{reply.answer[0][0].serial}\b", text)


def zone_server_shows(stand, name, text):
    reply = ask(stand.world.network.authoritative, zone.ADDRESS, name, timeout=0.5)
    return reply and any(text in str(rrset) for rrset in reply.answer)


class Commands:
    """A subclass has the commands of its servers. stand: the servers; asked: the questions."""

    ASKED = ()               # names to ask for besides those of the zones

    def __init__(self, stand, asked, seed):
        self.stand, self.asked = stand, asked
        self.rng = random.Random(f"disturb {seed}")
        self.emptied = []        # when the server under test lost its whole cache, monotonic ns
        self.flushed = []        # when it lost all of zone.PLAIN: (begin, end), monotonic ns
        self.restarts = []       # [begin, end] of when it ended its resolutions and answered nobody who waited for them; end: or inf

    def actions(self, kind):
        """The functions to choose from; kind: "flush" or "reload". Listed twice, one is drawn twice as often."""
        raise NotImplementedError

    def draw(self, kind):
        return self.rng.choice(self.actions(kind))

    @contextmanager
    def restart(self):
        """The server under test ends its resolutions within the block."""
        times = [time.monotonic_ns(), math.inf]
        self.restarts.append(times)
        try:
            yield
        finally:
            times[1] = time.monotonic_ns()

    def restarted_since(self, when):
        return any(end >= when for _, end in list(self.restarts))

    def hot_name(self):
        pool = self.rng.choice((self.asked.hot, self.asked.changing))
        name, rdtype = self.rng.choices(pool.questions, cum_weights=pool.weights)[0]
        if self.asked.crowds and self.rng.random() < CROWDS:
            name, rdtype = self.asked.crowds.asks() or (name, rdtype)
        return str(dns.name.from_wire(name, 0)[0]), dns.rdatatype.to_text(rdtype)

    def withdraw(self):
        """hydnsctl flush: removes rules and changes no data."""
        name, _ = self.hot_name()
        request = self.rng.choice(({"name": name}, {"zone": zone.PLAIN}, {"all": True}))
        self.stand.daemon.call({"cmd": "flush", **request})
        return f"hydnsctl flush {request}"

    def wait_registered(self):
        """Waits for the server to register with hydnsd; asks it, since named's plugin starts with the first response."""
        def ready():
            ask(self.stand.world.network.resolver, SERVICE[4], ".", "NS", timeout=0.5)
            return self.stand.daemon.resolver_ready()
        wait_until(ready, 20, "the server to register with hydnsd again")


class ResolverCommands(Commands):
    def forget(self, server, origin, address):
        """Flushes a zone from a server's cache. address: the new one of the zone's changing names."""
        raise NotImplementedError

    def change(self):
        """Changes data at the authoritative server and flushes them from both resolvers."""
        stand, address = self.stand, self.stand.zones.change(CHANGED)
        for origin in CHANGED:
            stand.nsd.reload(origin, lambda: zone_server_shows(stand, f"changing0.{origin}", address))
        for origin in CHANGED:
            for server in (stand.tested, stand.reference):
                self.forget(server, origin, address)
        return f"change at the authoritative server: changing names become {address}, flushed"


class UnboundCommands(ResolverCommands):
    LOCAL = [f"local{n}.{zone.PLAIN}" for n in range(6)]     # names that get local data by command

    ASKED = LOCAL

    def actions(self, kind):
        if kind == "reload":
            return (self.reload, self.fast_reload) if unbound_has_fast_reload() else (self.reload,)
        return self.flush, self.flush, self.flush, self.local, self.change, self.withdraw

    def forget(self, server, origin, address):
        self._control(server, "flush_zone", origin)

    def _forget_local(self):
        """A reload removes local data given by command, so this removes them from the reference as well."""
        for name in self.LOCAL:
            self.stand.reference.control("local_data_remove", name)

    def _control(self, server, *words):
        begun = time.monotonic_ns()
        server.control(*words)
        if server is self.stand.tested and words[0] == "flush_zone" and words[1] in (zone.PLAIN, "."):
            self.flushed.append((begun, time.monotonic_ns()))

    def flush(self):
        name, rdtype = self.hot_name()
        parent = name.partition(".")[2] or "."
        words = self.rng.choice((("flush", name), ("flush_type", name, rdtype), ("flush_zone", parent),
                                 ("flush_zone", zone.PLAIN), ("flush_zone", "."), ("flush_negative",),
                                 ("flush_bogus",)))
        self._control(self.stand.tested, *words)
        return " ".join(words)

    def local(self):
        name = self.rng.choice(self.LOCAL)
        words = ("local_data_remove", name) if self.rng.random() < 0.4 else \
            ("local_data", name, "60", "IN", "A", f"192.0.2.{self.rng.randrange(1, 250)}")
        for server in (self.stand.tested, self.stand.reference):
            server.control(*words)
        return " ".join(words)

    def reload(self):
        self._forget_local()
        word, unbound = self.rng.choice(("reload", "reload_keep_cache")), self.stand.tested
        with self.restart():
            unbound.control(word)
            wait_until(lambda: "is running" in unbound.control("status", check=False), 20,
                       f"Unbound to answer after {word}")
            self.wait_registered()
        return word

    def fast_reload(self):
        """Caches and resolutions under way stay."""
        self._forget_local()
        words = "fast_reload", *self.rng.choice(((), ("+p",)))
        said = self.stand.tested.control(*words)
        if said.split()[-1:] != ["ok"]:
            raise HarnessError(f"{' '.join(words)} failed: {said}")
        return " ".join(words)


class BindCommands(Commands):
    def reload(self):
        word = self.rng.choice(("reload", "reconfig"))
        self.stand.tested.control(word)
        self.wait_registered()
        return word


class ZoneChanges(BindCommands):
    """Changes of zones that both servers serve: each is made at one server after the other."""
    DYNAMIC = READ = None    # the zone that takes updates, and the one that is reloaded from its file

    def __init__(self, *args):
        super().__init__(*args)
        self.servers = self.stand.tested, self.stand.reference
        self.serial = 1

    @staticmethod
    def local(dynamic):
        """Names that come and go."""
        return [f"local{n}.{dynamic}" for n in range(6)]

    @property
    def changes(self):
        return self.update, self.update, self.come_and_go, self.reload_zone, self.edit, self.transfer

    def _both(self, *words):
        for server in self.servers:
            server.control(*words)

    def _wait(self, name, text):
        for server in self.servers:
            wait_until(lambda: shows(server, name, text), 10, f"{server.name} to serve {text} at {name}")

    def _next_serial(self):
        """A serial above all that updates have reached since the last one."""
        self.serial += 1000
        return self.serial

    def _update(self, change):
        message = dns.update.Update(self.DYNAMIC)
        change(message)
        for server in self.servers:
            send_update(server, message)

    def update(self):
        """A dynamic update of the changing names."""
        address = f"198.51.100.{self.rng.randrange(1, 250)}"
        self._update(lambda message: [message.replace(f"changing{n}", zone.SETTLED_TTL, "A", address)
                                      for n in range(zone.CHANGING)])
        return f"update: changing names become {address}"

    def come_and_go(self):
        name = dns.name.from_text(self.rng.choice(self.local(self.DYNAMIC)))
        if self.rng.random() < 0.4:
            self._update(lambda message: message.delete(name))
            return f"update: {name} goes"
        self._update(lambda message: message.replace(name, 60, "A", f"192.0.2.{self.rng.randrange(1, 250)}"))
        return f"update: {name} comes"

    def reload_zone(self):
        """Rewrites a zone file and reloads it."""
        address = self.stand.zones.change((self.READ,), self._next_serial())
        self._both("reload", self.READ)
        self._wait(f"changing0.{self.READ}", address)
        return f"reload-zone of {self.READ}, with {address}"

    def edit(self):
        """Edits the file of the zone that takes updates, between freeze and thaw: names added by updates are gone."""
        address = self.stand.zones.change((self.DYNAMIC,), self._next_serial())
        self._both("freeze", self.DYNAMIC)
        for server in self.servers:
            file = self.stand.zones.file(self.DYNAMIC)
            mine = server.dir / file.name
            wait_until(lambda: has_serial(server, self.DYNAMIC, mine.read_text()), 10, f"{server.name} to write {mine}")
            mine.write_text(file.read_text())
        self._both("thaw", self.DYNAMIC)
        self._wait(f"changing0.{self.DYNAMIC}", address)
        return f"freeze-thaw of {self.DYNAMIC}, with {address}"

    def transfer(self):
        """A zone transfer: by IXFR, or by AXFR after retransfer."""
        address = self.stand.zones.change((zone.MOVED,), self._next_serial())
        name = f"changing0.{zone.MOVED}"
        self.stand.nsd.reload(zone.MOVED, lambda: zone_server_shows(self.stand, name, address))
        self._both(self.rng.choice(("refresh", "retransfer")), zone.MOVED)
        self._wait(name, address)
        return f"{self._last_transfer()} of {zone.MOVED}, with {address}"

    def _last_transfer(self):
        """AXFR or IXFR, by the number of records in the log of the server under test."""
        count = re.findall(rf"'{zone.MOVED[:-1]}/IN'.* Transfer completed: .* (\d+) records",
                           self.stand.tested.program.log.read_text())[-1]
        return "AXFR" if int(count) >= len(zone.small_lines(zone.MOVED)) else "IXFR"

    def flushing(self):
        """Words of a command that flushes a part of the cache or all of it."""
        name, _ = self.hot_name()
        parent = name.partition(".")[2] or "."
        return self.rng.choice((("flushname", name), ("flushtree", parent), ("flushtree", zone.PLAIN), ("flushtree", "."),
                                ("flush",)))


class NamedCommands(ZoneChanges, ResolverCommands):
    DYNAMIC, READ = zone.OWN, zone.READ
    ASKED = ZoneChanges.local(DYNAMIC)

    def __init__(self, *args):
        super().__init__(*args)
        self.adrift = False      # see flush()

    def actions(self, kind):
        return (self.reload,) if kind == "reload" else \
            (self.flush,) * 4 + (self.change, self.change, self.withdraw, *self.changes)

    def forget(self, server, origin, address):
        """A fetch under way may bring former data into the cache after the flush, once they are validated: then this flushes
        the name again. It also waits for a named that can't resolve for a while (servers._resolves)."""
        def has_new(name):
            if shows(server, name, address):
                return True
            if shows(server, name, ""):
                server.control("flushname", name)
        if server is self.stand.tested and self.adrift:
            self._command("flush")
        server.control("flushtree", origin)
        for n in range(zone.CHANGING):
            wait_until(lambda: has_new(f"changing{n}.{origin}"), 30, f"{server.name} to know the new {origin}")

    def flush(self):
        """After flushtree of the root a view of named goes on using its former cache, while later commands empty a new one that
        it does not use; until flush, reload or reconfig (bind-patches/README.md)."""
        words = self.flushing()
        self._command(*words)
        return " ".join(words)

    def _command(self, *words):
        if words == ("flush",):
            self.emptied.append(time.monotonic_ns())
        self.stand.tested.control(*words)
        self.adrift = words == ("flushtree", ".") or self.adrift and words != ("flush",)


class ZoneCommands(ZoneChanges):
    DYNAMIC, READ = zone.PLAIN, zone.SIGNED
    ASKED = ZoneChanges.local(DYNAMIC) + [f"changing{n}.{zone.MOVED}" for n in range(zone.CHANGING)]

    def actions(self, kind):
        return (self.reload,) if kind == "reload" else (*self.changes, self.flush, self.withdraw)

    def flush(self):
        words = self.flushing()
        self.stand.tested.control(*words)
        return " ".join(words)
