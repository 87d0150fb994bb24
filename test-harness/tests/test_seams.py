# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The moment between a resolver's look at its data and its offer, with a change of these data in it.

A thread of the shipped resolver is held there (lab/hold.py), or the authoritative server answers late; a command returns
meanwhile, or the data change; then the thread goes on. Its answer must not become a rule."""

import subprocess
import threading

import pytest
from conftest import bind_path, kernel_path

import dns.message
import dns.query
import dns.rcode

from lab.client import ask
from lab.hold import Hold
from lab.changing_zones import records
from lab.network import SERVICE
from lab.run import SOON, HarnessError, wait_until

LOCAL = "203.0.113.9"
ATTEMPTS = 20            # a query that is held need not be one whose answer is due to be offered
CHANGED = "changed, or were flushed, while it was being answered"
LATE = 1.5               # seconds that the authoritative server takes
SAYS_SO = 2.0            # seconds for which a thread that goes on is waited for


def outcome(daemon, name):
    """Where the name is answered, and why, when the plugin or hydnsd has said something of the last answer."""
    said = daemon.explain(name)
    return said["where"], said["text"]


def addresses(reply):
    return [rr.address for rrset in reply.answer for rr in rrset]


def asks_past_the_kernel(path, name):
    """A function that asks the resolver itself for the name, though a rule may have come meanwhile."""
    def past():
        path.daemon.call({"cmd": "flush", "name": name})
        ask(path.network.client1, SERVICE[4], name, timeout=0.1)
    return past


def cache(path, name):
    """Puts an answer into the resolver's cache without a query that counts."""
    with path.network.client1.entered():
        assert dns.query.tcp(dns.message.make_query(name, "A"), SERVICE[4], timeout=5).answer


# --- Unbound ----------------------------------------------------------------------------------------------------
def is_refused(daemon, name):
    """Waits for a held thread that goes on. True: its offer was refused as older than a change; False: no offer is seen."""
    try:
        return wait_until(lambda: CHANGED in outcome(daemon, name)[1], SAYS_SO, "a refusal", patience=0)
    except HarnessError:
        return False


def held_answer_is_refused(path, name):
    """Holds a thread with the cache's answer in hand while local data come into force. True: its offer was refused; False:
    it had none to make."""
    with Hold(path.world, path.unbound.program.pid, path.world.tools.unbound, "hydns_cache_answer", other=True) as hold:
        hold.until_held(asks_past_the_kernel(path, name))
        path.unbound.control("local_data", f"{name}. 300 A {LOCAL}")
        hold.release()
    try:
        refused = is_refused(path.daemon, name)
        assert outcome(path.daemon, name)[0] == "resolver", \
            "the kernel answers what the resolver had in hand before the command"
        assert addresses(ask(path.network.client1, SERVICE[4], name)) == [LOCAL]
        return refused
    finally:
        path.unbound.control("local_data_remove", name)


def test_local_data_between_look_up_and_offer(world):
    """The stamp is older than the look at the local zones, which come before the cache."""
    name = "host11.lab.example"
    with kernel_path(world, unbound_options={"threads": 4}) as path:     # the first of which does what commands say
        cache(path, name)
        for _ in range(ATTEMPTS):
            if held_answer_is_refused(path, name):
                return
    pytest.fail(f"none of {ATTEMPTS} held answers was to be offered")


def test_local_data_during_a_resolution(world):
    """The stamp of a fresh answer is that of the moment at which its resolution began. Nothing is parked: a query that comes in again
    is answered by the local data, and explain would tell of that."""
    name, other = "host12.lab.example", "host13.lab.example"
    with kernel_path(world, unbound_options={"threads": 1, "clause": ["hydns-pending-max: 0"]}) as path:
        ask(path.network.client1, SERVICE[4], "lab.example", "SOA")
        world.relay.delay = LATE
        try:
            replies = []
            clients = [threading.Thread(target=lambda: replies.append(ask(path.network.client1, SERVICE[4], name, timeout=SOON)))
                       for _ in range(4)]
            for client in clients:
                client.start()
            wait_until(lambda: world.relay.count(f"{name}."), SOON, "Unbound to ask the authoritative server")
            path.unbound.control("local_data", f"{name}. 300 A {LOCAL}")
            assert not replies, "the authoritative server answered before the command returned"
            for client in clients:
                client.join(SOON)
            assert len(replies) == 4 and all(replies)
        finally:
            world.relay.delay = 0.0
        world.heat(path.daemon, other)         # through the same ring, behind whatever was offered
        where, text = outcome(path.daemon, name)
        assert where == "resolver", "the kernel answers what was resolved before the command"
        assert CHANGED in text
        assert addresses(ask(path.network.client1, SERVICE[4], name)) == [LOCAL]


# --- BIND -------------------------------------------------------------------------------------------------------
def test_data_replaced_between_look_up_and_offer(world):
    """A thread of named learns that the name does not exist, while another one holds its address."""
    name = "mail.lab.example"
    with bind_path(world) as path:
        for _ in range(ATTEMPTS):
            if held_by_bind(world, path, name):
                return
    pytest.fail(f"none of {ATTEMPTS} held answers was to be offered")


def held_by_bind(world, path, name):
    cache(path, name)
    content = records()
    del content["mail"]
    client = path.network.client1
    try:
        with Hold(world, path.named.program.pid, world.tools.bind_plugin, "hydns_on_send") as hold:
            hold.until_held(asks_past_the_kernel(path, name))
            world.rewrite_lab(content)
            wait_until(lambda: (r := ask(client, SERVICE[4], name, "TXT", timeout=0.2)) and r.rcode() == dns.rcode.NXDOMAIN,
                       SOON, "another thread of named to learn that the name is no more")
            hold.release()
        refused = is_refused(path.daemon, name)    # before anybody asks again
        reply = ask(client, SERVICE[4], name)
        assert reply.rcode() == dns.rcode.NXDOMAIN, "the kernel answers what named had in hand before"
        return refused
    finally:
        world.rewrite_lab(records())
        path.named.control("flush")


# --- the shipped programs ----------------------------------------------------------------------------------------
@pytest.mark.parametrize("program", ("hydnsd", "unbound", "bind_plugin"))
def test_nothing_of_it_is_shipped(world, program):
    """Only tests have code that holds a program, by the linker's wrappers of these names."""
    file = getattr(world.tools, program)
    symbols = subprocess.run(["nm", file], capture_output=True, text=True, check=True).stdout
    assert "hydns" in symbols
    assert not [line for line in symbols.splitlines() if "__wrap_" in line or "seam" in line]
