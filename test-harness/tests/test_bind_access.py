# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Clients and addresses that BIND treats in special ways, by every list that named.conf has: the kernel answers the clients
that named would answer normally, and passes the others, while the name is hot. Each configuration is a class, because its named
must end before the next one's starts."""

import re
import time
from pathlib import Path

import dns.rcode
import pytest
from conftest import bind_path
from test_cookies import ACTIVE, whole

from lab.batch import exchange_all
from lab.client import SILENCE, ask, query
from lab.network import CLIENT1, CLIENT2, DOORS, SERVICE, STRANGER
from lab.run import SOON, replaced, wait_until

NAME = "www.lab.example"
REFUSED, SILENT, ANSWERED, BADCOOKIE = "refused", "silent", "answered", "bad cookie"
SECRET = f'cookie-secret "{ACTIVE.hex()}";'
OWN = "192.0.2.199"      # the data of the name in a view


def grown(before, after):
    """The differences between two readings of counters."""
    return {name: n - before.get(name, 0) for name, n in after.items() if n != before.get(name, 0)}


def served(path, source, *, server=None, name=NAME, rdtype="A", timeout=SILENCE, **options):
    """(what the client gets, whether the kernel gave it). timeout: seconds after which no reply counts as silence."""
    ns = path.network.client2 if source in CLIENT2.values() else path.network.client1
    before, named = path.daemon.reasons(), path.named.stats()
    reply = ask(ns, server or SERVICE[6 if ":" in source else 4], name, rdtype, local=source, timeout=timeout, **options)
    after = path.daemon.reasons()
    kernel = after["ANSWERED"] - before["ANSWERED"]
    if reply is None:
        print(f"{source}: silence; the program: {grown(before, after)}, named: {grown(named, path.named.stats())}, "
              f"sockets that have overflowed: {path.network.udp_overflows()}")
        return SILENT, kernel == 1
    return {dns.rcode.NOERROR: ANSWERED, dns.rcode.REFUSED: REFUSED, dns.rcode.BADCOOKIE: BADCOOKIE}[reply.rcode()], kernel == 1


def heat(path, source, **options):
    """Asks until the kernel answers this client there."""
    wait_until(lambda: served(path, source, **options) == (ANSWERED, True), 10, f"{NAME} to be hot for {source}, {options}")


# --- the default lists ----------------------------------------------------------------------------------------
@pytest.fixture(scope="class")
def default(world):
    """No list is set: localnets and localhost are answered."""
    with bind_path(world, clients=None) as path:
        yield path


class TestDefaultLists:
    def test_default_lists(self, default):
        """They follow the interfaces once named has scanned them: it does so by itself, but not at once, and not for every
        change."""
        resolver = default.network.resolver
        for family in (4, 6):
            heat(default, CLIENT1[family])
            assert served(default, STRANGER[family]) == (REFUSED, False)
        for family, address, length in ((4, "10.55.0.77", 15), (6, "fd54::77", 16)):
            resolver.address("r1", f"{address}/{length}")
            default.named.control("scan")
            heat(default, STRANGER[family])
            with resolver.netlink() as ip:
                ip.addr("del", index=ip.link_lookup(ifname="r1")[0], address=address, prefixlen=length)
            default.named.control("scan")
            assert served(default, STRANGER[family]) == (REFUSED, False)
            heat(default, CLIENT1[family])
            assert served(default, STRANGER[family]) == (REFUSED, False)


# --- lists of all kinds --------------------------------------------------------------------------------------------
def both_nets(text):
    """For each family's netblock of client 1, whose addresses end alike."""
    return "".join(text.format(n=n, one=one, pair=one - 1, eight=one - 3) for n, one in (("10.53.1.", 32), ("fd53:1::", 128)))


LISTS = [
    f'blackhole {{ {both_nets("{n}6;")} }};',
    # the first match counts: a member before its network, a list in a list, a negated one, a key
    f'allow-query-cache {{ {both_nets("!{n}3;")} key rndc; {{ {both_nets("!{n}4; {n}0/{eight};")} }}; '
    f'!{{ {both_nets("{n}16/{pair};")} }}; {both_nets("{n}17;")} !{{ key rndc; {both_nets("{n}20/{pair};")} }}; '
    '10.53.0.0/16; fd53::/16; !any; };',
    f'allow-recursion {{ {both_nets("!{n}5;")} any; }};',
    f'sortlist {{ {{ {{ {both_nets("{n}7;")} }}; {{ 192.0.2.0/24; }}; }}; }};',
    f'no-case-compress {{ {both_nets("{n}8;")} }};',
    f'allow-query-cache-on {{ !{DOORS["view"]}; any; }}; allow-recursion-on {{ !{DOORS["tag"]}; localhost; }};',
    # by what is fetched, so the same for all clients
    'deny-answer-addresses { 203.0.113.0/24; }; deny-answer-aliases { "elsewhere.example"; };',
    'dns64 2001:db8:64::/96 { clients { any; }; };',
]
CASES = {
    "plain": (2, ANSWERED, True), "denied": (3, REFUSED, False),
    # what a list denies within another is no match, and the search goes on
    "denied within": (4, ANSWERED, True), "no recursion": (5, ANSWERED, False), "blackhole": (6, SILENT, False),
    "sortlist": (7, ANSWERED, False), "no-case-compress": (8, ANSWERED, False), "before a negated list": (15, ANSWERED, True),
    "in a negated list": (16, REFUSED, False), "in it, and allowed after it": (17, REFUSED, False),
    "after it": (18, ANSWERED, True),
    # with a key, which matches no client here, before the addresses
    "in a negated list with a key": (20, REFUSED, False), "after that": (22, ANSWERED, True),
}


@pytest.fixture(scope="class")
def lists(world):
    with bind_path(world, clients=None, options=LISTS, listen="".join(f"{a};" for a in DOORS.values())) as path:
        for source, server in ((CLIENT1[4], SERVICE[4]), (CLIENT1[6], SERVICE[6]), (CLIENT1[4], DOORS["action"])):
            heat(path, source, server=server)
        yield path


class TestLists:
    @pytest.mark.parametrize("case", CASES)
    @pytest.mark.parametrize("family", (4, 6))
    def test_lists(self, lists, family, case):
        last, gets, kernel = CASES[case]
        assert served(lists, f"{CLIENT1[family][:-1]}{last}", timeout=0.5 if gets == SILENT else SILENCE) == (gets, kernel)

    @pytest.mark.parametrize("door,gets,kernel", (("action", ANSWERED, True), ("view", REFUSED, False), ("tag", ANSWERED, False)))
    def test_lists_by_the_address_that_is_asked(self, lists, door, gets, kernel):
        assert served(lists, CLIENT1[4], server=DOORS[door]) == (gets, kernel)

    def test_dns64_is_for_one_type(self, lists):
        for _ in range(10):
            assert served(lists, CLIENT1[4], rdtype="AAAA") == (ANSWERED, False)


# --- rate-limit --------------------------------------------------------------------------------------------------------
EXEMPT, LIMITED, FLOODING = (f"10.53.1.{i}" for i in (9, 10, 11))


@pytest.fixture(scope="class")
def limited(world):
    """rate-limit for each /32, so that clients do not share a limit."""
    with bind_path(world, options=[f"rate-limit {{ responses-per-second 5; slip 0; exempt-clients {{ {EXEMPT}; "
                                   f"{CLIENT2[4]}; }}; ipv4-prefix-length 32; }};", SECRET]) as path:
        wait_until(lambda: [ask(path.network.client2, SERVICE[4], NAME) for _ in range(20)] and
                   path.daemon.explain(NAME)["where"] == "kernel", 10, "the name to be hot")
        yield path


class TestRateLimit:
    def test_rate_limit(self, limited):
        """Exempt clients, and those with a valid cookie, are not counted; the others are, whoever answers (test_bind_rates.py)."""
        assert served(limited, EXEMPT) == (ANSWERED, True)
        heat(limited, LIMITED)       # at first named counts alone: for a window
        assert served(limited, LIMITED, edns=True, cookie=whole(ACTIVE, 4, 10, address=LIMITED)) == (ANSWERED, True)
        assert served(limited, LIMITED, edns=True, cookie=whole(ACTIVE, 4, 10, address=EXEMPT)) == (BADCOOKIE, False)

    def test_rate_limit_holds_in_a_flood(self, limited):
        """As many replies as from named alone, five in each second that began meanwhile."""
        begun = time.monotonic()
        replies = exchange_all(limited.network.client1, SERVICE[4], [query(NAME).to_wire()] * 60, local=FLOODING, timeout=1)
        assert 1 <= sum(r is not None for r in replies) <= 5 * (time.monotonic() - begun + 2)


# --- views ---------------------------------------------------------------------------------------------------------------
INSIDER, OUTSIDER = "10.53.1.12", "10.53.1.13"


def heat_views(path):
    for source, server in ((OUTSIDER, SERVICE[4]), (CLIENT1[6], SERVICE[6]), (OUTSIDER, DOORS["action"])):
        heat(path, source, server=server)


@pytest.fixture(scope="class")
def views(world):
    """At the service address a view for one client comes before that for all; another has an address of its own."""
    zone = world.run.dir / "own.zone"
    zone.write_text(f"$TTL 300\n@ SOA ns hostmaster 1 3600 900 604800 300\n@ NS ns\nns A 192.0.2.53\nwww A {OWN}\n")
    own = f'zone "lab.example" {{ type primary; file "{zone}"; }};'
    order = {"door": ([f'match-destinations {{ {DOORS["action"]}; }};'], True),
             "insider": ([f"match-clients {{ {INSIDER}; key rndc; }};", own], False),
             "all": ([], True), "never": ([], True)}
    with bind_path(world, views=order, listen=f'{DOORS["action"]};') as path:
        heat_views(path)
        yield path


def rings(path):
    """The rings that named has mapped: one for each loop and view that offers answers, or that a view has left behind."""
    return Path(f"/proc/{path.named.program.pid}/maps").read_text().count("memfd:hydns-ring")


def without_plugin(text, names, statement):
    """The configuration, with this statement in the plugin's place in these views."""
    for name in names:
        text, found = re.subn(rf'^(view "{name}" .*?)^plugin query .*?^}};$', rf"\1{statement}", text, count=1, flags=re.M | re.S)
        assert found == 1, name
    return text


class TestViews:
    def test_views(self, views):
        assert served(views, OUTSIDER) == (ANSWERED, True)
        assert served(views, INSIDER) == (ANSWERED, False)
        assert ask(views.network.client1, SERVICE[4], NAME, local=INSIDER).answer[0][0].address == OWN
        assert served(views, INSIDER, server=DOORS["action"]) == (ANSWERED, True)
        assert served(views, CLIENT1[6]) == (ANSWERED, True)

    def test_views_are_resolvers_of_their_own(self, views):
        """status names them; a flush withdraws the rules of all."""
        status = views.daemon.call({"cmd": "status"})["resolvers"]
        assert {r["identity"] for r in status if r["services"]} == {"named, view door", "named, view all"}
        views.named.control("flush")
        assert views.daemon.explain(NAME)["where"] == "resolver"
        heat_views(views)

    def test_views_changed_by_a_reload(self, views):
        """The insider's address changes: when rndc returns, no client is answered by the former lists."""
        config = views.named.config
        text = config.read_text()
        try:
            config.write_text(replaced(text, f"{{ {INSIDER};", f"{{ {OUTSIDER};"))
            views.named.control("reconfig")
            assert ask(views.network.client1, SERVICE[4], NAME, local=OUTSIDER).answer[0][0].address == OWN
            heat(views, INSIDER)
            assert served(views, OUTSIDER) == (ANSWERED, False)
        finally:
            config.write_text(text)
            views.named.control("reconfig")

    @pytest.mark.parametrize("disabled", (False, True), ids=("removed", "disabled"))
    @pytest.mark.parametrize("left", (1, 0))
    def test_views_without_the_plugin_leave_nothing(self, views, disabled, left):
        """Their tables and rings are freed, though named and other views go on."""
        config = views.named.config
        text = config.read_text()
        statement = re.search(r"^plugin query .*?^};$", text, re.M | re.S)[0][:-2] + "hydns-enable no; };" if disabled else ""
        wait_until(lambda: rings(views) == 2 * views.named.threads, 10, "two views to offer answers")
        try:
            config.write_text(without_plugin(text, ("all", "never", "door")[:3 - left], statement))
            views.named.control("reconfig")
            if left:
                heat(views, OUTSIDER, server=DOORS["action"])
            wait_until(lambda: rings(views) == left * views.named.threads, 10, "the former tables to be freed")
        finally:
            config.write_text(text)
            views.named.control("reconfig")
            heat_views(views)

    def test_one_view_at_an_address(self, views):
        """Of two views with the plugin the kernel answers for the first; queries of the other's clients pass."""
        config = views.named.config
        text = config.read_text()
        statement = re.search(r"^plugin query .*?^};$", text, re.M | re.S)[0]
        try:
            config.write_text(replaced(text, 'view "insider" {', f'view "insider" {{ {statement}'))
            views.named.control("reconfig")
            heat(views, INSIDER)
            before = views.daemon.reasons()["ANSWERED"]
            for _ in range(20):
                for source, address, kernel in ((INSIDER, OWN, 1), (OUTSIDER, "192.0.2.1", 0)):
                    reply = ask(views.network.client1, SERVICE[4], NAME, local=source)
                    before, kernels = views.daemon.reasons()["ANSWERED"], views.daemon.reasons()["ANSWERED"] - before
                    assert (reply.answer[0][0].address, kernels) == (address, kernel), source
            wait_until(lambda: any("at each it answers for one view" in n for r in views.daemon.call({"cmd": "status"})["resolvers"]
                                   if r["identity"] == "named, view all" for n in r["notes"]), SOON, "its note")
            assert "at each it answers for one view" in views.named.program.log.read_text()
        finally:
            config.write_text(text)
            views.named.control("reconfig")

    def test_configuration_that_fails(self, views):
        """The former configuration stays in force, with its kernel answers."""
        config = views.named.config
        text = config.read_text()
        try:
            config.write_text(replaced(text, 'view "never" {', 'view "never" { plugin query "/nonexistent.so";'))
            views.named.control("reconfig", check=False)
            heat(views, OUTSIDER)
        finally:
            config.write_text(text)
            views.named.control("reconfig")
