# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the tests of preloaded zones have in common, of BIND and of Unbound. auth: world, daemon, network, and the resolver."""

from contextlib import contextmanager
from types import SimpleNamespace

from .run import wait_until


def notes(auth):
    return [note for resolver in auth.daemon.call({"cmd": "status"})["resolvers"] for note in resolver["notes"]]


def has_part_of_names(auth):
    """Whether the program has the part that looks names up."""
    status = auth.daemon.call({"cmd": "status"})
    return next(part["in"] for part in status["composition"]["parts"] if part["part"] == "names")


def wait_registered(daemon):
    wait_until(daemon.resolver_ready, 10, "the resolver's plugin to register with hydnsd")


@contextmanager
def with_capacity(auth, capacity):
    """The same beside another hydnsd, for so many rules; afterwards its own is back."""
    auth.daemon.stop()
    daemon = auth.world.hydnsd(capacity=capacity)
    try:
        with daemon:
            wait_registered(daemon)
            yield SimpleNamespace(**{**vars(auth), "daemon": daemon})
    finally:
        auth.daemon.start()
        wait_registered(auth.daemon)


def wait_for_want_of_room(auth):
    wait_until(lambda: any("does not fit" in note for note in notes(auth)), 10, "a note that the zone does not fit")
