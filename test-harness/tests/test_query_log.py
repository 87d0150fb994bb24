# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-query-log of BIND: a kernel answer has the lines that named writes for the same question, in named's own log files; they come
and go with rndc querylog and responselog."""

import re
import signal
from collections import Counter
from contextlib import contextmanager
from itertools import chain

import pytest
from conftest import bind_path

from lab.batch import exchange_all
from lab.client import ask, exchange, query
from lab.network import CLIENT1, CLIENT1_MORE, SERVICE
from lab.run import SOON, wait_until

NAME = "www.lab.example"
ODD = r"o\"d\\d\064.lab.example"        # named escapes its letters
VIEW = "inner"
OWN, ZONE = "www.own.example", "$TTL 300\n@ SOA ns hostmaster 1 3600 900 604800 300\n@ NS ns\nns A 192.0.2.53\nwww A 192.0.2.1\n"
COOKIE = b"12345678"
# 26-Nov-2026 06:12:45.123 queries: info: client @0x7f2100 10.53.1.2#40001 (www.lab.example): query: ...; of a kernel answer: @0x0
LINE = re.compile(r"\S+ \S+ (\S+: \S+: )client @0x(\w+) (\S+)#\d+ (.*)$")


def logging(file, *, responses=True, more=""):
    channel = f'channel lines {{ file "{file}" {more}; print-time yes; print-category yes; print-severity yes; }};'
    return (f'logging {{ {channel} category queries {{ lines; }}; {"category responses { lines; };" if responses else ""} }};',)


@contextmanager
def log_path(world, name, *, more="", stock=False, **others):
    """BIND whose queries, and, where it knows them, responses are logged to a file of this name; more: of its channel."""
    file = world.run.dir / "named" / name
    file.parent.mkdir(exist_ok=True)
    file.with_name("own.zone").write_text(ZONE)
    zones = {"own.example": 'type primary; file "own.zone";'}
    options = ["minimal-responses yes;"] + ([] if stock else ["responselog yes;"])
    with bind_path(world, statements=logging(file, responses=not stock, more=more), options=options,
                   clause=["hydns-query-log yes;"], stock=stock, zones=zones, logs=True, **others) as path:
        path.lines = file
        yield path


def lines_of(path, client):
    """What the files say of a client: {(category and severity, the text): how often}, and how often the kernel answered."""
    texts = [file.read_text().splitlines() for file in path.lines.parent.glob(path.lines.name + "*")]
    found = [line for line in map(LINE.match, chain.from_iterable(texts)) if line and line[3] == client]
    return Counter((line[1], line[4]) for line in found), sum(line[2] == "0" for line in found)


def answered(path):
    return sum(r["answered"] for r in path.daemon.call({"cmd": "stats"})["resolvers"])


def questions(path, client):
    """Queries of this client that the kernel answers, each with other words in its line."""
    server = SERVICE[6 if ":" in client else 4]
    first = ask(path.network.client1, server, NAME, local=client, cookie=COOKIE)
    full = bytes(first.options[0].to_wire())
    flags = [{}, {"edns": True}, {"dnssec": True}, {"cookie": COOKIE}, {"cookie": full}, {"dnssec": True, "cookie": full}]
    return [*(query(NAME, **of) for of in flags), query(OWN, rd=False), query(OWN, rd=False, edns=True), query(NAME, "AAAA"),
            query("missing.lab.example"), query(ODD, edns=True)]


def ask_all(path, client):
    """Returns how many of the client's questions the kernel answered, and how many there were."""
    before, asked = answered(path), questions(path, client)
    for q in asked:
        assert exchange(path.network.client1, SERVICE[6 if ":" in client else 4], q.to_wire(), local=client)
    return answered(path) - before, len(asked) + 1


def heat_all(path, client):
    got = []

    def hot():
        got[:] = ask_all(path, client)
        return got[0] == got[1]
    wait_until(hot, SOON, lambda: f"{got[1]} questions to be answered in the kernel, not {got[0]}")


def assert_same_lines(path, family, lines_each):
    """Of three clients one makes the rules, the kernel answers another, and named the third."""
    heater, kernel, named = [a for a in CLIENT1_MORE if (":" in a) == (family == 6)][:3]
    heat_all(path, heater)
    by_kernel, asked = ask_all(path, kernel)
    assert by_kernel > asked / 2               # single ones pass, to renew their rules
    path.daemon.ctl("pause")
    try:
        assert ask_all(path, named) == (0, asked)
    finally:
        path.daemon.ctl("resume")
    wait_until(lambda: all(lines_of(path, c)[0].total() == lines_each * asked for c in (kernel, named)), SOON,
               lambda: f"{lines_each} lines of {asked} questions, not {[lines_of(path, c) for c in (kernel, named)]}")
    assert lines_of(path, kernel) == (lines_of(path, named)[0], lines_each * by_kernel)
    assert lines_of(path, named)[1] == 0
    return lines_of(path, kernel)[0]


@pytest.fixture(params=(None, VIEW), ids=("options", "view"))
def log(world, request):
    views = {VIEW: ([], True)} if request.param else None
    with log_path(world, f"lines.{request.param}", views=views) as path:
        path.view = f": view {VIEW}" if views else ""
        yield path


@pytest.mark.parametrize("family", (4, 6))
def test_lines_are_those_of_named(log, family):
    """Equal but for the time, the client's port and its object: flags, view, addresses, counts."""
    lines = assert_same_lines(log, family, 2)
    for text in ("query: {} IN A + ({})", "query: {} IN A +E(0)D ({})", "query: {} IN A +E(0)DV ({})",
                 "response: {} IN A NOERROR 1 0 1 +E(0)V ({})"):
        category = text.split(":")[0].replace("query", "queries").replace("response", "responses")
        assert (f"{category}: info: ", f"({NAME}){log.view}: {text.format(NAME, SERVICE[family])}") in lines, text
    assert ("queries: info: ", f"({OWN}){log.view}: query: {OWN} IN A - ({SERVICE[family]})") in lines


def test_lines_of_an_unpatched_bind(world):
    with log_path(world, "lines.stock", stock=True) as path:
        assert_same_lines(path, 4, 1)


def test_querylog_at_run_time(world):
    """From the command's return on the kernel's lines are as named's, none before and none later; the files are rolled by named."""
    lines, clients = {}, iter(a for a in CLIENT1_MORE if ":" not in a)
    with log_path(world, "lines.rolled", more="versions 50 size 10k") as path:
        for queries, responses in ((True, True), (False, True), (True, False), (False, False), (True, True)):
            path.named.control("querylog", "on" if queries else "off")
            path.named.control("responselog", "on" if responses else "off")
            path.world.heat(path.daemon, NAME)
            client, before = next(clients), answered(path)
            assert all(exchange_all(path.network.client1, SERVICE[4], [query(NAME).to_wire()] * 50, local=client))
            by_kernel = answered(path) - before
            assert by_kernel > 25
            lines[client] = {"queries: info: ": 50 * queries, "responses: info: ": 50 * responses}
            assert not path.daemon.call({"cmd": "status"})["resolvers"][0]["obstacles"]

        def counted():
            return {c: {k: sum(n for (kind, _), n in lines_of(path, c)[0].items() if kind == k) for k in of} for c, of in lines.items()}
        wait_until(lambda: counted() == lines, SOON, lambda: f"{lines} to be written, not {counted()}")
        path.named.stop(signal.SIGTERM)
        assert counted() == lines
        assert len(list(path.lines.parent.glob(path.lines.name + ".*"))) > 1


def test_lines_after_a_reload(world):
    """A new configuration of named's log has the kernel's lines as well."""
    with log_path(world, "lines.reload") as path:
        path.world.heat(path.daemon, NAME)
        path.lines = path.lines.with_name("lines.later")
        config = path.named.config
        config.write_text(config.read_text().replace("lines.reload", path.lines.name))
        path.named.control("reconfig")
        heat_all(path, CLIENT1_MORE[0])
        by_kernel, asked = ask_all(path, CLIENT1[4])
        wait_until(lambda: lines_of(path, CLIENT1[4])[0].total() == 2 * asked, SOON, "all lines to be written")
        assert lines_of(path, CLIENT1[4])[1] == 2 * by_kernel > 0
