# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-allow-unlogged: what Unbound would log may be answered in the kernel, without a line."""

from conftest import kernel_path

NAME = "informed.kinds.example"


def test_allowed_unlogged(world):
    options = {"server": ["log-local-actions: yes", "log-queries: yes", f'local-zone: "{NAME}." inform'],
               "clause": ["hydns-allow-unlogged: yes"]}
    with kernel_path(world, unbound_options=options) as path:
        world.heat(path.daemon, NAME, "A")
        [notes] = [r["notes"] for r in path.daemon.call({"cmd": "status"})["resolvers"]]
        assert not [n for n in notes if "logged" in n]
