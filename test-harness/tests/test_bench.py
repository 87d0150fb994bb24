# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-bench runs and writes what its man page says. The figures are not judged here: the machine is shared."""

import datetime
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from bench import (
    authority, authority_flood, authority_kinds, authority_updates, capacity, coalescing, concurrency, crowds, flood, floods,
    forwarding, limited, misses, outage, pace, peers, queue, scale, threshold, watched, zone, zone_servers)
from bench.alternate import SLICE, alternate
from bench.result import Result, Settings
from bench.setting import Setting
from bench.stand import RINGS
from lab import cpus, whole_zones
from lab.client import Answer, ask
from lab.process import Program
from lab.run import RUNS, SOON, HarnessError, Run, is_alive, process_stat, processes, wait_until
from lab.tools import UNBOUND_UNIT, unit_environment
from test_demo import heed_interrupts, run_id, with_id  # noqa: F401

BENCH = Path(__file__).resolve().parent.parent / "hydns-bench"


def assert_documented(points, suffix=""):
    """The man page has the keys of all points. suffix: of keys that it has without."""
    documented = set(re.findall(r"\w+", BENCH.parent.joinpath("bench", "hydns-bench.1").read_text()))
    assert not {key.removesuffix(suffix) for point in points for key in point} - documented


@pytest.mark.limit(300)
def test_cost_quick(tmp_path):
    done = subprocess.run([sys.executable, BENCH, "cost", "--quick", "--json", tmp_path / "cost.json", "--plot",
                           tmp_path / "cost.png"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "cost.json").read_text())
    assert (figures["bench"], figures["seed"], figures["quick"]) == ("cost", 1, True)
    about = figures["environment"]
    assert about["kernel"] and about["hydnsd"] and len(about["load_average"]) == 3
    assert datetime.datetime.fromisoformat(about["date"])
    ways = {p["way"]: p["nanoseconds"] for p in figures["points"] if p.get("query") == "A"}
    assert all(ways[way] > 0 for way in ("answered", "no rule", "not a service"))
    assert any(p.get("verified_instructions", 0) > 0 for p in figures["points"])
    assert {g["goal"] for g in figures["goals"] if g["met"] in (True, False)}
    assert_documented(figures["points"])
    assert (tmp_path / "cost.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_two_processors():
    """Both take part, and both answer every query from the one store."""
    settings = Settings(seed=1, quick=True)
    with Setting(settings) as bench:
        result = Result("capacity")
        capacity.scale(bench, result, 100)
    points = {(p["contender"], p["processors"]): p for p in result.points}
    assert set(points) == {(c, n) for c in ("echo", "hydns") for n in (1, 2)}
    assert all(run > 0 for p in points.values() for run in p["runs"])
    for n in (1, 2):
        assert points["hydns", n]["answered_share"] == pytest.approx(1, abs=0.001)   # counted while more come
    assert points["hydns", 2]["ratio_to_one_processor"] > 0


@pytest.mark.limit(300)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_queue(monkeypatch):
    """Each contender goes the way that it is there for, for every load (measured() makes sure), and has its points and goals."""
    monkeypatch.setattr(queue, "ROUNDS", (1, 1))
    with Setting(Settings(seed=1, quick=True)) as bench:
        result, hosts = Result("queue"), queue.Hosts(bench)
        for load in queue.WANTED:
            queue.rates(bench, result, hosts, load)
        queue.idle(bench, result, hosts)
        queue.new_names(bench, result, hosts)
        with ExitStack() as stack:
            environments = {c: s.program.environment() for c, s in hosts.start(stack, ("alone", "sockets")).items()}
    own = set(unit_environment(UNBOUND_UNIT))
    assert own <= environments["sockets"] and not own & environments["alone"]
    points = {(p["contender"], p["load"]): p for p in result.points}
    assert set(points) == {(c, load) for c in RINGS for load in queue.WANTED} | \
        {(c, load) for c in ("alone", "sockets", "rings") for load in ("idle", "new")} | \
        {(c, "new") for c in queue.contenders("new")}
    assert all(p["cpu_us_in_all"] > p["cpu_us_of_resolver"] > 0 for p in result.points if p["load"] != "idle")
    assert points["rings", "idle"]["resident_octets"] > points["sockets", "idle"]["resident_octets"]
    assert {g.met for g in result.goals} <= {True, False} and len(result.goals) == 9 + (queue.RELEASED in queue.contenders("new"))
    assert_documented(result.points, suffix="_95")


def test_scale(monkeypatch):
    """Each part has its points; a resolver with more threads than hyDNS serves says so, and the others are answered in the kernel."""
    monkeypatch.setattr(scale, "sizes", lambda bench, few, many: few[-1:])
    with Setting(Settings(seed=1, quick=True)) as bench:
        result = Result("scale")
        scale.run(bench, result)
    points = {(p["contender"], p["of"], p["number"]): p for p in result.points}
    assert {of for _, of, _ in points} == set(scale.PARTS)
    assert [(p["kept"], p["left"]) for p in points.values() if p["of"] == "rules"] == [(100_000 - scale.FLUSHES, 0)]
    for (kind, of, number), point in points.items():
        if of != "rules":
            assert bool(point["refused"]) == (of == "threads" and number > 64) == (not point["services"]), (kind, of, number, point)
    assert_documented(result.points)


def test_late_answers_reach_clients():
    """An authoritative server that stands still for longer than Unbound's default discard-timeout (1.9 s): with it a closed loop
    lost all queries that were under way."""
    seconds = 2.2
    with Setting(Settings(seed=1, quick=True)) as bench, ExitStack() as stack:
        hosts = queue.Hosts(bench)
        server = hosts.start(stack, ("alone",))["alone"]
        group = hosts.nsd.program.pid
        stack.callback(os.killpg, group, signal.SIGCONT)
        os.killpg(group, signal.SIGSTOP)
        begun = time.monotonic()
        goes_on = threading.Timer(seconds, os.killpg, (group, signal.SIGCONT))
        goes_on.start()
        reply = ask(server.link.client_ns, server.address, f"{peers.label(1)}.{peers.ZONE}", timeout=15)
        goes_on.join()
        assert time.monotonic() - begun > seconds and reply and reply.answer


def part_of(bench, part):
    """The result of a part of the bench, which is a module; its points have documented keys."""
    with Setting(Settings(seed=1, quick=True, only=(part,))) as setting:
        result = Result(bench.__name__.rpartition(".")[2])
        bench.run(setting, result)
    assert_documented(result.points)
    assert {p["part"] for p in result.points} == {part} and {g.met for g in result.goals} <= {True, False}
    return result


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_coalescing(monkeypatch):
    """Each contender has its points and goals, and no client has a wrong answer (Stand.crowd() makes sure)."""
    monkeypatch.setattr(coalescing, "CLIENTS", 300)
    monkeypatch.setattr(coalescing, "CROWDS", {"one name": 1, "100 names": 100})
    monkeypatch.setattr(coalescing, "TURNS", (1, 1))
    result = part_of(misses, "coalescing")
    assert {(p["contender"], p["resolver"], p["crowd"]) for p in result.points} == \
        {(c, k, crowd) for c in coalescing.CONTENDERS for k in crowds.KINDS for crowd in coalescing.CROWDS}
    assert len(result.goals) == 4 * len(crowds.KINDS) * len(coalescing.CROWDS)


@pytest.mark.limit(180)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_outage(monkeypatch):
    """Silent names get no answer from anybody, and the others do; only hydnsd can say what the kernel did."""
    monkeypatch.setattr(crowds, "KINDS", ("Unbound",))
    monkeypatch.setattr(outage, "RATES", (1000,))
    monkeypatch.setattr(outage, "BEARABLE", 0)
    monkeypatch.setattr(outage, "BEFORE", (1, 1))
    monkeypatch.setattr(outage, "SECONDS", (6, 6))
    result = part_of(misses, "outage")
    points = {p["contender"]: p for p in result.points}
    assert set(points) == set(outage.CONTENDERS) and len(result.goals) == 3
    assert all(p["rate"] == 1000 and p["replies_before"] and p["silent_unanswered"] for p in points.values())
    assert 0 < points["hydns"]["kernel_or_parked"] <= 1 and "kernel_or_parked" not in points["alone"]


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_threshold(monkeypatch):
    """Each bound has its points and goals, and nothing is parked where it is 0."""
    monkeypatch.setattr(threshold, "CLIENTS", 300)
    monkeypatch.setattr(threshold, "NAMES", 3)
    monkeypatch.setattr(threshold, "BOUNDS", (0, 10, "auto"))
    result = part_of(misses, "threshold")
    points = {(p["resolver"], p["contender"], p.get("pending_max")): p for p in result.points}
    assert set(points) == {(k, *contender) for k in crowds.KINDS for contender in threshold.contenders()}
    assert all(points[k, "hydns", 0]["parked"] == 0 < points[k, "hydns", 0]["passed"] for k in crowds.KINDS)
    assert all(points[k, "hydns", "auto"]["parked"] + points[k, "hydns", "auto"]["passed"] for k in crowds.KINDS)
    assert len(result.goals) == len(crowds.KINDS) * (3 + 3 + 2)


@pytest.mark.limit(180)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_concurrency(monkeypatch):
    """Each contender goes the way that it is there for (Hosts.start() makes sure), and has its points and goals."""
    monkeypatch.setattr(concurrency, "CONCURRENCY", ((1, 64), (1, 64)))
    result = part_of(misses, "concurrency")
    assert {(p["contender"], p["resolver"], p["concurrency"]) for p in result.points} == \
        {(c, k, n) for c in concurrency.CONTENDERS for k in crowds.KINDS for n in (1, 64)}
    assert all(p["latency_us"]["p99.9"] >= p["latency_us"]["p50"] > 0 for p in result.points)
    assert len(result.goals) == 5 * len(crowds.KINDS)


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_forwarding(monkeypatch):
    """Each contender has its points, and the kernel has forwarded (run() makes sure)."""
    monkeypatch.setattr(forwarding, "CONCURRENCY", (4,))
    monkeypatch.setattr(forwarding, "TURNS", (1, 1))
    result = part_of(misses, "forwarding")
    assert {p["contender"] for p in result.points} | {"dnsdist"} == set(forwarding.CONTENDERS)
    assert all(p["latency_us"]["p99.9"] >= p["latency_us"]["p50"] > 0 < p["cpu_us_of_resolver"] < p["cpu_us_in_all"]
               for p in result.points)
    assert len(result.goals) == 3


@pytest.mark.limit(240)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
@pytest.mark.parametrize("kind, more", [("Unbound", []), ("BIND", ["captured"])], ids=watched.PARTS)
def test_watched(monkeypatch, kind, more):
    """A contender that logs and is scraped has what became of its messages, and the times of scrapes; one that is captured has what
    became of the packets."""
    monkeypatch.setattr(watched, "AGAINST", dict.fromkeys(["complete and metrics", *more], "off"))
    monkeypatch.setattr(watched, "TURNS", (2, 2))
    monkeypatch.setattr(watched, "FILLS", 1)
    monkeypatch.setattr(watched, "SLICES", 6)
    monkeypatch.setattr(watched, "MOST_PER_SECOND", 60000)
    result = Result("watched")
    watched.run(SimpleNamespace(settings=Settings(seed=1, quick=True, only=(kind,))), result)
    p, *captured = result.points
    assert_documented(result.points)
    assert len(result.goals) == 3
    assert [c["contender"] for c in captured] == more and all(c["captured"] > 1000 for c in captured)
    assert p["resolver"] == kind and len(p["ratios"]) == 2 and p["ratio"] > 0 and 0 < p["kernel_share"] < 1
    assert p["lost"] == p["skipped"] == 0 < p["answered"] == p["logged"] == p["written"] and p["own"] > 0 < p["scrapes"]
    assert all(0 < p[name]["p50"] <= p[name]["p95"] for name in ("scrape_ms", "scrape_cpu_ms"))


def short_flood(monkeypatch, contenders, parts):
    """The result of these parts; its points have documented keys. Unbound alone must be there: it says how much a flood is. The generator
    has its share of a busy processor, where others' tests run, too."""
    monkeypatch.setattr(pace, "YIELD", ())
    monkeypatch.setattr(limited, "CONTENDERS", contenders)
    for name, value in {"SETTLE": (1, 1), "SECONDS": (1, 1), "MULTIPLES": ((1,), (1,)), "CAPACITY_RUNS": (1, 1)}.items():
        monkeypatch.setattr(flood, name, value)
    with Setting(Settings(seed=1, quick=True, only=parts)) as bench:
        result = Result("flood")
        flood.run(bench, result)
    assert_documented(result.points)
    assert not result.absent and {g.met for g in result.goals} <= {True, False} and len(result.goals) == 4 * len(parts)
    loads = [p for p in result.points if "part" in p]
    assert {p["load"] for p in result.points if p not in loads} == {"hot", "new"}
    assert all(p["latency_us"]["p99"] >= p["latency_us"]["p50"] > 0 < p["processor_busy"] for p in loads)
    points = {(p["contender"], p["part"], p["multiple"]): p for p in loads}
    assert set(points) == {(c, part, multiple) for c in contenders for part in parts for multiple in (0, 1)}
    assert all(p["flood_per_second"] > 0 < p["multiple_reached"] <= 1 for p in loads if p["multiple"])
    return points


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_flood(monkeypatch):
    """Both families' queries are sent as they are meant to be: the program names what is wrong with each, and answers what is right.
    The kernel answers most good queries, but new names; without hydnsd it answers none."""
    parts = "spoofed", "malformed"
    points = short_flood(monkeypatch, (limited.UNBOUND, limited.UNBOUND_ALONE), parts)
    for part in parts:
        assert 0 < points[limited.UNBOUND, part, 0]["good_by_kernel"] < 1
        assert points[limited.UNBOUND_ALONE, part, 0]["good_by_kernel"] == 0
    assert points[limited.UNBOUND, "spoofed", 1]["flood_by_kernel"] > 0
    assert {"BAD_CHECKSUM", "DNS_UNUSUAL", "QUESTION_UNUSUAL", "FRAGMENT"} <= set(points[limited.UNBOUND, "malformed", 1]["reasons"])


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_flood_with_the_guard(monkeypatch):
    """Names of the flooded suffix end in the kernel, so do queries of type ANY above the limit, which is far below any machine's flood,
    and good names are answered there as ever."""
    for guarded, part, ends in ((limited.GUARDED_UNBOUND, "subdomains", {"GUARD_FAILED", "GUARDED", "LIMITED"}),
                                (limited.GUARDED_BIND, "amplification", {"GUARDED"})):
        points = short_flood(monkeypatch, (guarded, limited.UNBOUND_ALONE), (part,))
        calm, flooded = (points[guarded, part, multiple] for multiple in (0, 1))
        assert calm["good_by_kernel"] > 0 < flooded["good_by_kernel"]
        assert ends & set(flooded["reasons"])
        assert not {"GUARD_FAILED", "GUARDED"} & set(calm["reasons"])


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_flood_with_cookies(monkeypatch):
    """The good clients' cookies are valid, so BIND's rate-limit does not count them; clients without one it does, in the kernel. The limit
    is low, so that a slow machine's flood exceeds it, too."""
    limits = limited.BIND_LIMITS.replace(f"responses-per-second {limited.LIMIT};", "responses-per-second 1;")
    assert limits != limited.BIND_LIMITS
    monkeypatch.setattr(limited, "BIND_LIMITS", limits)
    points = short_flood(monkeypatch, (limited.UNBOUND_ALONE, limited.BIND), ("cookies",))
    calm, flooded = (points[limited.BIND, "cookies", multiple] for multiple in (0, 1))
    assert calm["good_by_kernel"] > 0 < flooded["good_by_kernel"]
    assert {"LIMITED", "LIMIT_REACHED"} & set(flooded["reasons"]) and "LIMITED" not in calm["reasons"]


def test_late_replies_are_lost(tmp_path):
    """A good query without an answer in time counts as lost, and as late as one can be."""
    replies, late = tmp_path / "replies", int(flood.PATIENCE * 1e9) + 1
    replies.write_text(f"1 2000 1 1\n2 3000 1 0\n3 {late} 1 0\n4 5000 0 0\n5 -1 0 0\n")
    said = {"seconds": 1.0, "sent_in_all": 5, "lost_on_link": 0,
            **dict.fromkeys(("flood_sent", "flood_replies", "flood_truncated", "flood_by_kernel", "flood_octets"), 0)}
    found = flood.figures(said, replies, 0, {})
    assert (found["good"], found["asked"], found["share"], found["by_kernel"]) == (2, 5, 0.4, 0.2)
    assert found["latency"].tolist() == [2, 3, *3 * [flood.PATIENCE * 1e6]]


def test_sources_of_floods():
    """So many addresses that are all different, and none is in two floods but those of good clients."""
    seen = [set(floods.addresses(sources)) for both in (floods.BOTS, floods.SPOOFED, floods.SENDERS, floods.GOOD) for sources in both]
    assert [len(addresses) for addresses in seen] == [10, 10, 50_000, 50_000, 500, 500, floods.CLIENTS // 2, floods.CLIENTS // 2]
    assert not (seen[-2] | seen[-1]) & set().union(*seen[:-2])


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
@pytest.mark.parametrize("fits", (True, False), ids=("fits", "does not fit"))
def test_zone(monkeypatch, fits):
    """All servers that are installed answer all names, and say of others that these do not exist (turn() makes sure). What is
    preloaded the kernel answers."""
    names, contenders = 100, zone_servers.CONTENDERS if fits else (zone_servers.HYDNS,)
    monkeypatch.setattr(zone_servers, "CONTENDERS", contenders)
    monkeypatch.setattr(zone, "ABSENT_IN", names)
    for name, value in {"SIZES": ((names,), ()), "TURNS": (1, 1), "SECONDS": (0.3, 0.3)}.items():
        monkeypatch.setattr(zone, name, value)
    if not fits:
        monkeypatch.setattr(zone_servers, "capacity", lambda _tools, _names: 100)
    with Setting(Settings(seed=1, quick=True)) as bench:
        result = Result("zone")
        zone.run(bench, result)
    assert_documented(result.points)
    points = {(p["contender"], p["part"]): p for p in result.points}
    absent = {a["contender"] for a in result.absent}
    assert set(points) == {(c, part) for c in set(contenders) - absent for part in zone.PARTS}
    assert not absent & {zone_servers.BIND, "NSD"} and len(result.goals) == 8
    assert all(p["cpu_us_of_resolver"] > 0 < p["processor_busy"] for c, p in points.items() if c[0] != zone_servers.HYDNS)
    hydns = points[zone_servers.HYDNS, "names"]
    assert hydns["version"].startswith("9.")
    assert (hydns["kept"] == hydns["questions"]) == fits and hydns["questions"] == 4 * (names + 5) and hydns["preload_seconds"] >= 0
    assert hydns["kernel_share"] == pytest.approx(1, abs=0.001) if fits else 0 < hydns["kernel_share"] < 0.9


@pytest.mark.limit(180)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_zones_of_several_kinds(monkeypatch):
    """Each is preloaded, as far as its answers may be in the kernel, which then answers for it and for names that it lacks."""
    names = 60
    kinds = {name: kind._replace(names=(names, names)) for name, kind in whole_zones.KINDS.items()}
    monkeypatch.setattr(whole_zones, "KINDS", kinds)
    monkeypatch.setattr(authority_kinds, "QUERIES", (300, 300))
    result = part_of(authority, "kinds")
    points = {p["kind"]: p for p in result.points}
    assert set(points) == set(kinds) and len(result.goals) == 2 * len(kinds) + len(authority_kinds.DELEGATING)
    for name, p in points.items():
        assert p["names"] > names and p["preload_seconds"] >= 0 < p["kept"] <= p["rules"] and p["unanswered"] == 0
        assert p["kept"] < p["questions"] if name == "root" else p["kept"] == p["questions"]
        assert p["kernel_share"] > 0.8 and p["share_do"] > 0.8 and p["share_absent"] == 1
    assert 0 < points["deep"]["share_below"] < 1            # wildcards and DNAMEs are named's
    assert points["root"]["unkept"]["size"] > 0             # referrals to 13 servers


def test_zones_are_the_same_again(tmp_path):
    """For the same seed, and so are the questions about them; each name comes once."""
    for name, kind in whole_zones.KINDS.items():
        zones = [whole_zones.write(kind, tmp_path / f"{name}-{i}", 200, seed) for i, seed in enumerate((1, 1, 2))]
        texts = [z.path.read_text() for z in zones]
        assert texts[0] == texts[1] != texts[2]
        asked = [z.questions(random.Random(5), 50) for z in zones]
        assert asked[0] == asked[1]
        owners = [owner for owner, _ in zones[0].names]
        assert len(owners) == len(set(owners)) >= 200


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_updates_while_clients_ask(monkeypatch):
    """Each client is answered, and nobody by what an acknowledged update has replaced."""
    names = 300
    for name, value in {"NAMES": (names, names), "CHANGING": 50, "RATE": 200, "SECONDS": (2, 2)}.items():
        monkeypatch.setattr(authority_updates, name, value)
    result = part_of(authority, "updates")
    p, = result.points
    assert p["acknowledged"] > 0 < p["updates_per_second"] and p["refused"] == p["outdated"] == p["failed"] == 0
    assert 0 < p["asked"] <= sum(2 * rate for rate in authority_updates.CLIENTS.values())     # fewer by an asker without a processor
    assert all(0 <= p[f"kernel_share_{client}"] <= 1 for client in authority_updates.CLIENTS) and p["kernel_share_names"] > 0
    assert p["names"] == names + 2 and p["kept"] == p["questions"] and len(result.goals) == 2


def test_outdated_replies():
    """Older than an acknowledgement before the query; not those of queries that were under way then, of other names, or without a reply."""
    def answer(sent, number, question=0, latency=1):
        return Answer(sent, latency, question, 0, 300, f"{authority_updates.FIRST + number:08x}")
    acked, questions = {"a.test": [(100, 3), (200, 7)]}, [("a.test", "A"), ("b.test", "A")]
    fresh = [answer(100, 0), answer(101, 3), answer(200, 3), answer(201, 7), answer(201, 8), answer(300, 0, 1), answer(300, 0, 0, None)]
    old = [answer(101, 0), answer(201, 3)]
    assert list(authority_updates.outdated(fresh + old, questions, acked)) == old


@pytest.mark.limit(120)
@pytest.mark.skipif(len(cpus.ALL) < 2, reason="needs two processors")
def test_flood_of_absent_names(monkeypatch):
    """What does not exist ends in the kernel, good queries are answered there; without hydnsd neither."""
    for name, value in {"NAMES": 100, "MULTIPLE": 1, "CAPACITY_RUNS": (1, 1)}.items():
        monkeypatch.setattr(authority_flood, name, value)
    monkeypatch.setattr(authority_flood.Load, "hot", 100)
    result = part_of(authority, "flood")
    points = {(p["contender"], p["multiple"]): p for p in result.points}
    assert set(points) == {(c, multiple) for c in (zone_servers.HYDNS, zone_servers.BIND) for multiple in (0, 1)}
    assert all(p["latency_us"]["p99"] >= p["latency_us"]["p50"] > 0 and 0 <= p["lost"] <= p["lost_of"] > 0 for p in points.values())
    for multiple in (0, 1):
        assert points[zone_servers.HYDNS, multiple]["good_by_kernel"] > 0 == points[zone_servers.BIND, multiple]["good_by_kernel"]
    assert points[zone_servers.HYDNS, 1]["flood_by_kernel"] > 0 == points[zone_servers.BIND, 1]["flood_by_kernel"]
    assert len(result.goals) == 2


class TestAlternate:
    @pytest.fixture
    def worlds(self):
        with ExitStack() as stack:
            runs = [stack.enter_context(Run()) for _ in range(2)]
            for run in runs:
                program = Program(run, SimpleNamespace(command=list), "idle", ["sleep", "1000"])
                stack.callback(program.stop)
            yield [SimpleNamespace(run=run) for run in runs]

    @staticmethod
    def wait_stopped(worlds, expected):
        def stopped():
            return [all(process_stat(pid)[0] == "T" for pid, _ in processes(world.run.dir)) for world in worlds]
        wait_until(lambda: stopped() == expected, SOON, f"those stopped to be {expected}")

    def test_one_at_a_time(self, worlds):
        seen = []

        def play(n, k):
            self.wait_stopped(worlds, [n != 0, n != 1])
            seen.append((n, k))
        with alternate(worlds, 3, play) as ran:
            self.wait_stopped(worlds, [True, True])
        assert seen == [(n, k) for k in range(3) for n in range(2)] and all(3 * SLICE <= seconds for seconds in ran)
        self.wait_stopped(worlds, [False, False])

    def test_all_go_on_after_an_error(self, worlds):
        def fails(_n, _k):
            raise HarnessError("no load")
        with pytest.raises(HarnessError, match="no load"), alternate(worlds, 3, fails):
            pass
        self.wait_stopped(worlds, [False, False])


def test_a_part_that_stops(monkeypatch):
    """The others are measured all the same, but for those that nobody wants."""
    def stops(_bench, _result):
        raise HarnessError("no link")

    def goes_on(_bench, result):
        result.add("alone", [1], "milliseconds", part="second")
    monkeypatch.setattr(misses, "PARTS", {name: SimpleNamespace(run=run) for name, run in
                                          (("first", stops), ("second", goes_on), ("third", stops))})
    bench, result = SimpleNamespace(settings=Settings(1, True, ("first", "second"))), Result("misses")
    with pytest.raises(HarnessError, match="^first: no link$"):
        misses.run(bench, result)
    assert [p["part"] for p in result.points] == ["second"]


def test_rings_unused():
    """A contender whose queries take sockets is an error, not a figure."""
    counted = ("queries", "sent_upstream", "received_answers", "sent", "wakeups")
    none = dict.fromkeys(counted, 0) | {"detours": {"NO_WAY": 0}}
    went = dict.fromkeys(counted, 1000) | {"detours": {"NO_WAY": 0}}
    seldom = went | {"sent_upstream": 400, "detours": {"NO_WAY": 600}}
    assert queue.check_rings("rings", none, went, 1000, "unique")["queries"] == 1
    with pytest.raises(HarnessError, match="0.400 sent_upstream.*'NO_WAY': 600"):
        queue.check_rings("rings", none, seldom, 1000, "unique")
    with pytest.raises(HarnessError, match="1.000 sent_upstream"):
        queue.check_rings("clients", none, went, 1000, "unique")


def test_interrupted(run_id):  # noqa: F811
    """Ctrl-C while resolvers, daemon and dnsperf run leaves nothing of them."""
    with subprocess.Popen([sys.executable, BENCH, "latency", "--quick"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True, env=with_id(run_id), preexec_fn=heed_interrupts) as bench:
        progress = next((line for line in bench.stderr if "concurrency 1" in line), None)
        started = processes(RUNS / run_id)
        bench.send_signal(signal.SIGINT)
        rest = bench.communicate()[1]
    assert progress and bench.returncode == 130, rest
    assert len(started) >= 5 and not any(is_alive(*p) for p in started)


@pytest.mark.parametrize("words", ([], ["speed"], ["cost", "--seed", "x"], ["cost", "--json", "/missing/cost.json"],
                                   ["cost", "--plot", "/tmp/cost.txt"], ["cost", "--only", "outage"],
                                   ["misses", "--only", "speed"]), ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([sys.executable, BENCH, *words], capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
