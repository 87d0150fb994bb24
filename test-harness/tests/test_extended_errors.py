# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Extended errors (RFC 8914): where Unbound remembers that validation has failed, the kernel gives the failure that Unbound would,
with its extended error to clients with EDNS alone, and no longer than Unbound."""

import time
from types import SimpleNamespace

import dns.edns
import dns.message
import dns.rcode
import dns.rdatatype
import pytest
from conftest import kernel_path

from lab import changing_zones
from lab.client import ask, exchange, query
from lab.compare import difference, opt_options, split, without_cookie
from lab.network import REFERENCE, SERVICE
from lab.run import SOON, wait_until

ZONE = "wild.signed.example"        # any name in it exists
BOGUS_TTL = 5
SECRET = "11" * 16
EDE, RRSIGS_MISSING = 15, 10
VARIANTS = {"plain": {}, "edns": {"edns": True}, "ad": {"ad": True}, "do": {"dnssec": True},
            "small": {"edns": True, "payload": 512}, "large": {"edns": True, "payload": 4096},
            "cookie": {"cookie": bytes.fromhex("2464c4abcf10c957")},
            "cookie-do": {"dnssec": True, "cookie": bytes.fromhex("2464c4abcf10c957")}}
OPT = 41


def server_lines(world, log_level, *more):
    """One authoritative server, so that each resolver names the same one in its texts."""
    return [f'trust-anchor-file: "{world.zones.anchors}"', "ede: yes", f"val-log-level: {log_level}", "log-servfail: no", "extended-statistics: yes",
            f"val-bogus-ttl: {BOGUS_TTL}", "answer-cookie: yes", f"cookie-secret: {SECRET}", *more,
            "stub-zone:", 'name: "signed.example."', f"stub-addr: {changing_zones.RELAY}"]


@pytest.fixture(scope="module", params=(0, 2), ids=("code", "text"))
def pair(world, request):
    """The kernel path and the same resolver alone; without and with texts in extended errors."""
    server = server_lines(world, request.param)
    with kernel_path(world, unbound_options={"server": server}) as path, world.reference(server=server) as reference:
        yield SimpleNamespace(path=path, reference=reference, world=world, text=request.param > 0)


def without_signatures(wire):
    """Of addresses."""
    message = dns.message.from_wire(wire)
    if message.question[0].rdtype != dns.rdatatype.A:
        return wire
    message.answer = [rrset for rrset in message.answer if rrset.rdtype != dns.rdatatype.RRSIG]
    return message.to_wire()


@pytest.fixture
def failing(pair):
    """While it lasts the authoritative server sends no signatures of addresses."""
    pair.world.relay.change = without_signatures
    try:
        yield pair
    finally:
        pair.world.relay.behave()
        for server in (pair.path.server, pair.reference):
            server.control("flush_zone", ".")
            server.forget_servers()


def answered(pair):
    return pair.path.daemon.reasons()["ANSWERED"]


def asked(pair, name, **options):
    """(rcode, whether the kernel gave it)."""
    before = answered(pair)
    reply = ask(pair.path.network.client1, SERVICE[4], name, timeout=8, **options)
    assert reply is not None, f"{name}: silence"
    return reply.rcode(), answered(pair) - before == 1


def heat(pair, name, **options):
    wait_until(lambda: asked(pair, name, **options) == (dns.rcode.SERVFAIL, True), SOON, f"{name} to fail in the kernel")


def errors(wire):
    """The data of the extended errors in a reply, and whether nothing comes behind them."""
    options = [option for r in split(wire)[2] if r.rtype == OPT for option in opt_options(r.rdata)]
    found = [data for code, data in options if code == EDE]
    assert not found or options[-1][0] == EDE
    return found


@pytest.mark.parametrize("family", (4, 6))
@pytest.mark.parametrize("variant", VARIANTS)
def test_same_answer(failing, variant, family):
    options, name = VARIANTS[variant], f"{variant}{family}.{ZONE}"

    def same():
        before = answered(failing)
        wire = query(name, **options).to_wire()
        ours, theirs = (exchange(failing.path.network.client1, server[family], wire, timeout=8)
                        for server in (SERVICE, REFERENCE))
        # a new cookie has the second in which it was made
        assert difference(*(without_cookie(wire)[0] for wire in (ours, theirs))) is None and ours[3] & 0xf == dns.rcode.SERVFAIL
        by_kernel = answered(failing) > before
        if by_kernel:
            found = errors(ours)
            assert len(found) == ("edns" in options or "dnssec" in options or "cookie" in options)
            assert all(int.from_bytes(data[:2], "big") == RRSIGS_MISSING and (len(data) > 2) == failing.text for data in found)
        return by_kernel
    wait_until(same, SOON, f"{name} to fail in the kernel")
    assert sum(same() for _ in range(20)) > 0


def test_one_rule_for_clients_with_and_without_edns(failing):
    """Whoever asked first."""
    for first, name in (({}, f"first1.{ZONE}"), ({"edns": True}, f"first2.{ZONE}")):
        heat(failing, name, **first)

        def both():
            replies = [exchange(failing.path.network.client1, SERVICE[4], query(name, **options).to_wire(), timeout=8)
                       for options in ({}, {"edns": True})]
            assert [len(errors(wire)) for wire in replies] == [0, 1]
            return True

        def by_kernel():
            before = answered(failing)
            return both() and answered(failing) - before == 2
        wait_until(by_kernel, SOON, f"{name} to fail in the kernel for both")


def test_where_an_error_finds_no_room(failing):
    """A text that is longer than the client's size allows: Unbound sends or cuts it, as the client would see without the kernel."""
    name = ".".join(["x" * 63] * 3 + ["y" * 30, ZONE])
    options = {"edns": True, "payload": 512}
    heat(failing, name)
    assert ask(failing.path.network.client1, REFERENCE[4], name, timeout=8)        # to those who wait it sends what fits
    before = answered(failing)
    ours, theirs = (exchange(failing.path.network.client1, server[4], query(name, **options).to_wire(), timeout=8)
                    for server in (SERVICE, REFERENCE))
    assert difference(ours, theirs) is None
    assert (answered(failing) == before) == (len(theirs) > 512) == failing.text
    heat(failing, name, edns=True, payload=1232)


def test_checking_disabled_is_the_resolvers(failing):
    name = f"cd.{ZONE}"
    heat(failing, name)
    assert asked(failing, name, cd=True) == (dns.rcode.NOERROR, False)
    assert asked(failing, name, edns=True, cd=True) == (dns.rcode.NOERROR, False)


@pytest.mark.parametrize("command", (("flush", "{name}"), ("flush_type", "{name}", "A"), ("flush_zone", "signed.example"),
                                     ("flush_bogus",)), ids=" ".join)
def test_flushed(failing, command):
    """Unbound looks again at once."""
    name = f"{command[0].replace('_', '-')}.{ZONE}"
    heat(failing, name, edns=True)
    failing.world.relay.behave()
    failing.path.server.control(*(word.format(name=name) for word in command))
    assert asked(failing, name, edns=True) == (dns.rcode.NOERROR, False)
    failing.world.heat(failing.path.daemon, name)


def test_no_longer_than_the_resolver(failing):
    """However many ask: it looks again as soon as it would without the kernel path."""
    name, begun, by_kernel = f"long.{ZONE}", time.monotonic(), []
    heat(failing, name)
    while time.monotonic() < begun + 3 * BOGUS_TTL:
        at = time.monotonic()
        rcode, kernel = asked(failing, name)
        assert rcode == dns.rcode.SERVFAIL
        by_kernel += [at] * kernel
    times = [at for at, what, _ in list(failing.world.relay.asked) if what == f"{name}." and at > begun]
    oldest = max(at - max(when for when in times if when < at) for at in by_kernel)
    assert len(by_kernel) > 100
    assert oldest < BOGUS_TTL + 2, f"the kernel gave a failure {oldest:.1f} s after the resolver's last try"


def test_signed_again(failing):
    """Once a client has the answer nobody gets the failure any more."""
    name = f"again.{ZONE}"
    heat(failing, name, edns=True)
    failing.world.relay.behave()
    wait_until(lambda: asked(failing, name, edns=True)[0] == dns.rcode.NOERROR, SOON, "an answer")
    for _ in range(200):
        assert asked(failing, name, edns=True)[0] == dns.rcode.NOERROR


def test_another_reason(failing):
    """The next failure has its own extended error."""
    name = f"reason.{ZONE}"
    heat(failing, name, edns=True)

    def another(wire):
        message = dns.message.from_wire(wire)
        for rrset in message.answer:
            if rrset.rdtype == dns.rdatatype.A:
                rrset.clear()
                rrset.add(dns.rdata.from_text("IN", "A", "192.0.2.99"))
        return message.to_wire()
    failing.world.relay.change = another

    def other_code():
        before = answered(failing)
        wire = exchange(failing.path.network.client1, SERVICE[4], query(name, edns=True).to_wire(), timeout=8)
        return [int.from_bytes(data[:2], "big") for data in errors(wire)] != [RRSIGS_MISSING] and answered(failing) > before
    wait_until(other_code, SOON, "another reason in the kernel")


def test_the_resolver_counts_them(failing):
    name = f"count.{ZONE}"
    keys = ("num.answer.rcode.SERVFAIL", "num.answer.bogus", "total.num.queries", "num.query.edns.present")

    def grown(ns):
        before = failing.path.server.stats()
        for _ in range(30):
            assert ask(ns, SERVICE[4], name, edns=True, timeout=8).rcode() == dns.rcode.SERVFAIL
        after = failing.path.server.stats()
        return [after[key] - before.get(key, 0) for key in keys]

    def by_kernel():
        before = answered(failing)
        ours, theirs = grown(failing.path.network.client1), grown(failing.path.network.resolver)
        return answered(failing) - before == 30 and ours == theirs
    wait_until(by_kernel, SOON, "the kernel's failures to count as Unbound's own")
