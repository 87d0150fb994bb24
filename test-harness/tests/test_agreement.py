# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""All that counts queries agrees to the query after a run of dnsperf: dnsperf itself, the resolver's statistics, hydnsctl, the kernel
path's reasons and hydns-metrics. For a run of a million: --agreement-queries 1000000."""

import json

import pytest
from conftest import bind_path, kernel_path

from lab.measure import dnsperf_summary
from lab.metrics import Metrics
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import SOON, wait_until

# Hot names, names that need a recursion each for the first time, types without data and names that do not exist.
QUESTIONS = [*(f"host{i}.lab.example A" for i in range(15)), *(f"host{i}.lab.example TXT" for i in range(15, 20)),
             *(f"w{i}.wild.lab.example A" for i in range(500)), "nobody.lab.example A", "www.lab.example TYPE65534"]


@pytest.fixture(params=("unbound", "bind"))
def path(world, request):
    options = {"unbound_options": {"server": ["extended-statistics: yes", "statistics-cumulative: yes"]}}
    with kernel_path(world, **options) if request.param == "unbound" else bind_path(world) as p, \
            Metrics(world, world.network.resolver, p.daemon.control_socket) as p.metrics:
        p.kind = request.param
        yield p


def load(path, queries, family):
    """Queries that dnsperf sent and got a reply to; each one did."""
    questions = path.world.run.dir / "agreement"
    questions.write_text("\n".join(QUESTIONS) + "\n")
    done = run_tool(path.network.client1, [path.world.tools.dnsperf, "-s", SERVICE[family], "-d", questions, "-n", -(-queries // len(QUESTIONS)),
                                           "-c", 4, "-q", 50, "-T", 1], seconds=600)
    summary = dnsperf_summary(done.stdout)
    assert summary["lost"] == 0 and summary["sent"] == summary["completed"] >= queries, summary
    return summary["sent"]


def of_hydnsctl(path):
    """What `hydnsctl stats` prints."""
    stats = json.loads(path.daemon.ctl("stats", "--json").stdout)
    one = stats["resolvers"][0]
    return {"kernel": one["answered"], "packets": stats["reasons"]["ANSWERED"], "resolver": one["queries_seen"],
            "ages": sum(one["answer_age"]["counts"].values())}


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
    readers = of_hydnsctl, of_metrics, of_resolver
    before = [read(path) for read in readers]
    sent = load(path, pytestconfig.getoption("agreement_queries"), family)

    def settled():
        """The resolver's threads publish their counts now and then."""
        now = [grown(read(path), earlier) for read, earlier in zip(readers, before)]
        return now if now[0]["kernel"] + now[0]["resolver"] == sent else None
    ctl, metrics, resolver = wait_until(settled, SOON, f"the kernel's and the resolver's queries to add up to {sent}")
    assert ctl == metrics
    assert ctl["kernel"] == ctl["packets"] == ctl["ages"] > sent / 2
    if path.kind == "unbound":
        assert resolver == {"all": sent, "resolver": ctl["resolver"], "kernel": ctl["kernel"]}
    else:
        assert resolver == {"all": sent, "replies": sent, "requests": sent}
