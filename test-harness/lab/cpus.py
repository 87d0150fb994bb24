# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Resolver and load generator on processors of their own.

A kernel without IRQ_TIME_ACCOUNTING charges the handling of a packet to whatever process it interrupts. On shared
processors the resolver would be charged with the packets that dnsperf sends and XDP answers. A veth handles a packet
on its sender's processor, so with the two apart each is charged with its own."""

import os

ALL = sorted(os.sched_getaffinity(0))
# one processor can't be shared out
RESOLVER = ALL[len(ALL) // 2:] if len(ALL) > 1 else ALL
OTHERS = ALL[:len(ALL) // 2] if len(ALL) > 1 else ALL


def leave_to_resolver():
    """This process, and all that it starts from now on, keep off the resolver's processors."""
    os.sched_setaffinity(0, OTHERS)


def _move(program, processors):
    for thread in os.listdir(f"/proc/{program.pid}/task"):
        os.sched_setaffinity(int(thread), processors)


def give_to_resolver(program):
    """Moves all threads of a running program to the resolver's processors."""
    _move(program, RESOLVER)


def keep_from_resolver(program):
    """And to the others."""
    _move(program, OTHERS)
