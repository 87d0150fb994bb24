# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the tests of preloaded zones have in common, of BIND and of Unbound. auth: world, daemon, network, and the resolver."""

import json
import re
import subprocess
from contextlib import contextmanager
from types import SimpleNamespace

from .run import HarnessError, wait_until

# In the plugin's note of its one zone: all is there, or stops because there is no more room.
DONE = re.compile(r"questions asked, the answers to \d+ of them not taken; names that it does not have are answered|does not fit")


def notes(auth):
    return [note for resolver in auth.daemon.call({"cmd": "status"})["resolvers"] for note in resolver["notes"]]


def is_done(daemon):
    """Whether the one preloaded zone's note says that all is there, or that there is no more room."""
    return any(DONE.search(note) for r in daemon.call({"cmd": "status"})["resolvers"] for note in r["notes"])


def estimate(tools, zone):
    """What hydnsctl says of preloading a whole_zones.Zone, from its file."""
    argv = [tools.hydnsctl, "preload", "--estimate", zone.path, "--origin", zone.origin, "--json"]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        raise HarnessError(f"hydnsctl preload --estimate {zone.path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


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
