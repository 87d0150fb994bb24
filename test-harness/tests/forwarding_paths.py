# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Kernel paths of either resolver with a forwarded zone, and what tests of forwarding ask of them."""

from contextlib import contextmanager

import dns.flags
import dns.message
from conftest import bind_path, kernel_path

from lab.client import ask
from lab.forwarding import ZONE, bind_forwards, bind_zone, forward_zone, is_ready
from lab.network import SERVICE
from lab.run import SOON, replaced, wait_until
from lab.servers import EVERY_CLIENT_WAITS

KINDS = ("unbound", "bind")
NAME = f"www.{ZONE}"


class Unbound:
    """What tests do to the resolver of a path, by unbound-control."""

    flush_name, flush_zone = ("flush",), ("flush_zone",)

    def __init__(self, path, servers):
        self.path, self.servers = path, servers

    def flush(self, name, server=None):
        (server or self.path.server).control(*self.flush_name, name)

    def forget(self, zone=ZONE, server=None):
        """All that is cached of the zone."""
        (server or self.path.server).control(*self.flush_zone, zone)

    def remove_forward(self):
        self.path.server.control("forward_remove", ZONE)

    def add_forward(self):
        self.path.server.control("forward_add", ZONE, *self.servers)

    def reload(self):
        self.path.server.control("reload")


class Bind(Unbound):
    """By rndc."""

    flush_name, flush_zone = ("flushname",), ("flushtree",)

    def remove_forward(self):
        config = self.path.server.config
        self.text = config.read_text()
        config.write_text("\n".join(line for line in self.text.splitlines() if ZONE not in line) + "\n")
        self.path.server.control("reconfig")
        ask(self.path.network.client1, SERVICE[4], "www.lab.example")     # without zones to forward the plugin starts with a response
        wait_until(self.path.daemon.resolver_ready, SOON, "the plugin to register with hydnsd")

    def add_forward(self):
        self.path.server.config.write_text(self.text)
        self.path.server.control("reconfig")


def state(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["forwarding"]


def counts(path):
    return path.daemon.call({"cmd": "stats"})["resolvers"][0]["forwarding"]


def notes(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]["notes"]


def usable(path):
    """Whether the zone is forwarded, and all of its servers may be asked."""
    return is_ready(path.daemon)


def is_resolvers(wire):
    """The resolvers' own queries have DO; the kernel's do not."""
    return bool(dns.message.from_wire(wire).ednsflags & dns.flags.DO)


def configured(kind, servers, *, zone=ZONE, forward=True, of_zone=(), lines=(), clause=()):
    """Options of a resolver that forwards the zone. of_zone: lines of the zone's clause; lines: of the server's or options clause;
    clause: of hydns: or the plugin's braces."""
    if kind == "unbound":
        return {"server": [*lines, *forward_zone(*servers, zone=zone, forward=forward, more=of_zone)], "clause": list(clause)}
    return {"options": [EVERY_CLIENT_WAITS, *lines], "zones": {zone: bind_zone(*servers, more=of_zone)},
            "clause": [*([bind_forwards(zone)] if forward else []), *clause]}


@contextmanager
def forwarding_path(world, kind, *servers, daemon_options=None, waits=True, more=None, **options):
    """more: options of the lab's Unbound or Named."""
    options = {**configured(kind, servers, **options), **(more or {})}
    if kind == "unbound":
        made = kernel_path(world, daemon_options=daemon_options, unbound_options=options)
    else:
        made = bind_path(world, daemon_options=daemon_options, **options)
    with made as p:
        p.kind, p.does = kind, (Unbound if kind == "unbound" else Bind)(p, servers)
        if waits:
            wait_until(lambda: usable(p), SOON, "the upstream servers to be usable")
        yield p


def reference(world, kind, *servers):
    """The same resolver, without hyDNS."""
    options = configured(kind, servers, forward=False)
    options.pop("clause")
    return world.reference(**options) if kind == "unbound" else world.named_reference(**options)


def change(path, old, new):
    """Of BIND: replaces a text of its configuration."""
    path.server.config.write_text(replaced(path.server.config.read_text(), old, new))
    path.server.control("reconfig")
    ask(path.network.client1, SERVICE[4], "www.lab.example")
    wait_until(path.daemon.resolver_ready, SOON, "the plugin to register with hydnsd")


def resolver(path):
    return path.daemon.call({"cmd": "status"})["resolvers"][0]


def sent(path):
    return counts(path)["sent"]


def undisturbed(path, do):
    """(what do() returns, counts before it, counts after it) of a call during which neither the upstream server nor hydnsd was late, as
    they may be on a busy machine. do() asks what nobody has asked."""
    def tried():
        before = counts(path)
        result, after = do(), counts(path)
        late = after["timed_out"] - before["timed_out"] + sum(after["left"][why] - before["left"][why] for why in ("UPSTREAM", "HYDNSD"))
        return (result, before, after) if not late else None
    return wait_until(tried, SOON, "a query to be forwarded in time")


def expect_refused(path, words):
    """The zone is not forwarded, and one note says why."""
    wait_until(lambda: [n for n in resolver(path)["notes"] if "is not forwarded" in n or "no zone is forwarded" in n], SOON, "a note")
    notes = [n for n in resolver(path)["notes"] if "forwarded in the kernel" in n]
    assert len(notes) == 1 and words in notes[0], notes
    assert resolver(path)["forwarding"]["zones"] == []
    ask(path.network.client1, SERVICE[4], NAME)
    assert sent(path) == 0
