# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsctl doctor says of zones that the kernel shall forward, and of their upstream servers. Each command that mends something is
run as doctor writes it, and mends it."""

import json
import re
from contextlib import contextmanager
from pathlib import Path

import dns.flags
import pytest
from conftest import kernel_path

from lab.client import ask
from lab.forwarding import ZONE, Upstream, answer, forward_zone
from lab.network import SERVICE, UPSTREAM_PORTS
from lab.process import run_tool
from lab.run import SOON, wait_until

SERVER = "10.53.6.61"
RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"


def findings(daemon, check="forwarding"):
    return [c for c in json.loads(daemon.ctl("doctor", "--json", check=False).stdout)["checks"] if c["check"] == check]


def wait_for(daemon, state, text):
    """Until doctor has one finding of forwarding, with this state and text; returns it."""
    def found():
        now = findings(daemon)
        return now[0] if len(now) == 1 and now[0]["state"] == state and text in now[0]["finding"] else None
    return wait_until(found, SOON, f"doctor to say {state}: {text}")


@contextmanager
def forwarded(world, *servers, lines=(), daemon=None, zone=()):
    with kernel_path(world, daemon_options=daemon,
                     unbound_options={"server": [*lines, *forward_zone(*servers, more=zone)]}) as path:
        yield path


@pytest.fixture
def server(world):
    with Upstream(world.network.authoritative, SERVER) as u:
        yield u


def test_all_in_order(world, server):
    with forwarded(world, SERVER) as path:
        wait_for(path.daemon, "ok", "1 zones are forwarded in the kernel, to 1 upstream servers")


def test_nothing_is_said_where_nobody_wants_it(world):
    with kernel_path(world, unbound_options={"server": forward_zone(SERVER, forward=False)}) as path:
        assert not findings(path.daemon)


def test_no_reserved_ports(world, server):
    with world.network.resolver.entered():
        file = open(RESERVED, "w")       # of this namespace
    with file:
        file.write("8080\n")
        file.flush()
        try:
            with forwarded(world, SERVER) as path:
                found = wait_for(path.daemon, "warn", "reserves no 4096 ports in a row")
                run_tool(world.network.resolver, ["sh", "-c", re.search(r"sysctl -w \S+", found["mend"])[0]])
                assert "hydns-unbound-control reload" in found["mend"]
                path.unbound.control("reload")
                wait_for(path.daemon, "ok", "1 zones are forwarded")
        finally:
            file.seek(0)
            file.write(UPSTREAM_PORTS + "\n")
    with world.network.resolver.entered():
        assert Path(RESERVED).read_text().strip() == UPSTREAM_PORTS


@pytest.mark.parametrize("lines,zone,cause,mend", (
    (["serve-expired: yes"], [], "serve-expired is yes", "set it to no, then: hydns-unbound-control reload"),
    ([f'local-zone: "{ZONE}" transparent'], [], "a local-zone or local-data is at it", 'or set local-zone: "..." nodefault, then: '),
    ([], ["forward-tcp-upstream: yes"], "over TCP or TLS", "set forward-tcp-upstream and forward-tls-upstream to no, then: "),
), ids=("of all zones", "colons in the mend", "of the zone"))
def test_a_zone_that_is_hindered(world, server, lines, zone, cause, mend):
    """The finding says why, and the mend what to do; it is not said a second time, as a note."""
    with forwarded(world, SERVER, lines=lines, zone=zone) as path:
        found = wait_for(path.daemon, "warn", f"forward-zone {ZONE} is not forwarded in the kernel: ")
        assert cause in found["finding"] and found["mend"].find(mend) >= 0 and mend not in found["finding"], found
        assert not [c for c in findings(path.daemon, "note") if "forwarded" in c["finding"]]


def test_hydnsd_forwards_nothing(world, server):
    with forwarded(world, SERVER, daemon={"options": ("--forwarding", "no")}) as path:
        found = wait_for(path.daemon, "warn", "no zone is forwarded in the kernel: hydnsd forwards nothing")
        assert found["mend"].startswith("set forwarding: yes") and "unbound" not in found["mend"], found


def test_no_route(world, server):
    ns = world.network.resolver
    run_tool(ns, ["ip", "route", "add", "blackhole", SERVER])
    try:
        with forwarded(world, SERVER) as path:
            found = wait_for(path.daemon, "warn", f"the kernel sends upstream server {SERVER}:53 no query: there is no route to it")
            assert f"ip route get {SERVER}" in found["mend"]
            run_tool(ns, ["ip", "route", "del", "blackhole", SERVER])
            wait_for(path.daemon, "ok", "1 zones are forwarded")
    finally:
        run_tool(ns, ["sh", "-c", f"ip route del blackhole {SERVER} 2>&- || :"])


def test_no_neighbour(world, server):
    with forwarded(world, SERVER, "fd53:3::77") as path:
        found = wait_for(path.daemon, "warn", "[fd53:3::77]:53 no query: the Ethernet address of its next hop is not known")
        assert "ip neigh show dev ra" in found["mend"] and "ip route get fd53:3::77" in found["mend"]
        shown = run_tool(world.network.resolver, ["sh", "-c", re.search(r"ip neigh show dev ra", found["mend"])[0]]).stdout
        assert "fd53:3::77" in shown


def test_an_interface_without_the_program(world, server):
    with forwarded(world, SERVER, daemon={"links": ("r1",)}) as path:
        found = wait_for(path.daemon, "warn", "leaves by an interface that hydnsd is not attached to")
        assert re.fullmatch(r"echo 'interface: ra' >>\S+ && systemctl reload hydnsd", found["mend"]), found


def test_a_silent_server(world, server):
    server.reply = lambda q: answer(q, (300, "A", "192.0.2.7")) if q.ednsflags & dns.flags.DO else None
    with forwarded(world, SERVER) as path:
        wait_for(path.daemon, "ok", "1 zones are forwarded")

        def silent():
            ask(path.network.client1, SERVICE[4], f"s{next(numbers)}.{ZONE}")
            return [c for c in findings(path.daemon) if c["state"] == "warn"]
        numbers = iter(range(1000))
        found, = wait_until(silent, SOON, "doctor to say that the server is silent")
        assert "it did not answer" in found["finding"] and found["mend"].startswith(f"dig -p 53 @{SERVER} {ZONE} SOA: "), found
