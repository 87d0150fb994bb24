# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Namespaces, links and addresses of the topology (drawn in __init__.py)."""

import ctypes
import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

from pyroute2 import IPRoute, netns

from .process import run_tool
from .run import HarnessError

CLONE_NEWNET = 0x40000000
IFA_F_NODAD = 0x02

SERVICE = {4: "10.53.0.53", 6: "fd53::53"}      # the resolver under test
REFERENCE = {4: "10.53.0.54", 6: "fd53::54"}    # the same resolver without the kernel path
CLIENT1 = {4: "10.53.1.2", 6: "fd53:1::2"}
CLIENT1_MORE = [f"{net}{i}" for net in ("10.53.1.", "fd53:1::") for i in range(3, 31)]
STRANGER = {4: "10.54.1.2", 6: "fd54:1::2"}     # of client 1, outside the networks that the resolvers allow
# more addresses of the resolver under test and of the reference, for tests
DOORS = {"action": "10.53.0.61", "view": "10.53.0.62", "tag": "10.53.0.63"}
REFERENCE_DOORS = {"action": "10.53.0.71", "view": "10.53.0.72", "tag": "10.53.0.73"}
CLIENT2 = {4: "10.53.2.2", 6: "fd53:2::2"}
CLIENT_LINKS = ("r1", "r2")                     # where hyDNS attaches, ...
LINKS = (*CLIENT_LINKS, "ra")                   # ... and where answers to queries to upstream come by packet rings
UPSTREAM_PORTS = "16384-32767"                  # reserved for these
# The hop limit shows who sent a reply: the resolver's namespace sends with one of its own, kernel answers have Linux's default.
RESOLVER_HOPS, DEFAULT_HOPS = 63, 64

_libc = ctypes.CDLL(None, use_errno=True)


class Namespace:
    def __init__(self, run, role):
        self.name = run.netns_name(role)
        self.role = role
        netns.create(self.name)
        with self.entered():
            # Until a link-local address is known to be nobody else's, the kernel asks for no neighbour; after three seconds
            # it drops what waits for one.
            Path("/proc/sys/net/ipv6/conf/default/accept_dad").write_text("0")
        with self.netlink() as ip:
            ip.link("set", index=1, state="up")

    @property
    def path(self):
        return f"/run/netns/{self.name}"

    @contextmanager
    def entered(self):
        """Moves this thread into the namespace for the block; sockets made in the block stay there."""
        with open("/proc/thread-self/ns/net") as home, open(self.path) as there:
            _setns(there)
            try:
                yield
            finally:
                _setns(home)

    @contextmanager
    def netlink(self):
        with self.entered():
            ip = IPRoute()
        try:
            yield ip
        finally:
            ip.close()

    def command(self, argv):
        """The command line that runs argv in here; the process keeps its pid."""
        return ["nsenter", f"--net={self.path}", "--", *map(str, argv)]

    def address(self, link, *addresses):
        """Adds addresses with prefix lengths, without duplicate address detection: that would delay their use."""
        with self.netlink() as ip:
            index = ip.link_lookup(ifname=link)[0]
            for address in addresses:
                host, length = address.split("/")
                flags = {"flags": IFA_F_NODAD} if ":" in host else {}
                ip.addr("add", index=index, address=host, prefixlen=int(length), **flags)

    def remove_address(self, link, address):
        host, length = address.split("/")
        with self.netlink() as ip:
            ip.addr("del", index=ip.link_lookup(ifname=link)[0], address=host, prefixlen=int(length))

    def route(self, gateway, to="default"):
        with self.netlink() as ip:
            ip.route("add", dst=to if to != "default" else ("::/0" if ":" in gateway else "0.0.0.0/0"),
                     gateway=gateway)

    def link_state(self, link, up):
        with self.netlink() as ip:
            ip.link("set", index=ip.link_lookup(ifname=link)[0], state="up" if up else "down")

    def udp_overflows(self):
        """Number of datagrams dropped because their socket's buffer was full, over IPv4 and IPv6."""
        with self.entered():
            v4, v6 = (Path(f"/proc/thread-self/net/{name}").read_text() for name in ("snmp", "snmp6"))
        names, values = (line.split() for line in v4.splitlines() if line.startswith("Udp:"))
        return int(values[names.index("RcvbufErrors")]) + int(re.search(r"^Udp6RcvbufErrors\s+(\d+)", v6, re.M)[1])

    def xdp_attached(self, link):
        """True while a program is attached to the link."""
        with self.netlink() as ip:
            xdp = ip.get_links(ip.link_lookup(ifname=link)[0])[0].get_attr("IFLA_XDP")
            return bool(xdp and xdp.get_attr("IFLA_XDP_ATTACHED"))


def _setns(file):
    if _libc.setns(file.fileno(), CLONE_NEWNET) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"setns: {os.strerror(error)}")


def veth(a, a_name, b, b_name):
    with a.netlink() as ip:
        ip.link("add", ifname=a_name, kind="veth", peer={"ifname": b_name, "net_ns_fd": b.name})
    a.link_state(a_name, up=True)
    b.link_state(b_name, up=True)


def pass_everything(ns, link, pass_object):
    done = subprocess.run(ns.command(["ip", "link", "set", "dev", link, "xdpdrv", "obj", pass_object, "sec", "xdp.frags"]),
                          capture_output=True, text=True)
    if done.returncode != 0:
        raise HarnessError(f"attaching {pass_object} to {link}: {done.stderr.strip()}")


def poll(ns, link, on=True):
    """The driver of that end polls from now on (NAPI), which veth otherwise does only while an XDP program is attached: it then
    loses what it has received and not yet handled when the program is detached, and no counter shows it."""
    run_tool(ns, ["ethtool", "-K", link, "gro", "on" if on else "off"])


def _on_link(address):
    return f"{address}/{64 if ':' in address else 24}"


class Network:
    """Namespaces client1, client2, resolver and authoritative, with links, addresses and routes."""

    def __init__(self, run, pass_object):
        self.pass_object = pass_object
        self.client1 = Namespace(run, "client1")
        self.client2 = Namespace(run, "client2")
        self.resolver = Namespace(run, "resolver")
        self.authoritative = Namespace(run, "authoritative")
        for i in (1, 2):
            self.link_client(i)
        for service in (SERVICE, REFERENCE):
            self.resolver.address("lo", f"{service[4]}/32", f"{service[6]}/128")
        self.resolver.address("lo", *(f"{a}/32" for a in (*DOORS.values(), *REFERENCE_DOORS.values())))
        self.link_upstream()
        with self.resolver.entered():
            Path("/proc/sys/net/ipv4/ip_local_reserved_ports").write_text(UPSTREAM_PORTS)
            Path("/proc/sys/net/ipv4/ip_default_ttl").write_text(str(RESOLVER_HOPS))

    def link_client(self, number):
        """Makes the link between resolver and one of the clients, also after it was removed."""
        veth(self.resolver, f"r{number}", self.client(number), f"c{number}")
        self.settle_client_end(number)
        self.settle_resolver_end(number)

    def client(self, number):
        return {1: self.client1, 2: self.client2}[number]

    def settle_client_end(self, number):
        """Addresses, routes and program of a link's end that has none."""
        client, link = self.client(number), f"c{number}"
        client.address(link, f"10.53.{number}.2/24", f"fd53:{number}::2/64")
        client.route(f"10.53.{number}.1")
        client.route(f"fd53:{number}::1")
        pass_everything(client, link, self.pass_object)
        if number == 1:
            client.address(link, *(_on_link(a) for a in (*CLIENT1_MORE, *STRANGER.values())))

    def settle_resolver_end(self, number):
        link = f"r{number}"
        self.resolver.address(link, f"10.53.{number}.1/24", f"fd53:{number}::1/64")
        with self.resolver.entered():
            Path(f"/proc/sys/net/ipv6/conf/{link}/hop_limit").write_text(str(RESOLVER_HOPS))
        if number == 1:
            self.route_to_strangers()

    def with_room(self, room_object):
        """From now on clients' queries come in frames as long as a network card's buffers (room.bpf.c)."""
        for number in (1, 2):
            client, link = self.client(number), f"c{number}"
            run_tool(client, ["tc", "qdisc", "add", "dev", link, "clsact"])
            run_tool(client, ["tc", "filter", "add", "dev", link, "egress", "bpf", "object-file", room_object, "section", "tc/room",
                              "direct-action"])

    def link_upstream(self):
        """Makes the link between resolver and authoritative, also after it was removed."""
        veth(self.resolver, "ra", self.authoritative, "u0")
        self.resolver.address("ra", "10.53.3.1/24", "fd53:3::1/64")
        self.authoritative.address("u0", "10.53.3.2/24", "fd53:3::2/64")
        pass_everything(self.authoritative, "u0", self.pass_object)
        # Name servers may have any address: the default route leads to them.
        self.resolver.route("10.53.3.2")
        self.resolver.route("fd53:3::2")
        self.authoritative.route("10.53.3.1")
        self.authoritative.route("fd53:3::1")

    def poll(self, on=True):
        for link in LINKS:
            poll(self.resolver, link, on)

    def route_to_strangers(self):
        """Call it again after r1 was down: the kernel removes a link's routes with it."""
        self.resolver.route(CLIENT1[4], "10.54.1.0/24")
        self.resolver.route(CLIENT1[6], "fd54:1::/64")

    def udp_overflows(self):
        """{role: datagrams dropped because their socket's buffer was full}, without the namespaces that dropped none."""
        namespaces = (self.client1, self.client2, self.resolver, self.authoritative)
        return {ns.role: lost for ns in namespaces if (lost := ns.udp_overflows())}
