# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Configurations of BIND that could make it treat an answer in another way than by relaying it: with each, its zone is not forwarded in the
kernel, and a note says why and what to do. What named-checkconf refuses is in bind-patches/run-tests."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from forwarding_paths import NAME, change, configured, expect_refused, forwarding_path, resolver, sent, usable

from lab.client import ask
from lab.forwarding import ZONE, Upstream
from lab.network import SERVICE
from lab.run import SOON, HarnessError, replaced, wait_until

SERVER = "10.53.6.61"

# what: (lines of the options clause, options of the lab's Named, words of the note)
REFUSED = {
    "recursion": ([], {"recursion": False}, "recursion is no"),
    "query-source": (["query-source address 10.53.3.1;"], {}, "query-source"),
    "query-source-v6": (["query-source-v6 address fd53:3::1;"], {}, "query-source"),
    "avoid-v4-udp-ports": (["avoid-v4-udp-ports { range 20000 20010; };"], {}, "avoid-v4-udp-ports"),
    "blackhole": (["blackhole { 192.0.2.77; };"], {}, "blackhole"),
    "fetches-per-zone": (["fetches-per-zone 100;"], {}, "fetches-per-zone"),
    "fetches-per-server": (["fetches-per-server 100;"], {}, "fetches-per-server"),
    "request-nsid": (["request-nsid yes;"], {}, "request-nsid"),
    "stale answers": (["stale-cache-enable yes;", "stale-answer-enable yes;"], {}, "stale-answer-enable"),
    "min-cache-ttl": (["min-cache-ttl 10;"], {}, "min-cache-ttl"),
    "min-ncache-ttl": (["min-ncache-ttl 10;"], {}, "min-ncache-ttl"),
    "deny-answer-addresses": (["deny-answer-addresses { 192.168.0.0/16; };"], {}, "deny-answer-addresses"),
    "deny-answer-aliases": (['deny-answer-aliases { "evil.example"; };'], {}, "deny-answer-aliases"),
    "dns64": (["dns64 64:ff9b::/96 { clients { none; }; };"], {}, "dns64"),
    "check-names": (["check-names response fail;"], {}, "check-names"),
    "rrset-order": (["rrset-order { order random; };"], {}, "rrset-order"),
    "auth-nxdomain": (["auth-nxdomain yes;"], {}, "auth-nxdomain"),
    "message-compression": (["message-compression no;"], {}, "message-compression"),
    "max-records-per-type": (["max-records-per-type 31;"], {}, "max-records-per-type"),
    "max-query-restarts": (["max-query-restarts 8;"], {}, "max-query-restarts"),
    "server": ([], {"statements": ("server 10.53.6.61 { send-cookie no; };",)}, "server clause"),
    "own zone above": ([], {"zones": {"example": "type static-stub; server-addresses { 10.53.3.2; };"}}, "named has itself"),
    "own address": ([], {"zones": {ZONE: "type forward; forward only; forwarders { 127.0.0.1; };"}}, "host's own"),
}


@pytest.fixture(scope="module")
def server(world):
    with Upstream(world.network.authoritative, SERVER) as u:
        yield u


@pytest.mark.parametrize("what", REFUSED)
def test_what_stands_in_the_way(world, server, what):
    lines, more, words = REFUSED[what]
    made = configured("bind", (SERVER,), lines=lines)
    more = more | {"zones": made["zones"] | more.get("zones", {})}
    with forwarding_path(world, "bind", SERVER, lines=lines, more=more, waits=False) as path:
        expect_refused(path, words)


def anchor(world, name):
    """A file with a trust anchor."""
    file = world.run.dir / "anchor.ds"
    file.write_text(f"{name} IN DS 12345 13 2 {'ab' * 32}\n")
    return file


def test_validation(world, server):
    """A zone that is excepted for good is forwarded, until rndc takes the exception away. One that rndc grants has an end."""
    lines = [f'validate-except {{ "{ZONE}"; }};']
    with forwarding_path(world, "bind", SERVER, lines=lines, more={"anchors": [anchor(world, ZONE)]}) as path:
        before = sent(path)
        assert ask(path.network.client1, SERVICE[4], NAME).answer
        assert sent(path) == before + 1
        path.server.control("nta", "-remove", ZONE)
        wait_until(lambda: [n for n in resolver(path)["notes"] if "validate-except" in n], SOON, "a note")
        assert resolver(path)["forwarding"]["zones"] == []
        change(path, lines[0], "")
        path.server.control("nta", "-force", ZONE)
        wait_until(lambda: [n for n in resolver(path)["notes"] if "validate-except" in n], SOON, "a note again")
        assert resolver(path)["forwarding"]["zones"] == []


BAD = {"forward only": "forward first", "type forward; forward only": "type static-stub", f"{SERVER};": f"{SERVER} tls ephemeral;",
       f"{{ {SERVER}; }}": "{ }"}


@pytest.mark.parametrize("good", BAD)
def test_a_bad_configuration_is_refused(world, server, good):
    """named keeps the former one, and the zone is forwarded by that."""
    with forwarding_path(world, "bind", SERVER) as path:
        text = path.server.config.read_text()
        bad = BAD[good].replace("static-stub", f"static-stub; server-addresses {{ {SERVER}; }}; }}; #")
        path.server.config.write_text(replaced(text, good, bad))
        with pytest.raises(HarnessError):
            path.server.control("reconfig")
        assert "hydns-forward: forwarded.example " in path.server.program.log.read_text()
        wait_until(lambda: ask(path.network.client1, SERVICE[4], NAME) and usable(path), SOON, "the zone to be forwarded again")
        before = sent(path)
        assert ask(path.network.client1, SERVICE[4], f"new.{ZONE}").answer
        assert sent(path) == before + 1


def test_reloads_while_clients_ask(world, server):
    """Each client gets its answer, whichever instance of the plugin is told of the zone."""
    with forwarding_path(world, "bind", SERVER) as path, ThreadPoolExecutor(1) as pool:
        done = Event()

        def ask_on():
            replies = []
            while not done.is_set():
                replies.append(ask(path.network.client1, SERVICE[4], f"n{len(replies)}.{ZONE}", timeout=SOON))
            return replies
        asked = pool.submit(ask_on)
        try:
            for _ in range(10):
                path.server.control("reconfig")
                wait_until(lambda: usable(path) and sent(path) > 0, SOON, "queries to be forwarded again")
        finally:
            done.set()
        replies = asked.result()
        assert len(replies) > 10 and all(r and r.answer for r in replies)
        wait_until(lambda: resolver(path)["forwarding"]["open"] == 0, SOON, "no request to be open")


def test_a_view(world, server):
    """The zone is the view's own."""
    views = {"other": (["match-clients { 10.53.99.0/24; };"], False), "main": (["match-clients { any; };"], True)}
    with forwarding_path(world, "bind", SERVER, more={"views": views}) as path:
        before = sent(path)
        assert ask(path.network.client1, SERVICE[4], NAME).answer
        assert sent(path) == before + 1


def test_forwarders_of_the_options(world, server):
    """They are the root's."""
    lines = ["forward only;", f"forwarders {{ {SERVER}; }};"]
    more = {"zones": None, "clause": ['hydns-forward { "."; };']}
    with forwarding_path(world, "bind", SERVER, lines=lines, more=more) as path:
        assert resolver(path)["forwarding"]["zones"] == ["."]
        before = sent(path)
        assert ask(path.network.client1, SERVICE[4], "www.anything.example").answer
        assert sent(path) == before + 1


INSIDE = {      # of BIND's zone: zones that it does not forward with it
    f"data.local.{ZONE}": f'type static-stub; server-addresses {{ {SERVER}; }};',
    f"stub.{ZONE}": f'type stub; primaries {{ {SERVER}; }};',
    f"plain.{ZONE}": f"type forward; forward only; forwarders {{ {SERVER}; }};",
    f"first.{ZONE}": f"type forward; forward first; forwarders {{ {SERVER}; }};",
    f"none.{ZONE}": "type forward; forwarders { };",
}


def bind_with_zones_inside(world):
    made = configured("bind", (SERVER,))
    more = {"zones": made["zones"] | INSIDE, "anchors": [anchor(world, f"island.{ZONE}")]}
    return forwarding_path(world, "bind", SERVER, more=more, lines=["allow-new-zones yes;"])


@pytest.fixture(scope="module")
def named(world, server):
    """BIND, with zones of others within the forwarded one."""
    with bind_with_zones_inside(world) as p:
        yield p


def test_zones_within(named):
    """Only what no other zone has is forwarded, whatever that zone is."""
    assert resolver(named)["forwarding"]["zones"] == [ZONE]
    for name in [f"a.{zone}" for zone in INSIDE] + [*INSIDE, f"a.island.{ZONE}"]:
        before = sent(named)
        ask(named.network.client1, SERVICE[4], name, timeout=0.2)
        assert sent(named) == before, name
    for name in (f"a.{ZONE}", ZONE, f"xnone.{ZONE}"):
        before = sent(named)
        assert ask(named.network.client1, SERVICE[4], name) is not None
        assert sent(named) == before + 1, name


def test_a_zone_that_is_added(named):
    """From when the command has returned until it is undone."""
    name, zone = f"a.new.{ZONE}", f"new.{ZONE}"

    def forwarded(server):
        named.server.control("flushtree", ZONE)
        before = sent(named)
        ask(named.network.client1, SERVICE[4], server, timeout=0.5)
        return sent(named) - before
    assert forwarded(name) == 1
    named.server.control("addzone", zone, f"{{ type static-stub; server-addresses {{ {SERVER}; }}; }};")
    assert forwarded(name) == 0
    named.server.control("delzone", zone)
    assert forwarded(name) == 1


