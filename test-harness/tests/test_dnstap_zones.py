# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""dnstap of BIND as an authoritative server: the messages of kernel answers are those of named, field by field, with the zone."""

import re
from collections import Counter
from itertools import product

import pytest
from conftest import bind_path

from lab.client import exchange, query
from lab.dnstap import Collector, all_written, bind_lines, in_full
from lab.network import CLIENT1_MORE, SERVICE
from lab.run import SOON, wait_until

HEAD = "$TTL 300\n@ SOA ns hostmaster 1 3600 900 604800 300\n@ NS ns\nns A 192.0.2.53\nwww A 192.0.2.1\n"
# One zone is within the other, whose DS record is in the one above.
ZONES = {"own.example": HEAD + f"sub NS ns.sub\nns.sub A 192.0.2.54\nsub DS 1 13 2 {'AB' * 32}\nalias CNAME www.sub\n",
         "sub.own.example": HEAD}
ALIAS = "alias.own.example"
QUESTIONS = (("www.own.example", "A"), ("own.example", "SOA"), ("a.b.own.example", "A"), ("www.own.example", "TXT"),
             ("www.sub.own.example", "A"), ("sub.own.example", "SOA"), ("sub.own.example", "DS"), (ALIAS, "A"))
# Beside the client's address and port, what differs between two equal queries.
TIMES = re.compile(r"\d{4}-\d\d-\d\dT?[ 0-9:.]+Z?")


@pytest.fixture
def collector(world):
    with Collector(world, world.network.resolver, "collector-zones") as c:
        yield c


def zones_of(world):
    directory = world.run.dir / "named"
    directory.mkdir(exist_ok=True)
    for zone, content in ZONES.items():
        (directory / zone).write_text(content)
    return {zone: f'type primary; file "{zone}";' for zone in ZONES}


def wires():
    """Queries for them, with and without RD and EDNS, each with an id of its own."""
    for number, ((name, rdtype), rd, edns) in enumerate(product(QUESTIONS, (False, True), (False, True))):
        if rd and name == ALIAS:       # named adds an extended error, so it is not offered
            continue
        q = query(name, rdtype, rd=rd, edns=edns)
        q.id = 1000 + number
        yield q.to_wire()


def answered(path):
    return path.daemon.call({"cmd": "stats"})["resolvers"][0]["answered"]


def ask_all(path, client):
    """Asks; returns what was sent, the replies, and how many of them are the kernel's."""
    sent, before = list(wires()), answered(path)
    got = [exchange(path.network.client1, SERVICE[4], wire, local=client) for wire in sent]
    assert all(got)
    return sent, got, answered(path) - before


def of_client(file, client):
    found = Counter()
    for text in in_full(file):
        if client in text:
            found[TIMES.sub("(time)", re.sub(r"query_port: \d+", "", text.replace(client, "(client)")))] += 1
    return found


@pytest.mark.parametrize("stock", (False, True), ids=("patched", "stock"))
def test_messages_are_those_of_named(world, collector, stock):
    heater, kernel, named = [a for a in CLIENT1_MORE if ":" not in a][:3]
    lines = [*bind_lines(collector.socket, "auth", "client"), "minimal-responses yes;"]
    with bind_path(world, options=lines, zones=zones_of(world), recursion=False, first="www.own.example", stock=stock) as path:
        wait_until(lambda: ask_all(path, heater)[2] == len(list(wires())), SOON, "all questions to be answered in the kernel")
        sent, got, by_kernel = ask_all(path, kernel)
        assert by_kernel == len(sent)
        path.daemon.ctl("pause")
        *more, none = ask_all(path, named)
        assert none == 0
        path.daemon.ctl("resume")
        wait_until(lambda: all_written(path.daemon) and collector.has(*sent, *got, *more[0], *more[1]), SOON, "all messages to be written")
        path.named.stop()
    collector.messages()
    of_kernel, of_named = of_client(collector.file, kernel), of_client(collector.file, named)
    assert of_kernel == of_named and of_named.total() == 2 * len(sent)
    zones = Counter(re.findall(r"query_zone: (\S+)", "".join(of_named.elements())))
    assert {zone.strip('".') for zone in zones} == set(ZONES)
