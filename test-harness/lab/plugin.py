# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A plugin by hand: a peer of hydnsd's plugin socket (messages: include/hydns/session.h), for tests of what our plugins never
send."""

import fcntl
import os
import socket

from .layouts import layout, names, number

F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4      # linux/fcntl.h: SEAL, SHRINK, GROW


def ring():
    """An empty ring: a memfd sealed as hydnsd requires."""
    fd = os.memfd_create("ring", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, number("HYDNS_RING_SIZE"))
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


def hello(threads=1, identity="by hand", abi=number("HYDNS_ABI_VERSION")):
    return layout("hydns_hello").pack(abi_version=abi, threads=threads, edns_size=1232, max_udp=1232,
                                      pid=os.getpid(), admission=1, identity=identity.encode(), version=b"0")


def wire_of(name):
    """name: text, of letters only."""
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"


def guard_report(name, failures=1000, waiting=0):
    """The payload of a GUARD message."""
    return layout("hydns_guard_report").pack(failures=failures, waiting=waiting, len=len(wire_of(name)), suffix=wire_of(name))


def withdraw(name, scope="SUBTREE", generation=1):
    """The payload of a WITHDRAW message."""
    wire = wire_of(name)
    return layout("hydns_withdraw").pack(generation=generation, scope=number(f"HYDNS_SCOPE_{scope}"), name_len=len(wire),
                                         name=wire)


class PluginClient:
    """Context manager: a connection. Only receive() waits."""

    def __init__(self, path, timeout=10):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(timeout)
        self.socket.connect(str(path))
        self.seq = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.socket.close()

    def send(self, kind, payload=b"", fds=()):
        """Returns the message's number. The descriptors stay the caller's."""
        self.seq += 1
        head = layout("hydns_msg").pack(type=number(f"HYDNS_MSG_{kind}"), seq=self.seq, len=len(payload))
        socket.send_fds(self.socket, [head + payload], list(fds))
        return self.seq

    def receive(self):
        """Returns (kind, number, payload), or None at the end of the connection; closes descriptors that come along."""
        data, fds, _, _ = socket.recv_fds(self.socket, number("HYDNS_MSG_MAX"), 4)
        for fd in fds:
            os.close(fd)
        if not data:
            return None
        msg = layout("hydns_msg")
        head = msg.unpack(data)
        return names("HYDNS_MSG_")[head["type"]], head["seq"], data[msg.size:msg.size + head["len"]]

    def call(self, kind, payload=b"", fds=()):
        """Sends one request and returns its reply."""
        self.send(kind, payload, fds)
        return self.receive()

    def register(self, threads=1):
        """Sends HELLO with new rings."""
        rings = [ring() for _ in range(threads)]
        reply = self.call("HELLO", hello(threads), rings)
        for fd in rings:
            os.close(fd)
        assert reply[0] == "WELCOME", reply
        return self
