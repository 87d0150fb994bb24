# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND as the authoritative server of a generated tree's zones, and dynamic updates under load."""

import re
import time
from bisect import bisect_left
from dataclasses import dataclass

import dns.query
import dns.rcode
import dns.update

from .client import Asker
from .network import SERVICE
from .run import HarnessError, wait_until

NSD_ZONE = re.compile(r'name:\s*"([^"]*)"\s+zonefile:\s*"?([^"\s]+)')
UPDATE_RATE, QUERY_RATE = 20, 5000     # a second
TTL = 300
KERNEL_ANSWERS = 20     # to wait for after a burst of updates


def zone_files(directory, nsd_config):
    """{zone: its file} from a text of NSD's zone: clauses with paths relative to the directory."""
    return {name.rstrip(".") + ".": directory / file for name, file in NSD_ZONE.findall(nsd_config)}


def named_of_tree(world, daemon, threads, options, **more):
    """named with all zones of the world's tree; all take dynamic updates. options: lines for its options clause."""
    files = zone_files(world.tree, (world.tree / "nsd-zones.conf").read_text())
    bodies = {zone: f'type primary; file "{file}"; allow-update {{ any; }};' for zone, file in files.items()}
    return world.named(daemon, threads=threads, recursion=False, zones=bodies, options=("notify no;", *options), **more)


def updatable(world, names):
    """(name, zone) of the most popular name in an unsigned zone: changing a signed one would need its keys."""
    files = zone_files(world.tree, (world.tree / "nsd-zones.conf").read_text())
    for name in names:
        labels = name.rstrip(".").split(".")
        zone = next(z for z in (".".join(labels[i:]) + "." for i in range(len(labels) + 1)) if z in files)
        if zone.count(".") > 1 and " RRSIG " not in files[zone].read_text():
            return name, zone
    raise HarnessError("the tree has no name in a zone that is not signed")


def send_update(server, message, timeout=5):
    """Sends one dynamic update over TCP; returns when the server has acknowledged it."""
    with server.ns.entered():
        reply = dns.query.tcp(message, server.service[4], timeout=timeout)
    if reply.rcode() != dns.rcode.NOERROR:
        raise HarnessError(f"{server.name} answers an update with {dns.rcode.to_text(reply.rcode())}")


@dataclass
class Updated:
    """The result of updates under load."""
    name: str
    updates: int
    replies: int
    lost: int
    outdated: int            # replies with data replaced by an update that was acknowledged before the query was sent
    versions: int            # different data seen in replies
    kernel_share: float      # of the replies
    median_ms: float         # from an update's sending to its acknowledgement


def _address(number):
    return f"198.18.{number // 250}.{number % 250 + 1}"


def _versions(answers, count):
    """The number of the update that each answer shows, -1 for data of no update."""
    number = {bytes(map(int, _address(n).split("."))).hex(): n for n in range(count)}
    return [number.get(a.rdata, -1) for a in answers]


def _outdated(answers, versions, acknowledged):
    """How many answers show an older update than the last one acknowledged before their query was sent."""
    return sum(version < bisect_left(acknowledged, a.sent) - 1 for a, version in zip(answers, versions))


def _wait_for_kernel(daemon):
    """Waits until the kernel answers again, so that the next update finds a rule to withdraw."""
    before = daemon.reasons()["ANSWERED"]
    wait_until(lambda: daemon.reasons()["ANSWERED"] >= before + KERNEL_ANSWERS, 60,
               f"the kernel to answer {KERNEL_ANSWERS} queries between two updates")


def updates_under_load(world, server, daemon, name, zone, count, rate=UPDATE_RATE, burst=None):
    """Sends count updates of the name's address, evenly in time, while a client asks for it. daemon: None without the kernel
    path. burst: after each so many updates, wait for answers of the kernel."""
    kernel = daemon.reasons()["ANSWERED"] if daemon else 0
    took, acknowledged = [], []
    with Asker(world, world.network.client1, SERVICE[4], [(name, "A")], QUERY_RATE) as asker:
        begun = time.monotonic()
        for n in range(count):
            message = dns.update.Update(zone)
            message.replace(dns.name.from_text(name), TTL, "A", _address(n))
            sent = time.monotonic_ns()
            send_update(server, message)
            acknowledged.append(time.monotonic_ns())
            took.append(acknowledged[-1] - sent)
            time.sleep(max(0.0, begun + (n + 1) / rate - time.monotonic()))     # keeps the rate
            if burst and (n + 1) % burst == 0:
                _wait_for_kernel(daemon)
        answers = asker.result()
    kernel = daemon.reasons()["ANSWERED"] - kernel if daemon else 0
    replies = [a for a in answers if a.latency is not None]
    versions = _versions(replies, count)
    return Updated(name, count, len(replies), len(answers) - len(replies), _outdated(replies, versions, acknowledged),
                   len(set(versions) - {-1}), kernel / max(1, len(replies)), sorted(took)[count // 2] / 1e6)
