# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""NSD, Unbound, BIND and hydnsd with the configurations that the topology needs. All are context managers."""

import http.client
import json
import re
import shutil
import signal
import socket
import time
from contextlib import closing, contextmanager, nullcontext
from xml.etree import ElementTree

from .client import ask
from .process import Program, run_tool, tail
from .run import SOON, HarnessError, process_stat, replaced, wait_until


class Nsd:
    """An authoritative server: all its zones on all its addresses. zones: text of NSD's zone: clauses, with paths relative to
    zonesdir; origin: one of the zones; once it is answered, NSD is ready."""

    def __init__(self, world, ns, name, zones, zonesdir, origin, addresses):
        self.world, self.ns, self.name, self.origin, self.addresses = world, ns, name, origin, addresses
        self.dir = world.run.dir / name
        self.dir.mkdir()
        self.config = self.dir / "nsd.conf"
        lines = ["server:", "    hide-version: yes", '    username: ""', '    chroot: ""', f'    zonesdir: "{zonesdir}"',
                 '    database: ""', f'    pidfile: "{self.dir}/nsd.pid"', f'    xfrdfile: "{self.dir}/xfrd.state"',
                 f'    zonelistfile: "{self.dir}/zone.list"', f'    xfrdir: "{self.dir}"', "    server-count: 1",
                 # Debian builds NSD with response rate limiting; here one client, the resolver, asks everything
                 "    rrl-ratelimit: 0", "    rrl-whitelist-ratelimit: 0",
                 "    verbosity: 1", *(f"    ip-address: {a}" for a in addresses),
                 "remote-control:", "    control-enable: yes", f'    control-interface: "{self.dir}/control"']
        self.config.write_text("\n".join(lines) + "\n" + zones)

    def __enter__(self):
        for address in self.addresses:
            self.ns.address("lo", f"{address}/{128 if ':' in address else 32}")
        self.program = Program(self.world.run, self.ns, self.name, [self.world.tools.nsd, "-d", "-c", self.config])
        self.program.wait_ready(lambda: ask(self.ns, self.addresses[0], self.origin, "SOA", timeout=0.2), 60)
        self.at_rest = len(self.program.processes())
        return self

    def __exit__(self, *exc):
        self.program.stop()

    def reload(self, zone, shows):
        """Makes NSD read a changed zone file; returns when shows() is true and the process with the former data has ended:
        for a moment both processes answer on the same sockets."""
        run_tool(self.ns, [self.world.tools.nsd_control, "-c", self.config, "reload", zone.rstrip(".") or "."])
        wait_until(shows, 10, f"NSD to serve the new {zone}")
        wait_until(lambda: len(self.program.processes()) == self.at_rest, 10, "NSD's process with the former data to end")


class Restartable:
    """A server that tests stop and start again. A subclass starts it as self.program. environment: words NAME=VALUE for it."""

    environment = ()

    def stop(self, sig=signal.SIGTERM):
        return self.program.stop(sig)

    @contextmanager
    def stopped(self):
        """It stands still within the block."""
        self.program.popen.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: process_stat(self.program.pid)[0] == "T", SOON, f"{self.program.label} to stand still")
            yield
        finally:
            self.program.popen.send_signal(signal.SIGCONT)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()


class Unbound(Restartable):
    """The resolver. hydns: path of hydnsd's socket, or None for the resolver without the kernel path; clause: lines of the clause
    hydns:, which it then lacks; others: lines of other clauses; respip: with the module for RPZ and response-ip."""

    def __init__(self, world, ns, name, service, hints, *, hydns=None, anchors=(), server=(), clause=(), others=(), threads=2,
                 respip=False):
        self.world, self.ns, self.name, self.service = world, ns, name, service
        self.command = world.tools.unbound_with_plugin() if hydns else [world.tools.unbound]
        self.dir = world.run.dir / name
        self.dir.mkdir(exist_ok=True)
        self.config = self.dir / "unbound.conf"
        modules = " ".join(m for m, used in (("hydns", hydns), ("respip", respip), ("validator iterator", True)) if used)
        lines = ["server:", '    username: ""', '    chroot: ""', f'    directory: "{self.dir}"', '    pidfile: ""',
                 "    use-syslog: no", '    logfile: ""', "    verbosity: 1", "    log-servfail: yes", f"    num-threads: {threads}",
                 "    so-reuseport: yes", "    do-daemonize: no",
                 *(f"    interface: {a}" for a in service.values()),
                 f'    root-hints: "{hints}"', f'    module-config: "{modules}"',
                 "    msg-cache-size: 64m", "    rrset-cache-size: 128m", "    outgoing-range: 4096", "    so-rcvbuf: 4m",
                 # One client sends the load of many: Unbound must not drop queries that wait for a slow authoritative server.
                 "    num-queries-per-thread: 2048", "    wait-limit: 0", "    discard-timeout: 0",
                 "    prefetch: yes", "    minimal-responses: yes",
                 *(f"    access-control: {p} allow" for p in ("10.53.0.0/16", "fd53::/16")),
                 *(f'    trust-anchor-file: "{a}"' for a in anchors), *(f"    {line}" for line in server)]
        if hydns:
            lines += ["hydns:", f'    hydns-socket: "{hydns}"', *(f"    {line}" for line in clause)]
        lines += [*others, "remote-control:", "    control-enable: yes", "    control-use-cert: no",
                  f'    control-interface: "{self.dir}/control"']
        self.config.write_text("\n".join(lines) + "\n")
        self.program = None

    @property
    def file(self):
        """What has the plugin."""
        return self.command[-1]

    @file.setter
    def file(self, path):
        self.command = [*self.command[:-1], path]

    def start(self):
        self.program = Program(self.world.run, self.ns, self.name, ["env", *self.environment, *self.command, "-d", "-c", self.config])
        self.program.wait_ready(lambda: all(self._answers(a) for a in self.service.values()), 20)

    def _answers(self, address):
        """Asks for localhost, which Unbound answers by itself, without an authoritative server."""
        return ask(self.ns, address, "localhost", "A", local=address, timeout=0.2)

    def control(self, *words, check=True, text=None):
        """Runs unbound-control, with text on its standard input; returns its output once the command has taken effect."""
        done = run_tool(self.ns, [self.world.tools.unbound_control, "-c", self.config, *words], check=check, text=text)
        return done.stdout

    def cache(self):
        """The cache's content as text."""
        return self.control("dump_cache")

    def change(self, old, new):
        """Replaces a text of the configuration and reloads. Returns the monotonic time in ns after which no answer is by the
        former configuration."""
        self.config.write_text(replaced(self.config.read_text(), old, new))
        self.control("reload")
        self.control("status")     # Unbound acknowledges reload before it reloads; it answers this command afterwards
        return time.monotonic_ns()

    def stats(self):
        """unbound-control stats_noreset as {name: number}."""
        text = self.control("stats_noreset")
        return {k: float(v) for k, v in (line.split("=") for line in text.splitlines() if "=" in line)}

    def recursions(self):
        """Number of replies for which it asked an authoritative server."""
        return int(self.stats()["total.num.recursivereplies"])

    def statistics_command(self):
        return f"{self.world.tools.unbound_control} -c {self.config} stats_noreset"

    def received(self):
        """Number of queries that came to Unbound's threads: kernel answers count in total.* only."""
        return sum(int(v) for k, v in self.stats().items() if k.startswith("thread") and k.endswith(".num.queries"))

    def counters(self):
        """What stats() has of queries and replies, by name."""
        return {name: n for name, n in self.stats().items()
                if name.startswith(("total.num", "num.", "thread")) and "histogram" not in name}

    def known_servers(self):
        """What it knows of other servers, as text."""
        return self.control("dump_infra")

    def forget_servers(self):
        self.control("flush_infra", "all")

    @contextmanager
    def patient(self):
        """Asks no server again within 3 seconds, however soon that one is wont to answer."""
        try:
            self.control("set_option", "infra-cache-min-rtt:", "3000")
            self.forget_servers()
            yield
        finally:
            self.control("set_option", "infra-cache-min-rtt:", "50")


STATISTICS_PORT = 8053   # of named


def _trust_anchors(files):
    """Lines of named.conf."""
    for file in files:
        for line in file.read_text().splitlines():
            zone, *_, tag, algorithm, digest, data = line.split()
            yield f'trust-anchors {{ {zone} static-ds {tag} {algorithm} {digest} "{data}"; }};'


# Of Unbound. By default it gives up after 5 attempts, which one authoritative server that waits two seconds for a processor uses up,
# by sockets as by rings. It has no other address where a link has no IPv6, or a bench just one server.
ATTEMPTS = "outbound-msg-retry: 16"

# By default named leaves a client's query unanswered (QryDropped) when ten wait for the same fetch, so when many ask a question
# that is not in its cache. Its own refreshes of stale data count as such clients.
EVERY_CLIENT_WAITS = "clients-per-query 0; max-clients-per-query 0;"

# named that root has started gives up CAP_IPC_LOCK. Then all of a machine's named together would have as much memory for packet
# rings as one user may lock, often 8 MiB. Another user's named keeps what rights it has.
USER = "nobody"
RIGHTS = ",".join(f"+{right}" for right in ("ipc_lock", "net_bind_service", "net_admin", "dac_override", "fowner", "chown"))


class Named(Restartable):
    """BIND as the resolver, with the interface of Unbound above. options: lines for its options clause; without: access lists
    that options replaces; clause: lines for the plugin's braces; clients: whom it answers (None: BIND's default); listen: more
    addresses; anchors: files with DS records, as Unbound reads them; zones: {name: body of its zone clause}, with files in this
    server's directory; recursion False: an authoritative server; statements: more lines at the top; views: {name: (lines,
    whether it has the plugin, and, if not IN, its class)}, in their order; stock: the distribution's BIND; logs: its log goes where the
    configuration says."""

    def __init__(self, world, ns, name, service, hints, *, hydns=None, anchors=(), options=(), clause=(), threads=2,
                 clients="10.53.0.0/16; fd53::/16;", listen="", zones=None, recursion=True, statements=(), views=None,
                 stock=False, logs=False, without=()):
        self.world, self.ns, self.name, self.service, self.threads = world, ns, name, service, threads
        self.foreground = "-f" if logs else "-g"
        self.program_of, plugin_file = world.tools.bind, world.tools.bind_plugin
        if stock:
            self.program_of, plugin_file = world.tools.stock_bind, world.tools.stock_bind_plugin
        self._plugin_file = plugin_file
        self.dir = world.run.dir / name
        self.dir.mkdir(exist_ok=True)
        self.config = self.dir / "named.conf"
        gates = ("allow-query", "allow-query-cache", "allow-recursion") if recursion else ("allow-query",)
        lines = ["options {", f'    directory "{self.dir}";', "    pid-file none;",
                 f"    recursion {'yes' if recursion else 'no'};",
                 f"    listen-on {{ {service[4]}; {listen} }};", f"    listen-on-v6 {{ {service[6]}; }};",
                 f"    dnssec-validation {'yes' if anchors else 'no'};",
                 # as Unbound's so-rcvbuf: the kernel's default holds 277 queries, too few while named waits for a CPU
                 "    udp-receive-buffer 4194304;",
                 *(f"    {acl} {{ {clients} }};" for acl in gates if clients and acl not in without),
                 *(f"    {line}" for line in options), "};", *_trust_anchors(anchors),
                 'key rndc { algorithm hmac-sha256; secret "aHlkbnMgdGVzdCBrZXk="; };',
                 f'controls {{ inet {service[4]} port 953 allow {{ any; }} keys {{ rndc; }}; }};',
                 f"statistics-channels {{ inet {service[4]} port {STATISTICS_PORT} allow {{ any; }}; }};"]
        lines += statements
        inner = [f'zone "{zone}" {{ {body} }};' for zone, body in (zones or {}).items()]
        if "." not in (zones or {}):
            inner += [f'zone "." {{ type hint; file "{hints}"; }};']
        plugin = [f'plugin query "{plugin_file}" {{', f'    hydns-socket "{hydns}";',
                  *(f"    {line}" for line in clause), "};"] if hydns else []
        for view, (content, has_plugin, *other) in (views or {}).items():
            lines += [" ".join(("view", f'"{view}"', *other, "{")), *content, *([] if other else inner),
                      *(plugin if has_plugin else []), "};"]
        if not views:
            lines += [*inner, *plugin]
        self.config.write_text("\n".join(lines) + "\n")
        (self.dir / "rndc.conf").write_text('key rndc { algorithm hmac-sha256; secret "aHlkbnMgdGVzdCBrZXk="; };\n'
                                            f"options {{ default-key rndc; default-server {service[4]}; }};\n")
        self.program = None

    @property
    def file(self):
        """The plugin."""
        return self._plugin_file

    @file.setter
    def file(self, path):
        self.config.write_text(self.config.read_text().replace(f'"{self._plugin_file}"', f'"{path}"'))
        self._plugin_file = path

    def start(self):
        shutil.chown(self.dir, USER)         # access(2) asks what the real user may do without its rights
        self.program = Program(self.world.run, self.ns, self.name,
                               ["env", *self.environment, "setpriv", f"--reuid={USER}", f"--inh-caps={RIGHTS}", f"--ambient-caps={RIGHTS}", *self.program_of("sbin/named"),
                                self.foreground, "-n", self.threads, "-c", self.config])
        self.program.wait_ready(lambda: all(self._answers(a) for a in self.service.values()), 20)

    def stop(self, sig=signal.SIGTERM):
        status = super().stop(sig)
        if sig == signal.SIGTERM and status != 0:
            raise HarnessError(f"named ended with status {status}; the end of {self.program.log}:\n"
                               + tail(self.program.log))
        return status

    def _answers(self, address):
        """Asks for the root's NS, which named has in its cache once it asked for them."""
        return ask(self.ns, address, ".", "NS", local=address, timeout=0.5)

    def stats(self):
        """The counters of queries and responses from the statistics channel, by name; the channel leaves out zeros."""
        return json.loads(self._statistics("/json/v1/server"))["nsstats"]

    def query_types(self):
        """Queries by type; the channel leaves out zeros."""
        return json.loads(self._statistics("/json/v1/server")).get("qtypes", {})

    def stats_xml(self):
        """As stats(), from the channel's XML, which has all counters."""
        root = ElementTree.fromstring(self._statistics("/xml/v3/server"))
        return {c.get("name"): int(c.text) for c in root.iterfind("server/counters[@type='nsstat']/counter")}

    def sockets(self):
        """How many UDP sockets it has opened."""
        counted = json.loads(self._statistics("/json/v1/net"))["sockstats"]
        return sum(counted.get(name, 0) for name in ("UDP4Open", "UDP6Open"))

    def resolving(self):
        """Counters of its queries to other servers, by name; the channel leaves out zeros."""
        counted = json.loads(self._statistics("/json/v1"))
        return counted["views"]["_default"]["resolver"]["stats"] | counted.get("resstats", {})

    def received(self):
        """Number of queries that came to named itself."""
        counted = self.stats()
        return counted.get("Requestv4", 0) + counted.get("Requestv6", 0)

    def counters(self):
        """Of queries, responses and its own queries, by name; the channel leaves out zeros."""
        return self.stats() | self.resolving()

    def stats_command(self):
        """What rndc stats writes of queries and responses: {its words: number}."""
        file = self.dir / "named.stats"
        file.unlink(missing_ok=True)
        self.control("stats")
        section = re.search(r"^\+\+ Name Server Statistics \+\+$(.*?)^\+\+", file.read_text(), re.M | re.S)[1]
        return {words: int(n) for n, words in re.findall(r"^ +(\d+) (.*)$", section, re.M)}

    def _statistics(self, path):
        with self.ns.entered():
            channel = http.client.HTTPConnection(self.service[4], STATISTICS_PORT, timeout=5)
            channel.connect()
        with closing(channel):
            channel.request("GET", path)
            return channel.getresponse().read()

    def recursions(self):
        """Number of queries for which it asked an authoritative server."""
        return self.stats().get("QryRecursion", 0)

    def statistics_command(self):
        return f"nsenter --net={self.ns.path} curl http://{self.service[4]}:{STATISTICS_PORT}/json/v1/server"

    def control(self, *words, check=True):
        """Runs rndc; returns its output once the command has taken effect."""
        return run_tool(self.ns, [*self.program_of("sbin/rndc"), "-c", self.dir / "rndc.conf", *words], check=check).stdout

    def cache(self):
        """The cache's content as text."""
        return self._dump("-cache")

    def known_servers(self):
        """What it knows of other servers, as text."""
        return self._dump("-adb")

    def forget_servers(self):
        """And the cache with them."""
        self.control("flush")

    @staticmethod
    def patient():
        """It always is: it asks no server again within 800 ms (resolver.c), and has no option for more."""
        return nullcontext()

    def _dump(self, what):
        file = self.dir / "named_dump.db"
        file.unlink(missing_ok=True)
        self.control("dumpdb", what)
        wait_until(lambda: file.is_file() and "; Dump complete" in file.read_text(), 20, f"{self.name} to write {file}")
        return file.read_text()


class Hydnsd(Restartable):
    """The daemon, attached to the clients' links. May be stopped and started again. name: of its directories, for a run with
    more than one."""

    def __init__(self, world, ns, interfaces, *, capacity=None, options=(), name="hydns"):
        self.world, self.ns, self.interfaces, self.name = world, ns, interfaces, f"{name}d"
        self.dir = world.run.dir / self.name
        self.dir.mkdir(exist_ok=True)
        self.pins = world.run.dir / "bpf" / name
        self.plugin_socket = self.dir / "plugin.sock"
        self.control_socket = self.dir / "control.sock"
        self.state = self.dir / "state"
        shutil.rmtree(self.state, ignore_errors=True)      # a pause is kept here until resume: end it for the next test
        self.capacity, self.options = capacity, options
        self.file = world.tools.hydnsd
        self.program = None

    def argv(self):
        argv = [self.file, "--config", "/dev/null", "--pin-dir", self.pins,
                "--plugin-socket", self.plugin_socket, "--control-socket", self.control_socket,
                "--state-dir", self.state]
        for interface in self.interfaces:
            argv += ["--interface", interface]
        if self.capacity:
            argv += ["--capacity", self.capacity]
        return argv + list(self.options)

    def start(self):
        self.launch()
        self.wait_attached()

    def launch(self):
        self.program = Program(self.world.run, self.ns, self.name, self.argv())

    def wait_attached(self):
        self.program.wait_ready(self.attached, 20)

    def attached(self):
        """Whether this process, and not another at the same socket, has its program at all links."""
        status = self.try_call({"cmd": "status"})
        return bool(status) and status["pid"] == self.program.pid and all(i["attached"] for i in status["interfaces"])

    def call(self, request, timeout=10):
        """Sends one request of the control protocol and returns the reply object. HarnessError when it is not ok."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            self._connect(s, timeout)
            s.sendall(json.dumps(request).encode() + b"\n")
            with s.makefile() as lines:
                line = lines.readline()
        reply = json.loads(line) if line else {"ok": False, "error": "hydnsd closed the connection"}
        if not reply.get("ok"):
            raise HarnessError(f"hydnsd, {request}: {reply.get('error')}")
        return reply

    def _connect(self, s, timeout):
        """Connects, and tries again while hydnsd's backlog is full: with a timeout set, Python raises BlockingIOError then."""
        deadline = time.monotonic() + timeout
        while True:
            try:
                return s.connect(str(self.control_socket))
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def try_call(self, request):
        """As call(), but returns None while hydnsd does not listen."""
        try:
            return self.call(request)
        except OSError:
            return None

    def ctl(self, *words, check=True):
        """Runs hydnsctl with this daemon's socket and pins; returns the finished process."""
        return run_tool(self.ns, [self.world.tools.hydnsctl, "--socket", self.control_socket, "--pin-dir", self.pins,
                                  "--state-dir", self.state, *words], check=check)

    def capture_command(self, *words):
        """hydnsctl's, which needs its pins alone."""
        return [self.world.tools.hydnsctl, "--pin-dir", self.pins, "--state-dir", self.state, "capture", *words]

    def explain(self, name, rdtype="A", do=False, norec=False, *, edns=False, payload=1232, cookie=None, client=None):
        """Asks hydnsd to explain a query as client.query() makes it."""
        request = {"cmd": "explain", "name": name, "type": rdtype, "do": do, "norec": norec}
        if edns or do or cookie:
            request["edns"] = payload
        if cookie:
            request["cookie"] = cookie.hex()
        return self.call(request | ({"client": client} if client else {}))

    def reasons(self):
        return self.call({"cmd": "stats"})["reasons"]

    def offers(self):
        """Number of answers that the connected resolvers have offered; they need not be rules yet. BIND's plugin counts an
        offer before named sends the reply."""
        return sum(r["offered"] for r in self.call({"cmd": "stats"})["resolvers"])

    def resolvers_ready(self):
        """How many, once the program consists of what they ask for."""
        status = self.try_call({"cmd": "status"})
        return sum(r["state"] == "ready" for r in status["resolvers"]) if status and status["composition"]["settled"] else 0

    def resolver_ready(self):
        return self.resolvers_ready() > 0
