# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Clients outside access-control: the kernel path treats them exactly as Unbound alone does."""

import pytest
from conftest import kernel_path

from harness.client import exchange, query
from harness.compare import difference
from harness.network import CLIENT1, REFERENCE, SERVICE

ACL = ["access-control: 10.53.1.3/32 refuse", "access-control: 10.53.1.4/32 deny",
       "access-control: 10.53.1.5/32 refuse_non_local", "access-control: 10.53.1.6/32 deny_non_local",
       "access-control: 10.53.1.7/32 allow_snoop", "access-control: fd53:2::/64 refuse"]
ALLOWED, SILENT = ("10.53.1.2", "10.53.1.7"), ("10.53.1.4", "10.53.1.6")
CLIENTS = [f"10.53.1.{i}" for i in range(2, 9)]


@pytest.fixture(scope="module")
def guarded(world):
    with kernel_path(world, unbound_options={"server": ACL}) as path, world.reference(server=ACL):
        world.heat(path.daemon, "www.lab.example", "A")
        yield path


@pytest.mark.parametrize("client", CLIENTS)
def test_as_unbound_alone(guarded, client):
    """While the name is hot for everybody else."""
    wire = query("www.lab.example", "A").to_wire()
    answers = []
    for service in (SERVICE, REFERENCE):
        answers.append(exchange(guarded.network.client1, service[4], wire, local=client,
                                timeout=0.5 if client in SILENT else 2))
    # another instance has cached the name at another second
    assert difference(*answers, ttl_slack=60) is None
    assert (answers[0] is None) == (client in SILENT)


def test_ipv6_network_refused(guarded):
    wire = query("www.lab.example", "A").to_wire()
    ours, theirs = (exchange(guarded.network.client2, service[6], wire) for service in (SERVICE, REFERENCE))
    assert difference(ours, theirs, ttl_slack=60) is None
    assert ours[3] & 0x0F == 5, "REFUSED expected"


def test_refused_clients_are_counted(guarded):
    before = guarded.daemon.reasons()["ACL"]
    exchange(guarded.network.client1, SERVICE[4], query("www.lab.example", "A").to_wire(), local="10.53.1.3")
    assert guarded.daemon.reasons()["ACL"] == before + 1


def test_allowed_client_is_answered_in_the_kernel(guarded):
    received = guarded.unbound.received()
    assert exchange(guarded.network.client1, SERVICE[4], query("www.lab.example", "A").to_wire(), local=CLIENT1[4])
    assert guarded.unbound.received() == received
