# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What is done to the servers while queries go on: commands of their own, changes at the authority, and hydnsd's
withdrawal. Each returns what it did when that has taken effect."""

import random

import dns.name
import dns.rdatatype
import dns.update

from harness.authoritative import send_update
from harness.client import ask
from harness.lab import records
from harness.network import SERVICE
from harness.run import wait_until

from . import zone


def shows(server, name, text):
    """Does the server say the text in its answer, past the kernel path?"""
    reply = ask(server.ns, server.service[4], name, local=server.service[4], timeout=0.5)
    return reply and any(text in str(rrset) for rrset in reply.answer)


def authority_shows(stand, address, name, text):
    reply = ask(stand.world.network.authority, address, name, timeout=0.5)
    return reply and any(text in str(rrset) for rrset in reply.answer)


class Commands:
    """A subclass says what its servers know. stand: the servers; asked: questions."""

    ASKED = ()               # names that are asked for besides those of the zones

    def __init__(self, stand, asked, seed):
        self.stand, self.asked = stand, asked
        self.rng = random.Random(f"disturb {seed}")

    def actions(self, kind):
        """The functions to choose from while "flush" or "reload" is the kind, the likely ones more than once."""
        raise NotImplementedError

    def draw(self, kind):
        return self.rng.choice(self.actions(kind))

    def hot_name(self):
        pool = self.rng.choice((self.asked.hot, self.asked.changing))
        name, rdtype = self.rng.choices(pool.questions, cum_weights=pool.weights)[0]
        return str(dns.name.from_wire(name, 0)[0]), dns.rdatatype.to_text(rdtype)

    def withdraw(self):
        """hydnsd's own flush: takes rules away, and changes no data."""
        name, _ = self.hot_name()
        request = self.rng.choice(({"name": name}, {"zone": zone.PLAIN}, {"all": True}))
        self.stand.daemon.call({"cmd": "flush", **request})
        return f"hydnsctl flush {request}"

    def wait_registered(self):
        """named's plugin starts with the first response."""
        def ready():
            ask(self.stand.world.network.resolver, SERVICE[4], ".", "NS", timeout=0.5)
            return self.stand.daemon.resolver_ready()
        wait_until(ready, 20, "the server to register with hydnsd again")


class ResolverCommands(Commands):
    def forget(self, server, origin, address):
        """Makes a server ask anew for all of a zone, whose changing names have a new address."""
        raise NotImplementedError

    def change(self):
        """New data at the authority, and flushes that make them take effect."""
        stand, address = self.stand, self.stand.zones.change()
        for origin in (zone.PLAIN, zone.SIGNED):
            stand.nsd.reload(origin, lambda: authority_shows(stand, zone.ADDRESS, f"changing0.{origin}", address))
        for origin in (zone.PLAIN, zone.SIGNED):
            for server in (stand.tested, stand.reference):
                self.forget(server, origin, address)
        return f"changing names become {address}, flushed"


class UnboundCommands(ResolverCommands):
    LOCAL = [f"local{n}.{zone.PLAIN}" for n in range(6)]     # names that get local data by command

    ASKED = LOCAL

    def actions(self, kind):
        return (self.reload,) if kind == "reload" else \
            (self.flush, self.flush, self.flush, self.local, self.change, self.withdraw)

    def forget(self, server, origin, address):
        server.control("flush_zone", origin)

    def flush(self):
        name, rdtype = self.hot_name()
        parent = name.partition(".")[2] or "."
        words = self.rng.choice((("flush", name), ("flush_type", name, rdtype), ("flush_zone", parent),
                                 ("flush_zone", zone.PLAIN), ("flush_zone", "."), ("flush_negative",),
                                 ("flush_bogus",)))
        self.stand.tested.control(*words)
        return " ".join(words)

    def local(self):
        name = self.rng.choice(self.LOCAL)
        words = ("local_data_remove", name) if self.rng.random() < 0.4 else \
            ("local_data", name, "60", "IN", "A", f"192.0.2.{self.rng.randrange(1, 250)}")
        for server in (self.stand.tested, self.stand.reference):
            server.control(*words)
        return " ".join(words)

    def reload(self):
        """Local data given by command is gone after a reload of the one, so the other must forget it too."""
        for name in self.LOCAL:
            self.stand.reference.control("local_data_remove", name)
        word, unbound = self.rng.choice(("reload", "reload_keep_cache")), self.stand.tested
        unbound.control(word)
        wait_until(lambda: "is running" in unbound.control("status", check=False), 20,
                   f"Unbound to answer after {word}")
        self.wait_registered()
        return word


class NamedCommands(ResolverCommands):
    def actions(self, kind):
        return (self.reload,) if kind == "reload" else (self.flush, self.flush, self.flush, self.change, self.withdraw)

    def forget(self, server, origin, address):
        """What a fetch under way brings may come into the cache after the flush, when it has been validated. A named that
        can't resolve for a while (servers._resolves) is waited for."""
        def has_new(name):
            if shows(server, name, address):
                return True
            if shows(server, name, ""):
                server.control("flushname", name)
        server.control("flushtree", origin)
        for n in range(zone.CHANGING):
            wait_until(lambda: has_new(f"changing{n}.{origin}"), 30, f"{server.name} to know the new {origin}")

    def flush(self):
        name, _ = self.hot_name()
        parent = name.partition(".")[2] or "."
        # no flushtree of the root: after it, 9.20.26 keeps entries that flushname does not reach, without the plugin, too
        words = self.rng.choice((("flushname", name), ("flushtree", parent if "." in parent.rstrip(".") else zone.SIGNED),
                                 ("flushtree", zone.PLAIN), ("flush",)))
        self.stand.tested.control(*words)
        return " ".join(words)

    def reload(self):
        word = self.rng.choice(("reload", "reconfig"))
        self.stand.tested.control(word)
        self.wait_registered()
        return word


class ZoneCommands(Commands):
    """Changes of zones that both servers serve: each is made at the one and then at the other."""
    LOCAL = [f"local{n}.{zone.PLAIN}" for n in range(6)]     # names that come and go
    ASKED = LOCAL + [zone.LAB_NAME] + [f"host{n}.{zone.TRANSFERRED}" for n in range(4)]

    def __init__(self, *args):
        super().__init__(*args)
        self.servers = self.stand.tested, self.stand.reference
        self.serial = 1

    def actions(self, kind):
        return (self.reload,) if kind == "reload" else \
            (self.update, self.update, self.come_and_go, self.reload_zone, self.edit, self.transfer, self.withdraw)

    def _both(self, *words):
        for server in self.servers:
            server.control(*words)

    def _wait(self, name, text):
        for server in self.servers:
            wait_until(lambda: shows(server, name, text), 10, f"{server.name} to serve {text} at {name}")

    def _next_serial(self):
        """Above any that updates have led to since the last."""
        self.serial += 1000
        return self.serial

    def _update(self, change):
        message = dns.update.Update(zone.PLAIN)
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
        name = dns.name.from_text(self.rng.choice(self.LOCAL))
        if self.rng.random() < 0.4:
            self._update(lambda message: message.delete(name))
            return f"update: {name} goes"
        self._update(lambda message: message.replace(name, 60, "A", f"192.0.2.{self.rng.randrange(1, 250)}"))
        return f"update: {name} comes"

    def reload_zone(self):
        """A zone file is written anew and read."""
        address = self.stand.zones.change((zone.SIGNED,), self._next_serial())
        self._both("reload", zone.SIGNED)
        self._wait(f"changing0.{zone.SIGNED}", address)
        return f"reload {zone.SIGNED}, with {address}"

    def edit(self):
        """The file of the zone that takes updates is edited: names given by update are gone."""
        address = self.stand.zones.change((zone.PLAIN,), self._next_serial())
        self._both("freeze", zone.PLAIN)
        for server in self.servers:
            file = self.stand.zones.file(zone.PLAIN)
            (server.dir / file.name).write_text(file.read_text())
        self._both("thaw", zone.PLAIN)
        self._wait(f"changing0.{zone.PLAIN}", address)
        return f"freeze, edit, thaw {zone.PLAIN}, with {address}"

    def transfer(self):
        zones = self.stand.zones
        text = f"192.0.2.{self.rng.randrange(1, 250)}"
        zones.lab.write({**records(), "www": [f"300 A {text}"]})
        self.stand.nsd.reload(zone.TRANSFERRED, lambda: authority_shows(self.stand, zone.LAB_ADDRESS, zone.LAB_NAME, text))
        self._both("refresh", zone.TRANSFERRED)
        self._wait(zone.LAB_NAME, text)
        return f"transfer of {zone.TRANSFERRED}, with {text}"

    def reload(self):
        word = self.rng.choice(("reload", "reconfig"))
        self.stand.tested.control(word)
        self.wait_registered()
        return word
