# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Rules installed, replaced and removed a second while the kernel answers, and the time from an offer to its first reply."""

import json
import subprocess
import time

from lab import cpus
from lab.process import Program
from lab.run import HarnessError, wait_until
from lab.servers import Hydnsd

from .pace import pace, sequence
from .result import Goal, say

HELP = "rules installed, replaced, removed per second while the kernel serves; time from offer to first reply"
SERVED = 10_000
CAPACITY = 1_000_000
INSTALLS_LEAST, FIRST_MOST_MS = 1e6, 5.0
WHAT = {"installs_per_second": "installed", "renewals_per_second": "renewed", "removals_per_second": "removed"}


def store(bench, result):
    """The store's writer, called as by hydnsd, on another processor than queries and program."""
    installs = bench.settings.choose(200_000, 500_000)
    lines = pace(bench.tools, bench.link.ns, "publish", *bench.link.options, "--rules", SERVED, "--capacity", CAPACITY,
                 "--sequence", sequence(bench.run.dir, SERVED, None, bench.settings.seed), "--queries", 5 * installs,
                 "--installs", installs, "--rounds", bench.settings.choose(3, 7))
    served = [line["per_second"] for line in lines if "contender" in line]
    for key, what in WHAT.items():
        runs = [line[key] for line in lines if key in line]
        p = result.add("store", runs, "rules_per_second", what=what, rules=SERVED, installs=installs)
        p["replies_per_second_meanwhile"] = round(sum(served) / len(served))
        say(f"publish: store: {p['rules_per_second'] / 1e6:.2f} M rules/s {what}, while "
            f"{p['replies_per_second_meanwhile'] / 1e6:.2f} M/s are answered")
        if what == "installed":
            result.goals.append(Goal("rules installed per second by the store's writer, serving", INSTALLS_LEAST,
                                     p["rules_per_second"]))


class Path:
    """Context manager: hydnsd on a link of its own, and the offerer as its resolver."""

    def __init__(self, bench, capacity=CAPACITY):
        self.bench = bench
        self.link = bench.routed_link
        self.daemon = Hydnsd(bench.world_like, self.link.ns, (self.link.server,), capacity=capacity)

    def __enter__(self):
        self.daemon.start()
        cpus.give_to_resolver(self.daemon.program)
        return self

    def __exit__(self, *exc):
        self.daemon.stop()

    def offerer(self, *words, **options):
        argv = ["taskset", "-c", cpus.OTHERS[0], self.bench.tools.built("test-harness/bench/offerer"), words[0],
                self.daemon.plugin_socket, self.link.SERVICE, *words[1:]]
        return Program(self.bench.run, self.link.ns, "offerer", argv, **options)


def said(offerer):
    """The next object that it prints."""
    line = offerer.popen.stdout.readline()
    if not line:
        raise HarnessError(f"offerer: {offerer.log.read_text().strip()[-500:]}")
    return json.loads(line)


def first_replies(bench, result):
    count = bench.settings.choose(200, 2000)
    with Path(bench) as path:
        offerer = path.offerer("first", count, path.link.client_ns.path, path.link.CLIENT, stdout=subprocess.PIPE)
        text = offerer.popen.communicate(timeout=60)[0]
    if offerer.popen.returncode != 0:
        raise HarnessError(f"offerer: {offerer.log.read_text().strip()[-500:]}")
    times = sorted(json.loads(line)["nanoseconds"] / 1e3 for line in text.splitlines())
    p = result.add("hydnsd", times, "microseconds", what="offer to first reply")
    p["p99_us"] = round(times[int(0.99 * len(times))], 1)
    say(f"publish: offer to first kernel reply: median {p['microseconds']:.0f} us, 99 % below {p['p99_us']:.0f} us")
    result.goals.append(Goal("milliseconds from an offer to its first kernel reply, median", FIRST_MOST_MS,
                             p["microseconds"] / 1e3, least=False))


def whole_way(bench, result):
    """Ring, validation, policy, store: hydnsd on one processor, the offering thread on the other."""
    count, runs, cpu = bench.settings.choose(200_000, 500_000), [], []
    for _ in range(bench.settings.choose(2, 5)):
        with Path(bench) as path:
            before = path.daemon.program.cpu_seconds()
            offerer = path.offerer("rate", count, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            begun = said(offerer)["began_ns"] / 1e9
            wait_until(lambda: path.daemon.call({"cmd": "status"})["rules"] >= count, 30, f"{count} rules")
            runs.append(count / (time.monotonic() - begun))
            cpu.append(count / (path.daemon.program.cpu_seconds() - before))
            offerer.popen.communicate()
    p = result.add("hydnsd", runs, "rules_per_second", what="installed", installs=count)
    p["rules_per_cpu_second"] = round(sum(cpu) / len(cpu))
    say(f"publish: through ring, hydnsd and policy: {p['rules_per_second'] / 1e6:.2f} M rules/s, "
        f"{p['rules_per_cpu_second'] / 1e6:.2f} M per CPU second of hydnsd")
    result.goals.append(Goal("rules installed per second through ring, hydnsd, policy", INSTALLS_LEAST,
                             p["rules_per_second"]))


def run(bench, result):
    store(bench, result)
    first_replies(bench, result)
    whole_way(bench, result)
