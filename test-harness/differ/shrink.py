# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Finds the smallest query that still shows a difference: removes options, flags, letter case and labels while it does. Only
for differences that last."""

import json
import struct

import dns.flags
import dns.name
import dns.rdatatype

from lab.client import exchange
from lab.compare import Unreadable, without_cookie
from lab.network import REFERENCE, SERVICE
from lab.run import HarnessError

from .judge import between, from_reference
from .queries import opt

TRIES = 30          # enough for a question without a rule to become hot again
TIMEOUT = 1.0
DO = 0x8000
COOKIE, COOKIE_MOST = b"\0\x0a", 64     # the option's code; the most octets that hydnsd accepts


class Asker:
    """Sends single queries to the places that twins asks, for one client and IP version."""

    def __init__(self, stand, group):
        network, self.rules = stand.world.network, stand.server.rules
        self.client = (network.client1, network.client2)[group.client - 1]
        self.resolver = network.resolver
        self.service, self.reference = SERVICE[group.family], REFERENCE[group.family]

    @staticmethod
    def _exchange(ns, server, wire):
        """The reply without the data of its cookie."""
        reply = exchange(ns, server, wire, timeout=TIMEOUT)
        try:
            return reply and without_cookie(reply)[0]
        except Unreadable:
            return reply

    def difference(self, wire, kind):
        """The Difference of this kind that the query shows within TRIES, or None."""
        for _ in range(TRIES):
            before = self._exchange(self.resolver, self.service, wire)
            kernel = self._exchange(self.client, self.service, wire)
            after = self._exchange(self.resolver, self.service, wire)
            if kernel is None and before is None:
                return None
            if kind.startswith("reference"):
                found = from_reference(kernel, self._exchange(self.resolver, self.reference, wire), self.rules)
            else:
                found = between(kernel, before, after, self.rules)
            if found and kind.endswith(found.kind):
                return found
        return None


def _parts(wire):
    """(flags, question name, type and class, OPT payload, OPT flags, [option octets]), or None if it is not a plain query."""
    try:
        _, flags, qd, an, ns, ar = struct.unpack_from("!HHHHHH", wire)
        end = 12
        while wire[end]:
            end += 1 + wire[end]
        name, rest = wire[12:end + 1], wire[end + 1:]
        if (qd, an, ns) != (1, 0, 0) or ar > 1 or len(rest) < 4 or (ar == 0) != (len(rest) == 4):
            return None
        options, payload, opt_flags = [], None, 0
        if ar:
            payload, opt_flags = struct.unpack_from("!H2xH", rest, 7)
            at = 15
            while at < len(rest):
                length = 4 + struct.unpack_from("!H", rest, at + 2)[0]
                options.append(rest[at:at + length])
                at += length
        return flags, name, rest[:4], payload, opt_flags, options
    except (IndexError, struct.error):
        return None


def _whole(flags, name, fixed, payload, opt_flags, options):
    extra = b"" if payload is None else opt(payload, opt_flags, b"".join(options))
    return struct.pack("!HHHHHH", 0, flags, 1, 0, 0, 1 if extra else 0) + name + fixed + extra


def _simpler(parts):
    """Yields simpler queries, each with one part less, the greatest steps first."""
    flags, name, fixed, payload, opt_flags, options = parts
    if payload is not None:
        yield flags, name, fixed, None, 0, []
    for i in range(len(options)):
        yield flags, name, fixed, payload, opt_flags, options[:i] + options[i + 1:]
    if opt_flags:
        yield flags, name, fixed, payload, 0, options
    if payload not in (None, 1232):
        yield flags, name, fixed, 1232, opt_flags, options
    for bit in (0x0010, 0x0020):
        if flags & bit:
            yield flags & ~bit, name, fixed, payload, opt_flags, options
    if name != name.lower():
        yield flags, name.lower(), fixed, payload, opt_flags, options
    if name[0]:
        yield flags, name[1 + name[0]:], fixed, payload, opt_flags, options


def smallest(stand, found):
    """Octets of the smallest query that still shows the difference, or None when none shows it."""
    asker, kind, wire = Asker(stand, found.flow.group), found.difference.kind, found.flow.wire
    if not asker.difference(wire, kind):
        return None
    parts = _parts(wire)
    while parts:
        simpler = next((p for p in _simpler(parts) if asker.difference(_whole(*p), kind)), None)
        if not simpler:
            return _whole(*parts)
        parts = simpler
    return wire


def explain(daemon, wire):
    """hydnsd's explanation of the query, as text."""
    parts = _parts(wire)
    if not parts:
        return "not explained: no plain query"
    flags, name, fixed, payload, opt_flags, options = parts
    request = {"cmd": "explain", "name": dns.name.from_wire(name, 0)[0].to_text(),
               "type": dns.rdatatype.to_text(int.from_bytes(fixed[:2], "big")), "do": bool(opt_flags & DO),
               "norec": not flags & dns.flags.RD}
    if payload is not None:
        request["edns"] = payload
    cookies = [option[4:] for option in options if option[:2] == COOKIE and 0 < len(option) - 4 <= COOKIE_MOST]
    if cookies:
        request["cookie"] = cookies[0].hex()
    try:
        reply = daemon.call(request)
    except HarnessError as error:
        return str(error)
    return f"{reply['where']}, {reply['reason']}: {reply['text']}; {json.dumps(reply['rule'])}"
