# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What rings, program, resolver and its network did during a test, for whoever looks for the cause of a failure."""

from contextlib import suppress

from . import rings
from .process import run_tool
from .run import HarnessError

SNMP = ("/proc/thread-self/net/snmp", "/proc/thread-self/net/snmp6", "/proc/thread-self/net/dev")


class Account:
    """Of the time since it was made; programs may have ended since, and numbers of new ones start at 0."""

    def __init__(self, path):
        self.path, self.before = path, numbers(path)
        self.read = path.server.program.log.stat().st_size

    def tell(self):
        """Prints what has grown, what is now, and what the resolver has logged."""
        server = self.path.server
        now = numbers(self.path)
        grown = [f"{name} +{n - self.before.get(name, 0):g}" for name, n in now.items() if n != self.before.get(name, 0)]
        log = server.program.log.read_bytes()[self.read:].decode(errors="replace")
        known = said(server, server.known_servers) or "no answer"
        print("Since the test began:", *grown, "Lanes:", *rings.lanes(self.path.daemon), f"Servers as {server.name} knows them:",
              known, f"{server.name}'s log:", log, sep="\n")
        for what in ("address", "neighbour"):
            print(f"The resolver's ip {what}:", run_tool(self.path.network.resolver, ["ip", what]).stdout, sep="\n")


def said(server, tell):
    """None when it does not run or answer."""
    with suppress(HarnessError, OSError):
        return tell() if server.program.running() else None


def numbers(path):
    """{name: number} of all that is counted."""
    found = {f"program, rings: {name}": n for name, n in rings.counted(path.daemon)._asdict().items()}
    stats = path.daemon.try_call({"cmd": "stats"})
    if stats:
        found |= {f"program, end: {reason}": n for reason, n in stats["reasons"].items()}
        for n, r in enumerate(stats["resolvers"]):
            found |= dict(_flat(f"resolver {n}, rings", r["packet_rings"]))
    found |= {f"{path.server.name}: {name}": n for name, n in (said(path.server, path.server.counters) or {}).items()}
    return found | _network(path.network.resolver)


def _flat(name, value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{name}: {key}", inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, value


def _network(ns):
    """The kernel's counters of the name space: protocols, and packets that links dropped."""
    with ns.entered():
        snmp, snmp6, dev = (open(file).read().splitlines() for file in SNMP)
    found = {}
    for names, values in zip(snmp[::2], snmp[1::2]):
        protocol, *names = names.split()
        found |= {f"kernel, {protocol} {name}": int(n) for name, n in zip(names, values.split()[1:])}
    found |= {f"kernel, {name}": int(n) for name, n in (line.split() for line in snmp6)}
    for line in dev[2:]:
        link, _, values = line.partition(":")
        values = values.split()
        found |= {f"kernel, {link.strip()} dropped {way}": int(values[i]) for way, i in (("as received", 3), ("as sent", 11))}
    return found
