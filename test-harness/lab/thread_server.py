# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A server in a thread of the harness: its sockets, how it waits, and its end."""

import select
import socket
import threading

SO_RCVBUFFORCE = 33      # of linux/socket.h; Python has no name for it
ROOM = 4 << 20           # octets, for what comes while the thread waits for a processor


class ThreadServer:
    """Context manager. What derives from it opens sockets by socket() first, and has serve(), which returns once ready() is
    None."""

    def __init__(self, ns, name):
        self.ns, self._sockets = ns, []
        self._wake, self._woken = socket.socketpair()
        self._thread = threading.Thread(target=self.serve, name=name, daemon=True)

    def socket(self, family=socket.AF_INET):
        """A UDP socket of the namespace, which is closed at the end."""
        with self.ns.entered():
            s = socket.socket(family, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, ROOM)
        self._sockets.append(s)
        return s

    def ready(self, seconds):
        """The sockets that have something to read, after so many seconds at most (None: without end). None: the server ends."""
        found, _, _ = select.select([*self._sockets, self._woken], [], [], seconds)
        return None if self._woken in found else found

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *exc):
        self._wake.close()
        self._thread.join(5)
        for s in (*self._sockets, self._woken):
            s.close()
