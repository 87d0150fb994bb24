# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A control socket at which a test answers instead of hydnsd."""

import json
import socket
import threading
from contextlib import suppress


class FakeHydnsd:
    """Context manager. replies: {command: reply}, which may change meanwhile; asked: the requests so far, one list a connection;
    open: while it is cleared, nobody gets a reply."""

    def __init__(self, path, replies):
        self.path, self.replies, self.asked = path, replies, []
        self.open = threading.Event()
        self.open.set()

    def __enter__(self):
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(64)
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exc):
        self.open.set()
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _serve(self):
        with suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(peer,), daemon=True).start()

    def _answer(self, peer):
        requests = []
        self.asked.append(requests)
        with peer, suppress(OSError), peer.makefile("rwb") as lines:
            for line in lines:
                requests.append(json.loads(line))
                self.open.wait()
                reply = self.replies.get(requests[-1]["cmd"])
                lines.write(json.dumps({"ok": True, **reply} if reply is not None else {"ok": False, "error": "no such cmd"}).encode() + b"\n")
                lines.flush()
