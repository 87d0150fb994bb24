# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What a process and the kernel hold, and whether it grows: descriptors, memory, pins, memory of maps, elements of every map whose
elements come and go."""

import os
from collections import namedtuple
from contextlib import suppress
from pathlib import Path

from lab import pinned, rings
from lab.run import HarnessError

# Octets that a resolver may have more at the end, of its heap and in all.
HEAP_MOST, MEMORY_MOST = 1 << 20, 4 << 20
# The heap of hydnsd may have one list of forwarded zones more, or two. Of its tables, which it has from its start (daemon_bytes of its
# status), it touches ever more pages.
HYDNSD_HEAP_MOST = 384 << 10

# A resolver that starts again may get another number, and its access list another trie: no trie may have more elements than any had.
TRIES = "acl_"

Held = namedtuple("Held", "descriptors heap memory maps pins elements")
"""Of a process: descriptors, octets of its heap and of all its own memory; of the kernel: octets of BPF maps but for tries, pins, and
{map: elements}."""


def _status_kb(pid, name):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) << 10
    raise HarnessError(f"process {pid} has no {name}")


def own_memory(pid):
    """Octets that are in memory and no file's."""
    return _status_kb(pid, "RssAnon")


def _heap(pid):
    """Octets of the heap that are in memory."""
    inside = False
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        words = line.split()
        if not words[0].endswith(":"):
            inside = words[-1] == "[heap]"
        elif inside and words[0] == "Rss:":
            return int(words[1]) << 10
    raise HarnessError(f"process {pid} has no heap")


def open_files(pid):
    """{(descriptor, what it refers to)}"""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            found.add((entry.name, os.readlink(entry)))
    return found


def descriptors(pid, daemon):
    """Those that stay: hydnsd opens some for a moment, as it asks the kernel for routes. It has closed them when it answers."""
    before = open_files(pid)
    daemon.call({"cmd": "status"})
    return len(before & open_files(pid))


def _elements(daemon):
    """Of the pinned maps; links are pinned, too."""
    found = {pin.name: pinned.entries(pin) for pin in sorted(daemon.pins.iterdir())}
    return {name: count for name, count in found.items() if count is not None}


def maps(daemon):
    """Octets of all maps but tries, which have memory for each element."""
    return daemon.call({"cmd": "status"})["memory_bytes"] - sum(pinned.memory(pin) for pin in daemon.pins.glob(f"{TRIES}*"))


def take(process, daemon):
    """The Held of a process beside hydnsd, or of hydnsd itself. No query may be under way."""
    rings.wait_open(daemon)
    pid = process.program.pid
    return Held(descriptors(pid, daemon), _heap(pid), own_memory(pid), maps(daemon), len(list(daemon.pins.iterdir())),
                _elements(daemon))


def grown(before, after, heap, memory):
    """What has grown, in words. heap, memory: by so many octets they may."""
    for what, more, was, now in zip(("descriptors", "octets of heap", "octets of memory", "octets of maps beside it",
                                     "pins beside it"), (0, heap, memory, 0, 0), before, after):
        if now > was + more:
            yield f"{was:,} {what} have become {now:,}"
    fullest = max((count for name, count in before.elements.items() if name.startswith(TRIES)), default=0)
    for name, now in after.elements.items():
        was = fullest if name.startswith(TRIES) else before.elements.get(name, 0)
        if now > was:
            yield f"{was:,} elements of {name} have become {now:,}"
