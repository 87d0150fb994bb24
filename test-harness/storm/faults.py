# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Deliberate faults, to test that the judge finds them."""

import socket
import subprocess
from contextlib import ExitStack

import dns.name

from lab import pinned
from lab.tools import TOP

from .zone import FRESH, STEADY, ZONE

FLUSH = "flush"                   # log a flush, or a change of a zone, without doing it
RULE = "rule"                     # damage the data of a rule in the kernel's memory, so that the checksum stays right
TTL = "ttl"                       # invert a rule's flag of a static TTL
LEAK = "leak"                     # after each disruption one more pin, and one more connection to hydnsd
PAIR = "pair"                     # as flush, once hydnsd was killed
BEFORE_FLUSH = "hydnsd killed"
FAULTS = (FLUSH, RULE, TTL, LEAK, PAIR)

TYPES = {"A": b"\0\1", "AAAA": b"\0\34"}
VICTIMS = (*FRESH[-4:], *STEADY[-4:])     # with TTLs that are long enough to show it
PIECE = 1 << 16                   # octets
POINTER = b"\xc0\x0c"             # an answer's owner name: a pointer to the question's name


LAYOUT = """#include <stddef.h>
#include <stdio.h>
#include <hydns/rule.h>
int main(void)
{
	return !printf("%zu %zu %d", offsetof(struct hydns_rule, data), offsetof(struct hydns_rule, flags), HYDNS_RULE_STATIC_TTL);
}
"""


def _layout(directory):
    """Offsets of a rule's data and flags, and the flag of a static TTL, from the compiler."""
    program = directory / "layout"
    subprocess.run(["cc", "-I", TOP / "include", "-x", "c", "-o", program, "-"], input=LAYOUT, text=True, check=True)
    return map(int, subprocess.run([program], capture_output=True, text=True, check=True).stdout.split())


def _question(key):
    return dns.name.from_text(key.owner).to_wire() + TYPES[key.rdtype] + b"\0\1"


def _places(memory, questions):
    """Yields (begin, end) of each of the questions in the memory; all are of storm.example. Searches piece by piece: find()
    keeps Python's other threads, such as the zone's server, from running."""
    zone = dns.name.from_text(ZONE).to_wire()
    for begin in range(0, len(memory), PIECE):
        end = begin + PIECE + len(zone) - 1
        at = memory.find(zone, begin, end)
        while at >= 0:
            for question in questions:
                first = at - question.index(zone)
                if memory[first:first + len(question)] == question:
                    yield first, first + len(question)
            at = memory.find(zone, at + 1, end)


def saboteur(world, daemon, fault):
    """Who makes the fault before each disruption, or None. It has strike() and end()."""
    if fault in (RULE, TTL):
        return Saboteur(world, daemon, fault)
    return Leak(daemon) if fault == LEAK else None


class Leak:
    """Holds one thing more with each strike, until the end."""

    def __init__(self, daemon):
        self.daemon, self._held, self.strikes = daemon, ExitStack(), 0

    def strike(self):
        self.strikes += 1
        pinned.pin_again(self.daemon.pins / "hydns_stats", self.daemon.pins / f"leak_{self.strikes}")
        connection = self._held.enter_context(socket.socket(socket.AF_UNIX))
        connection.connect(str(self.daemon.control_socket))

    def end(self):
        self._held.close()
        for number in range(1, self.strikes + 1):
            (self.daemon.pins / f"leak_{number}").unlink(missing_ok=True)


class Saboteur:
    """Damages rules of storm.example. in the pinned store."""

    def __init__(self, world, daemon, fault):
        self.daemon, self.fault = daemon, fault
        self.data, self.flags, self.static = _layout(world.run.dir)
        self.damaged = 0

    def strike(self):
        """Damages each rule that it finds for one of the victims."""
        with pinned.writable(self.daemon.pins / "hydns_slots") as memory:
            for begin, end in _places(memory, [_question(key) for key in VICTIMS]):
                self._damage(memory, begin, end)

    def end(self):
        """Rules end by themselves."""

    def _damage(self, memory, name, answer):
        if self.fault == TTL:
            memory[name - self.data + self.flags] ^= self.static
        elif memory[answer:answer + 2] == POINTER:
            end = answer + 12 + int.from_bytes(memory[answer + 10:answer + 12], "big")
            # swap two 16-bit words: the checksum stays the same
            memory[end - 4:end] = memory[end - 2:end] + memory[end - 4:end - 2]
        else:
            return
        self.damaged += 1
