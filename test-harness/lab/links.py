# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What happens to a host's links, addresses, routes and neighbours while programs run."""

from contextlib import contextmanager

from pyroute2.netlink.rtnl.ndmsg import states

from .network import CLIENT1, CLIENT2, LINKS
from .process import run_tool
from .run import SOON, wait_until


def down(ns, link):
    """Takes it down; returns when the kernel says that it is."""
    ns.link_state(link, up=False)

    def is_down():
        with ns.netlink() as ip:
            return ip.get_links(ip.link_lookup(ifname=link)[0])[0].get_attr("IFLA_OPERSTATE") == "DOWN"
    wait_until(is_down, SOON, f"{link} to be down")


def set_mtu(ns, link, mtu):
    with ns.netlink() as ip:
        ip.link("set", index=ip.link_lookup(ifname=link)[0], mtu=mtu)


def replace_route(ns, gateway, to):
    run_tool(ns, ["ip", "route", "replace", to, "via", gateway])


def ipv6_again(ns, link, address, *routes):
    """The kernel removes a link's IPv6 addresses and all its routes with it. routes: (gateway, destination)."""
    run_tool(ns, ["ip", "address", "replace", address, "dev", link, "nodad"])
    for gateway, to in routes:
        replace_route(ns, gateway, to)


def addresses_again(network):
    """After links of the resolver went down, or had a small MTU."""
    for n, link in enumerate(LINKS, 1):
        ipv6_again(network.resolver, link, f"fd53:{n}::1/64")
    for gateway, to in (("10.53.3.2", "0.0.0.0/0"), ("fd53:3::2", "::/0"), (CLIENT1[4], "10.54.1.0/24"),
                        (CLIENT1[6], "fd54:1::/64")):
        replace_route(network.resolver, gateway, to)


@contextmanager
def sysctls(ns, values):
    """values: {file below /proc/sys/net: value} for the block."""
    def write(file, value):
        with ns.entered(), open(f"/proc/sys/net/{file}", "r+") as f:
            former = f.read().strip()
            f.seek(0)
            f.write(str(value))
        return former
    before = {file: write(file, value) for file, value in values.items()}
    try:
        yield
    finally:
        for file, value in before.items():
            write(file, value)


def forwarding(ns):
    """For the block, for a program that looks routes up."""
    return sysctls(ns, dict.fromkeys(("ipv4/conf/lo/forwarding", "ipv6/conf/lo/forwarding"), 1))


def icmp_always(ns):
    """For the block, the host has an ICMP error for each datagram that gets one; else for one a second and peer, after some."""
    return sysctls(ns, {"ipv4/icmp_ratelimit": 0, "ipv6/icmp/ratelimit": 0})


@contextmanager
def impatient(ns, link):
    """Neighbours are believed for a second, not for half a minute."""
    values = (("base_reachable_time_ms", 1000), ("delay_first_probe_time", 1), ("retrans_time_ms", 100))
    with sysctls(ns, {f"ipv{n}/neigh/{link}/{name}": value for n in (4, 6) for name, value in values}):
        run_tool(ns, ["ip", "neighbour", "flush", "dev", link])     # their timers run with the former values
        yield
    run_tool(ns, ["ip", "neighbour", "flush", "dev", link])


def confirm_neighbours(ns):
    """From now on the kernel believes for 15 seconds and more that they are there: no query has to take a socket so that it asks."""
    with ns.netlink() as ip:
        for n in ip.get_neighbours():
            address = n.get_attr("NDA_LLADDR")
            if address and n["state"] & (states["stale"] | states["delay"] | states["probe"]):
                ip.neigh("change", family=n["family"], dst=n.get_attr("NDA_DST"), lladdr=address, ifindex=n["ifindex"],
                         state=states["reachable"])


def announcing(ns, link, told):
    """Whether it says that it has another Ethernet address, for the block."""
    return sysctls(ns, {f"ipv4/conf/{link}/arp_notify": int(told), f"ipv6/conf/{link}/ndisc_notify": int(told)})


@contextmanager
def another_ethernet_address(ns, link):
    """Gives a function that changes it; the former one is back after the block."""
    def set_address(address):
        with ns.netlink() as ip:
            ip.link("set", index=index, address=address)
    with ns.netlink() as ip:
        index = ip.link_lookup(ifname=link)[0]
        former = ip.get_links(index)[0].get_attr("IFLA_ADDRESS")
    try:
        yield lambda: set_address(former[:-2] + ("00" if former[-2:] != "00" else "01"))
    finally:
        set_address(former)


@contextmanager
def roaming_client(network, family):
    """A client's address whose queries come by r1 and whose route leads out of r2."""
    client, length = {4: ("10.53.9.9", 32), 6: ("fd53:9::9", 128)}[family]
    host = f"{client}/{length}"
    for ns in (network.client1, network.client2):
        run_tool(ns, ["ip", "address", "replace", host, "dev", "lo"])
    replace_route(network.resolver, CLIENT2[family], host)
    try:
        yield client
    finally:
        run_tool(network.resolver, ["ip", "route", "del", host])
        for ns in (network.client1, network.client2):
            ns.remove_address("lo", host)
