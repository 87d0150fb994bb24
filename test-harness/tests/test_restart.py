# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Data change in the resolver's cache while hydnsd is away: nothing old is answered, and what has not changed goes on
when hydnsd is back."""

import signal
import time
from functools import partial

import pytest
from conftest import bind_path, kernel_path

from harness.attempts import Inconclusive, until_conclusive
from harness.client import ask
from harness.lab import records
from harness.network import SERVICE
from harness.run import SOON, wait_until

HOSTS = [f"host{i}.lab.example" for i in range(20)]
# the last seconds of shifted's twenty, in which the resolver renews by itself what it is asked
LATE = {"unbound": 2, "bind": 9}


@pytest.fixture(scope="module", params=LATE)
def path(request, world):
    if request.param == "unbound":
        made = kernel_path(world, unbound_options={"clause": ["hydns-refresh: 0"]})
    else:
        made = bind_path(world, options=["prefetch 10 16;"], clause=["hydns-refresh 0;"])
    with made as p:
        p.late = LATE[request.param]
        p.flush = partial(p.unbound.control, "flush") if request.param == "unbound" else partial(p.named.control, "flushname")
        yield p


def last(namespace, name):
    """The last address in the answer, and its TTL."""
    rrset = ask(namespace, SERVICE[4], f"{name}.lab.example").answer[-1]
    return rrset[0].address, rrset.ttl


def ask_all_until(path, address, end, names=("shift", "shifted")):
    """By whatever way, no other address."""
    while time.monotonic() < end:
        for name in names:
            assert last(path.network.client1, name)[0] == address, f"{name}: from before the change"


@pytest.mark.limit(300)
@pytest.mark.parametrize("how, octet", [(signal.SIGKILL, 77), (signal.SIGUSR2, 87)])
def test_data_change_while_daemon_is_away(path, how, octet):
    try:
        until_conclusive(lambda number, _: change_data_while_daemon_is_away(path, how, octet + number))
    finally:
        path.world.rewrite_lab(records())
        if not path.daemon.program.running():
            path.daemon.start()


def change_data_while_daemon_is_away(path, how, octet):
    """octet: the new address's last."""
    world, daemon, network = path.world, path.daemon, path.network
    if not daemon.program.running():
        daemon.start()
    for name in HOSTS:
        world.heat(daemon, name)
    new = f"192.0.2.{octet}"
    for name in ("shift", "shifted"):
        path.flush(f"{name}.lab.example")
    last(network.resolver, "shifted")
    for name in ("shift", "shifted"):
        world.heat(daemon, f"{name}.lab.example")
    world.rewrite_lab(records(octet))
    wait_until(lambda: last(network.client1, "shift")[1] <= path.late, 25, "the last part of the TTL")
    daemon.stop(how)
    address, ttl = last(network.client1, "shift")
    if address == new:
        raise Inconclusive("renewed before hydnsd was away")
    former_end = time.monotonic() + ttl + 1
    wait_until(lambda: last(network.resolver, "shifted")[0] == new, SOON, "the resolver to renew")
    ask_all_until(path, new, time.monotonic() + 0.5)
    daemon.start()
    ask_all_until(path, new, time.monotonic() + 0.5)
    wait_until(daemon.resolver_ready, 10, "the resolver to register again")
    ask_all_until(path, new, former_end)
    for name in HOSTS:
        assert daemon.explain(name)["where"] == "kernel", f"{name} has not changed"


def test_flush_while_daemon_is_away(path):
    """Final when it returns, and all that it does not name goes on when hydnsd is back."""
    world, daemon = path.world, path.daemon
    for name in (*HOSTS, "www.lab.example"):
        world.heat(daemon, name)
    world.rewrite_lab(records(79))
    try:
        daemon.stop(signal.SIGKILL)
        path.flush("www.lab.example")
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.5, ["www"])
        daemon.start()
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.5, ["www"])
        wait_until(daemon.resolver_ready, 10, "the resolver to register again")
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.5, ["www"])
        for name in HOSTS:
            assert daemon.explain(name)["where"] == "kernel", f"{name} was not flushed"
    finally:
        world.rewrite_lab(records())
        if not daemon.program.running():
            daemon.start()
