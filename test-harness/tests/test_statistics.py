# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Statistics include kernel answers: every counter of Unbound grows by kernel answers as by its own, in unbound-control's
statistics, in the log and in shared memory."""

import os
import re
import signal

import pytest
from conftest import kernel_path
from test_fidelity import VARIANTS, Hot, kernel, validating, wires_of

from lab.layouts import layout, number
from lab.pinned import writable
from lab.run import wait_until

QUESTIONS = kernel("a a3 missing txt ent") + kernel("aaaa", "AAAA") + kernel("mx", "MX") + kernel("https", "HTTPS") \
    + kernel("private", "TYPE65534") + kernel("a missing x.wild", zone="signed.example") + kernel("a", "MX", zone="signed.example") \
    + kernel("a missing", zone="bogus.example")
ASKED = VARIANTS | {"cookie": {"cookie": b"01234567"}}
# what may differ, and why
DIFFERENCES = {
    r"thread\d+\..*": "the kernel's answers have no thread: they are in total",
    r"hydns\..*": "the module's own",
    r"time\..*": "the clock",
    r"mem\..*": "buffers come and go",
}
LOG_LINE = re.compile(r"unbound\[(\d+):\d+\] info: server stats for thread (\d+): (\d+) queries, (\d+) answers from cache")


@pytest.fixture(scope="module")
def counted(world):
    # SysV keys are the machine's: this run's own
    shm = 0x48000000 + 2 * os.getpid()
    server = [*validating(world), "extended-statistics: yes", "statistics-inhibit-zero: no", "statistics-cumulative: yes",
              "statistics-interval: 1", "shm-enable: yes", f"shm-key: {shm}", "answer-cookie: yes"]
    # one thread: the first to write of several empties the totals in shared memory, until the others have written
    with kernel_path(world, unbound_options={"server": server, "threads": 1}) as path:
        h = Hot(path)
        assert h.heat(QUESTIONS) == []
        yield h


def wires(hot):
    return [w for options in ASKED.values() for w in wires_of(QUESTIONS, options, hot.rng)]


def grown(hot, ask):
    before = hot.path.unbound.stats()
    ask()
    after = hot.path.unbound.stats()
    return {k: n - before.get(k, 0) for k, n in after.items()
            if n != before.get(k, 0) and not any(re.fullmatch(p, k) for p in DIFFERENCES)}


def test_every_counter_grows_as_by_unbounds_own_answers(counted):
    queries = wires(counted)

    def in_the_kernel():
        for family in (4, 6):
            replies, answered = counted.count(queries, family)
            assert answered == len(queries) and None not in replies

    def by_unbound():
        for family in (4, 6):
            assert None not in counted.ask_directly(queries, family)
    theirs = grown(counted, by_unbound)
    assert grown(counted, in_the_kernel) == theirs
    assert theirs["total.num.queries"] == theirs["total.num.cachehits"] == 2 * len(queries)
    assert {"num.answer.rcode.nodata", "num.answer.rcode.NXDOMAIN", "num.answer.secure", "num.query.type.other",
            "num.answer.bogus", "num.answer.rcode.SERVFAIL", "num.query.ipv6", "num.query.edns.DO", "num.query.flags.AD", "total.num.queries_cookie_client"} <= theirs.keys()


def log_sums(hot):
    """(queries, answers from the cache) over the last line of each thread in Unbound's log, which others wrote before"""
    program = hot.path.unbound.program
    last = {m[2]: (int(m[3]), int(m[4])) for m in LOG_LINE.finditer(program.log.read_text()) if int(m[1]) == program.pid}
    return tuple(map(sum, zip(*last.values())))


def in_shared_memory(hot):
    return dict(line.split("=") for line in hot.path.unbound.control("stats_shm").splitlines() if "=" in line)


def test_log_and_shared_memory(counted):
    """Both are written once a second."""
    assert counted.count(wires(counted))[1] > 0
    stats = counted.path.unbound.stats()
    totals = (stats["total.num.queries"], stats["total.num.cachehits"])
    assert stats["hydns.answered"] > totals[0] / 4
    wait_until(lambda: log_sums(counted) == totals, 4, f"the log to say {totals}")
    names = ("total.num.queries", "num.answer.rcode.nodata", "num.answer.secure", "num.query.type.other", "num.query.ipv6")
    wait_until(lambda: [float(in_shared_memory(counted)[n]) for n in names] == [stats[n] for n in names], 4,
               "shared memory to have the same")


def test_cumulative_statistics_are_not_reset(counted):
    before = counted.path.unbound.stats()
    counted.path.unbound.control("stats")
    after = counted.path.unbound.stats()
    assert (after["total.num.queries"], after["hydns.answered"]) == (before["total.num.queries"], before["hydns.answered"])


def test_counts_outlive_hydnsd(counted):
    before = counted.path.unbound.stats()["total.num.queries"]
    counted.path.daemon.stop()
    counted.path.daemon.start()
    wait_until(counted.path.daemon.resolver_ready, 10, "Unbound's module to register again")
    assert counted.path.unbound.stats()["total.num.queries"] == before
    assert counted.heat(QUESTIONS) == []
    before = counted.path.unbound.stats()["total.num.queries"]
    assert counted.count(wires(counted))[1] == len(wires(counted))
    assert counted.path.unbound.stats()["total.num.queries"] == before + len(wires(counted))


@pytest.mark.parametrize("signal_to_daemon", [signal.SIGUSR2, signal.SIGKILL])
def test_counts_outlive_another_capacity(counted, signal_to_daemon):
    """The next hydnsd has maps of its own. Unbound also gets the counts, by type, of what the former program answered from the
    former maps until it was exchanged."""
    daemon, unbound = counted.path.daemon, counted.path.unbound
    assert counted.heat(QUESTIONS) == []
    theirs = grown(counted, lambda: counted.count(wires(counted)))
    before = unbound.stats()
    daemon.stop(signal_to_daemon)
    replies = [counted.ask(wires(counted), family) for family in (4, 6)]
    assert all(None not in r for r in replies)
    daemon.capacity = (daemon.capacity or 100000) // 2
    daemon.start()
    wait_until(daemon.resolver_ready, 10, "Unbound's module to register again")
    after = unbound.stats()
    assert daemon.call({"cmd": "status"})["adopted"] is False
    assert after["total.num.queries"] - before["total.num.queries"] == 2 * len(wires(counted))
    assert after["num.answer.rcode.NXDOMAIN"] - before["num.answer.rcode.NXDOMAIN"] == 2 * theirs["num.answer.rcode.NXDOMAIN"]


def test_counts_of_another_abi_are_said_to_be_lost(counted):
    """What the former program answered after its hydnsd had ended: nobody can read maps of another ABI."""
    daemon, unbound = counted.path.daemon, counted.path.unbound
    assert counted.heat(QUESTIONS) == []
    before = unbound.stats()["total.num.queries"]
    daemon.stop(signal.SIGUSR2)
    assert None not in counted.ask(wires(counted))
    with writable(daemon.pins / "hydns_meta") as meta:
        layout("hydns_geometry").set(meta, abi_version=number("HYDNS_ABI_VERSION") - 1)
    daemon.start()
    wait_until(daemon.resolver_ready, 10, "Unbound's module to register again")
    assert unbound.stats()["total.num.queries"] == before
    assert "is missing in the resolvers' statistics" in daemon.program.log.read_text()
    assert counted.heat(QUESTIONS) == []
