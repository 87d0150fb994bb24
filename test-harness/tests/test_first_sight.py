# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The first resolution of a question offers nothing, so that names which nobody asks for again cost no rule. Whatever shows
that a question comes again does: a second query, answered from the cache or not, or another client that waits for the same answer."""

import threading

from conftest import kernel_path

from lab.client import ask
from lab.network import SERVICE
from lab.run import SOON

LATE = 1.0               # seconds that the authoritative server takes


def told(path, name):
    """What explain says of the name once all that the one thread of Unbound has offered so far was looked at."""
    path.world.heat(path.daemon, "www.lab.example")
    path.daemon.call({"cmd": "flush", "name": "www.lab.example"})
    return path.daemon.explain(name)


def test_the_second_query_is_offered(world):
    with kernel_path(world, unbound_options={"threads": 1}) as path:
        for name in ("host20.lab.example", "host21.lab.example"):
            assert ask(path.network.client1, SERVICE[4], name).answer
            said = told(path, name)
            assert said["where"] == "resolver" and "or only once" in said["text"], said
            assert ask(path.network.client1, SERVICE[4], name).answer
            said = told(path, name)
            assert said["where"] == "kernel", said["text"]


def test_what_two_clients_wait_for_is_offered(world):
    name = "host22.lab.example"
    with kernel_path(world, unbound_options={"threads": 1}) as path:
        ask(path.network.client1, SERVICE[4], "lab.example", "SOA")
        world.relay.delay = LATE
        try:
            clients = [threading.Thread(target=ask, args=(path.network.client1, SERVICE[4], name), kwargs={"timeout": SOON})
                       for _ in range(3)]
            for client in clients:
                client.start()
            for client in clients:
                client.join(SOON)
        finally:
            world.relay.delay = 0.0
        said = told(path, name)
        assert said["where"] == "kernel", said["text"]


def test_what_is_resolved_twice_is_offered(world):
    name = "host23.lab.example"
    with kernel_path(world, unbound_options={"threads": 1}) as path:
        for where in ("resolver", "kernel"):
            path.unbound.control("flush", name)
            assert ask(path.network.client1, SERVICE[4], name).answer
            said = told(path, name)
            assert said["where"] == where, said["text"]
