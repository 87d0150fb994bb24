# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The part `kinds` of `authority`: what preloading takes of a zone, by its kind, and which queries the kernel answers then.

One client asks each question once, in frames as long as a network card's buffers: in a veth's a long answer would have no room. Which
it answers hydnsd's counters say. Memory is that of all parts beyond what a zone of one name takes, which is mostly packet rings."""

import random

from lab import whole_zones as zones
from lab.batch import Wire, exchange_all
from lab.client import query
from lab.run import HarnessError

from . import authority_servers as servers
from .cost import anonymous
from .result import Goal, going_on, say
from .zone import octets
from .zone_servers import HYDNS

QUERIES = 2_000, 20_000        # of each way of asking
AT_ONCE = 10_000               # of them, for the id of each is its number
SHARE = 0.99
SEEN = 0.0005                  # share of queries from which on a reason is in the result
ONE_NAME = zones.Kind(zones.plain, names=(1, 1))
DELEGATING = ("root", "delegations")
# {figure: (the zone's way to draw questions, options of the query)}
ASKED = {
    "kernel_share": (zones.Zone.questions, {"edns": True}),
    "share_do": (zones.Zone.questions, {"dnssec": True}),
    "share_plain": (zones.Zone.questions, {}),
    "share_absent": (zones.Zone.absent, {"edns": True}),
    "share_below": (zones.Zone.below, {"edns": True}),
}


def exchange(server, wires):
    """Number of replies."""
    link, replied = server.link, 0
    wire = Wire(link.client_ns, link.client, link.ns, link.server)
    for at in range(0, len(wires), AT_ONCE):
        replies = exchange_all(link.client_ns, link.SERVICE, wires[at:at + AT_ONCE], link=wire)
        replied += sum(reply is not None for reply in replies)
    return replied


def ask(server, questions, options):
    """(share that the kernel has answered, {other reason: share}, share without a reply)"""
    wires = [query(name, rdtype, rd=False, **options).to_wire() for name, rdtype in questions]
    before = server.daemon.reasons()
    replied = exchange(server, wires)
    after = server.daemon.reasons()
    shares = {reason: (after[reason] - before[reason]) / len(wires) for reason in after}
    answered = shares.pop("ANSWERED")
    return answered, {reason: round(share, 4) for reason, share in shares.items() if share >= SEEN}, 1 - replied / len(wires)


def ask_in_all_ways(bench, point, server, zone):
    rng = random.Random(f"questions {bench.settings.seed}")
    point["passed"], lost = {}, []
    for figure, (draw, options) in ASKED.items():
        share, point["passed"][figure], unanswered = ask(server, draw(zone, rng, bench.settings.choose(*QUERIES)), options)
        point[figure] = round(share, 4)
        lost.append(unanswered)
    point["unanswered"] = round(max(lost), 4)
    if point["unanswered"] > 0.01:
        raise HarnessError(f"{point['kind']}: {point['unanswered']:.1%} of the queries had no reply")


def made(bench, name, kind):
    """The zone, signed if it is of such a kind."""
    zone = zones.write(kind, bench.run.dir / f"authority-{name}", bench.settings.choose(*kind.names), bench.settings.seed)
    if kind.algorithm:
        with going_on(f"authority: {name}: the zone is signed"):
            zones.sign(bench.tools, zone, kind)
    return zone


def measure(bench, result, link, name, kind):
    """The point of one kind."""
    zone = made(bench, name, kind)
    with going_on(f"authority: {name}: BIND alone starts"), servers.alone(bench, link, zone) as alone:
        without = anonymous(alone.program.pid)
    with servers.preloaded(bench, link, zone) as server:
        point = {"bench": "authority", "contender": HYDNS, "part": "kinds", "kind": name, "names": len(zone.names),
                 "version": server.version(), **server.found, **servers.octets(server, without)}
        ask_in_all_ways(bench, point, server, zone)
    result.points.append(point)
    return point


def add_memory(point, base):
    """Of a name, above that of the zone of one name."""
    point["octets_per_name"] = round((octets(point) - octets(base)) / point["names"], 1)


def say_point(p):
    say(f"authority: {p['kind']}, {p['names']:,} names: preloaded in {p['preload_seconds']:.2f} s, {p['kept']:,} of {p['questions']:,} "
        f"answers, {p['rules']:,} rules, {p['octets_per_name']:,.0f} octets a name; in the kernel {p['kernel_share']:.2%}, with DO "
        f"{p['share_do']:.2%}, without EDNS {p['share_plain']:.2%}, names that do not exist {p['share_absent']:.2%}, below names "
        f"{p['share_below']:.2%}; passed: {p['passed']}")


def add_goals(result, p):
    wanted = {"kernel_share": "of the zone's names and types", "share_absent": "of names that do not exist"}
    if p["kind"] in DELEGATING:
        wanted["share_below"] = "of names below the zone's"
    large = p["unkept"]["size"]
    result.goals += [Goal(f"{p['kind']}: share of the kernel {what}", SHARE, p[figure],
                          why=f"{large:,} of {p['questions']:,} answers are too large" if large else "") for figure, what in wanted.items()]


def run(bench, result):
    link = servers.Host(bench, "authority-kinds")
    base = measure(bench, result, link, "one name", ONE_NAME)
    result.points.remove(base)
    for name, kind in zones.KINDS.items():
        point = measure(bench, result, link, name, kind)
        add_memory(point, base)
        say_point(point)
        add_goals(result, point)
