# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""BIND's rate-limit in several views of one named: each has limits and balances of its own, also for one network that asks all of them,
whether the kernel answers in its place or not."""

import time
from collections import Counter
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from test_bind_rates import WINDOW, address_of, from_full_balances, in_turn, kind_of, log_lines, named_pair, without_cd

from lab.burst import new_second, sent
from lab.client import ask, query
from lab.network import CLIENT1_MORE, CLIENT2, DOORS, REFERENCE_DOORS
from lab.run import wait_until

NAME, SENT, DOOR = "www.rate.example", 40, "action"
OUTSIDER, INSIDER = ({4: CLIENT1_MORE[n], 6: CLIENT1_MORE[n - 20]} for n in (17, 18))
# Responses a second, and slip. At the service address the first view whose clients match answers: only for the last does the kernel.
LIMITS = {"door": (4, 2), "inside": (6, 3), "all": (10, 0)}
# Who asks: view, address of the client, and its family. By prefix those of a family are one client, of which named knows nothing yet.
CLIENTS = [("all", OUTSIDER[4], 4), ("inside", INSIDER[4], 4), ("door", OUTSIDER[4], 4), ("all", OUTSIDER[6], 6), ("inside", INSIDER[6], 6)]
IPV4_BITS = 28
PREFIXES = {4: f"10.53.1.16/{IPV4_BITS}", 6: "fd53:1::/56"}


def views_of(limited):
    def limit(view):
        rate, slip = LIMITS[view]
        line = f"rate-limit {{ responses-per-second {rate}; window {WINDOW}; slip {slip}; ipv4-prefix-length {IPV4_BITS}; }};"
        return [line] if view in limited else []
    return {"door": ([f"match-destinations {{ {DOORS[DOOR]}; {REFERENCE_DOORS[DOOR]}; }};", *limit("door")], True),
            "inside": ([f"match-clients {{ {INSIDER[4]}; {INSIDER[6]}; }};", *limit("inside")], False),
            "all": (limit("all"), True)}


def target(pair, server, view, family):
    if view == "door":
        return (DOORS if server is pair.named else REFERENCE_DOORS)[DOOR]
    return address_of(pair, server, family)


def heat(pair, view, family):
    """From an address that is for this."""
    def hot():
        before = pair.daemon.reasons()["ANSWERED"]
        ask(pair.network.client2, target(pair, pair.named, view, family), NAME, local=CLIENT2[family])
        return pair.daemon.reasons()["ANSWERED"] > before
    wait_until(hot, 20, f"view {view} to be answered in the kernel")


def all_at_once(stack, pair, server, after):
    """The queries of all clients, and the second after another in which they were sent."""
    wire = query(NAME).to_wire()
    clients = [stack.enter_context(sent(pair.network.client1, target(pair, server, view, family), [], local=local, begin=lambda: None))
               for view, local, family in CLIENTS]
    second = new_second(after)
    for queries in clients * SENT:
        queries.send(wire)
    return clients, second


def burst(pair, server, after):
    """What each client got of what it asked in the second after another. None: that was late."""
    begun, before = server.stats(), pair.daemon.reasons()
    def grown(name):
        return server.stats().get(name, 0) - begun.get(name, 0)
    with ExitStack() as stack:
        clients, second = all_at_once(stack, pair, server, after)
        wait_until(lambda: sum(c.read() for c in clients) + grown("RateDropped") >= SENT * len(CLIENTS), 10, "a reply or a drop for each")
        if int(time.time()) != second or after not in (None, second - 1):
            return None
    return SimpleNamespace(
        begun=second, by_client=[Counter(map(kind_of, c.replies)) for c in clients],
        truncated=[{without_cd(wire)[2:] for wire in c.replies if kind_of(wire) == "TC"} for c in clients],
        counted=[grown(name) for name in ("RateDropped", "RateSlipped", "Requestv4", "Requestv6")],
        kernel=Counter({k: n - before[k] for k, n in pair.daemon.reasons().items()}))


@pytest.mark.parametrize("limited", [tuple(LIMITS), *((view,) for view in LIMITS)], ids="-".join)
def test_views(world, limited):
    """All have limits, or one of them."""
    with named_pair(world, views=views_of(limited), listen=(f"{DOORS[DOOR]};", f"{REFERENCE_DOORS[DOOR]};")) as pair:
        for view, family in (("all", 4), ("all", 6), ("door", 4)):
            heat(pair, view, family)
        rounds = from_full_balances(lambda: in_turn(pair, lambda server, after: burst(pair, server, after)))
        for ours, own in rounds:
            assert (ours.by_client, ours.truncated, ours.counted) == (own.by_client, own.truncated, own.counted), (ours, own)
        assert [c["answer"] for c in rounds[0][0].by_client] == [LIMITS[v][0] if v in limited else SENT for v, *_ in CLIENTS]
        assert [c["answer"] for c in rounds[1][0].by_client] == [0 if v in limited else SENT for v, *_ in CLIENTS]
        kernel = sum((ours.kernel for ours, _ in rounds), Counter())
        assert kernel["ANSWERED"] and kernel["ACL"] >= len(rounds) * SENT * sum(view == "inside" for view, *_ in CLIENTS), kernel
        assert bool(kernel["LIMITED"]) == (limited != ("inside",))
        assert bool(kernel["LIMIT_TRUNCATED"]) == ("door" in limited)
        for family, prefix in PREFIXES.items():      # each view logs its own, once
            lines = [sum("stop limiting" not in line for line in log_lines(server, prefix)) for server in pair.both]
            assert lines == [sum(f == family and view in limited for view, _, f in CLIENTS)] * 2
