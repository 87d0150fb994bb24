# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A resolver that serves stale data crashes: with hydns-stale-after-crash its hot names go on, as long as it would have given them,
until a process listens at its address again; and in no other case."""

import json
import signal
from contextlib import contextmanager

import dns.rcode
import pytest
from conftest import bind_path, kernel_path

from lab.changing_zones import records
from lab.client import ask
from lab.network import SERVICE
from lab.run import SOON, wait_until

STALE_ANSWER = 3                        # RFC 8914 section 4.4
STALE_TTL = 7
LONGEST = 6                             # seconds that a rule outlives its own end
HOT, BRIEF, EMPTY, DENIED = "www.lab.example", "brief.lab.example", "empty.lab.example", "nothing.lab.example"
BRIEF_TTL = 5
UNREACHABLE_SOON = 0.3                  # a query that nobody answers; the host refuses it at once

SERVES = {
    "unbound": ["serve-expired: yes", "serve-expired-client-timeout: 0", f"serve-expired-ttl: {LONGEST}",
                f"serve-expired-reply-ttl: {STALE_TTL}", "ede: yes", "ede-serve-expired: yes"],
    "bind": [f"stale-cache-enable yes; stale-answer-enable yes; stale-answer-ttl {STALE_TTL}; max-stale-ttl {LONGEST};",
             "stale-answer-client-timeout off;"],
}
REFUSES = {"unbound": ["serve-expired: no"], "bind": ["stale-cache-enable yes; stale-answer-enable no;"]}
WANTS = {"unbound": ["hydns-stale-after-crash: yes"], "bind": ["hydns-stale-after-crash yes;"]}
TEXT = {"unbound": "", "bind": "resolver failure"}
RESOLVERS = list(SERVES)


@contextmanager
def running(world, resolver, serves=SERVES, wants=WANTS):
    if resolver == "unbound":
        made = kernel_path(world, unbound_options={"server": serves[resolver], "clause": wants[resolver]})
    else:
        made = bind_path(world, options=serves[resolver], clause=wants[resolver])
    with made as path:
        path.resolver = resolver
        yield path
        if not path.server.program.running():
            path.server.start()                    # so that it can end in order


def reply_of(path, name, **options):
    return ask(path.network.client1, SERVICE[4], name, timeout=UNREACHABLE_SOON, **options)


def heat(path):
    for name in (HOT, EMPTY, DENIED):
        path.world.heat(path.daemon, name)
    path.world.heat(path.daemon, BRIEF, edns=True)


def state(path):
    return [r["state"] for r in path.daemon.call({"cmd": "status"})["resolvers"]]


def end(path, sig, expected):
    path.server.stop(sig)
    wait_until(lambda: state(path) == expected, SOON, f"resolvers to be {expected}")


def crash(path):
    end(path, signal.SIGKILL, ["stale"])


def assert_stale(path, reply):
    assert reply.rcode() == dns.rcode.NOERROR
    assert {rrset.ttl for rrset in reply.answer} == {STALE_TTL}
    errors = [option for option in reply.options if option.otype == 15]
    assert [(e.code, e.text or "") for e in errors] == [(STALE_ANSWER, TEXT[path.resolver])]


def let_go_stale(path):
    """Its own TTL goes on to the end; no TTL is above it before the stale one."""
    def is_over():
        reply = reply_of(path, BRIEF, edns=True)
        if not reply or not reply.answer:
            return False
        if reply.answer[0].ttl == STALE_TTL:
            return reply
        assert reply.answer[0].ttl <= BRIEF_TTL and not reply.options
        return False
    return wait_until(is_over, SOON, f"{BRIEF} to be stale")


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_hot_names_outlive_a_crash(world, resolver):
    with running(world, resolver) as path:
        heat(path)
        crash(path)
        wait_until(lambda: path.daemon.explain(DENIED)["rule"] is None, SOON, "the denial to go")
        reply = reply_of(path, HOT)
        assert reply and reply.answer and reply.answer[0].ttl > STALE_TTL
        empty = reply_of(path, EMPTY)
        assert empty and empty.rcode() == dns.rcode.NOERROR and not empty.answer and empty.authority
        assert reply_of(path, DENIED) is None
        assert reply_of(path, "mail.lab.example") is None            # nobody asked for it before
        assert "crashed" in path.daemon.explain(HOT)["text"]
        assert_loud(path)
        end_of_the_brief_one(path)
        assert reply_of(path, HOT)                                    # which has its own TTL still


def end_of_the_brief_one(path):
    let_go_stale(path)
    assert_stale(path, reply_of(path, BRIEF, edns=True))
    wait_until(lambda: json.loads(path.daemon.ctl("stats", "--json").stdout)["stale_replies"] > 0, SOON, "the reply to be counted")
    wait_until(lambda: reply_of(path, BRIEF, edns=True) is None, SOON, f"{BRIEF} to end")


def assert_loud(path):
    status = path.daemon.call({"cmd": "status"})["resolvers"][0]
    assert status["stale"]["serving"] and status["stale"]["ttl"] == STALE_TTL and status["stale"]["longest"] == LONGEST
    assert "CRASHED" in path.daemon.ctl("status").stdout
    assert "has crashed: its" in path.daemon.program.log.read_text()


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_resolver_that_is_back_answers_alone(world, resolver):
    with running(world, resolver) as path:
        heat(path)
        crash(path)
        assert reply_of(path, HOT)
        try:
            world.rewrite_lab(records(77))
            path.server.start()
            reply = ask(path.network.client1, SERVICE[4], HOT)
            assert reply and reply.answer[0][0].address == "192.0.2.77"
            wait_until(lambda: "stale" not in state(path), SOON, "the former resolver to go")
            assert "stale answers of resolver" in path.daemon.program.log.read_text()
        finally:
            world.rewrite_lab(records())


def no_answers_after(path, sig):
    heat(path)
    assert reply_of(path, HOT)
    end(path, sig, [])
    for name in (HOT, BRIEF, EMPTY, DENIED):
        assert reply_of(path, name) is None


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_a_stop_in_order_ends_all(world, resolver):
    with running(world, resolver) as path:
        no_answers_after(path, signal.SIGTERM)


@pytest.mark.parametrize("resolver", RESOLVERS)
@pytest.mark.parametrize("serves,wants", [(SERVES, dict.fromkeys(RESOLVERS, ())), (REFUSES, WANTS)],
                         ids=["by-default", "where-the-resolver-serves-none"])
def test_none_unless_both_want_it(world, resolver, serves, wants):
    with running(world, resolver, serves, wants) as path:
        no_answers_after(path, signal.SIGKILL)


@pytest.mark.parametrize("resolver", RESOLVERS)
def test_what_was_flushed_does_not_come_back(world, resolver):
    with running(world, resolver) as path:
        heat(path)
        path.server.control("flush" if resolver == "unbound" else "flushname", HOT)
        crash(path)
        assert reply_of(path, HOT) is None
        assert reply_of(path, EMPTY)


def test_rndc_serve_stale_off_is_heard(world):
    with running(world, "bind") as path:
        path.server.control("serve-stale", "off")
        no_answers_after(path, signal.SIGKILL)


def test_set_option_is_heard(world):
    """Unbound then offers nothing until it is reloaded."""
    with running(world, "unbound") as path:
        heat(path)
        path.server.control("set_option", "serve-expired:", "no")
        end(path, signal.SIGKILL, [])
        assert reply_of(path, HOT) is None
