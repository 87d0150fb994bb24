# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Where Unbound would not relay an answer unchanged, its zone is not forwarded in the kernel, and a note says why and what to do."""

import pytest
from conftest import kernel_path
from forwarding_paths import KINDS, NAME, expect_refused, forwarding_path, resolver, sent

from lab.client import ask
from lab.forwarding import ZONE, Upstream, forward_zone
from lab.network import SERVICE, UPSTREAM_PORTS
from lab.run import SOON, wait_until

SERVER = "10.53.6.61"
KEY = f'trust-anchor: "{ZONE} DS 12345 13 2 {"ab" * 32}"'

# What: (lines of the server: clause, lines of the forward-zone: clause, words of the note)
REFUSED = {
    "trust anchor": ([KEY], [], "domain-insecure"),
    "serve-expired": (["serve-expired: yes"], [], "serve-expired"),
    "minimal-responses": (["minimal-responses: no"], [], "minimal-responses"),
    "cache-min-ttl": (["cache-min-ttl: 10"], [], "cache-min-ttl"),
    "private-address": (["private-address: 192.168.0.0/16"], [], "private-address"),
    "ratelimit": (["ratelimit: 1000"], [], "ratelimit"),
    "wait-limit": (["wait-limit: 100"], [], "wait-limit"),
    "unwanted-reply-threshold": (["unwanted-reply-threshold: 10000"], [], "unwanted-reply-threshold"),
    "outgoing-interface": (["outgoing-interface: 10.53.3.1"], [], "outgoing-interface"),
    "do-not-query-address": (["do-not-query-address: 192.0.2.77"], [], "do-not-query-address"),
    "edns-client-string": (["edns-client-string: 10.53.0.0/16 isp"], [], "edns-client-string"),
    "tcp-upstream": (["tcp-upstream: yes"], [], "tcp-upstream"),
    "ede": (["ede: yes"], [], "ede"),
    "local-zone": ([f'local-zone: "{ZONE}" transparent'], [], "local-zone"),
    "local-zone above": (['local-zone: "example." transparent'], [], "local-zone"),
    "auth-zone": (["auth-zone:", f'name: "{ZONE}"', "for-downstream: no", "fallback-enabled: yes", "primary: 10.53.3.2",
                   "server:"], [], "auth-zone"),
    "forward-no-cache": ([], ["forward-no-cache: yes"], "forward-no-cache"),
    "forward-tcp-upstream": ([], ["forward-tcp-upstream: yes"], "forward-tcp-upstream"),
    "forward-host": ([], ["forward-host: ns.lab.example"], "forward-addr"),
    "own address": ([], ["forward-addr: 127.0.0.1"], "host's own"),
}


@pytest.fixture(scope="module")
def server(world):
    with Upstream(world.network.authoritative, SERVER) as u:
        yield u


@pytest.mark.parametrize("what", REFUSED)
def test_what_stands_in_the_way(world, server, what):
    lines, of_zone, words = REFUSED[what]
    with forwarding_path(world, "unbound", SERVER, lines=lines, of_zone=of_zone, waits=False) as path:
        expect_refused(path, words)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_waits(world, server, kind):
    clause = ["hydns-pending-max: 0" if kind == "unbound" else "hydns-pending-max 0;"]
    with forwarding_path(world, kind, SERVER, clause=clause, waits=False) as path:
        expect_refused(path, "hydns-pending-max")


@pytest.mark.parametrize("kind", KINDS)
def test_hydnsd_forwards_nothing(world, server, kind):
    with forwarding_path(world, kind, SERVER, daemon_options={"options": ["--forwarding", "no"]}, waits=False) as path:
        expect_refused(path, "forwarding: yes")


@pytest.mark.parametrize("kind", KINDS)
def test_no_reserved_ports(world, server, kind):
    with world.network.resolver.entered():
        file = open("/proc/sys/net/ipv4/ip_local_reserved_ports", "w")   # of this namespace
    with file:
        file.write("\n")
        file.flush()
        try:
            with forwarding_path(world, kind, SERVER, waits=False) as path:
                expect_refused(path, "ip_local_reserved_ports")
        finally:
            file.seek(0)
            file.write(UPSTREAM_PORTS)


@pytest.mark.parametrize("kind", KINDS)
def test_not_wanted(world, server, kind):
    """Without hydns-forward nothing is forwarded, and nothing is said."""
    with forwarding_path(world, kind, SERVER, forward=False, waits=False) as path:
        ask(path.network.client1, SERVICE[4], NAME)
        assert sent(path) == 0 and not [n for n in resolver(path)["notes"] if "forward" in n]


@pytest.mark.parametrize("kind", KINDS)
def test_a_full_store(world, server, kind):
    """The answer to a forwarded query becomes a rule in place of a colder one, and stays until its client has it."""
    with forwarding_path(world, kind, SERVER, daemon_options={"capacity": 64}) as p:
        before = p.daemon.call({"cmd": "stats"})["resolvers"][0]
        for i in range(400):
            assert ask(p.network.client1, SERVICE[4], f"full{i}.{ZONE}").answer
        counts = p.daemon.call({"cmd": "stats"})["resolvers"][0]
        assert counts["forwarding"]["sent"] == 400 and counts["forwarding"]["relayed"] > 200, counts["forwarding"]
        assert counts["parking"]["answered"] - before["parking"]["answered"] == counts["forwarding"]["relayed"], counts["parking"]


@pytest.fixture(scope="module")
def path(world, server):
    """With zones of others within the forwarded one, and one that has another forward zone in it."""
    lines = [f'local-zone: "local.{ZONE}" static', f'local-data: "data.local.{ZONE} A 192.0.2.200"',
             f'domain-insecure: "{ZONE}"',
             "stub-zone:", f'name: "stub.{ZONE}"', f"stub-addr: {SERVER}",
             *forward_zone(SERVER, zone=f"plain.{ZONE}", forward=False), *forward_zone(SERVER)]
    with kernel_path(world, unbound_options={"server": lines}) as p:
        wait_until(lambda: all(u["usable"] for u in resolver(p)["forwarding"]["upstreams"]) and resolver(p)["forwarding"]["zones"],
                   SOON, "the zone to be forwarded")
        yield p


def test_zones_within(path):
    """Only what no other zone has is forwarded."""
    assert resolver(path)["forwarding"]["zones"] == [ZONE]
    for name in (f"data.local.{ZONE}", f"stub.{ZONE}", f"a.stub.{ZONE}", f"a.plain.{ZONE}"):
        before = sent(path)
        assert ask(path.network.client1, SERVICE[4], name) is not None
        assert sent(path) == before, name
    for name in (f"a.{ZONE}", ZONE, f"xlocal.{ZONE}"):
        before = sent(path)
        assert ask(path.network.client1, SERVICE[4], name) is not None
        assert sent(path) == before + 1, name


@pytest.mark.parametrize("command,undo", (
    (("local_zone", f"new.{ZONE}", "static"), ("local_zone_remove", f"new.{ZONE}")),
    (("local_data", f"a.new.{ZONE}", "A", "192.0.2.201"), ("local_data_remove", f"a.new.{ZONE}")),
    (("stub_add", f"new.{ZONE}", SERVER), ("stub_remove", f"new.{ZONE}")),
    (("forward_add", f"new.{ZONE}", SERVER), ("forward_remove", f"new.{ZONE}")),
), ids=lambda words: words[0])
def test_a_command_takes_a_part_out(path, command, undo):
    """From when the command has returned, and until it is undone."""
    name = f"a.new.{ZONE}"
    path.unbound.control("flush_zone", ZONE)
    before = sent(path)
    ask(path.network.client1, SERVICE[4], name)
    assert sent(path) == before + 1
    path.unbound.control(*command)
    before = sent(path)
    ask(path.network.client1, SERVICE[4], name)
    assert sent(path) == before
    path.unbound.control(*undo)
    if undo[0] == "local_data_remove":           # it leaves the zone that it has made
        path.unbound.control("local_zone_remove", name)
    path.unbound.control("flush_zone", ZONE)
    before = sent(path)
    ask(path.network.client1, SERVICE[4], name)
    assert sent(path) == before + 1


def test_an_option_that_stands_in_the_way(path):
    path.unbound.control("set_option", "minimal-responses:", "no")
    try:
        expect = [n for n in resolver(path)["notes"] if "minimal-responses" in n]
        assert expect and resolver(path)["forwarding"]["zones"] == []
    finally:
        path.unbound.control("set_option", "minimal-responses:", "yes")
    wait_until(lambda: resolver(path)["forwarding"]["zones"] == [ZONE], SOON, "the zone to be forwarded again")
    assert not [n for n in resolver(path)["notes"] if "minimal-responses" in n]
