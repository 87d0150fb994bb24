# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-metrics as a program under test, an HTTP client that can be rude, its text as samples, and its page; Prometheus itself."""

import http.client
import json
import re
import shutil
import signal
import socket
import urllib.parse
from contextlib import closing

from .process import Program
from .run import SOON, HarnessError, wait_until
from .servers import Restartable
from .tools import TOP

TABLE = TOP / "hydnsd" / "metrics" / "metrics.def"
ROW = re.compile(r'^METRIC\("(\S+)", "(\w+)", (\w+), (\w+), "(\w*)",\s*"([^"]*)"\)$', re.M)
LABEL_ROW = re.compile(r'^METRIC_LABEL\("(\w+)", "(\w+)", "(\w+)"\)$', re.M)
SAMPLE = re.compile(r'^([a-z_][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)+)\})? (-?[0-9.e+-]+)$')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')
ESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
PORT = 10953
PAGE = "127.0.0.1:10954"


def rows():
    """(path, name, type, value, label, help) of each line of the table."""
    text = TABLE.read_text()
    found = ROW.findall(text)
    assert len(found) == len(re.findall(r"^METRIC\(", text, re.M)), "metrics.def has a line of another form"
    return found


def list_labels(list_):
    """[(label, field)] of a list's elements."""
    return [(label, field) for of, label, field in LABEL_ROW.findall(TABLE.read_text()) if of == list_]


def samples(text):
    """{(name, sorted labels): value} of a text in Prometheus' format. Each line must be well-formed, and none be there twice."""
    found = {}
    for line in text.splitlines():
        if line.startswith("# "):
            continue
        parts = SAMPLE.match(line)
        assert parts, f"not in Prometheus' format: {line}"
        labels = {label: re.sub(r"\\.", lambda m: ESCAPED[m[0]], value) for label, value in LABEL.findall(parts[2] or "")}
        key = parts[1], tuple(sorted(labels.items()))
        assert key not in found, f"twice: {line}"
        found[key] = float(parts[3])
    return found


class Site:
    """One of its two, at an address and port of the namespace or at a unix socket: the path of its figures, and whom to ask for."""

    def __init__(self, ns, listen, figures, host):
        self.ns, self.listen, self.figures, self.host = ns, listen, figures, host

    def listens(self):
        try:
            self.connect().close()
        except OSError:
            return False
        return True

    def get(self, more=b"\r\n"):
        """The octets of a request for the figures; more: further lines."""
        return f"GET {self.figures} HTTP/1.1\r\nHost: {self.host}\r\n".encode() + more

    def connect(self, local=None, timeout=30):
        """A connected socket. local: the client's address."""
        if self.listen.startswith("unix:"):
            s = socket.socket(socket.AF_UNIX)
            s.connect(self.listen[len("unix:"):])      # may wait in the backlog, which it could not with a time limit set
            s.settimeout(timeout)
            return s
        host, _, port = self.listen.rpartition(":")
        with self.ns.entered():
            return socket.create_connection((host.strip("[]"), int(port)), timeout, (local, 0) if local else None)

    def raw(self, octets, **options):
        """All that comes in reply to these octets, until the program closes the connection."""
        with self.connect(**options) as s:
            try:
                s.sendall(octets)
                return b"".join(iter(lambda: s.recv(65536), b""))
            except (ConnectionResetError, BrokenPipeError):
                return b""

    def request(self, method="GET", path=None, **options):
        """(status, headers, body) of an ordinary request, for the figures unless it says otherwise."""
        with closing(http.client.HTTPConnection(self.host)) as c:
            c.sock = self.connect(**options)
            c.request(method, path or self.figures)
            reply = c.getresponse()
            return reply.status, reply.headers, reply.read().decode()


class Page(Site):
    """Its page; program: hydns-metrics."""

    def __init__(self, metrics, listen):
        super().__init__(metrics.ns, listen, "/live.json", "localhost")
        self.metrics, self.url = metrics, f"http://{listen}/"

    @property
    def program(self):
        return self.metrics.program

    def live(self, **options):
        """What it shows: hydns-metrics' object."""
        status, _, body = self.request(**options)
        assert status == 200, body
        return json.loads(body)

    def up(self, **options):
        return self.live(**options)["up"]


class Metrics(Site, Restartable):
    """hydns-metrics for this control socket, at this address of the namespace, or at a unix socket (unix:PATH). page: where to have
    a page, too."""

    def __init__(self, world, ns, control, listen=f"127.0.0.1:{PORT}", page=None, options=()):
        super().__init__(ns, listen, "/metrics", "metrics")
        self.world = world
        self.argv = [world.tools.built("hydnsd/hydns-metrics"), "--listen", listen, "--control", control, *options]
        self.page = Page(self, page) if page else None
        self.argv += ["--page", page] if page else []
        self.program = None

    def start(self):
        self.program = Program(self.world.run, self.ns, "hydns-metrics", self.argv)
        self.program.wait_ready(lambda: self.listens() and (not self.page or self.page.listens()), 10)

    def scrape(self, **options):
        """The samples."""
        status, _, body = self.request(**options)
        assert status == 200, body
        return samples(body)

    def fresh(self):
        """The samples of figures that it asks for from now on: others share what it has asked for a moment before."""
        def asked(scraped):
            return scraped["hydns_metrics_answer_seconds", ()]
        last = asked(self.scrape())
        return wait_until(lambda: (scraped := self.scrape()) and asked(scraped) != last and scraped, SOON, "figures that were not there before")

    def up(self, **options):
        return self.scrape(**options)["hydns_up", ()]


class Prometheus:
    """A Prometheus in the namespace that scrapes hydns-metrics every second, with this file of rules."""

    def __init__(self, world, metrics, rules):
        self.ns, self.listen = metrics.ns, "127.0.0.1:9090"
        directory = world.run.dir / "prometheus"
        directory.mkdir(exist_ok=True)
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({      # JSON is YAML
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "hydns", "static_configs": [{"targets": [metrics.listen]}]}]}))
        self.argv = [installed("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}",
                     f"--web.listen-address={self.listen}"]
        self.world, self.program = world, None

    def __enter__(self):
        self.program = Program(self.world.run, self.ns, "prometheus", self.argv)
        self.program.wait_ready(self._ready, 60)
        return self

    def __exit__(self, *exc):
        self.program.stop(signal.SIGTERM)

    def _ready(self):
        try:
            return self.get("rules")
        except (OSError, HarnessError, ValueError):
            return None

    def get(self, what, **arguments):
        """The data of its HTTP interface's reply."""
        with self.ns.entered():
            connection = http.client.HTTPConnection(self.listen, timeout=30)
            connection.connect()
        with closing(connection):
            connection.request("GET", f"/api/v1/{what}?{urllib.parse.urlencode(arguments)}")
            reply = json.loads(connection.getresponse().read())
        if reply["status"] != "success":
            raise HarnessError(f"Prometheus, {what} {arguments}: {reply['error']}")
        return reply["data"]

    def value(self, expression):
        """The numbers that an expression gives."""
        return [float(r["value"][1]) for r in self.get("query", query=expression)["result"]]

    def wait_value(self, expression, value):
        wait_until(lambda: self.value(expression) == [value], 60, f"{expression} to be {value}")


def installed(program):
    """Path of Prometheus' programs."""
    path = shutil.which(program)
    if not path:
        raise HarnessError(f"there is no {program}: install the Debian package prometheus")
    return path
