# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How often programs wake that nobody asks anything: a processor that could sleep must not be woken by hyDNS."""

import time

import pytest
from conftest import bind_path, kernel_path

from lab import rings
from lab.run import wait_until

SECONDS = 5
RESOLVER = 4     # wake-ups a second at most: heartbeats are two, resolvers alone have none or some
DAEMON = 40      # hydnsd's: 20 to look after its rules and interfaces, up to 5 to begin a sweep


def idle(program):
    """Its wake-ups a second, once the resolver rests: a busy machine makes them fewer, but never more."""
    before, begun = program.switches(), time.monotonic()
    time.sleep(SECONDS)
    return (program.switches() - before) / (time.monotonic() - begun)


def assert_idle(path, program):
    """A resolver has to do for some seconds after its start."""
    def rests():
        found = idle(program)
        print(f"resolver: {found:.1f} wake-ups a second")
        return found <= RESOLVER
    wait_until(rests, 4 * SECONDS, f"at most {RESOLVER} wake-ups a second")
    daemon = idle(path.daemon.program)
    print(f"hydnsd: {daemon:.1f} wake-ups a second")
    assert daemon <= DAEMON


@pytest.mark.parametrize("use_rings", (True, False), ids=("rings", "sockets"))
def test_unbound(world, use_rings):
    clause = (f"hydns-queue: {'auto' if use_rings else 'no'}",)
    with kernel_path(world, unbound_options={"clause": clause}) as path:
        if use_rings:
            rings.wait_open(path.daemon)
        assert_idle(path, path.unbound.program)


def test_named(world):
    with bind_path(world) as path:
        assert_idle(path, path.named.program)
