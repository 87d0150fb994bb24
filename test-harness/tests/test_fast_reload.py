# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""unbound-control fast_reload, which Unbound has from 1.23 on: once it has returned, no answer of the former configuration is given,
and each reply is that of an Unbound without the kernel path that was reloaded alike. One that fails changes nothing."""

import time
from types import SimpleNamespace

import pytest
from conftest import kernel_path

from lab.client import Asker, ask, exchange, query
from lab.compare import difference
from lab.network import CLIENT1, CLIENT2, REFERENCE, SERVICE
from lab.run import SOON, wait_until

RATE = 5000            # queries a second
AROUND = 2000          # queries that are answered before the command, and again after it
NAME, BESIDE = "www.lab.example", "a.kinds.example"
ZONE = """$ORIGIN lab.example.
@ 300 SOA ns hostmaster 1 3600 900 604800 300
@ 300 NS ns
ns 300 A 203.0.113.1
www 300 A 203.0.113.80
"""
VIEW = f"""server:
    access-control-view: {CLIENT2[4]}/32 inner
view:
    name: "inner"
    view-first: yes
    local-data: "{NAME}. 300 IN A 203.0.113.81"
"""
# what is added to the configuration: whose answers it changes
CHANGES = {
    "a client is refused": (f"server:\n    access-control: {CLIENT2[4]}/32 refuse\n", CLIENT2),
    "a client is dropped from the list": (f"server:\n    access-control: {CLIENT2[4]}/32 deny\n", CLIENT2),
    "local data": (f'server:\n    local-data: "{NAME}. 300 IN A 203.0.113.82"\n', CLIENT1),
    "a local zone": ('server:\n    local-zone: "lab.example." always_nxdomain\n', CLIENT1),
    "a view": (VIEW, CLIENT2),
    "an auth-zone": ('auth-zone:\n    name: "lab.example."\n    zonefile: "%s/lab.zone"\n    for-downstream: yes\n'
                     "    for-upstream: no\n", CLIENT1),
    "options that shape replies": ("server:\n    minimal-responses: no\n    max-udp-size: 512\n    edns-buffer-size: 1000\n"
                                   "    rrset-roundrobin: no\n", CLIENT1),
}
FAILURES = {
    "an option that needs a restart": "server:\n    num-threads: 3\n",
    "an option of the module": "hydns:\n    hydns-admission: 7\n",
    "a zone to be preloaded": 'auth-zone:\n    name: "other.example."\n    zonefile: "other.zone"\n    hydns-preload: yes\n',
    "packet rings that would end": "server:\n    edns-buffer-size: 4000\n",
    "a mistake": "server:\n    no-such-option: yes\n",
}


@pytest.fixture(scope="module")
def both(world):
    """The path and the reference, and the texts of their configurations."""
    with kernel_path(world) as path, world.reference() as reference:
        servers = [SimpleNamespace(of=s, text=s.config.read_text()) for s in (path.unbound, reference)]
        for server in servers:
            (server.of.dir / "lab.zone").write_text(ZONE)
        path.clients = {CLIENT1[4]: path.network.client1, CLIENT2[4]: path.network.client2}
        yield SimpleNamespace(path=path, servers=servers, reference=reference)


def fast_reload(server, added, *options):
    """What the command prints."""
    text = added % server.of.dir if "%s" in added else added
    server.of.config.write_text(server.text + text)
    return server.of.control("fast_reload", *options, check=False)


def reload_both(both, added, *options):
    """The monotonic time in ns at which the command has returned at the resolver under test. The reference is first: it gives no
    former answers once the other gives none."""
    for server in reversed(both.servers):
        said = fast_reload(server, added, *options)
        assert said.split()[-1:] == ["ok"], said
    return time.monotonic_ns()


def replies(both, client, name):
    """Of the resolver under test and of the reference."""
    wire = query(name, edns=True).to_wire()
    return [exchange(both.path.clients[client[4]], server[4], wire, local=client[4], timeout=1) for server in (SERVICE, REFERENCE)]


def assert_alike(both):
    """TTLs aside: the two resolvers have asked at other times."""
    for client in (CLIENT1, CLIENT2):
        for name in (NAME, BESIDE) * 10:
            found = difference(*replies(both, client, name), ttl_slack=None)
            assert found is None, f"{name} for {client[4]}: {found}"


def expected(both, client):
    """(rcode, first address in hex) as the asker has them, of the reference. A refusal has no question, so the asker takes it for no
    answer to its own: -1."""
    reply = ask(both.path.clients[client[4]], REFERENCE[4], NAME, local=client[4], timeout=1)
    if reply is None:
        return None
    return reply.rcode() if reply.question else -1, reply.answer[0][0].to_wire().hex() if reply.answer else None


def under_load(both, added, client, options):
    """Both are reloaded while the client asks. The answers to what it sent after that."""
    path = both.path
    before = path.daemon.reasons()["ANSWERED"]
    with Asker(path.world, path.clients[client[4]], SERVICE[4], [(NAME, "A")], RATE, local=client[4], timeout=1) as asker:
        wait_until(lambda: path.daemon.reasons()["ANSWERED"] > before + AROUND, SOON, "the kernel to answer the load")
        returned = reload_both(both, added, *options)
        seen = sum(path.daemon.reasons().values())
        wait_until(lambda: sum(path.daemon.reasons().values()) > seen + AROUND, SOON, "the load after the command")
        return [a for a in asker.result(now=True) if a.sent > returned]


@pytest.mark.parametrize("options", [(), ("+p",)], ids=["pause", "no pause"])
@pytest.mark.parametrize("change", CHANGES)
def test_nothing_of_the_former_configuration(both, change, options):
    added, client = CHANGES[change]
    path = both.path
    path.world.heat(path.daemon, NAME, "A")
    after = under_load(both, added, client, options)
    want = expected(both, client)
    wrong = [a for a in after if (None if a.latency is None else (a.rcode, a.rdata if a.rcode == 0 else None)) != want]
    assert len(after) > AROUND / 4
    assert not wrong, f"{len(wrong)} of {len(after)} answers are not {want}, as {wrong[-1]}"
    assert_alike(both)
    reload_both(both, "", *options)
    assert_alike(both)
    path.world.heat(path.daemon, NAME, "A")
    assert_alike(both)


def test_offers_begin_and_end_with_what_forbids_them(both):
    path = both.path
    path.world.heat(path.daemon, NAME, "A")
    reload_both(both, "server:\n    log-queries: yes\n")
    assert path.daemon.explain(NAME, "A")["where"] == "resolver"
    assert any("log-queries is yes" in note for note in notes(path))
    reload_both(both, "")
    assert not any("log-queries is yes" in note for note in notes(path))
    path.world.heat(path.daemon, NAME, "A")


@pytest.mark.parametrize("options", [(), ("+p",)], ids=["pause", "no pause"])
def test_rules_stay_if_nothing_changes(both, options):
    path = both.path
    reload_both(both, "", *options)              # whatever was before
    path.world.heat(path.daemon, NAME, "A")
    offers, answered = path.daemon.call({"cmd": "stats"})["offers"], path.daemon.reasons()["ANSWERED"]
    reload_both(both, "", *options)
    for _ in range(20):
        assert ask(path.clients[CLIENT1[4]], SERVICE[4], NAME, timeout=1)
    assert path.daemon.reasons()["ANSWERED"] == answered + 20
    assert path.daemon.call({"cmd": "stats"})["offers"] == offers
    assert_alike(both)
    for server in both.servers:
        server.of.control("local_data", f"{BESIDE}. 300 IN A 203.0.113.83")
    path.world.heat(path.daemon, NAME, "A")
    reload_both(both, "", *options)              # which undoes the command
    assert path.daemon.explain(NAME, "A")["where"] == "resolver"
    assert_alike(both)


def test_reload_keep_cache_drops_what_fast_reload_has_mixed(both):
    """fast_reload leaves some options as they were; a reload with the same text takes them."""
    path = both.path
    reload_both(both, CHANGES["local data"][0])
    path.world.heat(path.daemon, BESIDE, "A")
    for server in reversed(both.servers):
        server.of.control("reload_keep_cache")
        server.of.control("status")
    wait_until(path.daemon.resolver_ready, SOON, "Unbound to begin anew")
    assert path.daemon.explain(BESIDE, "A")["where"] == "resolver"
    assert_alike(both)
    reload_both(both, "")


def notes(path):
    return [str(note) for resolver in path.daemon.call({"cmd": "status"})["resolvers"] for note in resolver["notes"]]


@pytest.mark.parametrize("failure", FAILURES)
def test_failure_changes_nothing(both, failure):
    path, server = both.path, both.servers[0]
    path.world.heat(path.daemon, NAME, "A")
    rules, ready = path.daemon.explain(NAME, "A"), path.daemon.program.log.read_text().count("is ready:")
    said = fast_reload(server, f"server:\n    access-control: {CLIENT2[4]}/32 refuse\n" + FAILURES[failure])
    server.of.config.write_text(server.text)
    assert said.split()[-1:] != ["ok"], said
    assert path.daemon.explain(NAME, "A")["where"] == rules["where"] == "kernel"
    assert path.daemon.program.log.read_text().count("is ready:") == ready
    assert_alike(both)
