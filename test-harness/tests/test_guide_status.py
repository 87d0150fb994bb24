# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the operator guide says that hydnsctl status shows of each server, without the bare root on which test_day_one.py types all."""

import pytest
from bareroot import documents

from lab.run import wait_until

GUIDE = "doc/operator-guide.md"


@pytest.mark.parametrize("kind, server", (("unbound", "Unbound"), ("named", "BIND"), ("named", "BIND's zones")))
def test_status_names_the_server(world, kind, server):
    expected, = (command.expected for command in documents.commands(GUIDE, "Watch", server) if command.text == "hydnsctl status")
    daemon = world.hydnsd()
    with daemon, getattr(world, kind)(daemon):
        wait_until(daemon.resolver_ready, 10, f"{kind} to register with hydnsd")
        wait_until(lambda: documents.shows(expected, daemon.ctl("status").stdout), 10, f"hydnsctl status to show '{expected}'")
    assert kind in expected and not documents.shows(expected, f"{kind}\nready")
