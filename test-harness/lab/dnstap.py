# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Collectors of dnstap messages: fstrm_capture, by TLS behind stunnel, with what BIND's dnstap-read finds in its file, and one that
keeps nothing."""

import re
import signal
import socket
import socketserver
import struct
import subprocess
import threading
from collections import namedtuple
from contextlib import suppress

from .process import Program
from .run import wait_until

# type: CQ, CR, AQ, AR, FQ, FR, RQ or RR; wire: the DNS message
Message = namedtuple("Message", "type client client_port service service_port transport wire")

# 26-Nov-2026 02:15:44.123 CR 10.53.1.11:40001 <- 10.53.2.53:53 UDP 85b www.lab.example/IN/A
LINE = re.compile(r"\S+ \S+ (\w\w) (\S+):(\d+) (?:->|<-) (\S+):(\d+) (\w+) (\d+)b (\S+)$")


def read(file):
    """The messages of a Frame Streams file, in their order."""
    text = subprocess.run(["dnstap-read", "-x", file], check=True, capture_output=True, text=True).stdout
    messages = []
    for line in text.splitlines():
        if found := LINE.match(line):
            kind, client, client_port, service, service_port, transport, *_ = found.groups()
            messages.append(Message(kind, client, int(client_port), service, int(service_port), transport, b""))
        elif messages and re.fullmatch(r"[0-9a-fA-F\s]*", line):
            messages[-1] = messages[-1]._replace(wire=messages[-1].wire + bytes.fromhex(line))
    return messages


def in_full(file, check=True):
    """Each message of the file with all of its fields, as text. check: the file has an end."""
    text = subprocess.run(["dnstap-read", "-y", file], check=check, capture_output=True, text=True).stdout
    return text.split("---\n")


def of(daemon):
    """What became of the resolver's kernel answers, and `answered`, how many there were."""
    [r] = daemon.call({"cmd": "stats"})["resolvers"]
    return r["log"] | {"answered": r["answered"]}


def all_written(daemon):
    state = of(daemon)
    return state["written"] == state["logged"]


def unbound_lines(socket, *kinds):
    """The clause dnstap: of unbound.conf with messages of these kinds."""
    return ["dnstap:", "dnstap-enable: yes", f'dnstap-socket-path: "{socket}"',
            *(f"dnstap-log-{kind}-{what}-messages: yes" for kind in kinds for what in ("query", "response"))]


def bind_lines(socket, *kinds):
    """The same of named.conf's options."""
    return [f'dnstap-output unix "{socket}";', f"dnstap {{ {' '.join(f'{kind};' for kind in kinds)} }};"]


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

    def octets(self):
        """Written so far; a second late."""
        return self.file.stat().st_size

    def flush(self):
        """Has it write what it holds back, soon."""
        self.program.popen.send_signal(signal.SIGHUP)

    def has(self, *wires):
        """Whether it has written these messages. A resolver writes its own a second later, and drops them when it ends."""
        self.flush()
        written = self.file.read_bytes()
        return all(wire in written for wire in wires)

    def count(self, kind, client=None, service=None, question=None):
        """How many messages of this kind it has written of a client, to a server, with a question (NAME/IN/TYPE), while it goes on."""
        self.flush()
        with subprocess.Popen(["dnstap-read", self.file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as reader:
            return sum(line[1] == kind and client in (None, line[2]) and service in (None, line[4]) and question in (None, line[8])
                       for line in map(LINE.match, map(str.strip, reader.stdout)) if line)

    def messages(self):
        """Stops the collector, which ends its file, and reads that."""
        self.program.stop(signal.SIGTERM)
        return read(self.file)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.program.stop()


class TlsFront:
    """stunnel before a collector: it takes TLS at [::1] from clients with a certificate of an authority. Context manager."""

    PORT = 6514

    def __init__(self, collector, certificate, authority):
        self.collector = collector
        self.config = collector.world.run.dir / "stunnel.conf"
        self.config.write_text(f"""foreground = yes
pid =
[dnstap]
accept = ::1:{self.PORT}
connect = {collector.socket}
cert = {certificate.certificate}
key = {certificate.key}
CAfile = {authority.certificate}
verifyChain = yes
""")

    def __enter__(self):
        self.program = Program(self.collector.world.run, self.collector.ns, "stunnel", ["stunnel", self.config])
        self.program.wait_ready(self._listens, 10)
        return self

    def _listens(self):
        return subprocess.run(self.collector.ns.command(["ss", "-Hltn", f"sport = {self.PORT}"]), check=True,
                              capture_output=True).stdout

    def __exit__(self, *exc):
        self.program.stop()


# Control frames of Frame Streams, after an escape and their length, as plugin/dnstap/stream.c sends and expects them.
CONTENT_TYPE = b"protobuf:dnstap.Dnstap"
ACCEPT, STOP, FINISH = 1, 3, 5


def _control(kind, content=b""):
    frame = kind.to_bytes(4, "big") + content
    return bytes(4) + len(frame).to_bytes(4, "big") + frame


STOPPED = _control(STOP)


class _Taker(socketserver.BaseRequestHandler):
    ROOM = 1 << 20
    PATIENCE = struct.pack("ll", 0, 50_000)      # struct timeval: takes less than there is room for when nothing more comes for so long

    def handle(self):
        room = bytearray(self.ROOM)
        self.request.recv(self.ROOM)                # READY
        self.request.sendall(_control(ACCEPT, (1).to_bytes(4, "big") + len(CONTENT_TYPE).to_bytes(4, "big") + CONTENT_TYPE))
        self.request.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, self.PATIENCE)
        while (n := self._take(room)) != 0:
            self.server.octets += max(0, n)
            if n > 0 and room[max(0, n - len(STOPPED)):n] == STOPPED:
                with suppress(BrokenPipeError):     # Unbound does not wait for it
                    self.request.sendall(_control(FINISH))

    def _take(self, room):
        """In the kernel until the room is full: this thread hardly ever runs. Returns the octets, -1 for none as yet, 0 at the end."""
        try:
            return self.request.recv_into(room, self.ROOM, socket.MSG_WAITALL)
        except BlockingIOError:
            return -1


class Sink:
    """A collector at a Unix socket that takes all and keeps nothing, for hardly any CPU time of its own. Context manager."""

    def __init__(self, path):
        self.socket = path
        self.server = socketserver.ThreadingUnixStreamServer(str(path), _Taker)
        self.server.octets = 0

    def octets(self):
        """Taken so far."""
        return self.server.octets

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.server.shutdown()
        self.server.server_close()
        self.socket.unlink()
