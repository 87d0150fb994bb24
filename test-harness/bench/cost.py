# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Cost of a packet by the stage where it ends, the verifier's counts, and the memory of a rule."""

import statistics
import subprocess
from collections import defaultdict

from lab.run import wait_until

from .pace import options_of, pace, sequence
from .publish import Path
from .result import Goal, number, say

HELP = "nanoseconds per packet by stage, verifier counts, memory per rule"
# kernel 6.1 has its own step in `check`, with the same budget
VERIFIER_BUDGET = 400_000
KINDS = {
    "A": {}, "A, EDNS": {"edns": True}, "A, cookie": {"cookie": True}, "A, IPv6": {"ipv6": True},
    "A, name of 60 octets": {"octets": 60}, "A, name of 255 octets": {"octets": 255},
    "AAAA": {"type": "AAAA"}, "8 x A, rotated": {"records": 8}, "30 x A, EDNS, rotated": {"records": 30, "edns": True},
}
QUICK_KINDS = ("A", "A, cookie", "A, name of 255 octets", "30 x A, EDNS, rotated")
CAPACITY = 1_000_000
GHOST = 12                   # octets that the policy keeps of a removed rule, offload-policy/policy.c
MEMORY_MOST = 300e6


def stages(bench, result):
    seq = sequence(bench.run.dir, 1, None, bench.settings.seed)
    for kind in bench.settings.choose(QUICK_KINDS, KINDS):
        parameters = KINDS[kind]
        lines = pace(bench.tools, bench.link.ns, "cost", "--sequence", seq, "--queries",
                     bench.settings.choose(50_000, 1_000_000), "--rounds", bench.settings.choose(3, 7),
                     *options_of(parameters))
        ways = defaultdict(list)
        for line in lines:
            if "way" in line:
                ways[line["way"], line["stages"]].append(line)
        for (way, stage), runs in ways.items():
            if way == "answered" or kind == "A":
                point = result.add("hydns", [r["nanoseconds"] for r in runs], "nanoseconds", query=kind, way=way, stages=stage)
                if "instructions" in runs[0]:
                    point["instructions"] = statistics.median(r["instructions"] for r in runs)
        result.absent += [{"contender": f"instructions of {kind}", "why": line["no_instructions"]}
                          for line in lines if "no_instructions" in line]
        program = next(line for line in lines if "verified_instructions" in line)
        say(f"cost: {kind}: answered in {result.points[-1]['nanoseconds']:.0f} ns")
    result.points.append({"bench": "cost", "contender": "hydns", **program})
    result.goals.append(Goal("verifier instructions on this kernel", VERIFIER_BUDGET,
                             program["verified_instructions"], least=False))


def table(result):
    previous = 0.0
    print(f"  {'a packet ends as':26}{'ns':>8}{'more':>8}{'instructions':>14}  after the stages before and")
    for p in sorted((p for p in result.points if p.get("query") == "A"), key=lambda p: p["nanoseconds"]):
        print(f"  {p['way']:26}{p['nanoseconds']:8.0f}{p['nanoseconds'] - previous:8.0f}"
              f"{number(p.get('instructions')):>14}  {p['stages']}")
        previous = p["nanoseconds"]


def anonymous(pid):
    """Octets of memory that are the process's own."""
    with open(f"/proc/{pid}/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon:"))


def memory_of(daemon):
    """Octets: what the kernel charges for the maps, and what hydnsd has."""
    return {"maps_bytes": daemon.call({"cmd": "status"})["memory_bytes"], "daemon_bytes": anonymous(daemon.program.pid)}


def memory(bench, result):
    """Memory of a daemon with a million offered rules of the demo's sizes."""
    with Path(bench) as path:
        offerer = path.offerer("mix", CAPACITY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        wait_until(lambda: path.daemon.call({"cmd": "status"})["rules"] >= CAPACITY, 60, f"{CAPACITY} rules of many sizes")
        parts = {**memory_of(path.daemon), "ghosts_bytes": GHOST * CAPACITY}
        offerer.popen.communicate()
    total = sum(parts.values())
    result.points.append({"bench": "cost", "contender": "hydns", "rules": CAPACITY, **parts,
                          "octets_per_rule": round(total / CAPACITY, 1)})
    result.goals.append(Goal("MB for 1 M rules of the demo's sizes, everything counted", MEMORY_MOST / 1e6,
                             round(total / 1e6, 1), least=False))
    say("cost: memory of {:,} rules: maps {:.0f} MB, daemon {:.0f} MB, and {:.0f} MB more once as many were removed".format(
        CAPACITY, *(n / 1e6 for n in parts.values())))


def run(bench, result):
    stages(bench, result)
    memory(bench, result)
    table(result)
