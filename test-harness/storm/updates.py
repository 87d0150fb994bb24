# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""storm.example. in an authoritative BIND: its file, and changes by dynamic updates, each with its own serial."""

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


class Updates:
    """Context manager: a thread that changes one RRset after the other, from change() on."""

    def __init__(self, server, ledger, seed, fault):
        self.server, self.ledger, self.fault = server, ledger, fault
        self.rng = random.Random(f"changes {seed}")
        self.present = {}
        (server.dir / FILE).write_text("\n".join(self._lines()) + "\n")
        self._changing = threading.Event()
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)

    def _lines(self):
        yield f"$ORIGIN {zone.ZONE}"
        for key in (zone.SOA, *zone.RECORDS):
            stamp, datum = self.ledger.new(key)
            datum.acknowledged = datum.begun
            yield f"{key.owner} {zone.ttl(key)} {key.rdtype} {zone.rdata(key, stamp)}"
        yield f"{zone.ZONE} 3600 NS ns"
        yield "ns 3600 A 192.0.2.1"
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
        message = dns.update.Update(zone.ZONE)
        message.replace(dns.name.from_text(zone.ZONE), zone.ttl(zone.SOA), "SOA", zone.rdata(zone.SOA, serial))
        owner = dns.name.from_text(key.owner)
        if present:
            message.replace(owner, zone.ttl(key), key.rdtype, zone.rdata(key, stamp))
        else:
            message.delete(owner)
        try:
            if self.fault != faults.FLUSH:
                send_update(self.server, message, TIMEOUT)
        except (HarnessError, OSError, EOFError, dns.exception.DNSException):     # the server is away
            return
        datum.acknowledged = soa.acknowledged = time.monotonic_ns()
        self.present[key] = present
