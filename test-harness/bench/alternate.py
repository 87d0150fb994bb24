# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Worlds that run by turns of a tenth of a second, so that whatever changes the machine's speed changes that of all.

All programs of the others are stopped meanwhile (SIGSTOP): for a shorter time than the patience of resolvers, of clients, and of the
kernel path with hydnsd. The worlds should have the same past: of two equal named, one whose cache was filled half a minute earlier
had to resolve names again that much earlier, and had 0.5 to 2 times the other's replies in single turns."""

import os
import signal
import time
from contextlib import contextmanager, suppress

from lab.run import processes

SLICE = 0.1              # seconds


def _pids(world):
    return [pid for pid, _ in processes(world.run.dir)]


def _send(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


@contextmanager
def alternate(worlds, slices, play):
    """Gives each world as many slices, and the block the seconds that each ran; in the block all are stopped, and after it they go on.
    play(n, k): called when slice k of world n has begun; a slice lasts as long as it does, if that is longer. Programs that it starts
    are stopped with the others if it starts them in slice 0."""
    ran, pids = [0.0] * len(worlds), [_pids(world) for world in worlds]
    try:
        for group in pids:
            _send(group, signal.SIGSTOP)
        for k in range(slices):
            for n, world in enumerate(worlds):
                begun = time.monotonic()
                _send(pids[n], signal.SIGCONT)
                play(n, k)
                if k == 0:
                    pids[n] = _pids(world)
                time.sleep(max(0, begun + SLICE - time.monotonic()))
                _send(pids[n], signal.SIGSTOP)
                ran[n] += time.monotonic() - begun
        yield ran
    finally:
        for group in pids:
            _send(group, signal.SIGCONT)
