# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What tests cost: the seconds that each ran on a processor, with all processes that it waited for.

    python3 -m pytest -p lab.cost --cost FILE ...    adds a line for each test, from several workers too
    python3 -m lab.cost FILE                         sums them by file, the most expensive first

Run both in test-harness. What a fixture of a module starts counts for the first test that uses it, and what
ends with that fixture, for the last.
"""
import os
import sys
from collections import Counter

import pytest


def pytest_addoption(parser):
    parser.addoption("--cost", metavar="FILE", help="add the processor seconds of each test to this file")


def spent():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    before = spent()
    yield
    if path := item.config.getoption("--cost"):
        with open(path, "a", encoding="utf-8") as out:    # one short write, which other workers do not break up
            out.write(f"{spent() - before:.2f} {item.nodeid}\n")


def table(lines):
    """By file: (seconds, tests, file, seconds of its most expensive test, that test's name), the most seconds first."""
    seconds, tests, most = Counter(), Counter(), {}
    for line in lines:
        cost, _, node = line.rstrip("\n").partition(" ")
        file, _, name = node.partition("::")
        seconds[file] += float(cost)
        tests[file] += 1
        most[file] = max(most.get(file, (0.0, "")), (float(cost), name))
    return [(seconds[file], tests[file], file, *most[file]) for file, _ in seconds.most_common()]


def main(path):
    with open(path, encoding="utf-8") as lines:
        rows = table(lines)
    print(f"{sum(row[0] for row in rows):9.1f} s in all")
    for seconds, tests, file, most, name in rows:
        print(f"{seconds:9.1f} s {tests:5} tests  {file}  (most: {most:.1f} s {name})")


if __name__ == "__main__":
    main(sys.argv[1])
