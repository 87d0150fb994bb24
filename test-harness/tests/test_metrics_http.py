# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Hostile HTTP clients of hydns-metrics: what they send, how slowly, and how many they are. Others are answered all the while."""

import os
import random
import select
import socket
from contextlib import ExitStack, suppress

import pytest
from metrics_paths import metrics_path

from lab.metrics import PAGE
from lab.run import SOON, wait_until


@pytest.fixture(scope="module")
def metrics(world):
    with metrics_path(world, page=PAGE) as p:
        yield p.metrics


@pytest.fixture(params=("metrics", "page"))
def site(metrics, request):
    """Its figures for Prometheus, and its page."""
    return metrics if request.param == "metrics" else metrics.page


@pytest.mark.parametrize("method, target, status", [
    ("GET", "FIGURES", 200), ("HEAD", "FIGURES", 200), ("GET", "FIGURES?x=y", 200), ("GET", "/", 200), ("HEAD", "/", 200),
    ("GET", "/metric", 404), ("GET", "FIGURES/", 404), ("GET", "/../etc/passwd", 404), ("GET", "/FIGURES", 404),
    ("POST", "FIGURES", 405), ("PUT", "FIGURES", 405), ("DELETE", "/", 405), ("OPTIONS", "*", 405), ("TRACE", "/", 405)])
def test_what_may_be_asked(site, method, target, status):
    got, headers, body = site.request(method, target.replace("FIGURES", site.figures))
    assert got == status and headers["Connection"] == "close"
    assert bool(body) == (method != "HEAD")
    assert (status == 405) == (headers["Allow"] == "GET, HEAD")


def test_bodies_are_refused(site):
    for more in (b"Content-Length: 5\r\n\r\nhello", b"Content-Length: 99999999\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
        assert site.raw(site.get(more)).startswith(b"HTTP/1.1 413")
    assert site.raw(site.get(b"Content-Length: 0\r\n\r\n")).startswith(b"HTTP/1.1 200")


def test_oversized_requests(site):
    for request in (b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
                    site.get(b"".join(b"X-%d: %s\r\n" % (i, b"y" * 100) for i in range(200)) + b"\r\n"),
                    b"GET /metrics HTTP/1.1\r\nHost: " + b"z" * 1000000):
        assert b" 200 " not in site.raw(request)
    assert site.up() == 1


def hostile(chance, site):
    """An HTTP request with some octets changed, cut, doubled or put in between; or nothing like one."""
    good = site.get(b"Accept: text/plain\r\nConnection: keep-alive\r\n\r\n")
    if chance.random() < 0.1:
        return chance.randbytes(chance.randrange(1, 2000))
    octets = bytearray(good * chance.randrange(1, 4))
    for _ in range(chance.randrange(1, 6)):
        at, n = chance.randrange(len(octets) + 1), chance.randrange(1, 40)
        how = chance.randrange(4)
        if how == 0:
            octets[at:at + 1] = chance.randbytes(1)
        elif how == 1:
            del octets[at:at + n]
        elif how == 2:
            octets[at:at] = octets[max(0, at - n):at] * chance.randrange(1, 50)
        else:
            octets[at:at] = chance.choice((b"\0", b"\r\n", b"\n", b"%00", b": ", b"HTTP/9.9", b"\xff\xfe", b"Content-Length: -1\r\n"))
    return bytes(octets)


def test_fuzzed_requests(site):
    """Requests that end at any octet, and garbage: it answers others all the while, and is the same process after it."""
    seed = random.randrange(1 << 32)
    print("seed", seed)
    chance, pid = random.Random(seed), site.program.pid
    for i in range(600):
        with site.connect() as s, suppress(ConnectionError):
            s.sendall(hostile(chance, site))
            if chance.random() < 0.5:
                s.shutdown(socket.SHUT_WR)
                while s.recv(65536):
                    pass
        if i % 100 == 0:
            assert site.up() == 1
    assert site.up() == 1
    assert site.program.running() and site.program.pid == pid


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


@pytest.mark.parametrize("silent", (b"", b"GET /metrics HT", b"GET /metrics HTTP/1.1\r\nHost: x\r\nX: "))
def test_crowd_of_slow_clients(site, silent):
    """More than there may be, which have sent a part of a request: others are answered, from the same address and from another;
    and it never has more connections open than it may."""
    pid = site.program.pid
    with ExitStack() as stack:
        for i in range(300):
            s = stack.enter_context(site.connect(local="127.0.0.2" if i % 2 else "127.0.0.1"))
            with suppress(ConnectionError):
                s.sendall(silent)
            if i % 100 == 99:
                assert site.up(local="127.0.0.1") == 1 and site.up(local="127.0.0.3") == 1
        assert descriptors(pid) < 64 + 32
    wait_until(lambda: descriptors(pid) < 32, SOON, "all connections to be closed")


def test_crowd_that_does_not_read(site):
    """Clients that ask and never read their reply keep nobody out."""
    with ExitStack() as stack:
        for _ in range(150):
            s = stack.enter_context(site.connect())
            with suppress(ConnectionError):
                s.sendall(site.get() * 20)
        assert site.up() == 1 and site.up(local="127.0.0.3") == 1


def test_a_byte_now_and_then(site):
    """A client that is never silent for long is ended all the same: no connection outlasts its bound."""
    with site.connect() as s:
        def ended():
            try:
                s.sendall(b"x")
                select.select([s], [], [], 0.2)
                return s.recv(1, socket.MSG_DONTWAIT) == b""
            except BlockingIOError:
                return False
            except ConnectionError:
                return True
        s.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        assert site.up() == 1
        wait_until(ended, SOON, "the slow client's connection to be closed")
