# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Unbound with packet rings under load: the path that tests share, queries in the background, and what rings have taken of
them."""

import time
from contextlib import ExitStack, contextmanager

from . import rings
from .account import Account
from .client import ask
from .network import CLIENT1, LINKS, SERVICE
from .process import run_tool
from .run import SOON, wait_until

RATE = 500               # queries a second of names that nobody has asked before
LOCAL_RATE = 4000        # the same of names that Unbound itself has data of: no query to upstream
LOCAL = "here.example"   # their zone
NXDOMAIN = 3
RINGS_OFF = ("hydns:\n", "hydns:\n    hydns-queue: no\n    hydns-queue-upstream: no\n")    # for Unbound.change()
# While a link has no IPv6, Unbound asks each server at one address: with its default of 5 attempts, an authoritative server that
# a busy machine lets wait for two seconds costs some queries their answer, also with sockets.
OPTIONS = {"server": ["outbound-msg-retry: 16", "log-servfail: yes", f'local-zone: "{LOCAL}." redirect',
                      f'local-data: "{LOCAL}. 60 A 192.0.2.99"']}


class Paths:
    """Context manager: one kernel path at a time, which tests with the same options share. make: kernel_path()."""

    def __init__(self, world, make):
        self.world, self.make, self.stack, self.options, self.account = world, make, ExitStack(), None, None

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return self.stack.__exit__(*exc)

    def take(self, *, daemon=None, queries=True, upstream=True, **unbound):
        """With all lanes open. A test may kill its programs, and starts them again."""
        if self.options != (daemon, unbound):
            self.stack.close()
            self.options = None
            made = self.make(self.world, daemon_options=daemon, unbound_options=OPTIONS | unbound)
            self.path = self.stack.enter_context(made)
            self.options = (daemon, unbound)
        for server in (self.path.daemon, self.path.unbound):
            if not server.program.running():
                server.start()
        self.world.relay.behave()
        self.world.relay.asked.clear()
        self.path.unbound.control("flush_infra", "all")     # servers that were silent in another test
        settle(self.path, queries, upstream)
        self.account = Account(self.path)
        return self.path

    def tell(self):
        """Prints what has happened since take()."""
        if self.account:
            self.account.tell()
        self.account = None


def settle(path, queries=True, upstream=True):
    """Until all lanes are open, then asks until queries and answers come by rings: only then Unbound knows the zones' servers
    and their next hop."""
    rings.wait_open(path.daemon)

    def used():
        before = rings.counted(path.daemon)
        for name, rdtype in rings.never_asked(8):
            ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1)
        now = rings.counted(path.daemon)
        return now.queries - before.queries >= 8 * queries and now.answers - before.answers >= 7 * upstream
    wait_until(used, SOON, "queries and answers to come by rings")


def fresh(path, **options):
    return rings.load(path.world, RATE, **options)


def local(path, **options):
    return rings.load(path.world, LOCAL_RATE, zone=LOCAL, most=6, **options)


def assert_answered(answers, rcode=NXDOMAIN, since=0, until=float("inf")):
    """Those that were sent in this time."""
    asked = [a for a in answers if since <= a.sent < until]
    lost = [a for a in asked if a.latency is None]
    wrong = [a for a in asked if a.latency is not None and a.rcode != rcode]
    assert asked
    assert not lost, f"{len(lost)} of {len(asked)} queries without an answer{described(lost)}"
    assert not wrong, f"{len(wrong)} of {len(asked)} answers are wrong{described(wrong)}"


def described(answers, most=10):
    """Lines that tell when the first of them were asked; the time is what note() prints."""
    return "".join(f"\n{a.sent / 1e9:.3f} s: question {a.question}, " + ("no answer" if a.latency is None else
                   f"RCODE {a.rcode} after {a.latency / 1e6:.0f} ms") for a in answers[:most])


def note(what):
    """pytest shows it when the test has failed."""
    print(f"{time.monotonic():.3f} s: {what}")


class Used:
    """How many packets rings have taken since it was made or marked."""

    def __init__(self, path):
        self.daemon = path.daemon
        self.mark()

    def mark(self):
        self.before = rings.counted(self.daemon)

    def now(self):
        return rings.Counts(*(n - before for n, before in zip(rings.counted(self.daemon), self.before)))

    def wait(self, queries=100, answers=100):
        """For so many more from now on."""
        self.mark()
        wait_until(lambda: self.now().queries >= queries and self.now().answers >= answers, SOON,
                   f"{queries} queries and {answers} answers to come by rings")


def come(path, count=100):
    """Until so many more queries have come to Unbound's threads, by rings or sockets."""
    before = path.unbound.received()
    wait_until(lambda: path.unbound.received() >= before + count, SOON, f"{count} queries to come to Unbound")


def seen(path, reasons, count=30):
    """Until the program has seen so many more packets that end like one of these; hydnsd runs."""
    def number():
        return sum(n for reason, n in path.daemon.reasons().items() if reason in reasons)
    before = number()
    wait_until(lambda: number() >= before + count, SOON, f"{count} packets that end with {' or '.join(reasons)}")


def numbers(path):
    """{(interface, queue): number} of open lanes."""
    return {(lane["interface"], lane["queue"]): lane["number"] for lane in rings.lanes(path.daemon) if lane["open"]}


# -- the network --------------------------------------------------------------------------------------------------------------
def link_down(ns, link):
    """Takes it down; returns when the kernel says that it is."""
    ns.link_state(link, up=False)

    def is_down():
        with ns.netlink() as ip:
            return ip.get_links(ip.link_lookup(ifname=link)[0])[0].get_attr("IFLA_OPERSTATE") == "DOWN"
    wait_until(is_down, SOON, f"{link} to be down")


def set_mtu(ns, link, mtu):
    with ns.netlink() as ip:
        ip.link("set", index=ip.link_lookup(ifname=link)[0], mtu=mtu)


def ipv6_again(ns, link, address, *routes):
    """The kernel removes a link's IPv6 addresses and all its routes with it. routes: (gateway, destination)."""
    run_tool(ns, ["ip", "address", "replace", address, "dev", link, "nodad"])
    for gateway, to in routes:
        run_tool(ns, ["ip", "route", "replace", to, "via", gateway])


def addresses_again(path):
    """After links of the resolver went down, or had a small MTU."""
    resolver = path.network.resolver
    for n, link in enumerate(LINKS, 1):
        ipv6_again(resolver, link, f"fd53:{n}::1/64")
    for gateway, to in (("10.53.3.2", "0.0.0.0/0"), ("fd53:3::2", "::/0"), (CLIENT1[4], "10.54.1.0/24"),
                        (CLIENT1[6], "fd54:1::/64")):
        run_tool(resolver, ["ip", "route", "replace", to, "via", gateway])


@contextmanager
def sysctls(ns, values):
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
