# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The workload generator: distributions, shares, reproducibility, and names that never come twice."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE))
import draw  # noqa: E402

NAMES = 3000


def run(*args):
    return subprocess.run([sys.executable, "-B", *map(str, args)], capture_output=True, text=True)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    path = tmp_path_factory.mktemp("workload") / "tree"
    done = run(TOP / "zones/generate", path, "--domains", 150, "--names", 4000)
    assert done.returncode == 0, done.stderr
    return path


def workload(tree, output, *args):
    """Runs the generator; returns its facts and the lines of each class by file name."""
    done = run(HERE / "workload", tree, output, "--names", NAMES, *args)
    assert done.returncode == 0, done.stderr
    facts = json.loads((output / "workload.json").read_text())
    return facts, {c["file"]: (output / c["file"]).read_text().splitlines() for c in facts["classes"]}


def all_lines(files):
    return [line for lines in files.values() for line in lines]


def ranks(tree):
    with open(tree / "names.tsv", newline="") as f:
        return {r["name"]: r for r in csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE)}


def chi_square_excess(counts, probabilities):
    """Pearson's statistic in standard deviations above its mean, bins of fewer than 10 expected joined."""
    expected = probabilities * counts.sum()
    few = expected < 10
    counts = np.append(counts[~few], counts[few].sum())
    expected = np.append(expected[~few], expected[few].sum())
    used = expected > 0
    statistic = ((counts[used] - expected[used]) ** 2 / expected[used]).sum()
    freedom = used.sum() - 1
    return (statistic - freedom) / np.sqrt(2 * freedom)


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 1.3])
def test_ranks_follow_zipf(tree, tmp_path, exponent):
    facts, files = workload(tree, tmp_path, "--count", 200000, "--zipf", exponent)
    known = ranks(tree)
    counts = np.zeros(NAMES)
    for line in all_lines(files):
        row = known.get(line.split()[0])
        if row:
            counts[int(row["rank"]) - 1] += 1
    assert counts.sum() == pytest.approx(180000, rel=0.01)
    assert abs(chi_square_excess(counts, draw.zipf(NAMES, exponent))) < 5
    assert chi_square_excess(counts, draw.zipf(NAMES, exponent + 0.1)) > 5      # the test can tell
    for top in facts["top"].values():
        assert top["drawn"] == pytest.approx(top["expected"], abs=0.006)


def test_shares_are_as_asked(tree, tmp_path):
    facts, files = workload(tree, tmp_path, "--count", 200000, "--fresh", 0.2, "--edns", 0.6, "--do", 0.5,
                            "--cookie", 0.25, "--subnets", "here=3,there=1")
    assert sum(map(len, files.values())) == facts["queries"] == 200000
    assert facts["fresh"]["drawn"] == pytest.approx(0.2, abs=0.005)
    for key, asked in (("edns", 0.6), ("do", 0.3), ("cookie", 0.15)):
        assert facts["edns"][key] == pytest.approx(asked, abs=0.005)
    here = sum(c["queries"] for c in facts["classes"] if c["subnet"] == "here")
    assert here / 200000 == pytest.approx(0.75, abs=0.005)
    for c in facts["classes"]:
        assert len(files[c["file"]]) == c["queries"]
        assert c["queries"] / 200000 == pytest.approx(c["share"], abs=0.005)
        arguments = c["dnsperf"]
        assert ("-e" in arguments, "-D" in arguments, "-E" in arguments) == (c["edns"], c["do"], c["cookie"])


def test_types_suit_the_names(tree, tmp_path):
    facts, files = workload(tree, tmp_path, "--count", 100000, "--types", "A=50,AAAA=30,HTTPS=16,MX=2,TXT=2")
    known = ranks(tree)
    by_profile = {"text": {}, "mail": {}, "host": {}}
    for line in all_lines(files):
        name, rrtype = line.split()
        row = known.get(name)
        if row:
            profile = "text" if row["kind"] == "text" else "mail" if "MX" in row["types"] else "host"
            by_profile[profile][rrtype] = by_profile[profile].get(rrtype, 0) + 1
    host, mail = by_profile["host"], by_profile["mail"]
    assert set(by_profile["text"]) == {"TXT"}
    for rrtype, asked in (("A", 0.5), ("AAAA", 0.3), ("HTTPS", 0.16), ("MX", 0.02), ("TXT", 0.02)):
        assert host[rrtype] / sum(host.values()) == pytest.approx(asked, abs=0.01)
    assert mail["MX"] / sum(mail.values()) == pytest.approx(20 / 136, abs=0.01)
    assert sum(facts["types"].values()) == pytest.approx(1, abs=1e-5)


def fresh_names(tree, files):
    known = ranks(tree)
    return [name for name in (line.split()[0] for line in all_lines(files)) if name not in known]


def test_fresh_names_never_repeat(tree, tmp_path):
    seen = set()
    for index in (0, 1, 2, 2**24 - 1):
        _, files = workload(tree, tmp_path / str(index), "--count", 100000, "--fresh", 0.5, "--run-index", index)
        labels = [name.split(".")[0] for name in fresh_names(tree, files)]
        assert len(labels) == pytest.approx(50000, rel=0.02)
        assert len(set(labels)) == len(labels) and seen.isdisjoint(labels)
        assert all(len(label) == draw.FRESH_DIGITS for label in labels)
        seen.update(labels)


def test_fresh_names_are_of_the_kinds_asked(tree, tmp_path):
    with open(tree / "fresh.tsv", newline="") as f:
        kinds = {r["suffix"]: (r["kind"], r["secure"]) for r in csv.DictReader(f, delimiter="\t")}
    _, files = workload(tree, tmp_path, "--count", 50000, "--fresh", 0.5, "--fresh-wildcard", 0.8,
                        "--fresh-secure", 0.25)
    drawn = [kinds[name.partition(".")[2]] for name in fresh_names(tree, files)]
    for kind, asked in ((("wildcard", "0"), 0.6), (("wildcard", "1"), 0.2), (("nxdomain", "0"), 0.15),
                        (("nxdomain", "1"), 0.05)):
        assert drawn.count(kind) / len(drawn) == pytest.approx(asked, abs=0.015)


def test_equal_options_give_equal_files(tree, tmp_path):
    first, same = (workload(tree, tmp_path / d, "--count", 20000) for d in ("a", "b"))
    assert first == same
    for other in (("--seed", "2"), ("--run-index", "1")):
        changed = workload(tree, tmp_path / "-".join(other), "--count", 20000, *other)
        assert all_lines(changed[1]) != all_lines(first[1])


def test_duration_times_rate(tree, tmp_path):
    facts, _ = workload(tree, tmp_path, "--duration", 3, "--rate", 700)
    assert facts["queries"] == 2100


@pytest.mark.parametrize("arguments, cause", [
    (("--names", "1000000"), "lower --names"),
    (("--fresh", "1.5"), "not a share"),
    (("--zipf", "x"), "not a number"),
    (("--types", "A=1,ANY=2"), "no type ANY"),
    (("--types", "A"), "not a list like"),
    (("--subnets", "10.0.0.0/8=1"), "letters, digits"),
    (("--duration", "5"), "--rate together"),
    (("--count", "0"), "not a number from"),
])
def test_bad_options_are_refused(tree, tmp_path, arguments, cause):
    done = run(HERE / "workload", tree, tmp_path / "out", *arguments)
    assert done.returncode != 0 and cause in done.stderr
    assert not (tmp_path / "out").exists()


def test_missing_tree_is_named(tmp_path):
    done = run(HERE / "workload", tmp_path / "none", tmp_path / "out")
    assert done.returncode != 0 and "run zones/generate" in done.stderr
