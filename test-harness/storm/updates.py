# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""storm.example. in an authoritative server: its file, and changes, each with its own serial: of BIND by dynamic updates, of Unbound by
other content of its auth-zone's file."""

import random
import threading
import time

import dns.exception
import dns.update

from lab.authoritative import send_update
from lab.run import HarnessError

from . import faults, zone
from .zone import ALIAS_TTL

FILE = "storm.zone"
PAUSE = 1.0                       # seconds between changes, on average
TIMEOUT = 5


class Changes:
    """Context manager: a thread that changes one RRset after the other, from change() on. A subclass has _make()."""

    def __init__(self, server, ledger, seed, fault):
        self.server, self.ledger, self.fault = server, ledger, fault
        self.rng = random.Random(f"changes {seed}")
        self.present = {}
        self.stamps = {key: self._first(key) for key in (zone.SOA, *zone.RECORDS)}     # of the last content; None: not there
        (server.dir / FILE).write_text(self._text())
        self._changing = threading.Event()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def _first(self, key):
        stamp, datum = self.ledger.new(key)
        datum.acknowledged = datum.begun
        return stamp

    def _text(self):
        return "\n".join(self._lines()) + "\n"

    def _lines(self):
        yield f"$ORIGIN {zone.ZONE}"
        for key, stamp in self.stamps.items():
            if stamp is not None:
                yield f"{key.owner} {zone.ttl(key)} {key.rdtype} {zone.rdata(key, stamp)}"
        yield f"{zone.ZONE} 3600 NS ns"
        yield "ns 3600 A 192.0.2.1"
        yield f"*.{zone.LARGE.owner} {zone.LARGE_TTL} {zone.LARGE.rdtype} {zone.LARGE_RDATA}"
        for alias, target in zone.ALIASES.items():
            yield f"{alias.owner} {ALIAS_TTL} CNAME {target}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._leave.set()
        self._changing.set()
        self._thread.join(TIMEOUT + 5)

    def change(self, changing=True):
        self._changing.set() if changing else self._changing.clear()

    def _run(self):
        while not self._leave.wait(self.rng.expovariate(1 / PAUSE)):
            self._changing.wait()
            self._update(self.rng.choice(zone.CHANGING + zone.FRESH))

    def _update(self, key):
        """Changes an RRset. Without an acknowledgement it is unknown whether the change was made."""
        present = key not in zone.GHOSTS or not self.present.get(key, True)
        serial, soa = self.ledger.new(zone.SOA)
        stamp, datum = self.ledger.new(key, present=present)
        self.stamps |= {zone.SOA: serial, key: stamp if present else None}
        try:
            if self.fault != faults.FLUSH:
                self._make(key)
        except (HarnessError, OSError, EOFError, dns.exception.DNSException):     # the server is away, or its disk is full
            return
        datum.acknowledged = soa.acknowledged = time.monotonic_ns()
        self.present[key] = present


class Updates(Changes):
    """Of BIND."""

    def _make(self, key):
        message = dns.update.Update(zone.ZONE)
        message.replace(dns.name.from_text(zone.ZONE), zone.ttl(zone.SOA), "SOA", zone.rdata(zone.SOA, self.stamps[zone.SOA]))
        owner = dns.name.from_text(key.owner)
        if self.stamps[key] is None:
            message.delete(owner)
        else:
            message.replace(owner, zone.ttl(key), key.rdtype, zone.rdata(key, self.stamps[key]))
        send_update(self.server, message, TIMEOUT)


class Contents(Changes):
    """Of Unbound. What could not be told to it, it reads with the next change, or when it starts."""

    def _make(self, key):
        file, new = self.server.dir / FILE, self.server.dir / f"{FILE}.new"
        new.write_text(self._text())
        new.replace(file)
        # whose status is 0 as well when Unbound has ended meanwhile
        if not self.server.control("auth_zone_reload", zone.ZONE).startswith("ok"):
            raise HarnessError("Unbound did not read its zone")
