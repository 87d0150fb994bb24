# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The disruptions, by kind; those of network, configuration, limits and clocks are in modules of these names. Each returns when all that
it disturbed is back, and writes to the ledger what the judge must know.
What a seed draws does not depend on the results."""

import random
import signal
import time
from contextlib import ExitStack, contextmanager, suppress

from lab import cpus, parking
from lab.process import Program
from lab.versions import PRESENT, Versions

from . import clocks, configuration, faults, limits, network
from .ledger import SECOND, Event, Flush, Span
from .servers import everything

HYDNSD_AWAY, RESOLVER_AWAY, STOPPED, OTHERS_AWAY, HOGS = 3.0, 2.5, 3.0, 1.0, 2.0     # seconds at most
DIFFER = 3.0                      # the same of two sides of different versions
PAUSE = 2.0                       # seconds between two, at most
# A killed resolver's rules count until its heartbeat is stale (0.9 s).
HEARTBEAT = SECOND
KILL, TERM, USR2 = signal.SIGKILL, signal.SIGTERM, signal.SIGUSR2


class Disruptions:
    """daemon and resolver must be running. growth: samples what is held after each disruption. alone: the kernel path is
    paused all the time; ways: all ways of a query are on; fault: one of faults.py, or None."""

    def __init__(self, world, server, daemon, resolver, ledger, growth, seed, rate, alone, ways, fault, say, kinds=None):
        self.world, self.server, self.daemon, self.resolver = world, server, daemon, resolver
        self.ledger, self.growth, self.alone, self.ways, self.fault, self.say = ledger, growth, alone, ways, fault, say
        self.kinds, self.saboteur = kinds or [kind for kind in KINDS if kind not in OF_CLOCKS], None
        self.order = random.Random(f"order {seed}")
        self.seed, self.rate, self.deck, self.drawn = seed, rate, [], 0
        self.detail = ""
        self.clock, self.clock_ahead = None, 0
        self.versions = Versions(world.run, daemon, resolver)

    def run(self, until):
        """Disrupts until a monotonic time, each kind once before any comes again."""
        while time.monotonic() < until:
            if not self.deck:
                self.deck = list(self.kinds)
                self.order.shuffle(self.deck)
            self.drawn += 1
            self._make(self.drawn, self.deck.pop(), until)

    def replay(self, events):
        """events: (number, kind) of those that run() has drawn by this seed."""
        for number, kind in events:
            self._make(number, kind, time.monotonic() + PAUSE)
        time.sleep(PAUSE)

    def _make(self, number, kind, until):
        """The event, until things are steady; then pauses, not longer than until then."""
        if self.saboteur:
            self.saboteur.strike()
        self.rng = random.Random(f"event {self.seed} {number}")
        pause, self.detail, begin = self.rng.uniform(0.2, PAUSE), "", time.monotonic_ns()
        KINDS[kind](self)
        event = Event(number, kind, begin, time.monotonic_ns(), self.detail)
        self.ledger.events.append(event)
        self.say(f"{self.ledger.seconds(begin):7.3f} to {self.ledger.seconds(event.end):7.3f} s: {number} {kind}"
                 + (f": {self.detail}" if self.detail else ""))
        again = min(until, time.monotonic() + pause)
        self.growth.sample(kind)
        time.sleep(max(0.0, again - time.monotonic()))

    def wait(self, most):
        """A random time up to so many seconds."""
        time.sleep(self.rng.uniform(0, most))

    # -- hydnsd ------------------------------------------------------------------------------------------
    HEARTBEAT = HEARTBEAT

    def start_hydnsd(self):
        self.count_parked()
        self.daemon.start()
        self.after_start()

    def count_parked(self):
        """Before hydnsd starts. After an orderly end none is parked, and there are no pins."""
        with suppress(OSError):
            self.ledger.parked += parking.waiting(self.daemon)

    def after_start(self):
        if self.alone:
            self.daemon.ctl("pause")

    def upgrade(self):
        self.daemon.stop(USR2)
        self.start_hydnsd()

    def _hydnsd_away(self, sig, most=HYDNSD_AWAY):
        self.daemon.stop(sig)
        with self.after_stop(sig):
            self.wait(most)
        self.start_hydnsd()

    @contextmanager
    def after_stop(self, sig):
        """Context manager: after SIGTERM, by which hydnsd detaches the program, the kernel must not answer in the block."""
        if sig != TERM:
            yield
            return
        with self.ledger.span(self.ledger.mute, "hydnsd is stopped"):
            yield

    def hydnsd_killed(self):
        self._hydnsd_away(KILL)

    def hydnsd_ended(self):
        self._hydnsd_away(TERM)

    def hydnsd_upgraded(self):
        self._hydnsd_away(USR2)

    def hydnsd_stopped(self):
        with self.stopped(self.daemon):
            self.wait(STOPPED)

    def hydnsd_reloaded(self):
        self.daemon.program.popen.send_signal(signal.SIGHUP)

    @contextmanager
    def stopped(self, process):
        popen = process.program.popen
        with self.ledger.span(self.ledger.stopped, "stopped") if process is self.resolver else ExitStack():
            popen.send_signal(signal.SIGSTOP)
            try:
                yield
            finally:
                popen.send_signal(signal.SIGCONT)

    # -- the resolver ------------------------------------------------------------------------------------
    def stop_resolver(self, sig):
        """Returns when it was stopped, and from when on its rules must not count."""
        begun = time.monotonic_ns()
        self.resolver.stop(sig)
        gone = begun + HEARTBEAT if sig == KILL else time.monotonic_ns()
        return begun, gone

    def start_resolver(self, sig, begun, gone):
        starting = time.monotonic_ns()
        if starting > gone:
            self.ledger.mute.append(Span("its resolver is gone", gone, starting))
        self.ledger.flushes.append(Flush(f"the resolver's end by {sig.name}", begun, gone, everything))
        self.resolver.start()
        self.ledger.down.append(Span("the resolver is away", begun, time.monotonic_ns()))

    def _resolver_away(self, sig):
        stopped = self.stop_resolver(sig)
        self.wait(RESOLVER_AWAY)
        self.start_resolver(sig, *stopped)

    def restart(self):
        self.start_resolver(TERM, *self.stop_resolver(TERM))

    def resolver_killed(self):
        self._resolver_away(KILL)

    def resolver_ended(self):
        self._resolver_away(TERM)

    def both_killed(self):
        """Kills both at once; each is started again after a time of its own."""
        stopped = self.stop_resolver(KILL)
        self.daemon.stop(KILL)
        back = sorted(((self.rng.uniform(0, HYDNSD_AWAY), 0, self.start_hydnsd),
                       (self.rng.uniform(0, RESOLVER_AWAY), 1, lambda: self.start_resolver(KILL, *stopped))))
        begun = time.monotonic()
        for delay, _, start in back:
            time.sleep(max(0.0, begun + delay - time.monotonic()))
            start()

    def resolver_killed_beside_stopped(self):
        with self.stopped(self.daemon):
            self._resolver_away(KILL)

    def resolver_ended_beside_stopped(self):
        with self.stopped(self.daemon):
            self._resolver_away(TERM)

    def _beside_stopped_resolver(self, sig):
        with self.ledger.span(self.ledger.down, "the resolver is stopped"), self.stopped(self.resolver):
            self._hydnsd_away(sig, OTHERS_AWAY)

    def hydnsd_killed_beside_stopped(self):
        self._beside_stopped_resolver(KILL)

    def hydnsd_ended_beside_stopped(self):
        self._beside_stopped_resolver(TERM)

    def hydnsd_upgraded_beside_stopped(self):
        self._beside_stopped_resolver(USR2)

    # -- upgrades to another ABI version, and back: a storm goes to and fro ---------------------------------------
    def _hydnsd_of(self, version):
        """Replaces hydnsd. Until both sides are of one version the kernel must not answer."""
        sig = self.rng.choice((USR2, KILL, TERM))
        self.daemon.stop(sig)
        self.versions.set(self.daemon, version)
        with self.after_stop(sig):
            self.wait(OTHERS_AWAY)
        self.start_hydnsd()

    def _resolver_of(self, version):
        stopped = self.stop_resolver(TERM)
        self.versions.set(self.resolver, version)
        self.start_resolver(TERM, *stopped)

    def _other_version(self):
        """The version that hydnsd and the resolver do not have."""
        other = PRESENT + 1 if self.versions.of[self.daemon] == PRESENT else PRESENT
        self.detail = f"to ABI {other}"
        return other

    def _differ(self):
        with self.ledger.span(self.ledger.mute, "hydnsd and the resolver's plugin are of two versions"):
            self.wait(DIFFER)

    def upgraded_hydnsd_first(self):
        version = self._other_version()
        self._hydnsd_of(version)
        self._differ()
        self._resolver_of(version)

    def upgraded_resolver_first(self):
        version = self._other_version()
        self._resolver_of(version)
        self._differ()
        self._hydnsd_of(version)

    def upgraded_and_back(self):
        """The resolver stays as it is."""
        before = self.versions.of[self.daemon]
        self._hydnsd_of(self._other_version())
        self._differ()
        self._hydnsd_of(before)

    def reloaded(self):
        begun = time.monotonic_ns()
        self.detail, covers = self.server.reload(self.resolver, self.rng)
        self.ledger.flushes.append(Flush(self.detail, begun, time.monotonic_ns(), covers))

    # -- flushes -----------------------------------------------------------------------------------------
    def flush(self):
        self._flush(*self.server.draw_flush(self.rng))

    def flush_all(self):
        self._flush(self.server.flush, everything)

    def _flush(self, words, covers):
        what = " ".join(words)
        self.detail = f"{self.detail}, {what}" if self.detail else what
        begun = time.monotonic_ns()
        if self.fault != faults.FLUSH and not (self.fault == faults.PAIR and self._happened(faults.BEFORE_FLUSH)):
            self.resolver.control(*words)
        self.ledger.flushes.append(Flush(what, begun, time.monotonic_ns(), covers))

    def flushes(self):
        for _ in range(self.rng.randrange(1, 6)):
            self.flush()

    def _happened(self, kind):
        return any(event.kind == kind for event in self.ledger.events)

    def flush_beside_dead(self):
        self.daemon.stop(KILL)
        self.wait(OTHERS_AWAY)
        self.flush()
        self.wait(OTHERS_AWAY)
        self.start_hydnsd()

    def flush_beside_stopped(self):
        with self.stopped(self.daemon):
            self.flush()

    def rules_flushed(self):
        """hydnsctl flush removes rules and not the resolver's data, so the ledger has nothing to record."""
        words = self.rng.choice((("--all",), ("--zone", "storm.example"), ("steady0.storm.example",)))
        self.detail = f"hydnsctl flush {' '.join(words)}"
        self.daemon.ctl("flush", *words)

    # -- the kill switch ---------------------------------------------------------------------------------
    @contextmanager
    def _paused(self):
        if self.alone:
            yield
            return
        self.daemon.ctl("pause")
        with self.ledger.span(self.ledger.mute, "paused"):
            yield
        self.daemon.ctl("resume")

    def paused_and_resumed(self):
        with self._paused():
            self.wait(OTHERS_AWAY)

    def paused_over_restart(self):
        with self._paused():
            self._hydnsd_away(self.rng.choice((KILL, TERM, USR2)), OTHERS_AWAY)

    # -- the machine -------------------------------------------------------------------------------------
    def hogs(self):
        """A busy process on each processor."""
        with ExitStack() as stack:
            for number in cpus.ALL:
                hog = Program(self.world.run, self.world.network.resolver, f"hog{number}",
                              ["taskset", "--cpu-list", number, "sh", "-c", "while :; do :; done"])
                stack.callback(hog.stop, KILL)
            self.wait(HOGS)


# With a clock alone, which not every machine has (clocks.py).
OF_CLOCKS = tuple(clocks.KINDS)
KINDS = {
    "hydnsd killed": Disruptions.hydnsd_killed,
    "hydnsd ended": Disruptions.hydnsd_ended,
    "hydnsd upgraded": Disruptions.hydnsd_upgraded,
    "hydnsd stopped": Disruptions.hydnsd_stopped,
    "hydnsd reloaded": Disruptions.hydnsd_reloaded,
    "resolver killed": Disruptions.resolver_killed,
    "resolver ended": Disruptions.resolver_ended,
    "both killed": Disruptions.both_killed,
    "resolver killed, hydnsd stopped": Disruptions.resolver_killed_beside_stopped,
    "resolver ended, hydnsd stopped": Disruptions.resolver_ended_beside_stopped,
    "hydnsd killed, resolver stopped": Disruptions.hydnsd_killed_beside_stopped,
    "hydnsd ended, resolver stopped": Disruptions.hydnsd_ended_beside_stopped,
    "hydnsd upgraded, resolver stopped": Disruptions.hydnsd_upgraded_beside_stopped,
    "ABI: hydnsd, resolver": Disruptions.upgraded_hydnsd_first,
    "ABI: resolver, hydnsd": Disruptions.upgraded_resolver_first,
    "ABI: hydnsd and back": Disruptions.upgraded_and_back,
    "resolver reloaded": Disruptions.reloaded,
    "flushes": Disruptions.flushes,
    "flush, hydnsd dead": Disruptions.flush_beside_dead,
    "flush, hydnsd stopped": Disruptions.flush_beside_stopped,
    "rules flushed": Disruptions.rules_flushed,
    "paused": Disruptions.paused_and_resumed,
    "paused over a restart": Disruptions.paused_over_restart,
    "hogs": Disruptions.hogs,
    **network.KINDS,
    **configuration.KINDS,
    **limits.KINDS,
    **clocks.KINDS,
}
