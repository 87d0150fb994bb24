# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""explain gives the reason under which the XDP program then counts the query, for both servers and both address families.

Each query is explained first, which must count nothing, and then sent: exactly the counter of that reason goes up."""

import pytest
from conftest import bind_path, kernel_path
from test_cookies import ACTIVE, CLIENT_COOKIE, whole

from lab.client import ask, exchange, query
from lab.network import CLIENT1, CLIENT_LINKS, SERVICE, STRANGER
from lab.run import wait_until

NAME = "www.lab.example"
BRIEF, MOMENT = "brief.lab.example", "moment.lab.example"      # TTL 5 and 3
BIG = "big.lab.example"                # its TXT records take more than 512 octets
GUARDED = {4: "10.53.1.3", 6: "fd53:1::3"}      # may ask with a valid cookie only, of Unbound
OTHER_PORT = 5300
# what passes clients' links besides queries: ARP, neighbour discovery
NO_QUERY = ("NOT_IP", "NOT_UDP", "GROUP_ADDRESS", "EXTENSION_HEADER")
DAEMON = {"links": CLIENT_LINKS}       # no answers of upstream servers among the packets


def unbound(world):
    secrets = world.run.dir / "cookie-secrets"
    secrets.write_text(f"{ACTIVE.hex()}\n")
    server = ["answer-cookie: yes", f'cookie-secret-file: "{secrets}"',
              *(f"interface: {a}@{OTHER_PORT}" for a in SERVICE.values()),
              *(f"access-control: {a}/{32 if f == 4 else 128} allow_cookie" for f, a in GUARDED.items())]
    return kernel_path(world, daemon_options=DAEMON,
                       unbound_options={"server": server, "clause": ["hydns-refresh: 50", "hydns-min-ttl: 2"]})


def bind(world):
    return bind_path(world, daemon_options=DAEMON, options=[f'cookie-secret "{ACTIVE.hex()}";'],
                     clause=["hydns-refresh 50;", "hydns-min-ttl 2;"])


@pytest.fixture(scope="module", params=[unbound, bind], ids=lambda make: make.__name__)
def path(request, world):
    with request.param(world) as p:
        yield p


@pytest.fixture(scope="module", params=[4, 6], ids=["IPv4", "IPv6"])
def family(request):
    return request.param


@pytest.fixture
def hot(path):
    """The names that most cases ask for have their rules."""
    path.world.heat(path.daemon, NAME)
    path.world.heat(path.daemon, NAME, dnssec=True)
    return path


def reasons(path):
    return {r: n for r, n in path.daemon.reasons().items() if r not in NO_QUERY}


def counted(before, after):
    return {r: n - before[r] for r, n in after.items() if n != before[r]}


def explained(path, family, name, rdtype, client, options):
    before = reasons(path)
    asked = {"norec": not options.get("rd", True), "do": options.get("dnssec", False), "client": client,
             **{key: options[key] for key in ("edns", "payload", "cookie") if key in options}}
    said = path.daemon.explain(name, rdtype, **asked)
    assert counted(before, reasons(path)) == {}, "a dry run was counted"
    assert said["client"] == client and said["service"].startswith({4: SERVICE[4] + ":", 6: f"[{SERVICE[6]}]:"}[family])
    assert (said["where"] == "kernel") == (said["reason"] == "ANSWERED")
    return said["reason"]


def check(path, family, expected, name=NAME, rdtype="A", *, client=None, port=53, raised=None, **options):
    """Checks the reason that explain gives and the reason that the packet counts under (raised: when these differ)."""
    client = client or CLIENT1[family]
    said = explained(path, family, name, rdtype, client, options)
    before = reasons(path)
    exchange(path.network.client1, SERVICE[family], query(name, rdtype, **options).to_wire(), local=client, port=port,
             timeout=1)
    assert (said, counted(before, reasons(path))) == (expected, {raised or expected: 1})


QUERIES = {     # the reason, and what is asked
    "plain": ("ANSWERED", {}),
    "EDNS": ("ANSWERED", {"edns": True}),
    "EDNS, size 0": ("ANSWERED", {"edns": True, "payload": 0}),
    "DO": ("ANSWERED", {"dnssec": True}),
    "a client's cookie": ("ANSWERED", {"edns": True, "cookie": CLIENT_COOKIE}),
    "no cookie": ("EDNS_UNUSUAL", {"edns": True, "cookie": CLIENT_COOKIE[:7]}),
    "meta type": ("QUESTION_UNUSUAL", {"rdtype": "TYPE249"}),
    "no client of the resolver's": ("ACL", {"client": STRANGER}),
}


@pytest.mark.parametrize("case", QUERIES)
def test_query(hot, family, case):
    expected, asked = QUERIES[case]
    asked = {**asked, "client": asked["client"][family]} if "client" in asked else asked
    check(hot, family, expected, **asked)


def test_no_rule(hot, family):
    """For this question, or for it without RD. What is asked once may have a rule the next time: so not of one name twice."""
    known = f"host{family}.lab.example"
    hot.world.heat(hot.daemon, known)
    check(hot, family, "MISS", known, rd=False)
    check(hot, family, "MISS", known, f"TYPE6528{family}")
    check(hot, family, "MISS", f"never{family}.lab.example")


def test_letters(hot, family):
    check(hot, family, {"unbound": "ANSWERED", "named": "LETTER_CASE"}[hot.server.name], "WwW.lab.eXample")


def test_valid_cookie(hot, family):
    """Of a client of whom Unbound demands one, too."""
    check(hot, family, "ANSWERED", edns=True, cookie=whole(ACTIVE, family, 10))
    if hot.server.name == "unbound":
        guarded = GUARDED[family]
        check(hot, family, "COOKIE", client=guarded)
        check(hot, family, "COOKIE", client=guarded, edns=True, cookie=CLIENT_COOKIE)
        check(hot, family, "ANSWERED", client=guarded, edns=True, cookie=whole(ACTIVE, family, 10, address=guarded))


def test_size(hot, family):
    """What the client takes. What the driver has room for nobody knows before a packet comes, and a veth has little."""
    hot.world.heat(hot.daemon, BIG, "TXT", edns=True, payload=4096)
    check(hot, family, "TOO_BIG", BIG, "TXT", edns=True, payload=600)
    check(hot, family, "TOO_BIG", BIG, "TXT")
    check(hot, family, "ANSWERED", BIG, "TXT", edns=True, payload=4096, raised="NO_ROOM")


def test_another_port(hot, family):
    """A registered port is answered as well (BIND registers that of its option `port`); another port belongs to no resolver."""
    if hot.server.name == "unbound":
        check(hot, family, "ANSWERED", port=OTHER_PORT)
    before = reasons(hot)
    exchange(hot.network.client1, SERVICE[family], query(NAME).to_wire(), port=OTHER_PORT + 1, timeout=1)
    assert counted(before, reasons(hot)) == {"NOT_SERVICE": 1}


def test_refresh(path, family):
    """One query is let through in the last part of the TTL of a name that is asked for, and explain does not take its place."""
    path.world.heat(path.daemon, BRIEF)

    def let_through():
        said = explained(path, family, BRIEF, "A", CLIENT1[family], {})
        before = reasons(path)
        ask(path.network.client1, SERVICE[family], BRIEF)
        if said != "REFRESH":
            return False
        raised = counted(before, reasons(path))
        assert raised in ({"REFRESH": 1}, {"ANSWERED": 1}), raised     # ANSWERED: refreshed meanwhile for the query before
        return raised == {"REFRESH": 1}
    wait_until(let_through, 40, "the rule to be due for refresh")


def test_ended(path, family):
    """The rule goes with its TTL."""
    path.world.heat(path.daemon, MOMENT)
    client = CLIENT1[family]
    wait_until(lambda: explained(path, family, MOMENT, "A", client, {}) in ("MISS", "EMPTY"), 30, "the rule to end")
    check(path, family, explained(path, family, MOMENT, "A", client, {}), MOMENT)


def test_paused(hot, family):
    hot.daemon.ctl("pause")
    try:
        check(hot, family, "PAUSED")
        assert hot.daemon.explain(NAME)["beneath"] == "ANSWERED"
    finally:
        hot.daemon.ctl("resume")
    check(hot, family, "ANSWERED")


def test_empty(hot, family):
    hot.daemon.ctl("flush", "--all")
    assert hot.daemon.explain(NAME, client=CLIENT1[family])["beneath"] == "MISS"
    rings = hot.daemon.call({"cmd": "status"})["resolvers"][0]["lanes"]
    check(hot, family, "MISS" if rings else "EMPTY")     # with packet rings the program must know whose query it is


def test_silent_resolver(hot, family):
    """SIGSTOP stops its heartbeat, until SIGCONT."""
    with hot.server.stopped():
        wait_until(lambda: explained(hot, family, NAME, "A", CLIENT1[family], {}) == "RESOLVER_GONE", 10,
                   "the heartbeat to be old")
        check(hot, family, "RESOLVER_GONE")
    wait_until(lambda: explained(hot, family, NAME, "A", CLIENT1[family], {}) == "ANSWERED", 10, "the heart to beat again")


def test_client_not_named(hot, family):
    """Without --client explain takes a client that the resolver allows, and that client's packet is answered."""
    for name in (NAME, "never.lab.example"):
        said = hot.daemon.explain(name)
        v4 = "." in said["client"]
        assert said["service"].startswith("[") != v4
        assert hot.daemon.explain(name, client=said["client"])["reason"] == said["reason"]


def test_typed(hot):
    """The options of hydnsctl are those of the query."""
    words = {"named": ("answered by the resolver", "capital letters in the name"),
             "unbound": ("answered in kernel", "a rule answers")}
    for word in words[hot.server.name]:
        assert word in hot.daemon.ctl("explain", "WwW.lab.example", "A").stdout
    hot.world.heat(hot.daemon, BIG, "TXT", edns=True, payload=4096)
    for options, expected in (((), "TOO_BIG"), (("--edns=600",), "TOO_BIG"), (("--edns=4096",), "ANSWERED"),
                              (("--edns=4096", "--cookie"), "ANSWERED"), (("--edns=4096", "--cookie=01"), "EDNS_UNUSUAL")):
        said = hot.daemon.ctl("explain", BIG, "TXT", "--json", *options).stdout
        assert f'"reason": "{expected}"' in said, (options, said)
    for wrong in (("--edns=65536",), ("--edns=x",)):
        assert hot.daemon.ctl("explain", NAME, "A", *wrong, check=False).returncode == 2
    for wrong in (("--cookie=0",), ("--cookie=xy",), ("--cookie=" + "00" * 65,)):
        done = hot.daemon.ctl("explain", NAME, "A", *wrong, check=False)
        assert done.returncode == 1 and "cookie is no cookie" in done.stderr
