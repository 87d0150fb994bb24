# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Drives the program twins: writes queries to it, reads its reports. src/twins.c says what it asks where and when."""

import socket
import subprocess
from collections import namedtuple

from lab.layouts import layout, number
from lab.network import CLIENT1, CLIENT2, REFERENCE, RESOLVER_HOPS, SERVICE
from lab.process import tail
from lab.run import HarnessError

SOCKETS = 4            # of each client and IP version: the port selects Unbound's thread
WINDOW = 384           # queries under way
# flags of a query: report in any case; do not ask the reference; ask all places at once
FULL, ALONE, TOGETHER = (number(flag) for flag in ("FULL", "ALONE", "TOGETHER"))
DIFFERS_KERNEL, DIFFERS_REFERENCE = number("DIFFERS_KERNEL"), number("DIFFERS_REFERENCE")
DIRECT, KERNEL, AGAIN, REFERENCE_ASKED = (number(place) for place in ("DIRECT", "KERNEL", "AGAIN", "REFERENCE"))
SILENCE = number("SILENCE")

IP_RECVTTL = 12        # linux/in.h; not in Python's socket module

Group = namedtuple("Group", "client family index")
"""The client (1 or 2) and IP version (4 or 6) that asks through the kernel path; index: the group's number."""

Flow = namedtuple("Flow", "number group differs by_kernel wire direct_wire sent got replies")
"""A reported query. by_kernel: the kernel answered it; wire: octets sent to the kernel path; direct_wire: those sent to the
other places, empty if the same; sent, got (monotonic ns) and replies (None: silence), each by place."""


def address_of(group, place):
    """The client address that the server sees."""
    return (CLIENT1, CLIENT2)[group.client - 1][group.family] if place == KERNEL else SERVICE[group.family]


def _connected(ns, server, local):
    with ns.entered():
        s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    if s.family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
    else:
        s.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
    s.bind((local, 0))
    s.connect((server, 53))
    return s


class Twins:
    """Context manager: sockets and program. groups[n] is the client of group n. direct: {IP version: the server's address past
    the kernel path}."""

    def __init__(self, world, direct=SERVICE):
        self.world = world
        self.groups, self.sockets = [], []
        network = world.network
        for client, ns, address in ((1, network.client1, CLIENT1), (2, network.client2, CLIENT2)):
            for family in (4, 6):
                for _ in range(SOCKETS):
                    self.groups.append(Group(client, family, len(self.groups)))
                    self.sockets.append((_connected(network.resolver, direct[family], SERVICE[family]),
                                         _connected(ns, SERVICE[family], address[family]),
                                         # from the same address, because server cookies depend on it
                                         _connected(network.resolver, REFERENCE[family], SERVICE[family])))

    def __enter__(self):
        fds = [[s.fileno() for s in trio] for trio in self.sockets]
        self.log = self.world.run.dir / "twins.log"
        with open(self.log, "w") as log:
            self.popen = subprocess.Popen([str(self.world.tools.twins), "-w", str(WINDOW), "-r", str(RESOLVER_HOPS),
                                           *(":".join(map(str, trio)) for trio in fds)],
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                          pass_fds=sum(fds, []), start_new_session=True)
        self.world.run.record(self.popen.pid)
        return self

    def __exit__(self, *exc):
        self.popen.terminate()
        self.popen.wait(10)
        for s in sum(self.sockets, ()):
            s.close()

    @staticmethod
    def frame(number, wire, timeout_ms, group, flags=0, direct_wire=b""):
        head = layout("twins_query").pack(number=number, timeout_ms=timeout_ms, group=group, flags=flags,
                                          len=(len(wire), len(direct_wire)))
        return head + wire + direct_wire

    def write(self, frames):
        """Writes frames to twins; waits while its window is full."""
        try:
            self.popen.stdin.write(frames)
            self.popen.stdin.flush()
        except BrokenPipeError:
            raise HarnessError(f"twins has ended: {tail(self.log)}") from None

    def close(self):
        """Ends the queries; the reports end after the last one's."""
        self.popen.stdin.close()

    def reports(self):
        """Yields (queries finished since the last report, how many of them in the kernel, Flow or None) until the
        program ends."""
        out, report = self.popen.stdout, layout("twins_report")
        while head := out.read(report.size):
            r = report.unpack(head)
            if not r["len"][0]:
                yield r["finished"], r["in_kernel"], None
                continue
            wire, direct_wire = (out.read(n) for n in r["len"])
            replies = tuple(None if n == SILENCE else out.read(n) for n in r["reply_len"])
            yield r["finished"], r["in_kernel"], Flow(r["number"], self.groups[r["group"]], r["differs"],
                                                      bool(r["by_kernel"]), wire, direct_wire, r["sent"], r["got"], replies)
        if self.popen.wait(10) != 0:
            raise HarnessError(f"twins ended with status {self.popen.returncode}: {tail(self.log)}")
