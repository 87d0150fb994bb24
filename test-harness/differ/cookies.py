# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Server cookies (RFC 9018): makes them for queries and takes them out of replies. They depend on the client's address and the
time, so they differ between places and are judged apart: each must be right for its own client, and all of the same time."""

import hashlib
import struct

from lab.compare import Difference, Unreadable, without_cookie
from lab.cookies import WHOLE_LEN, cookie

from .asking import DIRECT, KERNEL, address_of

SECRET = hashlib.sha256(b"secret of the differential tester").digest()[:16]
OPTION = struct.pack("!HH", 10, WHOLE_LEN)       # begins every whole cookie
APART = 1                                        # seconds by which the times of two replies' cookies may differ
RENEWED = 1800                                   # seconds: the client's own is sent back until it is older, then a new one


def in_query(wire):
    return OPTION in wire


def make(client, address, when):
    return cookie(SECRET, client, address, when)


def _time(octets):
    return int.from_bytes(octets[12:16], "big")


def _renewed_between(flow, times, slack):
    """Did the client's cookie become so old, that it is renewed, between the replies?"""
    at, old, new = flow.wire.find(OPTION), min(times), max(times)
    mine = at >= 0 and _time(flow.wire[at + 4:at + 4 + WHOLE_LEN])
    return old == mine and RENEWED <= new - old <= RENEWED + slack and all(t == old or t >= new - slack for t in times)


def taken_out(flow):
    """Returns (replies without their cookies' data, None or the Difference between these data)."""
    replies, data, wrong = list(flow.replies), {}, None
    for place, wire in enumerate(flow.replies):
        sent = flow.wire if place == KERNEL else flow.direct_wire or flow.wire
        if wire and wire[4:] == sent[4:]:
            # the query sent back with an error, with the cookie that its client sent
            replies[place] = wire[:4] + flow.wire[4:]
        elif wire and OPTION in wire:
            try:
                replies[place], data[place] = without_cookie(wire)
            except Unreadable:
                pass             # judged by its octets
    for place, octets in data.items():
        if len(octets) == WHOLE_LEN and octets != make(octets[:8], address_of(flow.group, place), _time(octets)):
            wrong = wrong or Difference("cookie", f"place {place}: {octets.hex()} is not of this server and client")
    times = {place: _time(octets) for place, octets in data.items() if octets}
    apart = [abs(t - times[DIRECT]) for t in times.values()] if DIRECT in times else [0]
    waited = (max(flow.got) - flow.sent[DIRECT]) // 10**9 if max(flow.got) else 0
    if not wrong and max(apart) > APART + waited and not _renewed_between(flow, times.values(), APART + waited):
        wrong = Difference("cookie", f"times {times}")
    return replies, wrong
