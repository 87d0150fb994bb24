# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""unbound-control reload_keep_cache: where configuration, files and cache stay what they were, the kernel answers on as if nothing
had happened; any one change, and every other reload, withdraws what was there before."""

import signal
import time
from contextlib import contextmanager

import dns.message
import pytest
from conftest import kernel_path

from lab.auth_zones import clause, zone_text
from lab.changing_zones import records
from lab.client import Asker, ask, exchange, query
from lab.compare import difference
from lab.network import SERVICE
from lab.run import SOON, replaced, wait_until

NAME, ZONE = "www.lab.example", "own.auth.example"
# what the kernel is to answer: name, type, options of the query
HOT = [(NAME, "A", {}), (NAME, "A", {"dnssec": True}), ("absent.lab.example", "A", {}), (f"www.{ZONE}", "A", {}),
       (f"www.{ZONE}", "A", {"rd": False})]
TIMES = 20
RATE, AROUND = 5000, 2000
ANCHOR = "island.example. IN DS 12345 8 2 " + "AB" * 32 + "\n"
# an anchor that Unbound keeps by itself (RFC 5011), with two keys; nobody serves its zone
OWN_KEYS = "".join(f"own-keys.example. 3600 IN DNSKEY 257 3 8 AwEAA{letter * 171}=\n" for letter in "bc")
INCLUDED = 'server:\n    local-data: "own.included.example. 300 IN A %s"\n'
COOKIE, CLIENT_COOKIE = 10, b"\1" * 8
MODULE_OPTIONS = {        # with these a reload begins anew
    "a log of kernel answers": ["server:", "    log-replies: yes", "hydns:", "    hydns-query-log: yes"],
    "a limit on clients": ["server:", "    ip-ratelimit: 100000"],
    "a preloaded zone": ["auth-zone:", '    name: "preloaded.example."', '    zonefile: "%s/own.zone"', "    hydns-preload: yes"],
    "a zone that the kernel forwards": ["forward-zone:", '    name: "forwarded.example."', "    forward-addr: 10.53.2.2",
                                        "    hydns-forward: yes", "server:", '    domain-insecure: "forwarded.example."'],
}


@pytest.fixture(scope="module")
def path(world):
    """Its Unbound reads an included file, a zone's file, hints and anchors, each of which is path's."""
    directory = world.run.dir / "kept"
    directory.mkdir(exist_ok=True)
    included, zone, anchor, own_keys = (directory / name for name in ("included.conf", "own.zone", "anchor", "own.key"))
    for file, text in ((included, INCLUDED % "192.0.2.1"), (zone, zone_text(ZONE)), (anchor, ANCHOR), (own_keys, OWN_KEYS)):
        file.write_text(text)
    server = [f'trust-anchor-file: "{anchor}"', f'auto-trust-anchor-file: "{own_keys}"', "rrset-roundrobin: no", "answer-cookie: yes"]
    others = [*clause(ZONE, "for-upstream: no", file=zone), f'include: "{directory}/*.conf"']
    with kernel_path(world, unbound_options={"server": server, "others": others}) as path:
        path.directory, path.included, path.zone, path.anchor = directory, included, zone, anchor
        path.config = path.unbound.config
        yield path


def heat(path):
    for name, rdtype, options in HOT:
        path.world.heat(path.daemon, name, rdtype, **options)


def in_kernel(path, name, rdtype="A", dnssec=False, rd=True):
    return path.daemon.explain(name, rdtype, do=dnssec, norec=not rd)["where"] == "kernel"


def epoch(path):
    """Of the page of the resolver that is ready; None: none is."""
    return next((r["epoch"] for r in path.daemon.call({"cmd": "status"})["resolvers"] if r["state"] == "ready"), None)


def page(path):
    """A number that each page has for itself, and each configuration that begins anew has another page."""
    return (epoch(path) or 0) >> 16


def lines_of_keeping(path):
    return path.unbound.program.log.read_text().count("kernel answers go on")


def reload_keeps(path, command=("reload_keep_cache",)):
    """Whether the rules are there as soon as Unbound is, though nobody has asked. When it returns, hydnsd has what is new."""
    before, kept = epoch(path), lines_of_keeping(path)
    path.unbound.control(*command)
    path.unbound.control("status")     # Unbound acknowledges before it reloads; it answers this command afterwards
    wait_until(lambda: epoch(path) == before or page(path) not in (0, before >> 16), SOON, "Unbound to begin anew, or its rules to go on")
    keeps = epoch(path) == before
    assert keeps == in_kernel(path, NAME) == (lines_of_keeping(path) > kept)
    return keeps


def assert_kernel_gives_unbounds(path):
    """Asked from its own host, Unbound answers itself."""
    for name, rdtype, options in HOT:
        wire = query(name, rdtype, **options).to_wire()
        kernel, own = (exchange(ns, SERVICE[4], wire, timeout=1) for ns in (path.network.client1, path.network.resolver))
        assert difference(kernel, own) is None, name


def test_hot_names_go_on(path):
    heat(path)
    assert reload_keeps(path)
    for name, rdtype, options in HOT:
        assert in_kernel(path, name, rdtype, **options), name
    offers, answered, received = path.daemon.call({"cmd": "stats"})["offers"], path.daemon.reasons()["ANSWERED"], path.unbound.received()
    for name, rdtype, options in HOT * TIMES:
        assert ask(path.network.client1, SERVICE[4], name, rdtype, timeout=1, **options), name
    assert path.daemon.reasons()["ANSWERED"] == answered + len(HOT) * TIMES
    assert path.unbound.received() == received
    assert path.daemon.call({"cmd": "stats"})["offers"] == offers
    assert_kernel_gives_unbounds(path)


def test_again_and_again(path):
    """Each time, with a flush in between that takes one name, and with others that are offered meanwhile."""
    heat(path)
    for _ in range(3):
        assert reload_keeps(path)
    path.unbound.control("flush", "absent.lab.example")
    assert reload_keeps(path)
    assert not in_kernel(path, "absent.lab.example")
    heat(path)
    assert reload_keeps(path)
    assert in_kernel(path, "absent.lab.example")
    assert_kernel_gives_unbounds(path)


def test_changes_are_seen_after_it(path):
    """A rule that was kept goes when its data change, as any other."""
    heat(path)
    assert reload_keeps(path)
    path.world.change_lab(records(77), NAME, "A", "192.0.2.77")
    path.unbound.control("flush_zone", "lab.example")
    assert ask(path.network.client1, SERVICE[4], NAME).answer[0][0].to_text() == "192.0.2.77"
    path.zone.write_text(zone_text(ZONE, serial=2).replace("www A 192.0.2.10", "www A 192.0.2.99"))
    path.unbound.control("auth_zone_reload", f"{ZONE}.")
    assert ask(path.network.client1, SERVICE[4], f"www.{ZONE}").answer[0][0].to_text() == "192.0.2.99"
    heat(path)
    assert reload_keeps(path)         # the file and what is served are the same again
    assert_kernel_gives_unbounds(path)
    path.zone.write_text(zone_text(ZONE))
    path.unbound.control("auth_zone_reload", f"{ZONE}.")


def change_text(path):
    path.config.write_text(replaced(path.config.read_text(), "minimal-responses: yes", "minimal-responses: no"))


def change_included(path):
    path.included.write_text(INCLUDED % "192.0.2.2")


def add_included(path):
    (path.directory / "more.conf").write_text('server:\n    local-data: "more.included.example. 300 IN A 192.0.2.3"\n')


def change_anchor(path):
    path.anchor.write_text(ANCHOR.replace("AB", "CD"))


def change_hints(path):
    path.world.hints.write_text(path.hints_text + ". 3600000 NS z.root.example.\nz.root.example. 3600000 A 203.0.113.250\n")


def change_zone(path):
    path.zone.write_text(zone_text(ZONE).replace("www A 192.0.2.10", "www A 192.0.2.98"))


def cache_size(path):
    path.config.write_text(replaced(path.config.read_text(), "msg-cache-size: 64m", "msg-cache-size: 32m"))


FILES = [change_text, change_included, add_included, change_anchor, change_hints, change_zone, cache_size]
COMMANDS = [("local_data", "own.command.example. 300 IN A 192.0.2.5"), ("local_zone", "command.example.", "static"),
            ("set_option", "cache-max-ttl:", "3600"), ("insecure_add", "lab.example."), ("forward_add", "command.example.", "10.53.2.2"),
            ("stub_add", "command.example.", "10.53.2.2")]


@contextmanager
def files_as_before(path):
    path.hints_text = path.world.hints.read_text()
    kept = {file: file.read_text() for file in (path.config, path.included, path.zone, path.anchor, path.world.hints)}
    try:
        yield
    finally:
        for file, text in kept.items():
            file.write_text(text)
        (path.directory / "more.conf").unlink(missing_ok=True)


@pytest.mark.parametrize("change", FILES, ids=[f.__name__ for f in FILES])
def test_a_changed_file_drops_all(path, change):
    with files_as_before(path):
        heat(path)
        change(path)
        assert not reload_keeps(path)
        assert_kernel_gives_unbounds(path)
        heat(path)
        assert reload_keeps(path)     # what it has now is the same from here on
    assert not reload_keeps(path)


@pytest.mark.parametrize("command", COMMANDS, ids=[command[0] for command in COMMANDS])
def test_a_command_that_the_reload_undoes_drops_all(path, command):
    path.unbound.control(*command)
    heat(path)
    assert not reload_keeps(path)
    assert_kernel_gives_unbounds(path)
    heat(path)
    assert reload_keeps(path)


def test_a_reload_that_drops_the_cache_drops_all(path):
    heat(path)
    assert not reload_keeps(path, ("reload",))
    heat(path)
    before = page(path)
    path.unbound.program.popen.send_signal(signal.SIGHUP)
    wait_until(lambda: page(path) not in (0, before), SOON, "Unbound to begin anew")
    assert not in_kernel(path, NAME)


@pytest.mark.parametrize("what", MODULE_OPTIONS)
def test_what_begins_anew_with_a_configuration(path, what):
    with files_as_before(path):
        path.config.write_text(path.config.read_text() + "\n".join(MODULE_OPTIONS[what]).replace("%s", str(path.directory)) + "\n")
        path.unbound.control("reload")
        path.unbound.control("status")
        wait_until(path.daemon.resolver_ready, SOON, "Unbound to be ready")
        heat(path)
        assert not reload_keeps(path)
    path.unbound.control("reload")
    path.unbound.control("status")
    heat(path)
    assert reload_keeps(path)


def test_nothing_of_before_is_given_once_it_has_returned(path):
    """Under load: the command says ok before Unbound has read its files. Local data are answered by Unbound alone, and the rule of the
    name beneath must not come back."""
    path.world.heat(path.daemon, NAME, "A")
    with files_as_before(path):
        before = path.daemon.reasons()["ANSWERED"]
        with Asker(path.world, path.network.client1, SERVICE[4], [(NAME, "A")], RATE, timeout=1) as asker:
            wait_until(lambda: path.daemon.reasons()["ANSWERED"] > before + AROUND, SOON, "the kernel to answer the load")
            path.included.write_text(f'server:\n    local-data: "{NAME}. 300 IN A 198.51.100.7"\n')
            path.unbound.control("reload_keep_cache")
            returned = time.monotonic_ns()
            path.unbound.control("status")
            seen = path.unbound.received()
            wait_until(lambda: path.unbound.received() > seen + AROUND, SOON, "the load after the command")
            answers = asker.result(now=True)
    after = [a for a in answers if a.sent > returned and a.latency is not None]
    assert len(after) > AROUND / 2
    assert {a.rdata for a in after} == {"c6336407"}
    path.unbound.control("reload")
    path.unbound.control("status")


def test_statistics_begin_at_zero(path):
    heat(path)
    assert reload_keeps(path)
    for _ in range(TIMES):
        assert ask(path.network.client1, SERVICE[4], NAME, timeout=1)
    stats = path.unbound.stats()
    assert stats["hydns.answered"] == TIMES == stats["total.num.queries"]


def cookie_of(wire):
    """The reply's cookie."""
    return next(o.to_wire() for o in dns.message.from_wire(wire, one_rr_per_rrset=False).options if o.otype == COOKIE)


def test_a_new_cookie_secret(path):
    """Unbound's secret is random unless it is set, and another one after each reload: the kernel knows the new one when it answers
    again."""
    def given(sent):
        return cookie_of(exchange(path.network.client1, SERVICE[4], query(NAME, cookie=sent).to_wire(), timeout=1))
    heat(path)
    assert reload_keeps(path)
    before = path.daemon.reasons()["ANSWERED"]
    kernels = given(CLIENT_COOKIE)
    assert path.daemon.reasons()["ANSWERED"] == before + 1
    path.daemon.ctl("pause")
    try:
        assert given(kernels) == kernels, "Unbound does not know the kernel's cookie"
    finally:
        path.daemon.ctl("resume")
