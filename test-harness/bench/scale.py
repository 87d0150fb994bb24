# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""How far hyDNS goes: what a start, a flush and the memory take by number of rules, threads, addresses and prefixes.

Threads and prefixes are tried up to what hyDNS takes, and beyond, which shows what is said there. hydnsd, the resolver and what asks
share the processors as on a host."""

import ipaddress
import re
import signal
import subprocess
import time
from contextlib import contextmanager
from itertools import islice

from lab import cpus
from lab.client import ask
from lab.run import replaced, wait_until

from . import peers
from .cost import anonymous, memory_of
from .overhead import WithPluginAsItComes
from .publish import Path, said
from .result import going_on, say

HELP = "start, flush and memory by number of rules, threads, addresses and prefixes; what is refused beyond"
PATIENCE = 300                 # seconds
FLUSHES = 21                   # of single names
PORT = 53
KINDS = ("Unbound", "BIND")
OWN = 3                        # prefixes that the measurement itself needs


def sizes(bench, few, many):
    return bench.settings.choose(few, few + many)


# -- rules ---------------------------------------------------------------------------------------------------------------------
class Offerer:
    """Context manager: a resolver with so many rules in the kernel."""

    def __init__(self, path, count):
        self.program = path.offerer("rate", count, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.daemon, self.count = path.daemon, count

    def __enter__(self):
        said(self.program)
        wait_until(lambda: status(self.daemon)["rules"] >= self.count, PATIENCE, f"{self.count} rules")
        return self

    def __exit__(self, *exc):
        self.program.popen.communicate()

    def flush_ms(self, what):
        self.program.popen.stdin.write(f"{what}\n".encode())
        self.program.popen.stdin.flush()
        return said(self.program)["nanoseconds"] / 1e6


def status(daemon):
    return daemon.call({"cmd": "status"}, PATIENCE)


@contextmanager
def running(daemon):
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()


def start_ms(daemon):
    """From the command until hydnsd answers at its control socket, with its program at the interface."""
    begun = time.monotonic()
    daemon.start()
    return (time.monotonic() - begun) * 1e3


def rules(bench, result):
    """The store is as large as they are many."""
    for count in sizes(bench, (10_000, 100_000), (1_000_000, 4_000_000)):
        path = Path(bench, count)
        daemon = path.daemon
        point = {"bench": result.bench, "contender": "hydns", "of": "rules", "number": count, "start_ms": start_ms(daemon)}
        try:
            with going_on(f"scale: {count:,} rules"), Offerer(path, count) as offerer:
                point.update(memory_of(daemon))
                names = sorted(offerer.flush_ms(f"name {1 + n * (count // FLUSHES)}") for n in range(FLUSHES))
                point.update(flush_name_ms=names[FLUSHES // 2], flush_name_worst_ms=names[-1])
                daemon.stop(signal.SIGKILL)
                point["start_over_rules_ms"] = start_ms(daemon)
                wait_until(daemon.resolver_ready, PATIENCE, "the offerer to be back")
                point["kept"] = status(daemon)["rules"]
                point["flush_subtree_ms"] = offerer.flush_ms("subtree")
                point["left"] = status(daemon)["rules"]
        finally:
            daemon.stop()
        add(result, point, f"{count:,} rules: hydnsd starts in {point['start_ms']:.0f} ms, over them in {point['start_over_rules_ms']:.0f} ms; "
            f"a name is flushed in {point['flush_name_ms']:.2f} ms, all in {point['flush_subtree_ms']:.0f} ms; "
            f"{(point['maps_bytes'] + point['daemon_bytes']) / 1e6:.0f} MB")


def add(result, point, text):
    result.points.append({key: round(value, 3) if isinstance(value, float) else value for key, value in point.items()})
    say(f"scale: {text}")


# -- a resolver --------------------------------------------------------------------------------------------------------------
class Sized(WithPluginAsItComes):
    """A resolver with its plugin and more threads, addresses or prefixes."""

    def __init__(self, bench, *arguments, edits, named_threads="1", label, **options):
        super().__init__(bench, *arguments, **options)
        self.dir = bench.run.dir / label           # its log is named by it
        self.edits = edits
        self.arguments = [named_threads if word == "1" else word for word in self.arguments]

    def configure(self, peer):
        text = super().configure(peer)
        for old, new in self.edits:
            text = replaced(text, old, new)
        return text


def of_threads(number):
    return {"threads": number, "edits": dict.fromkeys(KINDS, ()), "named_threads": str(number)}


def of_addresses(addresses, link):
    """Each has a socket of its own."""
    lines = "".join(f"    interface: {address}@{PORT}\n" for address in (link.SERVICE, *addresses)) + \
        "    incoming-num-tcp: 1\n"       # of each: descriptors
    return {"edits": {"Unbound": ((f"    interface: {link.SERVICE}@{PORT}\n", lines),), "BIND": ((f"{{ {link.SERVICE}; }}", "{ any; }"),)}}


def of_prefixes(number, link):
    """So many of which none is part of another, so that each counts."""
    every_other = islice(ipaddress.ip_network("10.0.0.0/8").subnets(new_prefix=26), 1, 2 * (number - OWN), 2)
    nets = [*map(str, every_other), f"{link.CLIENT}/32", f"{link.SERVICE}/32", "127.0.0.0/8"]
    return {"edits": {"Unbound": (("    access-control: 0.0.0.0/0 allow\n", "".join(f"    access-control: {net} allow\n" for net in nets)),),
                      "BIND": (("allow-query { any; }", f"allow-query {{ {'; '.join(nets)}; }}"),)}}


def measured(bench, result, zone, kind, of, number, changes):
    """One resolver of that size: until it answers, until the kernel does, and what is said instead where it does not."""
    link, processors = bench.routed_link, cpus.ALL
    options = {**changes, "edits": changes["edits"][kind]}
    with running(Path(bench).daemon) as daemon, going_on(f"scale: {kind}, {number:,} {of}"):
        point = {"bench": result.bench, "contender": kind, "of": of, "number": number}
        before, begun = anonymous(daemon.program.pid), time.monotonic()
        with Sized(bench, link, kind, PORT, zone, processors, daemon=daemon,
                   label=f"{kind}-{number}-{of}", **options) as server:
            point["start_s"] = time.monotonic() - begun
            end = wait_until(lambda: answered_by_kernel(link, daemon) or refused(server), PATIENCE, "the kernel to answer")
            point["kernel_s"] = time.monotonic() - begun
            point.update(refused="" if end is True else end, services=services(daemon),
                         daemon_bytes=anonymous(daemon.program.pid) - before, resolver_bytes=anonymous(server.program.pid))
    add(result, point, f"{kind}, {number:,} {of}: it answers after {point['start_s']:.1f} s, the kernel after {point['kernel_s']:.1f} s "
        f"({point['services']:,} addresses); hydnsd has {point['daemon_bytes'] / 1e6:.1f} MB more, the resolver "
        f"{point['resolver_bytes'] / 1e6:.0f} MB{'; ' if point['refused'] else ''}{point['refused']}")


def services(daemon):
    return sum(len(r["services"]) for r in status(daemon)["resolvers"])


def answered_by_kernel(link, daemon):
    ask(link.client_ns, link.SERVICE, f"{peers.label(1)}.{peers.ZONE}")
    return daemon.reasons()["ANSWERED"] > 0


REFUSALS = re.compile(r"hydns: .*(?:(?:no answer|nothing) is offered|bad options|refused).*")


def refused(server):
    """What the resolver's log says of why nothing is offered; "": nothing."""
    found = REFUSALS.search(server.program.log.read_text())
    return found[0] if found else ""


@contextmanager
def authority(bench):
    """What the resolvers ask: the zone's file."""
    zone = bench.run.dir / "scale.zone"
    peers.write_zone(zone, 2)
    with peers.Peer(bench, bench.routed_link, "NSD", peers.BACKEND, zone, address="127.0.0.1", processors=cpus.ALL):
        yield zone


def threads(bench, result):
    with authority(bench) as zone:
        for kind in KINDS:
            for number in sizes(bench, (1, 65), (16, 64)):
                measured(bench, result, zone, kind, "threads", number, of_threads(number))


@contextmanager
def host_addresses(link, number):
    """The host has so many besides its own: these, as texts."""
    more = [str(address) for address in islice(ipaddress.ip_network("198.18.0.0/15").hosts(), number)]
    link.ns.address("lo", *(f"{address}/32" for address in more))
    try:
        yield more
    finally:
        for address in more:
            link.ns.remove_address("lo", f"{address}/32")


def addresses(bench, result):
    with authority(bench) as zone:
        for number in sizes(bench, (100, 1_000), (4_000,)):
            with host_addresses(bench.routed_link, number) as more:
                for kind in KINDS:
                    measured(bench, result, zone, kind, "addresses", number, of_addresses(more, bench.routed_link))


def prefixes(bench, result):
    with authority(bench) as zone:
        for number in sizes(bench, (100, 10_000), (100_000, 140_000)):
            for kind in KINDS:
                measured(bench, result, zone, kind, "prefixes", number, of_prefixes(number, bench.routed_link))


PARTS = {"rules": rules, "threads": threads, "addresses": addresses, "prefixes": prefixes}


def run(bench, result):
    for name in bench.settings.only or PARTS:
        PARTS[name](bench, result)
