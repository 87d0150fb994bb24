# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Datagrams that the kernel loses on their way between clients and resolver, as its own counters have them."""

import re

from .network import CLIENT_LINKS
from .process import run_tool


def wait_for_room(ns, link, frames):
    """From now on what is sent by the link waits in a queue while the link is full, as on any network card. A veth holds 256 frames,
    and has no queue of its own. Before Linux 6.16 it loses the others all the same."""
    run_tool(ns, ["tc", "qdisc", "replace", "dev", link, "root", "pfifo", "limit", frames])


def driver_count(ns, link, name):
    """The sum of a veth's counter over its queues."""
    text = run_tool(ns, ["ethtool", "-S", link]).stdout
    return sum(int(n) for n in re.findall(rf"^ *(?:{name}): (\d+)$", text, re.M))


def _sent_in_vain(ns, link):
    """Frames that the veth had no room for. Not those of replays: hydnsd knows of them, and has them come in again."""
    with ns.netlink() as ip:
        dropped = ip.get_links(ip.link_lookup(ifname=link)[0])[0].get_attr("IFLA_STATS64")["tx_dropped"]
    return dropped - driver_count(ns, link, r"tx_queue_\d+_xdp_xmit_errors")


def counted(network):
    """{where: datagrams}"""
    found = {f"{ns.role}'s sockets": ns.udp_overflows() for ns in (network.client1, network.client2, network.resolver)}
    for link, client in zip(CLIENT_LINKS, (network.client1, network.client2)):
        for ns, end in ((network.resolver, link), (client, link.replace("r", "c"))):
            found[f"{end} full"] = _sent_in_vain(ns, end)
            found[f"{end} received in vain"] = driver_count(ns, end, r"rx_queue_\d+_drops")
    return found


class Losses:
    """Those since it was made; each explains one query that has no reply."""

    def __init__(self, network):
        self.network, self.before, self.explained = network, counted(network), 0

    def now(self):
        """{where: datagrams}, without the places that have lost none."""
        return {where: n - self.before[where] for where, n in counted(self.network).items() if n != self.before[where]}

    def explain(self, queries=1):
        """How many of these queries are explained by losses that have explained no other query yet."""
        found = min(queries, sum(self.now().values()) - self.explained)
        self.explained += found
        return found
