# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Resolver and load generator on separate processors.

A kernel without IRQ_TIME_ACCOUNTING charges the handling of a packet to the process that it interrupts. On shared processors
it would charge the resolver with the packets that dnsperf sends and XDP answers. A veth handles a packet on its sender's
processor, so on separate processors the kernel charges each with its own packets."""

import os
from contextlib import contextmanager

ALL = sorted(os.sched_getaffinity(0))
# with one processor both use it
RESOLVER = ALL[len(ALL) // 2:] if len(ALL) > 1 else ALL
OTHERS = ALL[:len(ALL) // 2] if len(ALL) > 1 else ALL


def leave_to_resolver():
    """Keeps this process, and all that it starts from now on, off the resolver's processors."""
    os.sched_setaffinity(0, OTHERS)


@contextmanager
def left_to_resolver():
    """leave_to_resolver() for a while."""
    leave_to_resolver()
    try:
        yield
    finally:
        os.sched_setaffinity(0, ALL)


def _move(program, processors):
    for thread in os.listdir(f"/proc/{program.pid}/task"):
        os.sched_setaffinity(int(thread), processors)


def give_to_resolver(program):
    """Moves all threads of a running program to the resolver's processors."""
    _move(program, RESOLVER)


def keep_from_resolver(program):
    """Moves all threads of a running program to the other processors."""
    _move(program, OTHERS)
