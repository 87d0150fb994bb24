# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Disruptions of the network: addresses and links that go and come, and links that lose, double and delay packets.

The latter happen in the clients' and the authoritative server's ends, for both directions, whoever sends a reply: in the kernel a
reply leaves without the resolver's queue discipline. Losses at a client's link are counted there, so the judge knows how many
queries may have no reply."""

import re
import time
from contextlib import contextmanager

from lab.client import ask
from lab.links import ipv6_again
from lab.network import CLIENT1, CLIENT2, SERVICE
from lab.process import run_tool
from lab.run import SOON, HarnessError, wait_until

from .ledger import SECOND, Span

AWAY = 1.0                        # seconds at most
WEATHER = 2.0                     # seconds at most of lost, doubled and late packets
# An address is a service until rtnetlink notifies hydnsd.
NOTIFIED = SECOND // 10
OTHER_ADDRESSES = ("10.53.1.99/24", "fd53:1::99/64")
CLIENTS = {1: CLIENT1, 2: CLIENT2}
UPSTREAM_END = "u0"
# For so long a resolver may wait until it asks an authoritative server again: named 0.8 s, then twice as long.
ASKED_AGAIN = 3 * SECOND
# Of the slower way of late packets: octets of a packet and its queue, and how much of its rate is used.
PACKET, QUEUE, USED = 150, 60000, 0.9
SLOW_WAY = "slow0"
CHANCE_OF_LATENESS = 0.1          # as in weather.bpf.c
MOVED = "r9"
LOST = "packets lost"             # a kind of disruption


def _remove(ns, link, address):
    length = 128 if ":" in address and link == "lo" else 64 if ":" in address else 32 if link == "lo" else 24
    run_tool(ns, ["ip", "address", "del", f"{address}/{length}", "dev", link])


# -- addresses -------------------------------------------------------------------------------------------
def service_address_gone(d):
    """Removes one of the two addresses of the resolver; returns when the resolver answers there again."""
    family = d.rng.choice((4, 6))
    address, ns = SERVICE[family], d.world.network.resolver
    d.detail = address
    with d.ledger.span(d.ledger.down, "its address is gone", family=family):
        _remove(ns, "lo", address)
        removed = time.monotonic_ns()
        d.wait(AWAY)
        if time.monotonic_ns() > removed + NOTIFIED:
            d.ledger.homeless.append(Span("gone", removed + NOTIFIED, time.monotonic_ns(), family=family))
        ns.address("lo", f"{address}/{32 if family == 4 else 128}")
        wait_until(lambda: ask(ns, address, ".", "NS", local=address, timeout=0.1), 4 * SOON,
                   f"the resolver to answer at {address} again")


def other_addresses(d):
    ns = d.world.network.resolver
    ns.address("r1", *OTHER_ADDRESSES)
    d.wait(AWAY)
    for address in OTHER_ADDRESSES:
        _remove(ns, "r1", address.split("/")[0])


# -- links -----------------------------------------------------------------------------------------------
def _wait_working(d, number):
    network = d.world.network
    for family in (4, 6):
        wait_until(lambda: ask(network.client(number), SERVICE[family], ".", "NS", local=CLIENTS[number][family], timeout=0.1),
                   4 * SOON, f"r{number} to work again over IPv{family}")


@contextmanager
def _link_away(d, why):
    """Draws one of the clients' links, gives its number, and waits after the block until it works again."""
    number = d.rng.choice((1, 2))
    d.detail = f"r{number}"
    with d.ledger.span(d.ledger.down, why, link=f"r{number}"):
        yield number
        _wait_working(d, number)


def link_down(d):
    """The kernel removes a downed link's IPv6 addresses, and all its routes."""
    with _link_away(d, "its link is down") as number:
        network, link = d.world.network, f"r{number}"
        network.resolver.link_state(link, up=False)
        d.wait(AWAY)
        network.resolver.link_state(link, up=True)
        ipv6_again(network.resolver, link, f"fd53:{number}::1/64")
        if number == 1:
            network.route_to_strangers()


def link_renamed(d):
    """While it is up: addresses and routes stay, and so must all answers."""
    ns, number = d.world.network.resolver, d.rng.choice((1, 2))
    d.detail = f"r{number}"
    run_tool(ns, ["ip", "link", "set", f"r{number}", "name", MOVED])
    d.wait(AWAY)
    run_tool(ns, ["ip", "link", "set", MOVED, "name", f"r{number}"])


def link_moved(d):
    """To another namespace, where nobody serves, and back."""
    with _link_away(d, "its link is in another namespace") as number:
        network, link = d.world.network, f"r{number}"
        here, there = network.resolver, network.authoritative
        run_tool(here, ["ip", "link", "set", link, "netns", there.name])
        d.wait(AWAY)
        run_tool(there, ["ip", "link", "set", link, "netns", here.name])
        here.link_state(link, up=True)
        network.settle_resolver_end(number)


def link_made_again(d):
    """Both ends are deleted."""
    with _link_away(d, "its link is deleted") as number:
        network = d.world.network
        run_tool(network.resolver, ["ip", "link", "del", f"r{number}"])
        d.wait(AWAY)
        network.link_client(number)


# -- weather ---------------------------------------------------------------------------------------------
def _ends(d):
    """(namespace, link, the resolver's end or None for upstream) of a link that is drawn."""
    network = d.world.network
    return d.rng.choice(((network.client1, "c1", "r1"), (network.client2, "c2", "r2"), (network.authoritative, UPSTREAM_END, None)))


@contextmanager
def _slow_way(d, ns):
    """A link that sends on what it is given, at a rate that leaves little room."""
    rate = d.rate / 2 * CHANCE_OF_LATENESS * 2 * PACKET / USED
    run_tool(ns, ["ip", "link", "add", SLOW_WAY, "type", "ifb"])
    try:
        run_tool(ns, ["ip", "link", "set", SLOW_WAY, "up"])
        run_tool(ns, ["tc", "qdisc", "add", "dev", SLOW_WAY, "root", "tbf", "rate", f"{rate * 8:.0f}bit", "burst", "2000", "limit", QUEUE])
        yield ["action", "mirred", "egress", "redirect", "dev", SLOW_WAY]
    finally:
        run_tool(ns, ["ip", "link", "del", SLOW_WAY])


@contextmanager
def _program(d, ns, link, section, action=("direct-action",)):
    """For the block, or until the function that it gives is called."""
    run_tool(ns, ["tc", "qdisc", "add", "dev", link, "clsact"])
    try:
        for direction in ("ingress", "egress"):
            run_tool(ns, ["tc", "filter", "add", "dev", link, direction, "bpf", "object-file", d.world.tools.weather_object,
                          "section", f"tc/{section}", *action])
        yield lambda: _end_program(ns, link)
    finally:
        run_tool(ns, ["tc", "qdisc", "del", "dev", link, "clsact"])


def _end_program(ns, link):
    """What clsact has counted stays."""
    for direction in ("ingress", "egress"):
        run_tool(ns, ["tc", "filter", "del", "dev", link, direction])


def _dropped(ns, link):
    """Packets that clsact has dropped. None may be dropped later."""
    text = run_tool(ns, ["tc", "-s", "qdisc", "show", "dev", link, "clsact"]).stdout
    found = re.search(r"dropped (\d+)", text)
    if not found:
        raise HarnessError(f"tc shows no dropped packets of {link}: {text}")
    return int(found[1])


def packets_lost(d):
    ns, link, near = _ends(d)
    begin = time.monotonic_ns()
    with _program(d, ns, link, "loss") as end:
        d.wait(WEATHER)
        end()
        dropped = _dropped(ns, link)
    d.detail = f"{link}: {dropped}"
    if near:
        d.ledger.lossy.append(Span(dropped, begin, time.monotonic_ns(), near))
    else:
        d.ledger.down.append(Span("packets to and from upstream are lost", begin, time.monotonic_ns() + ASKED_AGAIN))


def packets_doubled(d):
    ns, link, near = _ends(d)
    d.detail = link
    with d.ledger.span(d.ledger.doubled, "packets are doubled", link=near), _program(d, ns, link, "duplication"):
        d.wait(WEATHER)


def packets_late(d):
    """One in ten is overtaken by others."""
    ns, link, _ = _ends(d)
    d.detail = link
    with _slow_way(d, ns) as action:
        with _program(d, ns, link, "lateness", action):
            d.wait(WEATHER)
        _drain(ns)


def _drain(ns):
    """Until nothing waits on the slower way."""
    def empty():
        return "backlog 0b" in run_tool(ns, ["tc", "-s", "qdisc", "show", "dev", SLOW_WAY]).stdout
    wait_until(empty, SOON, "the slower way to be empty")


KINDS = {
    "service address gone": service_address_gone,
    "other addresses": other_addresses,
    "link down": link_down,
    "link renamed": link_renamed,
    "link moved": link_moved,
    "link made again": link_made_again,
    LOST: packets_lost,
    "packets doubled": packets_doubled,
    "packets late": packets_late,
}
