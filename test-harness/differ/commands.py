# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What is done to the servers while queries go on: commands of their own, changes at the authority, and hydnsd's
withdrawal. Each returns what it did when that has taken effect."""

import random

import dns.name
import dns.rdatatype

from harness.client import ask
from harness.network import SERVICE
from harness.run import wait_until

from . import zone


class Commands:
    """A subclass says what its servers know: actions by kind, and forget(). stand: the servers; asked: questions."""

    def __init__(self, stand, asked, seed):
        self.stand, self.asked = stand, asked
        self.rng = random.Random(f"disturb {seed}")

    def actions(self, kind):
        """The functions to choose from while "flush" or "reload" is the kind, the likely ones more than once."""
        raise NotImplementedError

    def forget(self, server, origin):
        """Makes a server ask anew for all of a zone."""
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

    def change(self):
        """New data at the authority, and flushes that make them take effect."""
        stand, address = self.stand, self.stand.zones.change()
        for origin in (zone.PLAIN, zone.SIGNED):
            stand.nsd.reload(origin, lambda: self._shows(f"changing0.{origin}", address))
        for origin in (zone.PLAIN, zone.SIGNED):
            for server in (stand.tested, stand.reference):
                self.forget(server, origin)
        return f"changing names become {address}, flushed"

    def _shows(self, name, address):
        reply = ask(self.stand.world.network.authority, zone.ADDRESS, name, timeout=0.5)
        return reply and any(address in str(rrset) for rrset in reply.answer)

    def wait_registered(self):
        """named's plugin starts with the first response."""
        def ready():
            ask(self.stand.world.network.resolver, SERVICE[4], ".", "NS", timeout=0.5)
            return self.stand.daemon.resolver_ready()
        wait_until(ready, 20, "the server to register with hydnsd again")


class UnboundCommands(Commands):
    LOCAL = [f"local{n}.{zone.PLAIN}" for n in range(6)]     # names that get local data by command

    def actions(self, kind):
        return (self.reload,) if kind == "reload" else \
            (self.flush, self.flush, self.flush, self.local, self.change, self.withdraw)

    def forget(self, server, origin):
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


class NamedCommands(Commands):
    LOCAL = ()

    def actions(self, kind):
        return (self.reload,) if kind == "reload" else (self.flush, self.flush, self.flush, self.change, self.withdraw)

    def forget(self, server, origin):
        server.control("flushtree", origin)

    def flush(self):
        name, _ = self.hot_name()
        parent = name.partition(".")[2] or "."
        words = self.rng.choice((("flushname", name), ("flushtree", parent), ("flushtree", zone.PLAIN),
                                 ("flushtree", "."), ("flush",)))
        self.stand.tested.control(*words)
        return " ".join(words)

    def reload(self):
        word = self.rng.choice(("reload", "reconfig"))
        self.stand.tested.control(word)
        self.wait_registered()
        return word
