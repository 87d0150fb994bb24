# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""As many netblocks as hyDNS takes, and one more; and one thread too many: the resolver answers by itself, and its log and hydnsctl status
say why. (Addresses: plugin/tests/test_link.c, for a resolver would need 50,000 descriptors.)"""

import ipaddress
from itertools import islice

import pytest

from lab.client import ask
from lab.layouts import number
from lab.network import SERVICE
from lab.run import wait_until

KINDS = ("unbound", "named")
PREFIXES, THREADS = number("HYDNS_ACL_ENTRIES"), number("HYDNS_THREADS_MAX")
NAME = "www.lab.example"


def notes(daemon):
    return [note for resolver in daemon.call({"cmd": "status"}, 30)["resolvers"] for note in resolver["notes"]]


def log_of(server):
    return server.program.log.read_text(errors="replace")


def entries(daemon):
    return daemon.call({"cmd": "status"}, 30)["resolvers"][0]["acl_entries"]


def answers(world):
    return ask(world.network.client1, SERVICE[4], NAME).answer


# --- threads -----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("kind, text", (("unbound", f"num-threads is {THREADS + 1}, at most {THREADS} are served"),
                                        ("named", f"more than {THREADS} threads: start the resolver with {THREADS} at most")))
def test_one_thread_too_many(world, kind, text):
    """The resolver goes on without the kernel path."""
    daemon = world.hydnsd()
    with daemon, getattr(world, kind)(daemon, threads=THREADS + 1) as server:
        wait_until(lambda: answers(world), 30, f"{kind} to answer")
        wait_until(lambda: text in log_of(server), 10, lambda: f"'{text}' in the log of {kind}")
        assert not daemon.call({"cmd": "status"})["resolvers"]


# --- netblocks ---------------------------------------------------------------------------------------------------------
def of_netblocks(world, kind, daemon, number):
    """Lets in so many more, of which none is part of another."""
    nets = [str(net) for net in islice(ipaddress.ip_network("12.0.0.0/8").subnets(new_prefix=26), 0, 2 * number, 2)]
    if kind == "unbound":
        return world.unbound(daemon, server=[f"access-control: {net} allow" for net in nets])
    return world.named(daemon, clients="".join(f"{net}; " for net in ("10.53.0.0/16", "fd53::/16", *nets)))


@pytest.mark.limit(200)
@pytest.mark.parametrize("kind", KINDS)
def test_netblocks(world, kind):
    """With one too many nobody is answered: without it clients might be whom the resolver shuts out."""
    daemon = world.hydnsd()
    with daemon:
        with of_netblocks(world, kind, daemon, 0):
            world.heat(daemon, NAME)
            own = entries(daemon)
        with of_netblocks(world, kind, daemon, PREFIXES - own) as server:
            world.heat(daemon, NAME, seconds=30)
            assert entries(daemon) == PREFIXES and not any("more than" in note for note in notes(daemon))
            assert f"more than {PREFIXES}" not in log_of(server)
        with of_netblocks(world, kind, daemon, PREFIXES - own + 1) as server:
            wait_until(lambda: answers(world), 30, f"{kind} to answer")
            wait_until(lambda: any(f"more than {PREFIXES}" in note for note in notes(daemon)), 30, lambda: f"a note; {notes(daemon)}")
            assert f"no answer is offered to the kernel: access-control has more than {PREFIXES}" in log_of(server) or \
                f"no answer is offered to the kernel: the access control lists name more than {PREFIXES}" in log_of(server)
            assert entries(daemon) == 0 and answers(world)
            assert daemon.explain(NAME, "A")["where"] != "kernel"
