# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Fixtures: one world for the session, reset before each module; resolver and daemon per module. Each test has a time limit.
With `pytest -n` each process has a world of its own, and runs whole modules (lab/sharing.py)."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lab.client import ask  # noqa: E402
from lab.limits import pytest_configure, time_limit  # noqa: E402,F401
from lab.network import SERVICE  # noqa: E402
from lab.ring_load import UNBOUND, Paths  # noqa: E402
from lab.run import wait_until  # noqa: E402
from lab.tools import unbound_has_fast_reload  # noqa: E402
from lab.world import World  # noqa: E402

# rejections of offers that a correct plugin never makes, whatever authoritative servers send
MALFORMED = {"FRAME", "FLAGS", "NAME", "HEADER", "LEFT_OUT", "ERRORS"}

# Of a command that Unbound 1.22 does not have: `check releases` runs it with a newer one.
collect_ignore = [] if unbound_has_fast_reload() else ["test_fast_reload.py"]


verbosity = pytest.StashKey()


def pytest_addoption(parser):
    parser.addoption("--agreement-queries", type=int, default=20000, help="how many queries test_agreement.py sends")
    parser.addoption("--limit-queries", type=int, default=20000, help="how many queries test_limits_agree.py compares")
    parser.addoption("--calm-seconds", type=int, default=5, help="how long test_limits_agree.py asks below the limit")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config, specs):
    """With -v, pytest-xdist asks each process what Python it is, and when that process is slow to be done with the question it
    runs the tests in another thread than its first, where no time limit can be set."""
    config.stash[verbosity], config.option.verbose = config.option.verbose, 0


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    from lab.sharing import ByModule     # needs pytest-xdist
    config.option.verbose = config.stash[verbosity]
    return ByModule(config, log)


@pytest.fixture(scope="session")
def world_of_all():
    if os.geteuid() != 0:
        pytest.skip("needs root: namespaces and BPF")
    with World() as w:
        yield w


@pytest.fixture(scope="module")
def world(world_of_all):
    world_of_all.reset()
    return world_of_all


def assert_offers_well_formed(daemon):
    """If hydnsd still runs, it has refused no offer as malformed since its start."""
    stats = daemon.try_call({"cmd": "stats"})
    refused = {why: n for why, n in stats["offers"]["rejected"].items() if n and why in MALFORMED} if stats else {}
    assert not refused, f"hydnsd refused malformed offers of our own plugin: {refused}"


@contextmanager
def kernel_path(world, *, daemon_options=None, unbound_options=None):
    """hydnsd and Unbound with the module, connected; yields an object with both and the world. server: the resolver, whichever
    it is."""
    daemon = world.hydnsd(**(daemon_options or {}))
    with daemon, world.unbound(daemon, **(unbound_options or {})) as unbound:
        wait_until(daemon.resolver_ready, 10, "Unbound's module to register with hydnsd")
        yield SimpleNamespace(world=world, daemon=daemon, unbound=unbound, server=unbound, network=world.network)
        assert_offers_well_formed(daemon)


@contextmanager
def bind_path(world, *, daemon_options=None, first="www.lab.example", **options):
    """hydnsd and BIND with the plugin, connected. first: what it is asked, and answers, so that the plugin starts."""
    daemon = world.hydnsd(**(daemon_options or {}))
    with daemon, world.named(daemon, **options) as named:
        def ready():
            ask(world.network.client1, SERVICE[4], first)
            return daemon.resolver_ready()
        wait_until(ready, 10, "BIND's plugin to register with hydnsd")
        yield SimpleNamespace(world=world, daemon=daemon, named=named, server=named, network=world.network)
        assert_offers_well_formed(daemon)


@pytest.fixture(scope="module")
def path(world):
    with kernel_path(world) as p:
        yield p


@contextmanager
def unbound_rings(world, *, daemon=None, frames=None, **options):
    """Unbound with packet rings, for Paths. frames: the least of a ring, else the default."""
    clause = [f"hydns-queue-frames: {frames}"] if frames else []
    with kernel_path(world, daemon_options=daemon, unbound_options=UNBOUND | {"clause": clause} | options) as p:
        p.local_rate = 4000
        yield p


@pytest.fixture(scope="module")
def ring_paths(world, request):
    """Of Unbound, or, with bind_rings.EITHER, of either resolver."""
    with Paths(world, getattr(request, "param", unbound_rings)) as p:
        yield p


@pytest.fixture
def paths(ring_paths):
    """Paths with packet rings. Prints what has happened during the test: pytest shows it when the test has failed."""
    yield ring_paths
    ring_paths.tell()
