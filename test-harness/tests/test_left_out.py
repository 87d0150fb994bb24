# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Additional data without room in one client's reply: other clients get them all."""

import time

from conftest import kernel_path

from lab.client import ask
from lab.changing_zones import records
from lab.network import SERVICE
from lab.run import SOON, wait_until

NAME = "full.lab.example"
HOSTS = 16         # with their addresses more than 512 octets, without them less
# whose names stand in the records before them, so that these could not change places
ADDED = {"full": [f"300 MX {i} mx{i}" for i in range(HOSTS)], **{f"mx{i}": [f"300 A 192.0.2.{i}"] for i in range(HOSTS)}}
OPTIONS = ["minimal-responses: no", "rrset-roundrobin: no"]
OFFERED_AGAIN = 4  # seconds in which an answer that clients go on asking for is offered several times
OPT = 11


def additional(reply):
    return sum(len(rrset) for rrset in reply.additional)


def test_what_a_small_client_has_no_room_for(world):
    world.rewrite_lab({**records(), **ADDED})
    try:
        with kernel_path(world, unbound_options={"server": OPTIONS}) as path:
            client = path.network.client1
            whole = ask(client, SERVICE[4], NAME, "MX", edns=True)
            assert additional(whole) == HOSTS
            wait_until(lambda: ask(client, SERVICE[4], NAME, "MX", edns=True) and path.daemon.explain(NAME, "MX")["rule"],
                       SOON, "the whole answer to be offered")
            path.daemon.call({"cmd": "flush", "name": NAME})
            end = time.monotonic() + OFFERED_AGAIN
            while time.monotonic() < end:
                small = ask(client, SERVICE[4], NAME, "MX")
                assert len(small.answer[0]) == HOSTS and additional(small) < HOSTS
                rule = path.daemon.explain(NAME, "MX")["rule"]
                assert not rule or rule["size"] == len(whole.to_wire()) - OPT
    finally:
        world.rewrite_lab(records())
