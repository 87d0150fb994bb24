# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsd, the resolver and the kernel hold once things are steady again after each disruption, and whether it grows.

Counted things must come back to what they were before the first disruption. Between two events of a process some are there for a
moment, so a sample is repeated until none is above, with a limit. Memory is another matter: caches and heaps fill. It may grow by so
much in the life of one process (MEMORY_MOST, held.py), which is less than a leak for each query would take in a minute."""

import itertools
import re
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from pyroute2 import netns

from lab import pinned, rings
from lab.run import SOON, HarnessError, wait_until

from . import held

# Seconds within which what is there for a moment is gone.
STEADY = 10
# Before the first disruption there are samples at this interval (seconds) until so many had nothing more: a plugin asks for some maps
# after a while. The most of these samples may be there.
INTERVAL, CALM = 0.1, 10
# Octets by which the resolver's own memory may grow in its life, but for its two largest steps from one sample to the next, and in all.
# A peak of load is such a step, also of a resolver alone, and the heap keeps it; what leaks grows with every sample
# (doc/notebook/storms.md).
RESOLVER_STEADY, PEAKS = 6 << 20, 2
RESOLVER_MOST = 64 << 20
# Findings after which a sample is not repeated any more: each takes its time.
PATIENT = 3
# Of one process's life: samples before which its memory says nothing.
SETTLED = 2
HYDNSD, RESOLVER = "hydnsd", "the resolver"
BPF = {"map_id": pinned.MAP, "prog_id": pinned.PROGRAM, "link_id": pinned.LINK}
WORDS = {pinned.MAP: "BPF maps", pinned.PROGRAM: "BPF programs", pinned.LINK: "BPF links"}


def _found(text):
    """{(kind, id)} of the BPF objects in the text of a descriptor's facts."""
    pairs = (line.split(":\t") for line in text.splitlines() if ":\t" in line)
    return {(BPF[name], int(value)) for name, value in pairs if name in BPF}


def _by_process(pid):
    found = set()
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            found |= _found(entry.read_text())
    return found


def _by_pin(pin):
    with suppress(FileNotFoundError), pinned.opened(pin) as (_, facts):
        return {(BPF[name], int(value)) for name, value in facts.items() if name in BPF}
    return set()


def _kinds(pid):
    """How many descriptors refer to what, without numbers."""
    return Counter(re.sub(r"[0-9]+", "N", to) for _, to in held.open_files(pid))


def grown(octets):
    """(octets by which the samples of one life have grown since it was settled, and without their largest steps)"""
    settled = octets[SETTLED - 1:]
    steps = sorted((now - before for before, now in itertools.pairwise(settled)), reverse=True)
    return sum(steps), sum(steps) - sum(step for step in steps[:PEAKS] if step > 0)


class Growth:
    """of: {name: process}, hydnsd's among them. alone: the kernel path is paused."""

    def __init__(self, world, daemon, resolver, say):
        self.world, self.daemon, self.say = world, daemon, say
        self.of = {HYDNSD: daemon, RESOLVER: resolver}
        self.first, self.last, self.most = {}, {}, {}
        self.objects = set()      # every BPF object of the run that a sample has seen
        self.lives = {}           # (name, pid) -> [octets of its own memory]
        self.findings = []
        self.samples = 0

    def _count(self):
        """{what: how many}"""
        pins = list(self.daemon.pins.iterdir())
        objects = set().union(*map(_by_pin, pins), *(_by_process(p.program.pid) for p in self.of.values()))
        self.objects |= objects
        return {**{f"descriptors of {name}": held.descriptors(p.program.pid, self.daemon) for name, p in self.of.items()},
                **{word: sum(kind == k for k, _ in objects) for kind, word in WORDS.items()},
                "pins": len(pins), "octets of BPF maps": held.maps(self.daemon),
                "files of hydnsd": sum(1 for _ in self.daemon.dir.rglob("*")),
                "namespaces of the run": sum(self.world.run.id in name for name in netns.listnetns())}

    def _try_count(self):
        """As _count(), or None while something comes or goes."""
        try:
            return self._count()
        except (OSError, HarnessError):
            return None

    def begin(self, *steps):
        """Before the first disruption, and after each of these: a new hydnsd takes over, whose program has for a minute all parts that
        the former one may have needed; then its resolver comes anew, and it makes the maps that this asks for."""
        self._take_first()
        for step in steps:
            step()
            self._take_first()
        self.most = dict(self.first)

    def _take_first(self):
        rings.wait_open(self.daemon)
        self.kinds = {name: _kinds(process.program.pid) for name, process in self.of.items()}
        calm = 0
        while calm < CALM:
            time.sleep(INTERVAL)
            now = wait_until(self._try_count, SOON, "what is held to be counted")
            calm = calm + 1 if all(n <= self.first.get(what, -1) for what, n in now.items()) else 0
            for what, n in now.items():
                self.first[what] = max(n, self.first.get(what, 0))

    def _above(self):
        """What is above the first samples, {} if nothing is; None while it can't be counted."""
        now = self._try_count()
        if now is None:
            return None
        self.last = now
        return {what: n for what, n in now.items() if n > self.first[what]}

    def _counted(self):
        """Repeats the sample until nothing is above; what still is at the limit."""
        kept = [None]

        def good():
            kept[0] = self._above()
            return kept[0] == {}
        with suppress(HarnessError):
            wait_until(good, STEADY if len(self.findings) < PATIENT else 0, "nothing more than before", patience=0)
        return kept[0]

    def sample(self, after):
        """after: the kind of the disruption before, for the words of a finding."""
        try:
            rings.wait_open(self.daemon)
        except (HarnessError, OSError) as error:
            self.find(f"after {after} the kernel path did not come back: {error}")
            return
        above = self._counted()
        self.samples += 1
        for what, n in (above or {}).items():
            self.find(f"{self.first[what]:,} {what} have become {n:,} after {after}{self._descriptors(what)}")
            self.first[what] = n
        for what, n in self.last.items():
            self.most[what] = max(n, self.most[what])
        for name, process in self.of.items():
            with suppress(HarnessError, OSError):
                self.lives.setdefault((name, process.program.pid), []).append(held.own_memory(process.program.pid))

    def _descriptors(self, what):
        """In words, what the additional descriptors refer to, if it is they that have grown."""
        for name, process in self.of.items():
            if what == f"descriptors of {name}":
                more = _kinds(process.program.pid) - self.kinds[name]
                return "; more: " + ", ".join(f"{n} {kind}" for kind, n in sorted(more.items()))
        return ""

    def find(self, text):
        self.findings.append(text)
        self.say(text)

    def end(self):
        """While hydnsd still runs: judges the memory of every life."""
        tables = held.HYDNSD_HEAP_MOST + self.daemon.call({"cmd": "status"})["daemon_bytes"]
        allowed = {HYDNSD: (tables, tables), RESOLVER: (RESOLVER_MOST, RESOLVER_STEADY)}
        for (name, pid), octets in self.lives.items():
            for more, most, but in zip(grown(octets), allowed[name], ("", f", without its {PEAKS} largest steps")):
                if more > most:
                    self.find(f"memory of {name} (process {pid}) grew by {more >> 10:,} KiB over {len(octets)} disruptions{but}")

    def figures(self):
        """{what: {"first", "most", "last"}}; of memory the first, greatest and last of the life in which it has grown most."""
        found = {what: {"first": n, "most": self.most[what], "last": self.last.get(what, n)} for what, n in self.first.items()}
        for name in self.of:
            lives = [octets for (of, _), octets in self.lives.items() if of == name]
            if lives:
                life = max(lives, key=lambda octets: octets[-1] - octets[0])
                found[f"octets of memory of {name}"] = {"first": life[0], "most": max(life), "last": life[-1]}
        return found

    def left(self):
        """After the end of all servers, and without their pins: BPF objects that are still there, in words."""
        def still():
            return sorted(one for one in self.objects if pinned.exists(*one))
        with suppress(HarnessError):
            wait_until(lambda: not still(), STEADY, "BPF objects to be gone", patience=0)
        return [f"{WORDS[kind][:-1]} {number}" for kind, number in still()]
