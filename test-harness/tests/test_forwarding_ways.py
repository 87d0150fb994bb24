# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""By which ways forwarded queries come and go: clients in a VLAN, and routed replies (reply-path: fib), where the answer of an upstream
server may come by another interface than its request left by."""

import json
import socket
from contextlib import contextmanager

import dns.message
import pytest
from conftest import kernel_path

from lab import links, rings, vlan
from lab.client import ask, query
from lab.forwarding import ZONE, Upstream, answer, forward_zone
from lab.network import CLIENT1, CLIENT2, LINKS, SERVICE, veth
from lab.process import run_tool
from lab.run import SOON, wait_until

SERVERS = {4: "10.53.6.61", 6: "fd53:6::62"}
OWN = {4: "10.53.3.1", 6: "fd53:3::1"}       # the source of requests
DATA = "192.0.2.7"
FIB = ("--reply-path", "fib")
SWAP = ("--reply-path", "swap")
CROWD = 40
OTHER = "10.53.99.9"                          # an address of clients


@contextmanager
def forwarded(world, family=4, daemon=None):
    with Upstream(world.network.authoritative, SERVERS[family]) as server, \
            kernel_path(world, daemon_options=daemon, unbound_options={"server": forward_zone(SERVERS[family])}) as p:
        p.upstream = server
        wait_until(lambda: all(u["usable"] for u in state(p)["upstreams"]) and state(p)["zones"], SOON, "the zone to be forwarded")
        yield p


def state(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["forwarding"]


def counts(path, part="forwarding"):
    return path.daemon.call({"cmd": "stats"})["resolvers"][0][part]


def test_a_client_in_a_vlan(world):
    """No kernel needs to know of VLANs: the request has no tag, and the reply has the query's."""
    with forwarded(world, daemon={"options": ("--vlan", "yes", "--vlan-offload", "trust")}) as path, \
            vlan.asking(path.network) as ask_in_vlan:
        reply, tag = ask_in_vlan(f"tagged.{ZONE}", 4000)
        assert (str(reply.answer[0][0]), tag) == (DATA, vlan.TAG)
        assert (counts(path)["sent"], counts(path)["relayed"], counts(path, "parking")["answered"]) == (1, 1, 1)


def test_a_client_in_a_vlan_with_routed_replies(world):
    """No reply to a tagged query is routed, so nothing is sent for one."""
    with links.forwarding(world.network.resolver), \
            forwarded(world, daemon={"options": ("--vlan", "yes", "--vlan-offload", "trust", *FIB)}) as path, \
            vlan.asking(path.network) as ask_in_vlan:
        rings.wait_open(path.daemon)               # the kernel's own stack, which knows no VLAN, would drop the query
        reply, _ = ask_in_vlan(f"tagged.{ZONE}", 4000)
        assert str(reply.answer[0][0]) == DATA
        assert (counts(path)["sent"], counts(path)["left"]["FRAME"]) == (0, 1)
        doctor = json.loads(path.daemon.ctl("doctor", "--json", check=False).stdout)["checks"]
        found, = (c for c in doctor if c["check"] == "forwarding" and c["state"] == "warn")
        assert found["finding"].startswith("1 queries in a VLAN, or too long, were left") and found["mend"].startswith("reply-path: swap"), found


def crowd(ns, source, ports):
    """Sockets of clients."""
    with ns.entered():
        found = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in ports]
    for s, port in zip(found, ports):
        s.bind((source, port))
        s.settimeout(SOON)
        s.connect((SERVICE[4], 53))
    return found


def test_routed_replies_to_a_crowd(world):
    """Clients at two addresses wait for one answer: each gets it once. All queries come by one link, and routes lead the replies to half
    of them to another one."""
    with links.forwarding(world.network.resolver), forwarded(world, daemon={"options": FIB}) as path:
        network = path.network
        path.upstream.delay = 0.3
        for ns, link in ((network.client1, "c1"), (network.client2, "c2")):
            ns.address(link, f"{OTHER}/32")
        run_tool(network.resolver, ["ip", "route", "add", OTHER, "via", CLIENT2[4]])
        try:
            ask(network.client1, SERVICE[4], f"warm.{ZONE}", timeout=SOON)         # the neighbours are known
            ask(network.client2, SERVICE[4], f"warm.{ZONE}", timeout=SOON)
            before = counts(path, "parking")
            one, ports = crowd(network.client1, CLIENT1[4], range(5000, 5000 + CROWD)), range(6000, 6000 + CROWD)
            other, there = crowd(network.client1, OTHER, ports), crowd(network.client2, OTHER, ports)
            for number, (a, b) in enumerate(zip(one, other)):
                wire = query(f"crowd.{ZONE}")
                wire.id = number
                for s in (a, b):
                    s.send(wire.to_wire())
            for number, pair in enumerate(zip(one, there)):
                for s in pair:
                    reply = dns.message.from_wire(s.recv(512))
                    assert (reply.id, str(reply.answer[0][0])) == (number, DATA)
            for s in (*one, *other, *there):
                s.setblocking(False)
                with pytest.raises(BlockingIOError):
                    s.recv(512)                       # none came twice
                s.close()
            after = counts(path, "parking")
            assert after["answered"] - before["answered"] == 2 * CROWD and after["lost"] == before["lost"], after
        finally:
            run_tool(network.resolver, ["ip", "route", "del", OTHER])
            for ns, link in ((network.client1, "c1"), (network.client2, "c2")):
                ns.remove_address(link, f"{OTHER}/32")


@contextmanager
def other_way_back(world, family):
    """What the upstream server sends to the source of requests goes by another link, ub to rb."""
    ns, there = world.network.resolver, world.network.authoritative
    veth(ns, "rb", there, "ub")
    try:
        with ns.netlink() as ip:
            mac = ip.get_links(ip.link_lookup(ifname="rb")[0])[0].get_attr("IFLA_ADDRESS")
        run_tool(there, ["ip", "neigh", "replace", OWN[family], "lladdr", mac, "dev", "ub"])
        run_tool(there, ["ip", "route", "add", f"{OWN[family]}/{32 if family == 4 else 128}", "dev", "ub"])
        yield ns
    finally:
        run_tool(ns, ["ip", "link", "del", "rb"])


def ask_once(path, name):
    """By IPv6, to which rp_filter does not apply."""
    before = counts(path)
    ask(path.network.client1, SERVICE[6], name, timeout=1.5)
    after = counts(path)
    return {key: after[key] - before[key] for key in ("sent", "relayed", "mismatched")}


@pytest.mark.parametrize("family", (4, 6), ids=("over IPv4", "over IPv6"))
def test_answers_by_another_interface(world, family):
    with other_way_back(world, family) as ns, links.forwarding(ns), \
            links.sysctls(ns, {"ipv4/conf/all/rp_filter": 0, "ipv4/conf/rb/rp_filter": 0}), \
            forwarded(world, family, daemon={"links": (*LINKS, "rb"), "options": FIB}) as path:
        assert ask_once(path, f"other-way.{ZONE}") == {"sent": 1, "relayed": 1, "mismatched": 0}


@pytest.mark.parametrize("options,strict", ((SWAP, 0), (FIB, 1)), ids=("replies that are not routed", "strict rp_filter"))
def test_answers_by_another_interface_are_dropped(world, options, strict):
    """Without routed replies, and where the host would not take them either."""
    with other_way_back(world, 4) as ns, links.forwarding(ns), links.sysctls(ns, {"ipv4/conf/rb/rp_filter": strict}), \
            forwarded(world, daemon={"links": (*LINKS, "rb"), "options": options}) as path:
        assert ask_once(path, f"other-way.{ZONE}") == {"sent": 1, "relayed": 0, "mismatched": 1}


def test_an_upstream_server_that_answers_twice_by_two_ways(world):
    """The second copy is nobody's, by whichever interface it comes."""
    with links.forwarding(world.network.resolver), forwarded(world, daemon={"options": FIB}) as path:
        path.upstream.reply = lambda q: [answer(q, (300, "A", DATA)), answer(q, (300, "A", "192.0.2.66"))]
        assert str(ask(path.network.client1, SERVICE[4], f"twice.{ZONE}").answer[0][0]) == DATA
        assert str(ask(path.network.client1, SERVICE[4], f"twice.{ZONE}").answer[0][0]) == DATA
        assert counts(path)["relayed"] == 1
