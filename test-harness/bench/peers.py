# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Other DNS servers, each with one thread, on ports of one address, all serving the generator's names.

Authoritative servers have the zone. Resolvers and dnsdist ask an NSD; before the measurement they are asked for every name
once, so that they answer from their cache."""

import re
import shutil
import socket
import subprocess

import dns.exception
import dns.flags
import dns.message
import dns.query
import dns.rcode
from lab import cpus
from lab.measure import dnsperf_summary
from lab.process import Program, tail
from lab.run import HarnessError, wait_until
from lab.servers import ATTEMPTS
from lab.whole_zones import ORIGIN as ZONE
from lab.whole_zones import label

from . import newer_dnsdist

BACKEND = 5300                 # port of the NSD behind resolvers
WARM_LEAST = 2000              # names a second that each of them resolves at least
PATHS = "/usr/sbin:/usr/bin:/sbin:/bin"


def write_zone(path, names):
    lines = [f"$ORIGIN {ZONE}.", "$TTL 86400", "@ SOA ns hostmaster 1 3600 900 604800 300", "@ NS ns", "ns A 203.0.113.53"]
    lines += ["* A 203.0.113.1"] if names is None else [f"{label(n)} A 203.0.113.1" for n in range(names)]
    path.write_text("\n".join(lines) + "\n")


def nsd_config(peer):
    return f"""server:
    server-count: 1
    ip-address: {peer.address}@{peer.port}
    username: ""
    chroot: ""
    database: ""
    pidfile: "{peer.dir}/pid"
    xfrdfile: "{peer.dir}/xfrd"
    zonelistfile: "{peer.dir}/zones"
    xfrdir: "{peer.dir}"
    rrl-ratelimit: 0
    rrl-whitelist-ratelimit: 0
remote-control:
    control-enable: no
zone:
    name: "{ZONE}."
    zonefile: "{peer.zone}"
"""


def knot_config(peer, listen=None):
    return f"""server:
    rundir: "{peer.dir}"
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
{listen or f"    listen: {peer.address}@{peer.port}"}
log:
  - target: stderr
    any: warning
database:
    storage: "{peer.dir}"
zone:
  - domain: {ZONE}.
    file: "{peer.zone}"
    zonefile-sync: -1
    journal-content: none
"""


def knot_xdp_config(peer):
    return knot_config(peer, f"xdp:\n    listen: {peer.link.server}@{peer.port}")


def bind_config(peer):
    return f"""options {{
    directory "{peer.dir}";
    pid-file "{peer.dir}/pid";
    listen-on port {peer.port} {{ {peer.address}; }};
    listen-on-v6 {{ none; }};
    allow-query {{ any; }};
    allow-recursion {{ any; }};
    dnssec-validation no;
    minimal-responses yes;
    forward only;
    forwarders {{ 127.0.0.1 port {BACKEND}; }};
}};
controls {{ }};
"""


def unbound_config(peer):
    return f"""server:
    num-threads: 1
    {ATTEMPTS}
    log-servfail: yes
    interface: {peer.address}@{peer.port}
    access-control: 0.0.0.0/0 allow
    do-not-query-localhost: no
    module-config: "iterator"
    username: ""
    chroot: ""
    directory: "{peer.dir}"
    pidfile: ""
    use-syslog: no
    do-daemonize: no
    minimal-responses: yes
    discard-timeout: 0
    so-rcvbuf: 4m
remote-control:
    control-enable: no
forward-zone:
    name: "."
    forward-addr: 127.0.0.1@{BACKEND}
"""


def dnsdist_config(peer):
    return f"""setLocal("{peer.address}:{peer.port}")
setACL({{"0.0.0.0/0"}})
newServer({{address="127.0.0.1:{BACKEND}", healthCheckMode="up"}})
getPool(""):setCache(newPacketCache(100000, {{maxTTL=86400}}))
"""


def dnsdist_xsk_config(peer):
    return f"""addCapabilitiesToRetain({{"CAP_NET_ADMIN", "CAP_SYS_ADMIN", "CAP_NET_RAW"}})
xsk = newXsk({{ifName="{peer.link.server}", NIC_queue_id=0, frameNums=65536, xskMapPath="{newer_dnsdist.XSKMAP}"}})
addLocal("{peer.address}:{peer.port}", {{xskSocket=xsk}})
setACL({{"0.0.0.0/0"}})
newServer({{address="127.0.0.1:{BACKEND}", healthCheckMode="up"}})
getPool(""):setCache(newPacketCache(100000, {{maxTTL=86400}}))
"""


def recursor_config(peer):
    return f"""local-address={peer.address}
local-port={peer.port}
threads=1
pdns-distributes-queries=no
forward-zones={ZONE}=127.0.0.1:{BACKEND}
dnssec=off
allow-from=0.0.0.0/0
dont-query=
daemon=no
socket-dir={peer.dir}
"""


def kresd_config(peer):
    return f"""net.listen("{peer.address}", {peer.port}, {{ kind = "dns" }})
trust_anchors.remove(".")
cache.open(100 * MB, "lmdb://{peer.dir}")
policy.add(policy.all(policy.STUB("127.0.0.1@{BACKEND}")))
"""


# {name: (program, option for its version, configuration file, function that makes it, arguments)}
KINDS = {
    "NSD": ("nsd", "-v", "nsd.conf", nsd_config, ["-d", "-c", "{config}"]),
    "Knot": ("knotd", "-V", "knot.conf", knot_config, ["-c", "{config}"]),
    "Unbound": ("unbound", "-V", "unbound.conf", unbound_config, ["-d", "-c", "{config}"]),
    "BIND": ("named", "-v", "named.conf", bind_config, ["-g", "-n", "1", "-c", "{config}"]),
    "dnsdist": ("dnsdist", "--version", "dnsdist.conf", dnsdist_config, ["--supervised", "--disable-syslog", "-C", "{config}"]),
    "PowerDNS Recursor": ("pdns_recursor", "--version", "recursor.conf", recursor_config, ["--config-dir={dir}"]),
    "Knot Resolver": ("kresd", "-V", "kresd.conf", kresd_config, ["-n", "-c", "{config}", "{dir}"]),
    "Knot, XDP": ("knotd", "-V", "knot.conf", knot_xdp_config, ["-c", "{config}"]),
    "dnsdist, AF_XDP": ("dnsdist", "--version", "dnsdist.conf", dnsdist_xsk_config,
                        ["--supervised", "--disable-syslog", "-C", "{config}"]),
}
AF_XDP = ("Knot, XDP", "dnsdist, AF_XDP")
CACHES = ("Unbound", "BIND", "dnsdist", "PowerDNS Recursor", "Knot Resolver", "dnsdist, AF_XDP")


class Peer:
    """Context manager: one running server."""
    STARTING = 60                  # seconds; a zone of a million names takes most of them

    def __init__(self, bench, link, kind, port, zone, processors=None, address=None):
        self.bench, self.link, self.kind, self.port, self.zone = bench, link, kind, port, zone
        self.address = address or link.SERVICE
        self.processors = processors or cpus.RESOLVER
        self.program_name, self.version_option, self.file, self.make_config, self.arguments = KINDS[kind]
        self.dir = bench.run.dir / f"{link.label}-{port}"

    def command(self):
        """The command that starts the program, without arguments; None when it is not installed."""
        if self.kind == "dnsdist, AF_XDP":
            return newer_dnsdist.command()
        path = self.bench.tools.unbound if self.kind == "Unbound" else shutil.which(self.program_name, path=PATHS)
        return path and [path]

    def version(self):
        done = subprocess.run([*self.command(), self.version_option], capture_output=True, text=True)
        found = re.search(r"\d+\.\d+[.\d]*", done.stdout + done.stderr)
        return found.group(0) if found else "unknown"

    def __enter__(self):
        if not self.command():
            raise HarnessError(f"{self.kind} is not installed: bench/install-peers installs it")
        self.dir.mkdir(mode=0o777, exist_ok=True)
        config = self.dir / self.file
        config.write_text(self.make_config(self))
        argv = self.command() + [a.format(config=config, dir=self.dir) for a in self.arguments]
        if self.kind == "dnsdist, AF_XDP":
            argv = newer_dnsdist.steered(self.bench.tools, self.link.server, argv)
        self.program = Program(self.bench.run, self.link.ns, self.dir.name,
                               ["taskset", "-c", ",".join(map(str, self.processors)), *argv])
        try:
            self.program.wait_ready(self.answers, self.STARTING)
        except HarnessError as error:
            ended = not self.program.running()       # the error has the end of its log already
            self.program.stop()
            raise HarnessError(str(error) if ended else f"{error}; {tail(self.program.log, 3)}") from None
        return self

    def __exit__(self, *exc):
        self.program.stop(seconds=5)
        if self.kind == "dnsdist, AF_XDP":
            newer_dnsdist.unsteer(self.link.ns, self.link.server)

    def answers(self):
        """By UDP, or by TCP when the reply says so: by its limits it may answer nothing else by UDP."""
        query = dns.message.make_query(f"{label(0)}.{ZONE}.", "A")
        ns = self.link.client_ns if self.kind in AF_XDP else self.link.ns
        with ns.entered():
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with s:
            s.settimeout(0.3)
            try:
                s.connect((self.address, self.port))
                s.send(query.to_wire())
                reply = dns.message.from_wire(s.recv(4096))
                if reply.flags & dns.flags.TC:
                    with ns.entered():
                        reply = dns.query.tcp(query, self.address, port=self.port, timeout=1)
            except (TimeoutError, ConnectionError, dns.exception.Timeout, EOFError):
                return False
        return reply.rcode() == dns.rcode.NOERROR and bool(reply.answer)

    def warm(self, names):
        """Asks for every name once over loopback. A million names may take minutes."""
        questions = self.dir / "names"
        questions.write_text("".join(f"{label(n)}.{ZONE} A\n" for n in names))
        load = Program(self.bench.run, self.link.ns, f"warm-{self.dir.name}",
                       [self.bench.tools.dnsperf, "-s", self.address, "-p", self.port, "-d", questions, "-n", 1, "-q", 50,
                        "-O", "suppress=timeout,congestion,sendfailed"])
        wait_until(lambda: not load.running(), 120 + len(names) / WARM_LEAST, f"{self.kind} to be asked for every name")
        summary = dnsperf_summary(load.log.read_text())
        load.log.unlink()
        if summary["completed"] < 0.99 * len(names):
            raise HarnessError(f"{self.kind} answered {summary['completed']} of {len(names)} names that it was to have "
                               "in its cache")
