# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsd tells the program of parking, and what the program counts there; with or without hydnsd."""

import time

from . import pinned
from .layouts import layout, number
from .run import SOON, wait_until


def _records(daemon):
    """Those of all resolvers, as {field: value}."""
    record = layout("hydns_parking")
    with pinned.writable(daemon.pins / "hydns_parking") as memory:
        return [record.unpack(memory[at:at + record.size])
                for at in range(0, number("HYDNS_RESOLVERS") * record.size, record.size)]


def waiting(daemon):
    """Queries that are parked, in hydnsd or on their way to it."""
    return sum(r["waiting"] for r in _records(daemon))


def wait_stale(daemon):
    """Until the program parks nothing, because hydnsd, which stands still or is dead, has sent no heartbeat for so long. A beat more, for
    the program's clock is coarse."""
    least = number("HYDNS_PARKING_STALE_NS") + number("HYDNS_HEARTBEAT_BEAT_NS")

    def stale():
        return all(time.monotonic_ns() - r["heartbeat_ns"] > least for r in _records(daemon))
    wait_until(stale, SOON, "hydnsd's heartbeat to be stale")
