# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One run of the tester: resolvers, zones, phases, queries, verdicts."""

import random
import threading
import time
from collections import Counter, deque
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass

from lab import load, rings
from lab.losses import Losses
from lab.run import HarnessError, wait_until
from lab.servers import Nsd
from lab.world import World

from . import cookies, crowds, forwarded, slow_zones, zone
from .asking import ALONE, DIRECT, FULL, KERNEL, TOGETHER, Twins, address_of
from .authorities import Authorities
from .disturb import Disturber
from .judge import LOST, UNTRUE, Forwarded, Judge, asks_by_history, of_a_moment, taken_back
from .ledger import Ledger
from .queries import Queries, Style, with_cookie
from .questions import Data, Questions, to_wire, zone_lines
from .record import Recorder

SMALL_TREE = ("--domains", 150, "--names", 6000)
BATCH = 256
PATIENT_MS = 2000            # timeout of a query that is asked again
# Seconds until a query is asked again: longer than a change of the resolver's cache takes to reach the kernel, and longer than
# Unbound drops errors once it has sent too many within a second.
SECOND_LOOK = 1.1
SOON = 0.2                   # the same after an end was taken back: a rule that stays would be seen before it ends
LOOKS_DURING = 10            # the most looks while each falls into the time of a command
LOOKS = 3                    # the most looks otherwise: a second look may meet another such moment, but not every look does
FULL_SHARE = 1 / 32          # share of the queries that twins reports with all replies even if these do not differ
AGAIN = 1 << 31              # added to the number of a query that is asked again
KEPT = 5000                  # differences to keep; all are counted


@dataclass
class Phase:
    name: str
    share: float             # of all queries
    style: Style
    disturb: str = ""


PHASES = (
    Phase("cold start", 0.04, Style(hot=0.7, brief=0.1, plain=0.97)),
    Phase("steady", 0.46, Style()),
    Phase("expiry", 0.15, Style(hot=0.35, brief=0.63)),
    Phase("unusual", 0.05, Style(plain=0.25, any_type=0.2, damage=0.015, rate=2500)),
    Phase("flushing", 0.15, Style(hot=0.6, brief=0.1, changing=0.28), "flush"),
    Phase("reloading", 0.07, Style(hot=0.7, brief=0.1, changing=0.18), "reload"),
    Phase("afterwards", 0.08, Style(hot=0.7, brief=0.1, changing=0.15)),
)


@dataclass
class Found:
    """A difference with the query that showed it."""
    difference: object
    flow: object
    phase: str
    disturbance: str         # the command under way, "" for none
    moment: bool             # judge.of_a_moment() or taken_back()
    dropped: bool = False    # of a lost query: by the resolver, which was restarted, or by the kernel between client and resolver
    later: object = None     # what the same query showed later: a Difference, "" for none, None if not asked again
    later_ms: float = 0.0    # how much later
    looks: int = 0           # how often it was asked again
    pause: float = SECOND_LOOK       # seconds between two looks
    due: float = 0.0         # when it may be asked again, as time.monotonic()
    smallest: object = None  # octets of the smallest query that still shows it, if it can be shown again
    rule: str = ""           # what hydnsctl explain says of the question


class Stand:
    """Context manager: the world with all zones, the server under test, its reference and hydnsd. slow: with the zones of
    slow_zones.py and their servers; ledger: of these, or None. forward: both resolvers forward zone.PLAIN, the one under test in the
    kernel. preload: the server under test preloads its zones."""

    phases = PHASES

    def __init__(self, seed, server, quick=False, slow=False, forward=False, preload=False):
        self.seed, self.server, self.slow, self.forward, self.preload = seed, server, slow, forward, preload
        self.ledger = Ledger(server.remembers) if slow else None
        self.tree_options = SMALL_TREE if quick else ()
        self.world = World(self._make_tree)
        self._stack = ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            world = stack.enter_context(self.world)
            self._start_authorities(stack)
            self.daemon = stack.enter_context(world.hydnsd(capacity=self.capacity()))
            self.tested, self.reference = map(stack.enter_context, self.server.make(self))
            wait_until(lambda: self.server.is_ready(self), self.server.patience, f"{self.server.name} to register with hydnsd")
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def _start_authorities(self, stack):
        world = self.world
        self.zones = zone.Zones(world.run.dir / "twins-zones", self.seed, self.slow)
        self.nsd = stack.enter_context(Nsd(world, world.network.authoritative, "nsd-twins", self.zones.config,
                                           self.zones.directory, zone.PLAIN, zone.ADDRESSES))
        if self.slow:
            self._start_slow(stack)
        world.anchors += self.zones.anchors

    def _start_slow(self, stack):
        there = self.world.network.authoritative
        stack.enter_context(Nsd(self.world, there, "nsd-slow", self.zones.slow_config, self.zones.directory, slow_zones.ORIGINS[0],
                                [slow_zones.DATA]))
        self.authorities = stack.enter_context(Authorities(there, self.ledger, self.seed))

    def _make_tree(self, directory, addresses):
        load.tree(directory, addresses, self.seed, *self.tree_options)
        zone.delegate(directory, self.seed)

    @staticmethod
    def capacity():
        """Of hydnsd, in rules; None: its default."""

    def questions(self, data, rng, queries):
        return Questions(data, self.world.tree, rng, max(200, queries // 2000), max(2000, queries // 20),
                         denied=queries // 10 if self.preload else 0)

    def data(self):
        lines = [line for path in (self.world.tree / "zones").glob("*.zone") for line in path.read_text().splitlines()]
        for origin in self.zones.origins:
            lines += zone_lines(self.zones.file(origin))
        return Data(lines)


class Session:
    """Sends so many queries to a stand's servers and judges the replies. After run(): finished, found, and counts by phase and
    kind."""

    def __init__(self, stand, queries, seed, strict=False, records=None, control=False):
        self.stand, self.total, self.seed, self.strict = stand, queries, seed, strict
        self.control = control                 # the kernel path is paused, and the resolver judged in its place
        self.records = records                 # a directory: differences are recorded there
        self.data = stand.data()
        self.rules = stand.server.rules
        rng = random.Random(f"differential {seed}")
        self.asked = stand.questions(self.data, rng, queries)
        for name in stand.server.commands.ASKED:
            self.asked.changing.add(to_wire(name), 1)
        self.commands = stand.server.commands(stand, self.asked, seed)
        self.judge = Judge(self.data, strict, self.rules, self.commands.emptied, control, stand.ledger,
                           Forwarded(zone.PLAIN, self.commands.flushed, zone.SETTLED_TTL) if stand.forward else None)
        self.queries = Queries(rng, self.asked, stand.server.recursion_desired)
        if stand.slow:
            self.asked.crowds = crowds.Crowds(rng, self.queries, stand.server.patience_ms)
        self.of_crowds = 0                     # queries that crowds asked
        self.parked = self.forwarded = None    # crowds.Counts
        self.rng = rng
        self.finished = 0                      # queries, with those asked again
        self.in_kernel = 0                     # of them, answered in the kernel
        self.found, self.kinds = [], Counter()
        self.repeated = 0                      # queries asked again
        self.explained = Counter()             # differences explained by a second look: {kind, or "kernel, KIND": how many}
        self.moments = 0                       # answers that were right until a TTL update a moment before
        self.alone = Counter()                 # queries that the reference was not asked: {why: how many}
        self.starts = []                       # (number of the first query, phase)
        self._again = deque()                  # flows to be asked again
        self._waiting = {}                     # number -> Found
        self._turn = threading.Condition()
        self.error = None

    # -- the feeder's thread ---------------------------------------------------------------------------
    def _feed(self):
        try:
            number = 1
            for phase in self.stand.phases:
                self.starts.append((number, phase))
                number = self._feed_phase(phase, number)
            self._wait_for_all()
            while self._again:
                time.sleep(max(0.0, self._again[0].due - time.monotonic()))
                self._ask_again()
                self._wait_for_all()
            self.twins.close()
        except (HarnessError, ValueError, OSError) as error:
            self.error = self.error or error
            self.twins.popen.terminate()

    def _feed_phase(self, phase, number):
        last = number + round(self.total * phase.share)
        if phase is self.stand.phases[-1]:
            last = self.total + 1
        if phase.disturb:
            self.disturber.begin(phase.disturb)
        begun, first = time.monotonic(), number
        while number < last:
            if phase.style.rate:
                time.sleep(max(0.0, begun + (number - first) / phase.style.rate - time.monotonic()))
            self._ask_again()
            count = min(BATCH, last - number)
            frames = [self._frame(number + i, *query) for i, query in enumerate(self._batch(phase.style, count))]
            self.twins.write(b"".join(frames))
            self.disturber.count(count)
            number += count
            if self.disturber.error:
                raise self.disturber.error
        if phase.disturb:
            self.disturber.end()
        return number

    def _batch(self, style, count):
        """(octets, timeout, flags) of so many queries; those of crowds, and for forwarded names, among the others."""
        of_crowds = round(count * crowds.SHARE) if self.asked.crowds else 0
        to_forward = round(count * forwarded.SHARE) if self.stand.forward else 0
        batch = [(*query, 0) for query in self.queries.batch(style, count - of_crowds - to_forward)]
        if to_forward:
            batch = self._among(batch, [(*query, 0) for query in forwarded.batch(self.rng, self.queries, style, to_forward)])
        self.of_crowds += of_crowds
        if of_crowds:
            batch = self._among(batch, [(*query, TOGETHER) for query in self.asked.crowds.batch(style, of_crowds)])
        return batch

    def _among(self, batch, more):
        """Both lists, each in its order."""
        at = set(self.rng.sample(range(len(batch) + len(more)), len(more)))
        one, other = iter(batch), iter(more)
        return [next(other if i in at else one) for i in range(len(batch) + len(more))]

    def _frame(self, number, wire, timeout, flags):
        rng = self.rng
        flags |= (FULL if rng.random() < FULL_SHARE else 0) | self._alone(wire)
        group = rng.choice(self.twins.groups)
        kernel, direct = self._cookies(wire, group) if cookies.in_query(wire) else (wire, b"")
        return self.twins.frame(number, kernel, timeout, group.index, flags, direct)

    def _alone(self, wire):
        """The flag ALONE for a query that the reference must not be asked; counts these, since less is compared."""
        why = asks_by_history(wire, self.rules)
        self.alone[why] += bool(why)
        return ALONE if why else 0

    def _cookies(self, wire, group):
        """The query as this client sends it, and as the direct client does: a server cookie is valid for one address."""
        seed, now = self.rng.random(), time.time()
        return [with_cookie(random.Random(seed), wire,
                            lambda client, age: cookies.make(client, address_of(group, place), now - age))
                for place in (KERNEL, DIRECT)]

    def _wait_for(self, reached):
        with self._turn:
            self._turn.wait_for(reached)

    def _wait_for_all(self):
        """Those asked again are finished, too, and all are judged."""
        self._wait_for(lambda: self.finished >= self.total + self.repeated)

    def _ask_again(self):
        """Asks again what differed and may be explained by its moment. Not while a command is under way, which might explain it
        again."""
        while self._again and self._again[0].due <= time.monotonic() and self.disturber.begun is None:
            found = self._again.popleft()
            flow = found.flow
            number = flow.number | AGAIN
            self._waiting[number] = found
            self.repeated += 1
            timeout = self.stand.server.patience_ms if self._is_slow(flow) else PATIENT_MS
            self.twins.write(self.twins.frame(number, flow.wire, timeout, flow.group.index,
                                              FULL | self._alone(flow.wire), flow.direct_wire))

    # -- the main thread --------------------------------------------------------------------------------
    def run(self, progress):
        """progress(session) is called now and then."""
        stand = self.stand
        if self.control:
            stand.daemon.call({"cmd": "pause"})
        before, by_ring = stand.daemon.reasons(), rings.counted(stand.daemon).queries
        self.parked, self.losses = crowds.Counts(stand.daemon), Losses(stand.world.network)
        self.forwarded = crowds.Counts(stand.daemon, "forwarding", crowds.FORWARD_COUNTS)
        with Twins(stand.world) as self.twins, Disturber(self.commands) as self.disturber, \
                Recorder(stand, self.data, self.records) if self.records else nullcontext() as self.recorder:
            self.begun = time.monotonic()
            feeder = threading.Thread(target=self._feed, name="feeder", daemon=True)
            feeder.start()
            try:
                self._judge_all(progress)
                self._check_authorities()
            except HarnessError as error:
                raise self.error or error    # the feeder ends twins when it fails itself
            if self.error:
                raise self.error
        self.seconds = time.monotonic() - self.begun
        self.parked.look()
        self.forwarded.look()
        after = stand.daemon.reasons()
        self.reasons = {name: n - before[name] for name, n in after.items() if n != before[name]}
        self.by_ring = rings.counted(stand.daemon).queries - by_ring
        self.given = Counter(what.split()[0].rstrip(":") for _, _, what in self.disturber.done)

    def _check_authorities(self):
        error = self.stand.slow and self.stand.authorities.error
        if error:
            raise HarnessError(f"the slow authoritative servers have ended: {type(error).__name__}: {error}")

    def _judge_all(self, progress):
        for finished, in_kernel, flow in self.twins.reports():
            if flow:
                self._judge(flow._replace(by_kernel=True) if self.control else flow)
            with self._turn:
                self.finished += finished
                self.in_kernel += in_kernel
                self._turn.notify_all()
            self.parked.look_now_and_then()
            self.forwarded.look_now_and_then()
            progress(self)

    def phase_counts(self):
        """[(phase, queries)]"""
        ends = [first for first, _ in self.starts[1:]] + [self.total + 1]
        return [(phase, end - first) for (first, phase), end in zip(self.starts, ends)]

    def phase_of(self, number):
        return next(phase for first, phase in reversed(self.starts) if number & ~AGAIN >= first)

    def _judge(self, flow):
        found = self.judge.of(flow)
        first = self._waiting.pop(flow.number, None)
        if first:
            self._judge_later(first, flow, found)
        elif found:
            self._judge_first(flow, found)

    def _judge_first(self, flow, difference):
        phase = self.phase_of(flow.number).name
        during = self.disturber.overlaps(flow.sent[DIRECT], max(flow.got) or flow.sent[DIRECT])
        soon = taken_back(flow, difference)
        pause = SOON if soon else SECOND_LOOK
        found = Found(difference, flow, phase, during or "", soon or of_a_moment(flow, difference, self.rules), pause=pause,
                      due=time.monotonic() + pause)
        found.dropped = difference.kind == LOST and (self.commands.restarted_since(flow.sent[KERNEL]) or self.losses.explain() == 1)
        (self._again.appendleft if soon else self._again.append)(found)
        if not self._may_pass(found):
            self._count(found)

    def _may_pass(self, found):
        """Does a second look decide? It does for a difference during a command; between two replies of the resolver itself,
        whose cache may have changed in between; for a lost packet; for the reference, whose cache fills at other moments; and,
        unless strict, for a TTL update a moment before."""
        kind = found.difference.kind
        if kind == UNTRUE:
            return False         # no moment makes it true
        if kind == LOST:
            return found.dropped     # the resolver alone would lose it, too
        return bool(found.disturbance or not found.flow.by_kernel or kind == "silence" or
                    kind.startswith("reference") or (found.moment and not self.strict))

    def _judge_later(self, first, flow, difference):
        first.later, first.later_ms = difference or "", (flow.sent[KERNEL] - first.flow.sent[KERNEL]) / 1e6
        if not self._may_pass(first):
            return
        first.looks += 1
        during = self.disturber.overlaps(flow.sent[DIRECT], max(flow.got) or flow.sent[DIRECT])
        if difference and first.looks < (LOOKS_DURING if during else LOOKS):
            first.due = time.monotonic() + first.pause
            self._again.append(first)
        elif difference:
            first.difference, first.flow = difference, flow
            self._count(first)
        elif first.moment and not first.disturbance:
            self.moments += 1
        else:
            self.explained[("kernel, " if first.flow.by_kernel else "") + first.difference.kind] += 1

    def _count(self, found):
        self.kinds[found.difference.kind] += 1
        if self.recorder:
            self.recorder.record(found)
        if len(self.found) < KEPT:
            self.found.append(found)

    def _is_slow(self, flow):
        return bool(self.stand.ledger and self.stand.ledger.knows(flow.wire))

    @property
    def parked_share(self):
        return self.reasons.get("PARKED", 0) / self.total

    @property
    def forwarded_share(self):
        return self.forwarded.sums["relayed"] / self.total

    @property
    def kernel_share(self):
        return self.in_kernel / self.finished if self.finished else 0.0
