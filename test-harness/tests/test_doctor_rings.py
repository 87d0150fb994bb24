# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsctl doctor says of packet rings: ports of queries to upstream, receive queues, locked memory. Each command that
mends something is run as doctor writes it, and mends it."""

import json
import os
import re
import secrets
import socket
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import kernel_path

from lab.client import query
from lab.network import CLIENT1, SERVICE, UPSTREAM_PORTS, pass_everything
from lab.process import Program, run_tool
from lab.run import wait_until
from lab.servers import Unbound

RESERVED = "/proc/sys/net/ipv4/ip_local_reserved_ports"
FIRST = int(UPSTREAM_PORTS.partition("-")[0])
FRAMES = 256                        # few, so that all lanes fit into the 8 MiB that a process may often lock at most
LANE = (FRAMES + 512) * 2048        # octets of a lane of one thread: frames to receive into and to send from
SYS_RESOURCE = 24                   # CAP_SYS_RESOURCE


def findings(daemon, check, subject=None):
    checks = json.loads(daemon.ctl("doctor", "--json", check=False).stdout)["checks"]
    return [c for c in checks if c["check"] == check and (subject is None or c["subject"] == subject)]


def finding(daemon, check, subject=None):
    found = findings(daemon, check, subject)
    assert len(found) == 1, found
    return found[0]


def lanes(daemon, interface=None):
    """Open ones."""
    resolvers = daemon.call({"cmd": "status"})["resolvers"]
    return [x for r in resolvers for x in r["lanes"] if x["open"] and interface in (None, x["interface"])]


def paste(ns, mend, pattern):
    """Runs the command in a mend."""
    found = re.search(pattern, mend)
    assert found, f"no {pattern} in: {mend}"
    return run_tool(ns, ["sh", "-c", found[0]]).stdout


@contextmanager
def reserved(world, ports):
    with world.network.resolver.entered():
        Path(RESERVED).write_text(ports + "\n")
    try:
        yield
    finally:
        with world.network.resolver.entered():
            Path(RESERVED).write_text(UPSTREAM_PORTS + "\n")


def udp(ns, address, port, connect=None):
    """A socket in that namespace."""
    with ns.entered():
        s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((address, port))
        if connect:
            s.connect(connect)
    return s


def wait_ports(daemon, *states):
    """Until doctor's findings of ports have these states; returns them. The resolver asks for packet rings a moment after it
    has registered."""
    def found():
        now = findings(daemon, "ports")
        return now if tuple(f["state"] for f in now) == states else None
    return wait_until(found, 10, f"findings of ports that are {states}")


def test_all_in_order(world):
    with kernel_path(world) as path:
        wait_until(lambda: len(lanes(path.daemon)) == len(path.daemon.interfaces), 10, "packet rings on each interface")
        assert all(finding(path.daemon, check)["state"] == "ok" for check in ("rings", "ports", "locked-memory"))
        assert re.search(f"ports {FIRST} to .* no other program", finding(path.daemon, "ports")["finding"])
        for program in ("tcpdump", "conntrack", "nftables", "tc"):
            assert program in finding(path.daemon, "rings")["finding"]


def test_frames_without_room(world):
    """A burst of more queries than may wait, for names that have to be looked up."""
    options = {"threads": 1, "clause": ["hydns-queue-frames: 256", "hydns-queue-upstream: no"]}
    with kernel_path(world, unbound_options=options) as path:
        ring, = wait_until(lambda: lanes(path.daemon, "r1"), 10, "packet rings on r1")
        assert not findings(path.daemon, "full-rings")
        wait_until(lambda: lanes(path.daemon, "r1")[0]["free"] > 0, 5, "status to show what is in the ring")
        assert ring["dropped"] == 0

        def full():
            wires = [query(f"n{secrets.token_hex(6)}.lab.example").to_wire() for _ in range(4000)]
            with udp(path.network.client1, CLIENT1[4], 0, connect=(SERVICE[4], 53)) as s:
                for wire in wires:
                    s.send(wire)
            return path.daemon.call({"cmd": "status"})["resolvers"][0]["rings_full"]
        wait_until(full, 30, "a burst that finds a ring full")
        found = finding(path.daemon, "full-rings")
        assert found["state"] == "warn" and "hydns-queue-frames" in found["mend"] and not findings(path.daemon, "drops")
        shown = path.daemon.ctl("status").stdout
        assert re.search(r"rings +r1 queue 0 .*: [\d,]+ frames waiting, \d+ free, \d+ unsent, 0 dropped", shown)
        assert re.search(r"[1-9][\d,]* packets found a packet ring full, and took sockets", shown)


def test_nothing_is_said_without_rings(world):
    off = ["hydns-queue: no", "hydns-queue-upstream: no"]
    with reserved(world, "8080"), kernel_path(world, unbound_options={"clause": off}) as path:
        assert not any(findings(path.daemon, check) for check in ("rings", "ports", "locked-memory"))


def test_no_ports_reserved(world):
    """The command keeps what is reserved; then the resolver has to be restarted, and doctor says so until it is."""
    ns = world.network.resolver
    with reserved(world, "8080,9000-9100"), kernel_path(world) as path:
        found = wait_ports(path.daemon, "warn")[0]
        assert "reserves no 4096 ports in a row" in found["finding"]
        paste(ns, found["mend"], r"sysctl -w \S+")
        with ns.entered():
            assert Path(RESERVED).read_text() == "8080,9000-9100,16384-32767\n"
        own = wait_ports(path.daemon, "ok", "warn")[1]
        assert own["subject"] == "unbound" and "restart" in own["mend"]
        path.unbound.stop()
        path.unbound.start()
        wait_until(path.daemon.resolver_ready, 10, "Unbound's module to register again")
        wait_ports(path.daemon, "ok")


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_another_program_at_such_a_port(world, address):
    ns = world.network.resolver
    with kernel_path(world) as path:
        wait_ports(path.daemon, "ok")
        with udp(ns, address, FIRST + 7):
            found = finding(path.daemon, "ports")
            assert found["state"] == "warn" and f"UDP port {FIRST + 7}," in found["finding"], found
            assert f"pid={os.getpid()}," in paste(ns, found["mend"], r"ss -uanp '[^']*'")
            with udp(ns, address, FIRST):
                assert "(2 sockets in all)" in finding(path.daemon, "ports")["finding"]
        assert finding(path.daemon, "ports")["state"] == "ok"


def test_sockets_that_are_no_trouble(world):
    """One outside of the range, one that hears from a single remote, and the resolver's own."""
    ns = world.network.resolver
    own = f"interface: {SERVICE[4]}@{FIRST + 1}"
    with kernel_path(world, unbound_options={"server": [own]}) as path:
        with udp(ns, "0.0.0.0", FIRST - 1), udp(ns, SERVICE[4], FIRST + 2, connect=("10.53.3.2", 53)):
            assert f":{FIRST + 1} " in run_tool(ns, ["ss", "-uan"]).stdout
            wait_ports(path.daemon, "ok")


@contextmanager
def many_queues(world):
    """rq, with up to 20 receive queues, 2 of them in use."""
    ns = world.network.resolver
    run_tool(ns, ["ip", "link", "add", "rq", "numrxqueues", "20", "numtxqueues", "20", "type", "veth", "peer", "name", "cq",
                  "numrxqueues", "20", "numtxqueues", "1"])
    try:
        run_tool(ns, ["sh", "-ec", "ethtool -L rq rx 2 tx 1; ip link set rq up; ip link set cq up"])
        pass_everything(ns, "cq", world.network.pass_object)
        yield ns
    finally:
        run_tool(ns, ["ip", "link", "del", "rq"])


def test_receive_queues(world):
    """Fewer than the resolver has threads, and more than can have packet rings."""
    with many_queues(world) as ns, kernel_path(world, daemon_options={"links": ("rq",)}, unbound_options={
            "threads": 4, "clause": ["hydns-queue-frames: 256"]}) as path:
        def rings(n):
            wait_until(lambda: len(lanes(path.daemon, "rq")) == n, 15, f"packet rings on {n} receive queues")

        rings(2)
        found = finding(path.daemon, "queues", "rq")
        assert found["state"] == "warn" and "2 of 20 receive queues in use: 4 threads" in found["finding"]
        assert found["mend"] == "ethtool -L rq rx 4 tx 4"
        paste(ns, found["mend"], ".*")
        rings(4)
        assert finding(path.daemon, "queues", "rq")["state"] == "ok"
        run_tool(ns, ["ethtool", "-L", "rq", "rx", "20"])
        rings(16)
        found = finding(path.daemon, "queues", "rq")
        assert found["state"] == "warn" and "20 receive queues in use, of which the first 16" in found["finding"]
        paste(ns, found["mend"], ".*")
        assert finding(path.daemon, "queues", "rq")["state"] == "ok"
        rings(16)


class Limited(Unbound):
    """May lock so much memory, as a service may by default."""

    memlock = None

    def start(self):
        argv = ["prlimit", f"--memlock={self.memlock}:", "setpriv", "--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock",
                *self.command, "-d", "-c", self.config]
        self.program = Program(self.world.run, self.ns, self.name, argv)
        self.program.wait_ready(lambda: all(self._answers(a) for a in self.service.values()), 20)


def most_memory(pid):
    """What prlimit can raise the limit to: everything, or, where root is not allowed to, the hard limit in octets."""
    allowed = int(re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.M)[1], 16) >> SYS_RESOURCE & 1
    hard = re.search(r"^Max locked memory +\S+ +(\S+)", Path(f"/proc/{pid}/limits").read_text(), re.M)[1]
    return "unlimited" if allowed else hard


def lines_logged(unbound):
    log = unbound.world.run.dir / f"{unbound.name}.log"
    return log.read_text().count("no packet rings on") if log.exists() else 0


def notes(daemon):
    return daemon.call({"cmd": "status"})["resolvers"][0]["notes"]


@pytest.mark.parametrize("memlock", [65536, LANE])
def test_too_little_memory_may_be_locked(world, memlock):
    daemon, ns = world.hydnsd(), world.network.resolver
    unbound = Limited(world, ns, "unbound", SERVICE, world.hints, anchors=world.anchors, hydns=daemon.plugin_socket,
                      clause=[f"hydns-queue-frames: {FRAMES}"], threads=1)
    unbound.memlock = memlock
    could, fit = len(daemon.interfaces), memlock // LANE
    logged = lines_logged(unbound)         # by another test
    with daemon, unbound:
        wait_until(daemon.resolver_ready, 10, "Unbound's module to register")
        text = f"on {fit} of {could} receive queues"
        wait_until(lambda: text in finding(daemon, "locked-memory")["finding"], 10, f"doctor to say: {text}")
        found = finding(daemon, "locked-memory")
        assert found["state"] == "warn" and "LimitMEMLOCK=infinity" in found["mend"]
        assert len(lanes(daemon)) == fit
        told = f"no packet rings on {could - fit} receive queues"
        wait_until(lambda: [told in note and "LimitMEMLOCK=infinity" in note for note in notes(daemon)] == [True], 10,
                   f"a note: {told}")
        assert told in daemon.ctl("status").stdout
        assert lines_logged(unbound) == logged + 1
        pid = daemon.call({"cmd": "status"})["resolvers"][0]["pid"]
        most = most_memory(pid)
        command = re.search(r"prlimit --pid \d+ --memlock=unlimited", found["mend"])[0]
        run_tool(ns, command.replace("unlimited", most).split())
        fit = could if most == "unlimited" else min(could, int(most) // LANE)
        wait_until(lambda: len(lanes(daemon)) == fit, 10, f"packet rings on {fit} receive queues")
        assert finding(daemon, "locked-memory")["state"] == ("ok" if fit == could else "warn")
        wait_until(lambda: len(notes(daemon)) == (fit < could), 10, "the note to go")
        assert lines_logged(unbound) == logged + 1
