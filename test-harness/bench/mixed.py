# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Names by Zipf's law with the online policy on and the resolver behind it, against the resolver alone.

At the start the resolver's cache has every name and the kernel none: hydnsd starts after the resolver was asked for all names,
and the policy must find the hot ones under load. Both contenders are asked as fast as possible, then somewhat faster than they
could answer, as in `versus`. Generator, driver and XDP program share a processor; the resolver has another. The queries to the
resolver alone go through the attached program, too, which passes them."""

from contextlib import ExitStack

import numpy as np
from lab.measure import NOT_OURS
from lab.run import wait_until
from lab.servers import Hydnsd

from . import peers
from .overhead import Patched, WithPlugin
from .pace import sequence
from .result import say
from .versus import best

HELP = "Zipf over many names with the online policy: replies per second and the kernel's share"
ZIPF = 1.0
STORES = (0.01, 0.1, 1.0)      # rules that the store holds, as a share of the names
PORTS = {"resolver": 5320, "hydns": 53}


class WithRoom(Patched):
    """Unbound with room for every name in its cache."""

    def configure(self, peer):
        return super().configure(peer).replace("server:\n", "server:\n    msg-cache-size: 1g\n    rrset-cache-size: 1g\n", 1)


class Online(WithRoom, WithPlugin):
    """The same with module and daemon, with their default options."""
    admission = None


def kernel_share(before, after):
    """The kernel's share of the queries between two readings of hydnsd's counters."""
    asked = {r: after[r] - before[r] for r in after if r not in NOT_OURS}
    return asked["ANSWERED"] / max(1, sum(asked.values()))


def turn(bench, link, seq, daemon, runs):
    seconds = bench.settings.choose(0.5, 1)
    runs["resolver"].append(best(bench, link, seq, PORTS["resolver"], seconds, **{"xdp-sink": True}))
    before = daemon.reasons()
    runs["hydns"].append(best(bench, link, seq, PORTS["hydns"], seconds, **{"xdp-sink": True}))
    return kernel_share(before, daemon.reasons())


def with_store(bench, link, seq, names, zone, share, result):
    """Measures with a store of this capacity, by a daemon and a resolver of its own."""
    capacity = max(1000, int(names * share))
    daemon = Hydnsd(bench.world_like, link.ns, (link.server,), capacity=capacity)
    runs, shares = {"resolver": [], "hydns": []}, []
    with Online(bench, link, "Unbound", PORTS["hydns"], zone, daemon=daemon) as online:
        online.warm(asked_for(bench, names))
        with daemon:
            wait_until(daemon.resolver_ready, 20, "Unbound's module to register with hydnsd")
            for _ in range(bench.settings.choose(3, 5)):
                shares.append(turn(bench, link, seq, daemon, runs))
            rules = daemon.call({"cmd": "status"})["rules"]
    about = {"names": names, "zipf": ZIPF, "capacity": capacity}
    points = {c: result.add(c, r, "replies_per_second", **about) for c, r in runs.items()}
    points["hydns"].update(kernel_share=round(shares[-1], 4), kernel_shares=[round(s, 4) for s in shares], rules=rules,
                           times_resolver=round(points["hydns"]["replies_per_second"]
                                                / points["resolver"]["replies_per_second"], 3))
    say(f"mixed: {names:,} names, store of {capacity:,}: {points['resolver']['replies_per_second'] / 1e3:,.0f} k -> "
        f"{points['hydns']['replies_per_second'] / 1e3:,.0f} k replies/s, {shares[-1]:.0%} in the kernel")


def asked_for(bench, names):
    """The names of the load, each once, to fill the resolver's cache."""
    return np.unique(np.fromfile(sequence(bench.run.dir, names, ZIPF, bench.settings.seed), dtype=np.uint32)).tolist()


def run(bench, result):
    names = bench.settings.choose(20_000, 1_000_000)
    link, seq = bench.mixed_link, sequence(bench.run.dir, names, ZIPF, bench.settings.seed)
    zone = bench.run.dir / "mixed.zone"
    peers.write_zone(zone, None)
    with ExitStack() as stack:
        stack.enter_context(peers.Peer(bench, link, "NSD", peers.BACKEND, zone, address="127.0.0.1"))
        alone = stack.enter_context(WithRoom(bench, link, "Unbound", PORTS["resolver"], zone))
        alone.warm(asked_for(bench, names))
        for share in bench.settings.choose(STORES[1:], STORES):
            with_store(bench, link, seq, names, zone, share, result)
