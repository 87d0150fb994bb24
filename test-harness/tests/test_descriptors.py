# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Descriptors whose close() blocks, sent to hydnsd's sockets: hydnsd goes on as without them."""

import os
import select
import signal
import socket
import struct
import subprocess
from contextlib import contextmanager

import pytest
from conftest import kernel_path

from lab.network import SERVICE
from lab.plugin import PluginClient, hello, ring
from lab.run import SOON, wait_until

NAME = "host1.lab.example"
LINGER = 60      # seconds: far longer than any bound here, and over after a failed test


class Lingering:
    """Context manager: makes TCP sockets with data that the other end does not read, so that their last close() waits. The
    other ends stay open until the block's end."""

    def __enter__(self):
        self.others = []
        return self

    def __exit__(self, *exc):
        for other in self.others:
            other.close()

    def make(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            ours = socket.create_connection(listener.getsockname())
            self.others.append(listener.accept()[0])
        ours.setblocking(False)
        try:
            while True:
                ours.send(bytes(65536))
        except BlockingIOError:
            pass
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, LINGER))
        return ours.detach()


@pytest.fixture
def lingering():
    with Lingering() as made:
        yield made


@pytest.fixture(scope="module")
def path(world):
    with kernel_path(world) as p:
        yield p


def epoch(path):
    return next(r["epoch"] for r in path.daemon.call({"cmd": "status"})["resolvers"] if r["identity"] == "unbound")


def goes_on(path):
    """hydnsd does a flush, and the plugin does not advance its epoch for lack of an answer."""
    path.world.heat(path.daemon, NAME)
    before = epoch(path)
    path.unbound.control("flush", NAME)
    assert path.daemon.explain(NAME)["where"] == "resolver"
    assert epoch(path) == before, "the resolver had to withdraw by itself"
    assert path.daemon.program.running()


def plugin(path):
    return PluginClient(path.daemon.plugin_socket)


def as_message(kind, payload=bytes, registered=False):
    def way(path):
        client = plugin(path).register() if registered else plugin(path)
        return client.socket, lambda fd: client.send(kind, payload(), [fd])
    return way


def many(path):
    """More than a message may bring."""
    client = plugin(path)
    return client.socket, lambda fd: client.send("HELLO", hello(), [fd] * 200)


def beside_a_ring(path):
    client = plugin(path)

    def send(fd):
        good = ring()
        client.send("HELLO", hello(), [good, fd])
        os.close(good)
    return client.socket, send


def in_an_empty_message(path):
    client = plugin(path)
    return client.socket, lambda fd: socket.send_fds(client.socket, [b""], [fd])


def control(before, data):
    def way(path):
        s = socket.socket(socket.AF_UNIX)
        s.connect(str(path.daemon.control_socket))

        def send(fd):
            if before:
                s.sendall(before)
            socket.send_fds(s, [data], [fd])
        return s, send
    return way


WAYS = {
    "before HELLO": as_message("SERVICE"), "as a ring": as_message("HELLO", hello), "beside a ring": beside_a_ring,
    "as a service": as_message("SERVICE", registered=True), "with a BYE": as_message("BYE", registered=True),
    "with a STATS": as_message("STATS", registered=True), "many": many, "in an empty message": in_an_empty_message,
    "on the control socket": control(b"", b'{"cmd":"status"}\n'),
    "behind a flush": control(b'{"cmd":"flush","all":true}\n', b"x" * 5000),
}


@pytest.mark.parametrize("end", ["open", "closed"])
@pytest.mark.parametrize("way", WAYS)
def test_a_socket_that_lingers(path, lingering, way, end):
    """hydnsd has the last copy of it; the connection may have been closed before hydnsd reads it."""
    for _ in range(2):
        connection, send = WAYS[way](path)
        with path.daemon.stopped():
            fd = lingering.make()
            send(fd)
            os.close(fd)
            if end == "closed":
                connection.close()
        goes_on(path)
        connection.close()
        goes_on(path)


def test_an_end_with_such_a_connection(path, lingering):
    """Neither connections nor those that wait to be accepted keep hydnsd from ending."""
    with path.daemon.stopped():
        clients = [plugin(path) for _ in range(3)]
        for client in clients:
            fd = lingering.make()
            client.send("SERVICE", b"", [fd])
            os.close(fd)
        path.daemon.program.popen.send_signal(signal.SIGTERM)
    assert path.daemon.program.popen.wait(SOON) == 0
    for client in clients:
        client.socket.close()
    path.daemon.start()
    wait_until(path.daemon.resolver_ready, SOON, "the module to register")
    goes_on(path)


FUSE_SERVER = """
import ctypes, os, struct, sys
dev = os.open("/dev/fuse", os.O_RDWR)           # in this process alone: its end is the end of the file system
options = f"fd={dev},rootmode=40000,user_id=0,group_id=0,allow_other"
if ctypes.CDLL(None, use_errno=True).mount(b"none", sys.argv[1].encode(), b"fuse", 0, options.encode()):
    sys.exit(f"mount: {os.strerror(ctypes.get_errno())}")
def attr(node):
    return struct.pack("=6Q10I", node, 0, 0, 0, 0, 0, 0, 0, 0, 0o40755 if node == 1 else 0o100644, 1, 0, 0, 0, 4096, 0)
while True:
    data = os.read(dev, 200000)
    length, op, unique, node = struct.unpack_from("=IIQQ", data)
    if op == 26:                                 # INIT
        body = struct.pack("=4I2HI2I", 7, 31, 65536, 0, 12, 10, 65536, 1, 0) + bytes(28)
        body = body[:64].ljust(64, b"\\0")
        print("ready", flush=True)
    elif op == 1:                                # LOOKUP
        body = struct.pack("=4QII", 2, 0, 0, 0, 0, 0) + attr(2)
    elif op == 3:                                # GETATTR
        body = struct.pack("=QII", 0, 0, 0) + attr(node)
    elif op == 14:                               # OPEN
        body = struct.pack("=QII", 1, 0, 0)
    elif op in (2, 42, 18):                      # FORGET, BATCH_FORGET: no reply; RELEASE: as good as none
        continue
    elif op == 25:                               # FLUSH: what close() waits for
        print("asked to flush", flush=True)
        continue
    else:
        os.write(dev, struct.pack("=IiQ", 16, -38, unique))
        continue
    os.write(dev, struct.pack("=IiQ", 16 + len(body), 0, unique) + body)
"""


@contextmanager
def sender_of_a_file(directory, send):
    """A process that has called send(fd) with a file whose close() waits for a server that never answers. It keeps the
    file: no other process here may have it, for each closes what it has when it is started or ends."""
    if not os.path.exists("/dev/fuse"):
        pytest.skip("no /dev/fuse")
    directory.mkdir()
    server = subprocess.Popen(["/usr/bin/python3", "-c", FUSE_SERVER, directory], stdout=subprocess.PIPE, text=True)
    done, tell = os.pipe()
    sender = None
    try:
        assert server.stdout.readline() == "ready\n"
        sender = os.fork()
        if sender == 0:
            try:
                send(os.open(directory / "file", os.O_RDONLY))
                os.write(tell, b"!")
                signal.pause()
            finally:
                os._exit(1)
        assert select.select([done], [], [], SOON)[0] and os.read(done, 1)
        yield
    finally:
        server.kill()                            # ends the file system: waiting processes go on
        server.wait(SOON)
        if sender:
            os.kill(sender, signal.SIGKILL)
            os.waitpid(sender, 0)
        os.close(done)
        os.close(tell)
        subprocess.run(["umount", "--lazy", directory], check=False, timeout=SOON)


@pytest.mark.limit(40)
@pytest.mark.parametrize("way", [w for w in WAYS if w != "many"])
def test_a_file_of_a_file_system_that_hangs(path, tmp_path, way):
    """Not even kill -9 ends a process that waits for such an answer: hydnsd must not be one."""
    connection, send = WAYS[way](path)
    with sender_of_a_file(tmp_path / "mnt", send), connection:
        goes_on(path)
        path.daemon.stop(signal.SIGKILL)
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, SOON, "the module to register")
        goes_on(path)


def test_descriptors_of_other_types(path):
    """A descriptor that is not a ring is refused with a reason, and the connection stays."""
    with open("/dev/null") as null, socket.socketpair()[0] as pair, open("/proc/self/exe", "rb") as plain:
        path_only = os.open("/", os.O_PATH)
        pipe = os.pipe()
        with plugin(path) as client:
            for fd in (null.fileno(), pair.fileno(), plain.fileno(), path_only, *pipe):
                kind, _, why = client.call("HELLO", hello(), [fd])
                assert kind == "REFUSED" and b"ring" in why
            small = os.memfd_create("small", os.MFD_ALLOW_SEALING)
            kind, _, why = client.call("HELLO", hello(), [small])
            assert kind == "REFUSED" and b"sealed memfd of" in why
            client.register()
            for fd in (null.fileno(), pair.fileno(), path_only):
                kind, _, why = client.call("SERVICE", b"", [fd])
                assert kind == "REFUSED" and b"not a UDP socket" in why
            assert client.call("STATS", b"", [small])[0] == "REFUSED"
            assert client.call("STATS")[0] == "COUNTS"
        for fd in (path_only, small, *pipe):
            os.close(fd)
    goes_on(path)
    assert SERVICE[4] + ":53" in str(path.daemon.call({"cmd": "status"}))
