# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A name server's TCP, beside the relay."""

import socket
import threading

from .changing_zones import LAB, RELAY


def truncated(wire):
    """For Relay.change: TC."""
    return wire[:2] + bytes([wire[2] | 2]) + wire[3:]


class TcpRelay:
    """Context manager: forwards TCP to the server behind the relay. connections: how many so far."""

    def __init__(self, world):
        self.ns, self.connections = world.network.authoritative, 0
        with self.ns.entered():
            self.listener = socket.create_server((RELAY, 53))

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            with self.ns.entered():
                server = socket.create_connection((LAB, 53))
            for a, b in ((client, server), (server, client)):
                threading.Thread(target=self._copy, args=(a, b), daemon=True).start()

    def _copy(self, a, b):
        try:
            while data := a.recv(65536):
                b.sendall(data)
            b.shutdown(socket.SHUT_WR)
        except OSError:
            pass
