# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What processes and the kernel hold, as `chaos --parked` compares it (storm/held.py)."""

import mmap
import os
import signal
import socket

import pytest
from conftest import kernel_path

from lab import pinned
from lab.run import SOON, wait_until
from storm import held, parked

BEFORE = held.Held(40, 1 << 20, 8 << 20, 64 << 20, 30, {"acl_0": 3, "hydns_services": 4})
HEAP, MEMORY = 1 << 18, 9 << 20


@pytest.fixture(scope="module")
def path(world):
    with kernel_path(world) as p:
        yield p


@pytest.mark.parametrize("more, words", [
    ({}, []), ({"descriptors": 41}, ["descriptors"]), ({"heap": BEFORE.heap + HEAP}, []),
    ({"heap": BEFORE.heap + HEAP + 1}, ["heap"]), ({"memory": BEFORE.memory + MEMORY}, []),
    ({"memory": BEFORE.memory + MEMORY + 1}, ["memory"]), ({"maps": BEFORE.maps + 1}, ["maps"]),
    ({"pins": 31}, ["pins"]), ({"elements": {"acl_0": 3, "hydns_services": 5}}, ["hydns_services"]),
    ({"elements": {"acl_0": 2, "hydns_services": 4, "acl_1": 3}}, []),
    ({"elements": {"acl_0": 3, "hydns_services": 4, "acl_1": 4}}, ["acl_1"]), ({"elements": {"hydns_lanes": 1}}, ["hydns_lanes"]),
    ({"elements": {}, "pins": 29, "descriptors": 39}, [])])
def test_what_has_grown(more, words):
    found = list(held.grown(BEFORE, BEFORE._replace(**more), HEAP, MEMORY))
    assert len(found) == len(words) and all(word in line for word, line in zip(words, found)), found


def test_a_descriptor_more(path):
    """hydnsd has one for each client of its control socket."""
    before = held.take(path.daemon, path.daemon)
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(path.daemon.control_socket))
        wait_until(lambda: held.take(path.daemon, path.daemon).descriptors == before.descriptors + 1, SOON, "a descriptor more")
    wait_until(lambda: held.take(path.daemon, path.daemon).descriptors == before.descriptors, SOON, "as many as before")


def test_elements(path):
    """Of maps whose elements come and go, and of no others."""
    resolver = path.daemon.call({"cmd": "status"})["resolvers"][0]
    elements = held.take(path.daemon, path.daemon).elements
    assert elements["hydns_services"] == len(resolver["services"])
    assert max(elements["acl_0"], elements["acl_1"]) >= resolver["acl_entries"] > 0
    assert (elements["hydns_pages"], elements["hydns_fwd_open"], elements["hydns_lanes"]) == (1, 0, len(resolver["lanes"]))
    assert elements["hydns_strays"] > 0
    assert not {"hydns_slots", "hydns_ports", "hydns_parked"} & set(elements)


def test_rules_have_slots_until_they_are_gone(path):
    def slot_bytes():
        return path.daemon.call({"cmd": "status"})["slot_bytes"]
    path.world.heat(path.daemon, "host1.lab.example")
    assert slot_bytes() > 0
    p = parked.Parked("unbound", "1", lambda text: None)
    p.daemon = path.daemon
    p._nothing_left("here")
    assert not p.result.wrong and slot_bytes() == 0


def test_octets_that_nobody_has_read(path):
    pin = path.daemon.pins / "hydns_answered"
    assert pinned.unread(pin) == 0
    path.daemon.stop(signal.SIGKILL)
    with pinned.opened(pin) as (fd, _), mmap.mmap(fd, mmap.PAGESIZE) as consumer:
        consumer[:8] = (int.from_bytes(consumer[:8], "little") - 8 & 2**64 - 1).to_bytes(8, "little")
    assert pinned.unread(pin) == 8
    os.unlink(pin)
