# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A collector of dnstap messages (fstrm_capture), and what BIND's dnstap-read finds in its file."""

import re
import signal
import subprocess
from collections import namedtuple

from .process import Program
from .run import wait_until

# type: CQ, CR, AQ or AR; wire: the DNS message
Message = namedtuple("Message", "type client client_port service service_port transport wire")

# 26-Nov-2026 02:15:44.123 CR 10.53.1.11:40001 <- 10.53.2.53:53 UDP 85b www.lab.example/IN/A
LINE = re.compile(r"\S+ \S+ (\w\w) (\S+):(\d+) (?:->|<-) (\S+):(\d+) (\w+) (\d+)b \S+$")


def read(file):
    """The messages of a Frame Streams file, in their order."""
    text = subprocess.run(["dnstap-read", "-x", file], check=True, capture_output=True, text=True).stdout
    messages = []
    for line in text.splitlines():
        if found := LINE.match(line):
            kind, client, client_port, service, service_port, transport, _ = found.groups()
            messages.append(Message(kind, client, int(client_port), service, int(service_port), transport, b""))
        elif messages and re.fullmatch(r"[0-9a-fA-F\s]*", line):
            messages[-1] = messages[-1]._replace(wire=messages[-1].wire + bytes.fromhex(line))
    return messages


class Collector:
    """fstrm_capture at a Unix socket, or with address ("127.0.0.1", 6000) at TCP. Context manager."""

    def __init__(self, world, ns, name="collector", address=None):
        self.world, self.ns, self.name = world, ns, name
        self.socket = world.run.dir / f"{name}.sock"
        self.file = world.run.dir / f"{name}.tap"
        self.at = ["-a", address[0], "-p", str(address[1])] if address else ["-u", self.socket]
        self.program = None

    def start(self):
        self.program = Program(self.world.run, self.ns, self.name,
                               ["fstrm_capture", "-t", "protobuf:dnstap.Dnstap", *self.at, "-w", self.file])
        wait_until(lambda: self.file.exists() and self.file.stat().st_size and ("-a" in self.at or self.socket.exists()), 10,
                   "fstrm_capture to listen")

    def has(self, *wires):
        """Whether it has written these messages. A resolver writes its own a second later, and drops them when it ends."""
        self.program.popen.send_signal(signal.SIGHUP)      # it flushes its file
        written = self.file.read_bytes()
        return all(wire in written for wire in wires)

    def messages(self):
        """Stops the collector, which ends its file, and reads that."""
        self.program.stop(signal.SIGTERM)
        return read(self.file)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.program.stop()
