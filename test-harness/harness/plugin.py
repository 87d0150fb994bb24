# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A client of hydnsd's plugin socket by hand (include/hydns/abi.h has the messages): for tests of what none of ours does."""

import fcntl
import os
import re
import socket
import struct
from pathlib import Path

HEADER = Path(__file__).resolve().parents[2] / "include" / "hydns" / "abi.h"
F_ADD_SEALS, SEALS = 1033, 0x1 | 0x2 | 0x4      # linux/fcntl.h: SEAL, SHRINK, GROW


def _constants():
    text = HEADER.read_text()
    values = {m[1]: int(m[2]) << int(m[3] or 0)
              for m in re.finditer(r"^#define\s+(HYDNS_\w+)\s+\(?(\d+)U?(?: << (\d+))?\b", text, re.M)}
    messages = re.search(r"enum hydns_msg_type \{(.*?)\};", text, re.S)[1]
    names = re.findall(r"^\t(HYDNS_MSG_\w+)", messages, re.M)
    return values, {name.removeprefix("HYDNS_MSG_"): i + 1 for i, name in enumerate(names)}


CONSTANTS, TYPES = _constants()
NAMES = {number: name for name, number in TYPES.items()}
KEPT_OCTETS = 16      # of struct hydns_kept
SCOPES = {"NAME": 1, "SUBTREE": 2, "ALL": 3}


def ring():
    """A sealed memfd as a ring has to be, empty."""
    fd = os.memfd_create("ring", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
    os.ftruncate(fd, CONSTANTS["HYDNS_RING_DATA"] + CONSTANTS["HYDNS_RING_BYTES"] +
                 CONSTANTS["HYDNS_KEPT_PLACES"] * KEPT_OCTETS)
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


def hello(threads=1, identity="by hand"):
    return struct.pack("=5I4H3I16s32s32s", CONSTANTS["HYDNS_ABI_VERSION"], threads, 0, 0, 0, 0, 1232, 1232, 0, os.getpid(),
                       1, 0, b"", identity.encode(), b"0")


def withdraw(name, scope="SUBTREE", generation=1):
    """name: text, of letters alone."""
    wire = b"".join(bytes([len(label)]) + label.encode() for label in name.split(".") if label) + b"\0"
    return struct.pack("=QII256s", generation, SCOPES[scope], len(wire), wire)


class PluginClient:
    """Context manager: a connection. Messages are sent as they are asked for; nothing is waited for but by receive()."""

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
        head = struct.pack("=4I", TYPES[kind], self.seq, len(payload), 0)
        socket.send_fds(self.socket, [head + payload], list(fds))
        return self.seq

    def receive(self):
        """(kind, number, payload), or None at the end of the connection; descriptors that come are closed."""
        data, fds, _, _ = socket.recv_fds(self.socket, CONSTANTS["HYDNS_MSG_MAX"], 4)
        for fd in fds:
            os.close(fd)
        if not data:
            return None
        kind, seq, length, _ = struct.unpack_from("=4I", data)
        return NAMES[kind], seq, data[16:16 + length]

    def call(self, kind, payload=b"", fds=()):
        """One request, its reply."""
        self.send(kind, payload, fds)
        return self.receive()

    def register(self, threads=1):
        """HELLO with fresh rings."""
        rings = [ring() for _ in range(threads)]
        reply = self.call("HELLO", hello(threads), rings)
        for fd in rings:
            os.close(fd)
        assert reply[0] == "WELCOME", reply
        return self
