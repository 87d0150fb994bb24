# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One run: a world, its servers, the storm, and the verdict on every reply."""

import time
from bisect import bisect_right
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field

import dns.rcode

from lab.client import ask
from lab.network import CLIENT_LINKS, DEFAULT_HOPS, SERVICE
from lab.run import remains, wait_until
from lab.world import World

from . import clocks, faults, network
from .clients import PATIENCE, Clients
from .disruptions import Disruptions
from .growth import Growth
from .judge import HOMELESS, Spans
from .ledger import SECOND, Ledger
from .zone import QUESTIONS

CALM = "(calm)"                   # before the first disruption
WARM_UP = 30                      # seconds at most until the kernel answers
# Of hydnsd and the resolvers: octets and files, for what they write in hours.
DISKS = {"hydnsd": (8 << 20, 64), "unbound": (64 << 20, 256), "named": (64 << 20, 256)}
SHOWN = 5                         # findings to show of each kind
# Queries that are sent so long before a server goes, or so soon after it is back, may be lost as well.
BEFORE, AFTER = SECOND // 2, SECOND // 10
# The greatest age of the last kernel answer before a disruption.
LAST_ANSWER = SECOND // 10


@dataclass
class Row:
    """The result of one kind of disruption."""
    events: int = 0
    away: float = 0.0             # the most seconds that one took
    silent: float = 0.0           # the most seconds without kernel answers,
    after: float = 0.0            # and the most of these after all was back
    where: str = ""               # client and moment of the latter
    names: float = 0.0            # the most seconds until a name that the kernel had answered was answered there again
    lost: int = 0
    lost_there: int = 0           # of them, while the resolver was there to answer


@dataclass
class Result:
    rows: dict
    queries: int = 0
    replies: int = 0
    in_kernel: int = 0
    errors: Counter = field(default_factory=Counter)      # response codes other than NOERROR and NXDOMAIN
    wrong: Counter = field(default_factory=Counter)       # kind -> how many
    noted: Counter = field(default_factory=Counter)
    shown: list = field(default_factory=list)             # lines, the first of each kind
    strays: Counter = field(default_factory=Counter)
    wrong_at: int | None = None                           # when the query was sent that has the first wrong reply
    events: list = field(default_factory=list)            # (number, kind), those that began before that if there is one
    left: list = field(default_factory=list)              # what was still there after the end
    parked: int = 0                                       # queries that went with a killed hydnsd
    grown: list = field(default_factory=list)             # findings of growth.py
    held: dict = field(default_factory=dict)              # its figures

    @property
    def lost(self):
        return sum(row.lost for row in self.rows.values())

    @property
    def lost_there(self):
        return sum(row.lost_there for row in self.rows.values())


class Session:
    """alone: with the kernel path paused. ways: with all ways of a query on (servers.py)."""

    def __init__(self, server, seed, rate, *, alone=False, fault=None, kinds=None, say=print, ways=False):
        self.server, self.seed, self.rate = server, seed, rate
        self.alone, self.fault, self.kinds, self.say, self.ways = alone, fault, kinds, say, ways

    def run(self, seconds, events=None):
        """The Result. events: (number, kind) of those to make, instead of so many seconds."""
        self.replayed = events
        with World() as world:
            result = self._storm(world, seconds)
        result.left += remains(world.run.id) + self.growth.left()
        return result

    def _storm(self, world, seconds):
        self.ledger = ledger = Ledger()
        for name, (size, files) in DISKS.items():
            world.run.small_disk(name, size, files)
        daemon = world.hydnsd()
        resolver, data = self.server.make(world, daemon, ledger, self.seed, self.fault, self.ways)
        self.clock = clock = clocks.Clock(world.run.dir) if self._needs_clock() else None
        resolver.environment = clock.environment if clock else ()
        clients = Clients(world, self.server, self.seed, self.rate)
        with ExitStack() as stack:
            stack.enter_context(daemon)
            stack.enter_context(data)
            stack.enter_context(resolver)
            self._connect(world, daemon)
            with clients:
                self._warm_up(daemon)
                data.change()
                self._disturb(world, daemon, resolver, seconds)
                data.change(False)
                clients.finish()
        return self._judge(clients, self._left(world, daemon))

    def _needs_clock(self):
        kinds = [kind for _, kind in self.replayed] if self.replayed else self.kinds or ()
        return any(kind in clocks.KINDS for kind in kinds)

    def _connect(self, world, daemon):
        def ready():
            ask(world.network.client1, SERVICE[4], QUESTIONS[0].key.owner)    # BIND's plugin starts with the first response
            return daemon.resolver_ready()
        wait_until(ready, WARM_UP, "the resolver to register with hydnsd")
        if self.alone:
            daemon.ctl("pause")

    def _warm_up(self, daemon):
        """Waits until the kernel has as many rules as there are questions."""
        if not self.alone:
            wait_until(lambda: daemon.call({"cmd": "status"})["rules"] >= len(QUESTIONS), WARM_UP,
                       "the kernel to have rules")

    def _disturb(self, world, daemon, resolver, seconds):
        self.growth = growth = Growth(world, daemon, resolver, self.say)
        disruptions = Disruptions(world, self.server, daemon, resolver, self.ledger, growth, self.seed, self.rate, self.alone,
                                  self.ways, self.fault, self.say, self.kinds)
        disruptions.clock = self.clock
        growth.begin(disruptions.upgrade, disruptions.restart)
        disruptions.saboteur = saboteur = faults.saboteur(world, daemon, self.fault)
        if self.replayed:
            disruptions.replay(self.replayed)
        else:
            disruptions.run(time.monotonic() + seconds)
        self.finished = time.monotonic_ns()
        growth.end()
        if saboteur:
            saboteur.end()

    @staticmethod
    def _left(world, daemon):
        """What is left in the kernel after an orderly end of all servers: it must be nothing."""
        left = [f"a program on {link}" for link in CLIENT_LINKS if world.network.resolver.xdp_attached(link)]
        if daemon.pins.exists():
            left += [f"the pin {pin.name}" for pin in daemon.pins.iterdir()]
        return left

    # -- afterwards --------------------------------------------------------------------------------------
    def _judge(self, clients, left):
        ledger = self.ledger
        self.events = ledger.events
        self._begins = [event.begin for event in self.events]
        self.result = result = Result({CALM: Row()}, left=left, parked=ledger.parked, grown=self.growth.findings, held=self.growth.figures())
        for event in self.events:
            row = result.rows.setdefault(event.kind, Row())
            row.events += 1
            row.away = max(row.away, (event.end - event.begin) / SECOND)
        judge = self.server.judge(ledger)
        down = {(client.link, client.family): Spans((s for s in ledger.down if s.link in (None, client.link) and
                                                     s.family in (None, client.family)), BEFORE, AFTER)
                for client in clients.all}
        self.lossy = {link: Spans((s for s in ledger.lossy if s.link == link), BEFORE, AFTER) for link in CLIENT_LINKS}
        doubled = {link: Spans((s for s in ledger.doubled if s.link in (None, link)), BEFORE, AFTER) for link in CLIENT_LINKS}
        may_be_dropped = sum(span.why for span in ledger.lossy)
        last = {}                 # client's name, or (that, question) -> when it sent the last query that the kernel answered
        for client, question, answer in clients.replies():
            result.queries += 1
            without = down[client.link, client.family].around(answer.sent, answer.sent)
            if answer.latency is None or answer.latency > PATIENCE * SECOND:
                may_be_dropped -= self._lost(client, answer, without)
            if answer.latency is None:
                if not without:
                    judge.lost(answer)
                continue
            result.replies += 1
            if answer.hops == DEFAULT_HOPS:
                result.in_kernel += 1
                self._silence(client, last.get(client.name), answer.sent)
                self._absence(last.get((client.name, question)), answer.sent)
                last[client.name] = last[client.name, question] = answer.sent
            if answer.rcode not in (-1, dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
                result.errors[dns.rcode.to_text(answer.rcode)] += 1
            wrong = judge.of(client, question, answer)
            if wrong:
                self._wrong(client, question, answer, wrong)
        result.events = [(e.number, e.kind) for e in self.events if result.wrong_at is None or e.begin <= result.wrong_at]
        for client in clients.all:
            self._silence(client, last.get(client.name), self.finished)
        if may_be_dropped < 0:
            result.rows[network.LOST].lost_there -= may_be_dropped
        for client, stray in clients.strays():
            if stray.why == "twice" and doubled[client.link].around(stray.at, stray.at):
                continue
            result.strays[stray.why] += 1
            self._show(stray.why, stray.at, f"{client.name}: from {stray.sender}, hop limit {stray.hops}")
        return result

    def _event(self, at):
        """The last Event that had begun by this time, or None."""
        index = bisect_right(self._begins, at)
        return self.events[index - 1] if index else None

    def _row(self, at):
        event = self._event(at)
        return self.result.rows[event.kind if event else CALM]

    def _lost(self, client, answer, down):
        """Whether a dropped packet may be the reason. down: the Span in which the resolver was away, or None."""
        row = self._row(answer.sent + BEFORE)
        row.lost += 1
        if down:
            return False
        dropped = self.lossy[client.link].around(answer.sent, answer.sent) is not None
        row.lost_there += not dropped
        return dropped

    def _silence(self, client, before, now):
        """Accounts the time between two kernel answers at one client to the disruption before it."""
        event = before and self._event(before + LAST_ANSWER)
        if not event:
            return
        row = self.result.rows[event.kind]
        row.silent = max(row.silent, (now - before) / SECOND)
        after = (now - max(before, event.end)) / SECOND
        if after > row.after:
            row.after, row.where = after, f"{client.name}, {self.ledger.seconds(event.begin):.1f} s"

    def _absence(self, before, now):
        """As _silence(), for one name at one client. Before the first disruption it shows how long names are away by themselves."""
        row = before and self._row(before + LAST_ANSWER)
        if row:
            row.names = max(row.names, (now - before) / SECOND)

    def _wrong(self, client, question, answer, wrong):
        (self.result.noted if wrong.kind == HOMELESS else self.result.wrong)[wrong.kind] += 1
        if wrong.kind != HOMELESS and self.result.wrong_at is None:
            self.result.wrong_at = answer.sent + answer.latency
        place = "kernel" if answer.hops == DEFAULT_HOPS else "resolver"
        self._show(wrong.kind, answer.sent, f"{client.name}: {question.key} by the {place}, "
                   f"{dns.rcode.to_text(max(answer.rcode, 0))}, TTL {answer.ttl}, data {answer.rdata}: {wrong.text}")

    def _show(self, kind, at, text):
        result = self.result
        count = sum(n for counter in (result.wrong, result.noted, result.strays) for k, n in counter.items() if k == kind)
        if count <= SHOWN:
            event = self._event(at)
            after = f"{self.ledger.seconds(event.begin):.3f} s, {event.kind}" if event else CALM
            result.shown.append(f"{kind} at {self.ledger.seconds(at):.3f} s ({after}): {text}")
