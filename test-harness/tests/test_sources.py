# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Source validation: where the host's routes and rp_filter would keep a query, or the reply to it, from getting through, the
kernel path answers nothing either. Judged by the same host with the kernel path paused."""

import subprocess
from contextlib import contextmanager

import pytest
from conftest import kernel_path

from lab.client import exchange, query
from lab.network import CLIENT1, CLIENT2, REFERENCE, SERVICE, STRANGER
from lab.run import SOON, wait_until

NAME = "host1.lab.example"
WIRE = query(NAME).to_wire()
SOURCE = {4: "10.53.1.7", 6: "fd53:1::7"}       # of client 1, and nobody else's in these tests
NET = {4: "10.54.1.0/24", 6: "fd54:1::/64"}     # of STRANGER
ELSEWHERE = {4: "198.51.100.7", 6: "2001:db8::7"}       # reached by the default route alone
HOST = {4: "/32", 6: "/128"}
MODES = {"off": 0, "strict": 1, "loose": 2}
SILENCE = 0.15
ACCESS = ["access-control: 10.54.0.0/16 allow", "access-control: fd54::/16 allow",
          "access-control: 198.51.100.0/24 allow", "access-control: 2001:db8::/32 allow"]


def ip(path, family, *words, check=True):
    done = subprocess.run(path.network.resolver.command(["ip", f"-{family}", *words]), capture_output=True, text=True)
    assert done.returncode == 0 or not check, f"ip {words}: {done.stderr}"
    return done.stdout


@contextmanager
def route(path, family, *words):
    ip(path, family, "route", "add", *words)
    try:
        yield
    finally:
        ip(path, family, "route", "del", *words)


def sysctl(path, **values):
    """rp_filter of interfaces."""
    words = [f"net.ipv4.conf.{name}.rp_filter={value}" for name, value in values.items()]
    subprocess.run(path.network.resolver.command(["sysctl", "-qw", *words]), check=True)


@contextmanager
def rp_filter(path, mode, *interfaces):
    sysctl(path, **{i: MODES[mode] for i in interfaces})
    wait_until(lambda: sources(path, 4)["rp_filter"] == mode, SOON, f"hydnsd to know rp_filter {mode}")
    try:
        yield
    finally:
        sysctl(path, **{i: 0 for i in interfaces})
        wait_until(lambda: sources(path, 4)["rp_filter"] == "off", SOON, "hydnsd to know that rp_filter is off")


def sources(path, family):
    return path.daemon.call({"cmd": "status"})["sources"][{4: 0, 6: 1}[family]]


def ask(path, family, local, ns=None):
    """(whether there was a reply, whether it was the kernel's)"""
    before = path.daemon.reasons()["ANSWERED"]
    reply = exchange(ns or path.network.client1, SERVICE[family], WIRE, local=local, timeout=SILENCE)
    return reply is not None, path.daemon.reasons()["ANSWERED"] - before == 1


def alone(path, family, local, ns=None):
    """Whether the resolver's host gives a reply without the kernel path."""
    path.daemon.ctl("pause")
    try:
        return ask(path, family, local, ns)[0]
    finally:
        path.daemon.ctl("resume")


def answered(path, family, local, ns=None):
    wait_until(lambda: ask(path, family, local, ns) == (True, True), SOON, f"{local} to be answered in the kernel")


def passed(path, family, local):
    """As the resolver's host does it: with no reply, and none of the kernel's."""
    wait_until(lambda: not ask(path, family, local)[1], SOON, f"{local} not to be answered in the kernel")
    assert ask(path, family, local) == (False, False)
    assert not alone(path, family, local)


@contextmanager
def addresses_of_others(network):
    """Client 1 sends from an address behind the default route, and from one that is the resolver's host's own."""
    mine = [(f, a) for f in (4, 6) for a in (ELSEWHERE[f], REFERENCE[f])]
    for family, address in mine:
        network.client1.address("c1", address + HOST[family])
    try:
        yield
    finally:
        with network.client1.netlink() as nl:
            index = nl.link_lookup(ifname="c1")[0]
            for family, address in mine:
                nl.addr("del", index=index, address=address, prefixlen=int(HOST[family][1:]))


@pytest.fixture(scope="module")
def path(world):
    """hydnsd on r1 alone."""
    with addresses_of_others(world.network), kernel_path(world, unbound_options={"server": ACCESS}) as p:
        yield use_r1_alone(p)


def use_r1_alone(p):
    p.daemon.stop()
    p.daemon.interfaces = ("r1",)
    p.daemon.start()
    wait_until(p.daemon.resolver_ready, SOON, "the plugin to register")
    p.world.heat(p.daemon, NAME)
    return p


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("kind", ["blackhole", "unreachable", "prohibit", "throw"])
def test_route_that_refuses(path, family, kind):
    """Whatever rp_filter says, for no reply of the resolver's would leave."""
    answered(path, family, SOURCE[family])
    with route(path, family, kind, SOURCE[family] + HOST[family]):
        if kind == "throw":            # and so by table default, where there is nothing
            wait_until(lambda: not ask(path, family, SOURCE[family])[1], SOON, "the route to be known")
        else:
            passed(path, family, SOURCE[family])
        assert ask(path, family, CLIENT1[family]) == (True, True)
    answered(path, family, SOURCE[family])


@pytest.mark.parametrize("mode", MODES)
def test_blackhole_under_each_mode(path, mode):
    with rp_filter(path, mode, "r1"):
        answered(path, 4, SOURCE[4])
        with route(path, 4, "blackhole", "10.53.1.4/30"), route(path, 4, "10.53.1.6/32", "dev", "r1"):
            passed(path, 4, SOURCE[4])
            answered(path, 4, "10.53.1.6")
        answered(path, 4, SOURCE[4])


@pytest.mark.parametrize("family", [4, 6])
def test_own_address_is_a_martian(path, family):
    assert ask(path, family, REFERENCE[family]) == (False, False)
    assert not alone(path, family, REFERENCE[family])


@pytest.mark.parametrize("family", [4, 6])
def test_no_route_at_all(path, family):
    gateway = {4: "10.53.3.2", 6: "fd53:3::2"}[family]
    answered(path, family, ELSEWHERE[family])
    ip(path, family, "route", "del", "default")
    try:
        passed(path, family, ELSEWHERE[family])
        assert ask(path, family, CLIENT1[family]) == (True, True)
    finally:
        ip(path, family, "route", "add", "default", "via", gateway)
    answered(path, family, ELSEWHERE[family])


def test_source_of_another_interface(path):
    """Strict alone demands the interface that the query came by."""
    def moved():
        ip(path, 4, "route", "replace", NET[4], "via", CLIENT2[4])

    def back():
        ip(path, 4, "route", "replace", NET[4], "via", CLIENT1[4])
    try:
        for mode in ("off", "loose"):
            with rp_filter(path, mode, "r1"):
                moved()
                time_for_a_look(path)
                assert ask(path, 4, STRANGER[4]) == (True, True)
                back()
        with rp_filter(path, "strict", "r1"):
            answered(path, 4, STRANGER[4])
            moved()
            passed(path, 4, STRANGER[4])
            assert ask(path, 4, CLIENT1[4]) == (True, True)
            back()
            answered(path, 4, STRANGER[4])
            passed(path, 4, ELSEWHERE[4])      # the default route is by ra
    finally:
        back()


def time_for_a_look(path):
    """Until hydnsd has seen a route that was made after what the test is about."""
    with route(path, 4, "blackhole", SOURCE[4] + "/32"):
        wait_until(lambda: not ask(path, 4, SOURCE[4])[1], SOON, "hydnsd to look at the routes")
    answered(path, 4, SOURCE[4])


def test_several_next_hops(path):
    """One of them by the interface is enough for the kernel, and so for hydnsd."""
    hops = ["nexthop", "via", CLIENT1[4], "nexthop", "via", CLIENT2[4]]
    with rp_filter(path, "strict", "r1"):
        ip(path, 4, "route", "replace", NET[4], *hops)
        try:
            time_for_a_look(path)
            assert ask(path, 4, STRANGER[4]) == (True, True)
        finally:
            ip(path, 4, "route", "replace", NET[4], "via", CLIENT1[4])


@pytest.mark.parametrize("family", [4, 6])
def test_metric_decides(path, family):
    """A blackhole with a worse metric than another route refuses no client, until that route is removed."""
    net = NET[family]
    with route(path, family, "blackhole", net, "metric", "5000"):
        time_for_a_look(path)
        assert ask(path, family, STRANGER[family]) == (True, True)
        ip(path, family, "route", "del", net, "via", CLIENT1[family])
        try:
            passed(path, family, STRANGER[family])
        finally:
            ip(path, family, "route", "add", net, "via", CLIENT1[family])
        answered(path, family, STRANGER[family])


@pytest.mark.parametrize("family", [4, 6])
def test_policy_rules(path, family):
    """A refusing rule counts; status shows that there are rules."""
    rule = ["to", SOURCE[family] + HOST[family], "prohibit"]
    ip(path, family, "rule", "add", *rule)
    try:
        passed(path, family, SOURCE[family])
        assert "policy rules" in sources(path, family)["note"]
        assert ask(path, family, CLIENT1[family]) == (True, True)
    finally:
        ip(path, family, "rule", "del", *rule)
    answered(path, family, SOURCE[family])
    assert not sources(path, family)["note"]
    with route(path, family, "blackhole", SOURCE[family] + HOST[family], "table", "77"):
        ip(path, family, "rule", "add", "from", SERVICE[family], "lookup", "77")
        try:
            passed(path, family, SOURCE[family])
            assert ask(path, family, CLIENT1[family]) == (True, True)
        finally:
            ip(path, family, "rule", "del", "from", SERVICE[family], "lookup", "77")
    answered(path, family, SOURCE[family])


def test_rule_of_others_counts_for_nobody(path):
    """For what is forwarded alone."""
    ip(path, 4, "rule", "add", "iif", "r2", "prohibit")
    try:
        time_for_a_look(path)
        assert ask(path, 4, SOURCE[4]) == (True, True)
        assert not sources(path, 4)["note"]
    finally:
        ip(path, 4, "rule", "del", "iif", "r2", "prohibit")


@pytest.mark.parametrize("family", [4, 6])
def test_link_goes_down(path, family):
    """With its routes goes the answer, and with the answer the routes come back."""
    table = path.network.resolver
    gateway = {4: "10.53.3.2", 6: "fd53:3::2"}[family]
    answered(path, family, ELSEWHERE[family])
    table.link_state("ra", up=False)
    try:
        wait_until(lambda: not ask(path, family, ELSEWHERE[family])[1], SOON, "the default route to be known as gone")
    finally:
        table.link_state("ra", up=True)
        table.address("ra", "fd53:3::1/64")
        for f, g in ((4, "10.53.3.2"), (6, "fd53:3::2")):
            ip(path, f, "route", "replace", "default", "via", g)
    answered(path, family, ELSEWHERE[family])
    assert gateway in ip(path, family, "route", "show", "default")


def batch(path, family, lines):
    done = subprocess.run(path.network.resolver.command(["ip", f"-{family}", "-batch", "-"]), input="\n".join(lines),
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("family,kind,count,said", [
    (4, "unicast", 8500, "routes: all IPv4"), (6, "unicast", 8500, "routes: all IPv6"),
    (4, "blackhole", 2100, "prefixes"), (6, "blackhole", 2100, "prefixes")])
def test_too_many_routes(path, family, kind, count, said):
    """Beyond the bound a family is passed, and said to be; the other goes on."""
    def lines(verb):
        for i in range(count):
            net = f"203.{i >> 7}.{(i & 127) * 2}.0/24" if family == 4 else f"2001:db8:{i * 2:x}::/48"
            yield f"route {verb} {kind} {net}" + (f" via {gateway}" if kind == "unicast" else "")
    gateway = {4: "10.53.3.2", 6: "fd53:3::2"}[family]
    other = {4: 6, 6: 4}[family]
    batch(path, family, lines("add"))
    try:
        wait_until(lambda: said in sources(path, family)["note"], SOON, "hydnsd to give up")
        assert not ask(path, family, SOURCE[family])[1] and alone(path, family, SOURCE[family])
        assert ask(path, other, SOURCE[other]) == (True, True)
        assert said in path.daemon.ctl("status").stdout
        assert said in path.daemon.ctl("doctor", check=False).stdout
    finally:
        batch(path, family, lines("del"))
    wait_until(lambda: not sources(path, family)["note"], 30, "hydnsd to look again")
    answered(path, family, SOURCE[family])


def test_said(path):
    """status, doctor and explain."""
    with rp_filter(path, "loose", "all"):
        for command in ("status", "doctor"):
            assert "has a route to; rp_filter: loose" in path.daemon.ctl(command, check=False).stdout
        with route(path, 4, "blackhole", SOURCE[4] + "/32"):
            passed(path, 4, SOURCE[4])
            said = path.daemon.ctl("explain", "--client", SOURCE[4]).stdout
            assert "has no route to it, or one that refuses it" in said
    assert "address of this host" in path.daemon.ctl("explain", "--client", REFERENCE[4]).stdout


def test_restart_of_the_daemon(path):
    """Changes made while hydnsd was away are in force when its resolver is ready again."""
    path.daemon.stop(9)
    with route(path, 6, "blackhole", SOURCE[6] + "/128"):
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, SOON, "the plugin to register")
        path.world.heat(path.daemon, NAME)
        passed(path, 6, SOURCE[6])
    answered(path, 6, SOURCE[6])
