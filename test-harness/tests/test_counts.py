# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A resolver's counters have every kernel answer once, however often hydnsd ends and starts again under load; also those that
the kernel gave while no statistics were requested, and while no hydnsd ran."""

import signal
import time

import pytest
from conftest import bind_path, kernel_path

from lab.client import Asker
from lab.network import SERVICE
from lab.run import wait_until

HOSTS = [(f"host{i}.lab.example", "A") for i in range(15)] + [(f"host{i}.lab.example", "TXT") for i in range(5)]
RATE = 4000
ENDS = [signal.SIGKILL, signal.SIGUSR2, signal.SIGTERM]
CASES = [*((4, [s]) for s in ENDS), (6, ENDS)]


def let_run(seconds):
    """Load for a while: what it does is counted, not timed."""
    time.sleep(seconds)


def back(path):
    path.daemon.start()
    wait_until(path.daemon.resolver_ready, 10, "the resolver to register again")


def heat(path):
    for name, rdtype in HOSTS:
        path.world.heat(path.daemon, name, rdtype)


def under_load(path, family, events):
    """Queries sent while the events happen, one after the other; all of them were answered."""
    with Asker(path.world, path.network.client1, SERVICE[family], HOSTS, RATE) as asker:
        for event in events:
            let_run(0.3)
            event()
        let_run(0.3)
        answers = asker.result()
    assert not [a for a in answers if a.latency is None]
    return len(answers)


def restarts(path, *signals):
    def restart(sig):
        path.daemon.stop(sig)
        let_run(0.3)
        back(path)
    return [lambda s=s: restart(s) for s in signals]


@pytest.fixture
def unbound(world):
    with kernel_path(world, unbound_options={"server": ["extended-statistics: yes", "statistics-cumulative: yes"]}) as p:
        yield p


@pytest.fixture
def named(world):
    with bind_path(world) as p:
        yield p


def counted(path, before):
    """Increments: of all queries; of those that came to Unbound; of those that the kernel answered."""
    after = path.unbound.stats()

    def grown(*names):
        return int(sum(after.get(n, 0) - before.get(n, 0) for n in names))
    own = [n for n in after if n.startswith("thread") and n.endswith(".num.queries")]
    assert grown("num.query.type.A", "num.query.type.TXT") == grown("total.num.queries") == grown("num.query.class.IN")
    assert grown("num.answer.rcode.NOERROR") == grown("total.num.queries")
    return grown("total.num.queries"), grown(*own), grown("hydns.answered")


@pytest.mark.parametrize("family,ends", CASES, ids=lambda v: v if isinstance(v, int) else "-".join(s.name for s in v))
def test_restarts(unbound, family, ends):
    heat(unbound)
    before = unbound.unbound.stats()
    asked = under_load(unbound, family, restarts(unbound, *ends))
    total, own, kernel = counted(unbound, before)
    assert kernel > 0
    assert total == own + kernel == asked


def test_asked_while_hydnsd_is_away(unbound):
    """Known answers count, and the others are added when hydnsd is back."""
    heat(unbound)
    before = unbound.unbound.stats()

    def away():
        unbound.daemon.stop(signal.SIGKILL)
        let_run(0.3)
        counted(unbound, before)
        back(unbound)
    asked = under_load(unbound, 4, [away, away])
    assert counted(unbound, before)[0] == asked


def test_another_capacity(unbound):
    """New maps, and so a new page for the resolver: what was counted before still counts."""
    heat(unbound)
    before = unbound.unbound.stats()
    asked = under_load(unbound, 4, [])

    def changed():
        unbound.daemon.stop(signal.SIGTERM)
        unbound.daemon.capacity = 5000
        back(unbound)
    asked += under_load(unbound, 4, [changed])
    assert counted(unbound, before)[0] == asked


@pytest.mark.parametrize("family,ends", CASES, ids=lambda v: v if isinstance(v, int) else "-".join(s.name for s in v))
def test_restarts_beside_bind(named, family, ends):
    heat(named)
    before = named.named.stats()
    asked = under_load(named, family, restarts(named, *ends))
    assert_bind_has(named, before, asked, family)


def test_reload_of_bind(named):
    """Each reload makes a new instance of the plugin: what the kernel answered for the former one until its end counts."""
    heat(named)
    before = named.named.stats()
    asked = under_load(named, 4, [lambda: named.named.control("reload"), lambda: named.named.control("reconfig")])
    assert_bind_has(named, before, asked, 4)


def assert_bind_has(path, before, asked, family):
    after = path.named.stats()
    grown = {n: after.get(n, 0) - before.get(n, 0) for n in (f"Requestv{family}", "Response", "QryUDP")}
    assert set(grown.values()) == {asked}, grown
    success, empty = (after.get(n, 0) - before.get(n, 0) for n in ("QrySuccess", "QryNxrrset"))
    assert success + empty == asked and success and empty
