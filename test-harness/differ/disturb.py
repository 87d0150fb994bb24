# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Commands and changes while queries go on. Each is remembered with the time from before it was given until it had
returned: within that time old and new answers are both right, after it only new ones."""

import random
import threading
import time

import dns.name
import dns.rdatatype

from harness.client import ask
from harness.run import HarnessError, wait_until

from . import zone

LOCAL = [f"local{n}.{zone.PLAIN}" for n in range(6)]     # names that get local data by command
QUERIES_BETWEEN = {"flush": 300, "reload": 3000}         # so that most are asked with no command under way


class Disturber:
    """Context manager: a thread that gives commands while a kind is set by begin(), until end()."""

    def __init__(self, world, daemon, unbound, reference, nsd, zones, asked, seed):
        self.world, self.daemon, self.unbound, self.reference = world, daemon, unbound, reference
        self.nsd, self.zones, self.asked = nsd, zones, asked
        self.rng = random.Random(f"disturb {seed}")
        self.done = []               # (begin, end, what), monotonic ns
        self.begun = None            # of the command under way
        self.fed = 0                 # queries handed over so far, by the feeder
        self.error = None
        self._kind = None
        self._turn = threading.Condition()
        self._leave = False
        self.thread = threading.Thread(target=self._run, name="disturber", daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exc):
        with self._turn:
            self._leave, self._kind = True, None
            self._turn.notify_all()
        self.thread.join(30)

    def begin(self, kind):
        with self._turn:
            self._kind = kind
            self._turn.notify_all()

    def end(self):
        """Returns when no command is under way any more."""
        with self._turn:
            self._kind = None
            self._turn.notify_all()
            self._turn.wait_for(lambda: self.begun is None, 60)

    def count(self, queries):
        """The feeder has handed over so many more."""
        with self._turn:
            self.fed += queries
            self._turn.notify_all()

    def overlaps(self, begin, end):
        """What went on within a time, or None."""
        begun = self.begun
        if begun is not None and begun <= end:
            return "a command that has not returned"
        return next((what for b, e, what in reversed(self.done) if b <= end and e >= begin), None)

    def _run(self):
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._kind or self._leave)
                if self._leave:
                    return
                kind = self._kind
            try:
                self._one(self._reload if kind == "reload" else
                          self.rng.choice((self._flush, self._flush, self._flush, self._local, self._change,
                                           self._withdraw)))
            except (HarnessError, OSError) as error:
                self.error = error
                return
            with self._turn:
                at = self.fed + QUERIES_BETWEEN[kind]
                self._turn.wait_for(lambda: self.fed >= at or self._kind != kind)

    def _one(self, action):
        with self._turn:
            self.begun = time.monotonic_ns()
        begun = self.begun
        try:
            what = action()
        finally:
            with self._turn:
                self.done.append((begun, time.monotonic_ns(), action.__name__))
                self.begun = None
                self._turn.notify_all()
        self.done[-1] = (*self.done[-1][:2], what)

    def _hot_name(self):
        pool = self.rng.choice((self.asked.hot, self.asked.changing))
        name, rdtype = self.rng.choices(pool.questions, cum_weights=pool.weights)[0]
        return str(dns.name.from_wire(name, 0)[0]), dns.rdatatype.to_text(rdtype)

    def _flush(self):
        name, rdtype = self._hot_name()
        parent = name.partition(".")[2] or "."
        words = self.rng.choice((("flush", name), ("flush_type", name, rdtype), ("flush_zone", parent),
                                 ("flush_zone", zone.PLAIN), ("flush_zone", "."), ("flush_negative",),
                                 ("flush_bogus",)))
        self.unbound.control(*words)
        return " ".join(words)

    def _withdraw(self):
        """hydnsd's own flush: takes rules away, and changes no data."""
        name, _ = self._hot_name()
        request = self.rng.choice(({"name": name}, {"zone": zone.PLAIN}, {"all": True}))
        self.daemon.call({"cmd": "flush", **request})
        return f"hydnsctl flush {request}"

    def _local(self):
        name = self.rng.choice(LOCAL)
        words = ("local_data_remove", name) if self.rng.random() < 0.4 else \
            ("local_data", name, "60", "IN", "A", f"192.0.2.{self.rng.randrange(1, 250)}")
        for resolver in (self.unbound, self.reference):
            resolver.control(*words)
        return " ".join(words)

    def _change(self):
        """New data at the authority, and flushes that make them take effect."""
        address = self.zones.change()
        for origin in (zone.PLAIN, zone.SIGNED):
            self.nsd.reload(origin, lambda: self._shows(f"changing0.{origin}", address))
        for origin in (zone.PLAIN, zone.SIGNED):
            for resolver in (self.unbound, self.reference):
                resolver.control("flush_zone", origin)
        return f"changing names become {address}, flush_zone"

    def _shows(self, name, address):
        reply = ask(self.world.network.authority, zone.ADDRESS, name, timeout=0.5)
        return reply and any(address in str(rrset) for rrset in reply.answer)

    def _reload(self):
        """Local data given by command is gone after a reload of the one, so the other must forget it too."""
        for name in LOCAL:
            self.reference.control("local_data_remove", name)
        word = self.rng.choice(("reload", "reload_keep_cache"))
        self.unbound.control(word)
        wait_until(lambda: "is running" in self.unbound.control("status", check=False), 20,
                   f"Unbound to answer after {word}")
        wait_until(self.daemon.resolver_ready, 20, "Unbound's module to register again")
        return word
