# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""All that counts queries agrees to the query after a run of dnsperf: dnsperf itself, the resolver's statistics, hydnsctl, the kernel
path's reasons, hydns-metrics, its page, and a collector of dnstap messages. For a run of a million: --agreement-queries 1000000."""

import json

import pytest
from conftest import bind_path, kernel_path

from lab.client import ask
from lab.dnstap import Collector, bind_lines, unbound_lines
from lab.measure import dnsperf_summary
from lab.metrics import PAGE, Metrics
from lab.network import CLIENT1_MORE, SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until

# Hot names, names that need a recursion each for the first time, types without data and names that do not exist.
QUESTIONS = [*(f"host{i}.lab.example A" for i in range(15)), *(f"host{i}.lab.example TXT" for i in range(15, 20)),
             *(f"w{i}.wild.lab.example A" for i in range(500)), "nobody.lab.example A", "www.lab.example TYPE65534"]
NO_LOSS = "fstrm-set-input-queue-size 16384;"          # named drops messages that its own queue has no room for
CLIENT = {4: CLIENT1_MORE[0], 6: CLIENT1_MORE[-1]}      # dnsperf's address


def resolver(world, kind, collector):
    if kind == "bind":
        return bind_path(world, options=[*bind_lines(collector.socket, "client"), NO_LOSS])
    return kernel_path(world, unbound_options={"server": ["extended-statistics: yes", "statistics-cumulative: yes"],
                                               "others": unbound_lines(collector.socket, "client")})


@pytest.fixture(params=("unbound", "bind"))
def path(world, request):
    with Collector(world, world.network.resolver, f"agreement.{request.param}") as collector, \
            resolver(world, request.param, collector) as p, \
            Metrics(world, world.network.resolver, p.daemon.control_socket, page=PAGE) as p.metrics:
        p.kind, p.collector = request.param, collector
        yield p


def load(path, queries, family):
    """Queries that dnsperf sent and got a reply to; each one did."""
    questions = path.world.run.dir / "agreement"
    questions.write_text("\n".join(QUESTIONS) + "\n")
    done = run_tool(path.network.client1, [path.world.tools.dnsperf, "-s", SERVICE[family], "-a", CLIENT[family], "-d", questions,
                                           "-n", -(-queries // len(QUESTIONS)), "-c", 4, "-q", 50, "-T", 1], seconds=600)
    summary = dnsperf_summary(done.stdout)
    assert summary["lost"] == 0 and summary["sent"] == summary["completed"] >= queries, summary
    return summary["sent"]


def of_stats(stats):
    one = stats["resolvers"][0]
    return {"kernel": one["answered"], "packets": stats["reasons"]["ANSWERED"], "resolver": one["queries_seen"],
            "ages": sum(one["answer_age"]["counts"].values())}


def of_hydnsctl(path):
    """What `hydnsctl stats` prints."""
    return of_stats(json.loads(path.daemon.ctl("stats", "--json").stdout))


def of_page(path):
    return of_stats(path.metrics.page.live()["stats"])


def of_dnstap(path):
    """What the collector has of dnsperf's queries."""
    return {kind: sum(path.collector.count(kind, client) for client in CLIENT.values()) for kind in ("CQ", "CR")}


def of_metrics(path):
    samples = {name: value for (name, labels), value in path.metrics.fresh().items()
               if name != "hydns_packets_total" or ("reason", "ANSWERED") in labels}
    return {"kernel": samples["hydns_resolver_answers_total"], "packets": samples["hydns_packets_total"],
            "resolver": samples["hydns_resolver_queries_total"], "ages": samples["hydns_resolver_answer_age_seconds_count"]}


def of_resolver(path):
    """Its own statistics: all queries, and those that came to its threads."""
    stats = path.server.stats()
    if path.kind == "unbound":
        return {"all": stats["total.num.queries"], "resolver": path.server.received(), "kernel": stats["hydns.answered"]}
    return {"all": stats.get("QryUDP", 0), "replies": stats.get("Response", 0), "requests": path.server.received()}


def grown(after, before):
    return {name: n - before[name] for name, n in after.items()}


@pytest.mark.parametrize("family", (4, 6))
def test_all_that_counts_agrees(path, family, pytestconfig):
    readers = of_hydnsctl, of_metrics, of_page, of_resolver, of_dnstap
    before, now = [read(path) for read in readers], []
    sent = load(path, pytestconfig.getoption("agreement_queries"), family)

    def settled():
        """The resolver's threads publish their counts now and then."""
        now[:] = [grown(read(path), earlier) for read, earlier in zip(readers, before)]
        return now if all(n["kernel"] + n["resolver"] == sent for n in now[:3]) and min(now[-1].values()) >= sent else None
    ctl, metrics, page, resolver, dnstap = wait_until(settled, SOON, lambda: f"{sent} queries to be counted, not {now}")
    assert ctl == metrics == page
    assert dnstap == {"CQ": sent, "CR": sent}
    assert ctl["kernel"] == ctl["packets"] == ctl["ages"] > sent / 2
    if path.kind == "unbound":
        assert resolver == {"all": sent, "resolver": ctl["resolver"], "kernel": ctl["kernel"]}
    else:
        assert resolver == {"all": sent, "replies": sent, "requests": sent}


def test_all_are_counted_when_they_come(path):
    """Of many a second the plugin looks at some only. Of a type that the kernel never answers, and the resolver from its cache."""
    rdtype = {"unbound": "RRSIG", "bind": "ANY"}[path.kind]
    assert ask(path.network.client1, SERVICE[4], "host1.lab.example", rdtype, timeout=SOON)
    before, n = of_hydnsctl(path), 20000
    (path.world.run.dir / "many").write_text(f"host1.lab.example {rdtype}\n" * n)
    done = run_tool(path.network.client1, [path.world.tools.dnsperf, "-s", SERVICE[4], "-d", path.world.run.dir / "many", "-n", 1, "-c", 4,
                                           "-q", 50, "-T", 1], seconds=60)
    assert dnsperf_summary(done.stdout)["completed"] == n
    wait_until(lambda: grown(of_hydnsctl(path), before)["resolver"] == n, SOON, f"{n} queries to be counted")
