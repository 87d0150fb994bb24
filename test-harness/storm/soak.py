# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The demo's load for hours (test-harness/soak): samples of what is held, of the kernel's share and of losses."""

import signal
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from lab import authoritative, load, measure
from lab.demo_options import SERVERS
from lab.run import remains, wait_until
from lab.servers import EVERY_CLIENT_WAITS
from lab.world import World

from . import report
from .growth import HYDNSD, RESOLVER, Growth

ROUND_SECONDS = 60           # of load, after which dnsperf gets other names that nobody has asked
LEAST = 4                    # samples: the first quarter of them is compared with the last
FRESH = 0.1                  # the demo's share of names that nobody asks again
PATIENCE, POLL = 30, 0.2     # seconds
NAMED_OPTIONS = ("minimal-responses yes;", EVERY_CLIENT_WAITS)
# Caches of the server fill in the first half. Octets by which memory may grow in the second, from its first to its last quarter: hydnsd's
# tables touch ever more pages, and what leaks an octet a query takes more in an hour.
MEMORY_MOST = {HYDNSD: 1 << 20, RESOLVER: 16 << 20}


def quarters(numbers):
    """Medians of the first and the last quarter."""
    part = max(1, len(numbers) // 4)
    return statistics.median(numbers[:part]), statistics.median(numbers[-part:])


def grown_memory(samples):
    """What has grown, in words. samples: [{name: octets}]"""
    for name, most in MEMORY_MOST.items():
        first, last = quarters([octets[name] for octets in samples[len(samples) // 2:]])
        if last > first + most:
            yield f"memory of {name} grew from {first / 1024:,.0f} to {last / 1024:,.0f} KiB in the second half"


class Load:
    """Context manager: one round of queries after another."""

    def __init__(self, world, args):
        self.world, self.args = world, args
        self.round = min(ROUND_SECONDS, args.every)
        self.streams = load.fresh_rounds(world, args.seed, self.round, args.rate, FRESH, args.role == "recursive")
        self.sent = self.lost = 0

    def __enter__(self):
        self.maker = ThreadPoolExecutor(1)
        self.next = self.maker.submit(next, self.streams)
        self._start()
        return self

    def _start(self):
        self.programs = measure.start_loads(self.world, self.next.result(), self.round, self.args.rate)
        self.next = self.maker.submit(next, self.streams)

    def until(self, moment):
        """Goes on until then (time.monotonic())."""
        while (rest := moment - time.monotonic()) > 0:
            if not any(program.running() for program in self.programs):
                self._count()
                self._start()
            time.sleep(min(rest, POLL))

    def _count(self):
        for summary in measure.take_summaries(self.programs):
            self.sent += summary["sent"]
            self.lost += summary["lost"]

    def __exit__(self, *exc):
        for program in self.programs:
            program.stop(signal.SIGINT)        # dnsperf prints its summary then
        self.maker.shutdown()
        self._count()


class Soak:
    """args: the command's; say: takes a line of progress."""

    def __init__(self, args, say):
        self.args, self.say, self.series = args, say, []

    def run(self):
        """The figures, with what is wrong in "faults"."""
        args = self.args
        with World(lambda directory, addresses: load.tree(directory, addresses, args.seed)) as world:
            with ExitStack() as stack:
                daemon = stack.enter_context(world.hydnsd())
                server = stack.enter_context(self._server(world, daemon))
                wait_until(daemon.resolver_ready, PATIENCE, f"{server.name} to register with hydnsd")
                asked = stack.enter_context(Load(world, args))
                self._play(Growth(world, daemon, server, self.say), measure.Meter(daemon), asked)
        faults = [f"left: {what}" for what in remains(world.run.id) + self.growth.left()] + self.growth.findings
        return {"server": SERVERS[args.server], "role": args.role, "seconds": args.seconds, "rate": args.rate, "seed": args.seed,
                "sent": asked.sent, "lost": asked.lost, "series": self.series, "held": self.growth.figures(), "faults": faults}

    def _server(self, world, daemon):
        if self.args.role == "authoritative":
            return authoritative.named_of_tree(world, daemon, 1, NAMED_OPTIONS)
        if self.args.server == "bind":
            return world.named(daemon, threads=1, options=NAMED_OPTIONS)
        return world.unbound(daemon, threads=1)

    def _play(self, growth, meter, asked):
        """A round of the load first, then the samples."""
        self.growth, self.meter = growth, meter
        self.say(f"{asked.round} s of load before the first sample")
        asked.until(time.monotonic() + asked.round)
        growth.begin()
        begun = time.monotonic()
        for number in range(1, self.args.seconds // self.args.every + 1):
            asked.until(begun + number * self.args.every)
            self._sample(number)
        growth.findings += grown_memory([sample["memory"] for sample in self.series])

    def _sample(self, number):
        for process in self.growth.of.values():
            process.program.must_run()
        self.meter.sample()
        self.growth.sample(f"{number * self.args.every} s of load")
        memory = {name: lives[-1] for (name, _), lives in self.growth.lives.items()}
        self.series.append({"seconds": number * self.args.every, "kernel_share": self.meter.series[-1]["kernel_share"],
                            "held": dict(self.growth.last), "memory": memory})
        self.say(f"{self.series[-1]['kernel_share']:.1%} answered in the kernel; " +
                 ", ".join(f"{octets >> 10:,} KiB of {name}" for name, octets in memory.items()))


def summary(found):
    """Lines, the last of which is the verdict."""
    shares = quarters([s["kernel_share"] for s in found["series"]])
    return ["", *report.held(found), "",
            f"answered in the kernel, medians of the first and last quarter: {shares[0]:.1%}, {shares[1]:.1%}",
            f"soak: {found['server']}, {found['role']}, {found['seconds']} s: {found['sent']:,} queries, {found['lost']:,} lost: " +
            ("; ".join(found["faults"]) if found["faults"] else "nothing grown, nothing left")]
