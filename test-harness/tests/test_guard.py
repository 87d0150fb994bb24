# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The guard on the real path: a suffix whose resolutions fail is found, guarded and lifted by itself, and others are unharmed; hydnsctl
guard; limits of client networks."""

import json
import signal
from itertools import count

import dns.flags
import dns.message
import dns.rcode
import pytest
from conftest import bind_path, kernel_path

from lab.burst import sent
from lab.client import ask, query
from lab.network import CLIENT1, SERVICE
from lab.plugin import PluginClient, guard_report
from lab.run import wait_until

ZONE = "flooded.example"
SERVER = "10.53.3.2"             # which serves no such zone: resolutions below it fail at once
SILENT = "10.53.3.99"           # nobody has this address
GOOD = "www.lab.example"
UNBOUND = {"unbound_options": {"server": [f'domain-insecure: "{ZONE}"'],
                               "others": ["stub-zone:", f'name: "{ZONE}."', f"stub-addr: {SERVER}"]}}
BIND = {"zones": {ZONE: f"type static-stub; server-addresses {{ {SERVER}; }};"}, "options": [f'validate-except {{ "{ZONE}"; }};']}
RESOLVERS = pytest.mark.parametrize("resolver, options", [(kernel_path, UNBOUND), (bind_path, BIND)], ids=["unbound", "bind"])
LIFE = 3
LIMIT = 20
fresh = count()


def guarded(resolver, world, options, *guard):
    return resolver(world, daemon_options={"options": ["--guard", "enforce", *guard]}, **options)


def shown(path):
    return path.daemon.call({"cmd": "guard"})


def suffixes(path):
    return {s["suffix"]: s for s in shown(path)["guarded"]}


def flood(path, names=100, zone=ZONE):
    """New names of the zone, from one client. Returns the replies so far."""
    wires = [query(f"x{next(fresh)}.{zone}").to_wire() for _ in range(names)]
    with sent(path.network.client1, SERVICE[4], wires) as queries:
        wait_until(lambda: queries.read() >= names * 9 // 10, 20, "replies to the flood")
        return [dns.message.from_wire(r) for r in queries.replies]


def new_name(path, zone="nosuch.lab.example", family=4, timeout=5):
    return ask(path.network.client1, SERVICE[family], f"g{next(fresh)}.{zone}", timeout=timeout)


@RESOLVERS
@pytest.mark.limit(240)
def test_flood(world, resolver, options):
    with guarded(resolver, world, options, "--guard-suffix-failures", "30", "--guard-suffix-waiting", "0", "--guard-suffix-life", str(LIFE),
                 "--guard-suffix-queries", "5") as path:
        def found():
            flood(path)
            return suffixes(path).get(f"{ZONE}.")
        rule = wait_until(found, 60, "the flooded suffix to be guarded")
        assert rule["why"] == "failures" and rule["figure"] >= 30 and rule["action"] == "fail" and rule["queries"] == 5
        def stopped():
            replies = flood(path)
            assert {r.rcode() for r in replies} == {dns.rcode.SERVFAIL}
            return path.daemon.reasons()["GUARD_FAILED"]
        wait_until(stopped, 20, "the kernel to fail queries of the suffix")
        for family in (4, 6):
            assert new_name(path, family=family).rcode() == dns.rcode.NXDOMAIN
            assert ask(path.network.client1, SERVICE[family], GOOD).rcode() == dns.rcode.NOERROR
        assert f"{ZONE}." in path.daemon.ctl("guard").stdout
        figures = path.daemon.call({"cmd": "stats"})["guard"]
        assert figures["mode"] == "enforce" and figures["counts"]["suffix_over"] > 0 and figures["counts"]["begun"] >= 1
        wait_until(lambda: not suffixes(path), LIFE + 20, "the suffix to be lifted by itself")
        log = path.daemon.program.log.read_text()
        assert f"guard: {ZONE}. is guarded at resolver" in log and f"guard: {ZONE}. is no longer guarded at resolver" in log
        before = path.daemon.reasons()["MISS"]
        assert new_name(path, ZONE).rcode() == dns.rcode.SERVFAIL
        assert path.daemon.reasons()["MISS"] > before


def replaced(value, old, new):
    """The same, with another text in all strings of nested lists and dictionaries."""
    if isinstance(value, dict):
        return {k: replaced(v, old, new) for k, v in value.items()}
    return value.replace(old, new) if isinstance(value, str) else [replaced(v, old, new) for v in value]


@RESOLVERS
@pytest.mark.limit(240)
def test_waiting(world, resolver, options):
    """The zone's server is silent: what waits for it is enough, whether it fails or not."""
    with guarded(resolver, world, replaced(options, SERVER, SILENT), "--guard-suffix-failures", "0", "--guard-suffix-waiting", "20",
                 "--guard-suffix-life", str(LIFE)) as path:
        def found():
            wires = [query(f"x{next(fresh)}.{ZONE}").to_wire() for _ in range(100)]
            with sent(path.network.client1, SERVICE[4], wires):
                return suffixes(path).get(f"{ZONE}.")
        rule = wait_until(found, 90, "the suffix to be guarded")
        assert rule["why"] == "waiting" and rule["figure"] >= 20
        assert new_name(path).rcode() == dns.rcode.NXDOMAIN


@RESOLVERS
def test_by_hand(world, resolver, options):
    """hydnsctl guard set and lift; a hit is not touched; a rule ends with hydnsd, however that ends."""
    with guarded(resolver, world, options, "--guard-suffix", "manual") as path:
        daemon = path.daemon
        wait_until(lambda: ask(path.network.client1, SERVICE[4], GOOD) and daemon.explain(GOOD)["where"] == "kernel", 10, "a rule")
        said = daemon.ctl("guard", "set", "LAB.example", "--queries", "0", "--action", "drop", "--for", "600").stdout
        assert said.startswith("1 suffixes changed") and "lab.example." in said
        assert new_name(path, timeout=0.3) is None
        assert ask(path.network.client1, SERVICE[4], GOOD).rcode() == dns.rcode.NOERROR
        daemon.ctl("guard", "set", "lab.example", "--queries", "0", "--action", "truncate")
        with sent(path.network.client1, SERVICE[4], [query(f"g{next(fresh)}.nosuch.lab.example").to_wire()]) as queries:
            wait_until(queries.read, 5, "a truncated reply")
        assert dns.message.from_wire(queries.replies[0], ignore_trailing=True).flags & dns.flags.TC
        assert daemon.reasons()["GUARDED"] > 0 and daemon.reasons()["GUARD_TRUNCATED"] > 0
        assert json.loads(daemon.ctl("guard", "lift", "lab.example", "--json").stdout)["changed"] == 1
        assert new_name(path).rcode() == dns.rcode.NXDOMAIN
        daemon.ctl("guard", "set", "lab.example", "--queries", "0", "--action", "drop")
        assert new_name(path, timeout=0.3) is None
        daemon.stop(signal.SIGKILL)
        wait_until(lambda: new_name(path, timeout=1), 10, "queries to go on without hydnsd")
        daemon.start()
        wait_until(daemon.resolver_ready, 20, "the resolver to register again")
        assert not suffixes(path) and new_name(path).rcode() == dns.rcode.NXDOMAIN


def test_orders_that_are_refused(world):
    with guarded(kernel_path, world, UNBOUND, "--guard-suffix", "manual") as path:
        for words, text in ((("set", "."), "64 octets at most"), (("set", f"{'a' * 60}.example"), "64 octets at most"),
                            (("set", ZONE, "--resolver", "9"), "no such resolver"),
                            (("set", ZONE, "--action", "explode"), "drop, truncate"),
                            (("set", ZONE, "--for", "0"), "seconds takes"), (("set", ZONE, "--queries", "x"), "takes a number"),
                            (("lift",), "guard takes"), (("set",), "guard takes"), (("--queries", "3"), "guard takes")):
            done = path.daemon.ctl("guard", *words, check=False)
            assert done.returncode and text in done.stderr, words
        assert json.loads(path.daemon.ctl("guard", "lift", "--all", "--json").stdout)["changed"] == 0
    with kernel_path(world) as path:
        done = path.daemon.ctl("guard", "set", ZONE, check=False)
        assert done.returncode == 1 and "the guard is off" in done.stderr
        assert shown(path)["mode"] == "off" and path.daemon.ctl("guard").stdout.startswith("guard: off")


def test_reports_of_a_plugin_are_bounded(world):
    """A plugin that reports whatever it likes has so many suffixes guarded, for its own resolver, and no top-level domain."""
    with guarded(kernel_path, world, UNBOUND, "--plugin-rate", "1000", "--plugin-burst", "10000") as path, \
            PluginClient(path.daemon.plugin_socket).register() as client:
        assert client.call("GUARD", guard_report("a.example"))[0] == "REFUSED", "before READY"
        assert client.call("READY")[0] == "ACK"
        for name in ("", "example", "UPPER.example"):
            assert client.call("GUARD", guard_report(name))[0] == ("REFUSED" if name == "UPPER.example" else "ACK")
        assert client.call("GUARD", guard_report("few.example", failures=1))[0] == "ACK"
        assert client.call("GUARD", b"short")[0] == "REFUSED"
        assert not suffixes(path)
        for n in range(300):
            assert client.call("GUARD", guard_report(f"z{n}.example"))[0] == "ACK"
        had = shown(path)["guarded"]
        assert len(had) == 64 and len({s["authority"] for s in had}) == 1
        assert shown(path)["counts"]["refused"] == 3 + 300 - 64
        assert {s["why"] for s in had} == {"failures"}
        path.daemon.ctl("guard", "set", "z0.example", "--resolver", str(had[0]["authority"]))
        client.call("GUARD", guard_report("z0.example"))
        assert suffixes(path)["z0.example."]["why"] == "ordered", "a report changes no order"
        wire = query("x.z1.example").to_wire()
        with sent(path.network.client1, SERVICE[4], [wire] * 50) as queries:
            wait_until(lambda: queries.read() == 50, 20, "all replies")
        assert path.daemon.reasons()["GUARD_FAILED"] == 0, "it is another resolver's"
        client.call("BYE")
        wait_until(lambda: not suffixes(path), 10, "the rules to end with the resolver")


def test_count_only(world):
    """What would be stopped is counted, and nothing is."""
    options = ["--guard", "count", "--guard-client-queries", "1", "--guard-suffix", "manual"]
    with kernel_path(world, daemon_options={"options": options}) as path:
        path.daemon.ctl("guard", "set", "lab.example", "--queries", "0", "--action", "drop")
        wires = [query(f"g{next(fresh)}.nosuch.lab.example").to_wire() for _ in range(50)]
        with sent(path.network.client1, SERVICE[4], wires) as queries:
            wait_until(lambda: queries.read() == 50, 20, "all replies")
        counts = shown(path)["counts"]
        assert counts["suffix_over"] >= 50 and counts["clients_over"] > 0
        reasons = path.daemon.reasons()
        assert reasons["GUARDED"] == reasons["GUARD_TRUNCATED"] == reasons["GUARD_FAILED"] == 0


@RESOLVERS
def test_client_networks(world, resolver, options):
    """A network above its limit is shown; hits count, too; another network goes on."""
    limits = "--guard-client-queries", str(LIMIT), "--guard-client-slip", "1"
    with guarded(resolver, world, options, "--guard-suffix", "manual", *limits) as path:
        wait_until(lambda: ask(path.network.client2, SERVICE[4], GOOD) and path.daemon.explain(GOOD)["where"] == "kernel", 20, "a rule")
        def above():
            with sent(path.network.client1, SERVICE[4], [query(GOOD).to_wire()] * 10 * LIMIT) as queries:
                networks = {c["network"]: c["queries"] for c in shown(path)["clients"]}
                wait_until(lambda: queries.read() == 10 * LIMIT, 10, "a reply to each")
            assert any(dns.message.from_wire(r).flags & dns.flags.TC for r in queries.replies)
            return networks.get(f"{CLIENT1[4].rsplit('.', 1)[0]}.0/24")
        assert wait_until(above, 20, "the network to be shown") > LIMIT
        assert path.daemon.reasons()["GUARD_TRUNCATED"] > 0
        reply = ask(path.network.client2, SERVICE[4], GOOD)
        assert reply.rcode() == dns.rcode.NOERROR and not reply.flags & dns.flags.TC
