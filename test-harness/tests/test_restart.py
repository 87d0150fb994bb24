# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Data change in the resolver's cache while hydnsd is away: nothing old is answered, and the kernel goes on answering what
has not changed, all the time."""

import signal
import time
from functools import partial

import pytest
from conftest import bind_path, kernel_path

from lab.attempts import Inconclusive, until_conclusive
from lab.client import Asker, must_ask
from lab.changing_zones import records
from lab.network import DEFAULT_HOPS, SERVICE
from lab.run import SOON, wait_until

HOSTS = [f"host{i}.lab.example" for i in range(20)]
# the last seconds of shifted's TTL of twenty, in which the resolver refreshes it for a query
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
    rrset = must_ask(namespace, SERVICE[4], f"{name}.lab.example").answer[-1]
    return rrset[0].address, rrset.ttl


def ask_all_until(path, address, end, names=("shift", "shifted")):
    """By whatever way, no other address."""
    while time.monotonic() < end:
        for name in names:
            assert last(path.network.client1, name)[0] == address, f"{name}: from before the change"


def answered_by_resolver(path, names):
    """Those of the names for which any query, over IPv4 or IPv6, is answered by the resolver and not in the kernel."""
    found = set()
    for address in SERVICE.values():
        with Asker(path.world, path.network.client1, address, [(name, "A") for name in names], 1000, seconds=0.2,
                   watch=True) as asker:
            answers = asker.result()
        assert len(answers) > len(names) and all(a.latency is not None and a.rcode == 0 for a in answers)
        found |= {names[a.question] for a in answers if a.hops != DEFAULT_HOPS}
    return found


def changed_names_alone_wait(path, changed):
    """changed: among them an alias whose own data are as they were. Of the others one may share a mark with a changed one."""
    waiting = answered_by_resolver(path, [*HOSTS, *changed])
    assert set(changed) <= waiting, "the kernel goes on with what has changed"
    assert len(waiting - set(changed)) <= 1, "the kernel does not go on with what has not changed"


def all_answered_in_kernel(path, names):
    for name in names:
        path.world.heat(path.daemon, name)
    wait_until(lambda: not answered_by_resolver(path, list(names)), SOON, "the kernel to answer all names")


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
        raise Inconclusive("refreshed before hydnsd was away")
    former_end = time.monotonic() + ttl + 1
    wait_until(lambda: last(network.resolver, "shifted")[0] == new, SOON, "the resolver to renew")
    ask_all_until(path, new, time.monotonic() + 0.5)
    changed_names_alone_wait(path, ["shift.lab.example", "shifted.lab.example"])
    daemon.start()
    ask_all_until(path, new, time.monotonic() + 0.5)
    wait_until(daemon.resolver_ready, 10, "the resolver to register again")
    ask_all_until(path, new, former_end)
    for name in HOSTS:
        assert daemon.explain(name)["where"] == "kernel", f"{name} has not changed"
    assert not answered_by_resolver(path, HOSTS)
    ask_all_until(path, new, time.monotonic() + 0.1)


def test_ttl_updates_while_daemon_is_away(path):
    """The same data with a later end: every answer, also an alias's, shows the resolver's current TTL."""
    world, daemon, network = path.world, path.daemon, path.network
    last(network.resolver, "twenty")
    for name in (*HOSTS, "to-twenty.lab.example", "twenty.lab.example"):
        world.heat(daemon, name)
    wait_until(lambda: last(network.client1, "to-twenty")[1] <= path.late, 25, "the last part of the TTL")
    daemon.stop(signal.SIGKILL)
    try:
        wait_until(lambda: last(network.resolver, "twenty")[1] > path.late, SOON, "the resolver to renew")
        end = time.monotonic() + 1
        while time.monotonic() < end:
            for name in ("to-twenty", "twenty"):
                before, shown, after = (last(ns, label)[1] for ns, label in ((network.resolver, "twenty"), (network.client1, name),
                                                                             (network.resolver, "twenty")))
                # sorted: after a long time between them the resolver may have refreshed again
                least, most = sorted((before, after))
                assert least - 1 <= shown <= most + 1, f"{name}: {shown} s, the resolver {before} s before and {after} s after"
        changed_names_alone_wait(path, ["to-twenty.lab.example", "twenty.lab.example"])
    finally:
        daemon.start()
    wait_until(daemon.resolver_ready, 10, "the resolver to register again")
    all_answered_in_kernel(path, [*HOSTS, "to-twenty.lab.example"])


def test_flush_while_daemon_is_away(path):
    """It is final when it returns, and all other rules count again when hydnsd is back."""
    world, daemon = path.world, path.daemon
    flushed = ["www.lab.example", "alias.lab.example"]
    for name in (*HOSTS, *flushed):
        world.heat(daemon, name)
    world.rewrite_lab(records(79))
    try:
        daemon.stop(signal.SIGKILL)
        path.flush("www.lab.example")
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.5, ["www", "alias"])
        changed_names_alone_wait(path, flushed)
        daemon.start()
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.5, ["www", "alias"])
        wait_until(daemon.resolver_ready, 10, "the resolver to register again")
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.5, ["www", "alias"])
        for name in HOSTS:
            assert daemon.explain(name)["where"] == "kernel", f"{name} was not flushed"
        all_answered_in_kernel(path, [*HOSTS, *flushed])
        ask_all_until(path, "192.0.2.79", time.monotonic() + 0.1, ["www", "alias"])
    finally:
        world.rewrite_lab(records())
        if not daemon.program.running():
            daemon.start()
