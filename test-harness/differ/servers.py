# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The servers that can be tested: with what they and their references are started, what is done to them, and what
may differ between their replies."""

from dataclasses import dataclass

from .commands import Commands, NamedCommands, UnboundCommands
from .cookies import SECRET
from .judge import Rules

UNBOUND_CONFIG = ("answer-cookie: yes", f'cookie-secret: "{SECRET.hex()}"')
# Without these named drops queries that many clients ask at once.
NAMED_CONFIG = (f'cookie-secret "{SECRET.hex()}";', "clients-per-query 0;", "max-clients-per-query 0;",
                "recursive-clients 10000;")


def _unbound(world, daemon):
    return (world.unbound(daemon, server=UNBOUND_CONFIG, clause=("hydns-min-ttl: 1",)),     # so that rules expire
            world.reference(server=UNBOUND_CONFIG))


def _named(world, daemon):
    return (world.named(daemon, options=NAMED_CONFIG, clause=("hydns-min-ttl 1;",)),
            world.named_reference(options=NAMED_CONFIG))


@dataclass(frozen=True)
class Server:
    name: str
    make: object             # make(world, daemon): the server under test and its reference, not yet started
    commands: type[Commands]
    rules: Rules


SERVERS = {
    "unbound": Server("Unbound", _unbound, UnboundCommands, Rules()),
    "bind": Server("BIND", _named, NamedCommands, Rules(shuffled=True, added_by_history=True, unrecursed_by_history=True)),
}
