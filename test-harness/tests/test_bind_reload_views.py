# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""As test_bind_reload_keeps.py: answers that a reload of BIND leaves in the kernel, of views and of preloaded zones."""

import pytest
from test_bind_preload import EXISTING, PRELOADED, assert_kernel_gives_nameds, everything, kept, preloading, wait_for
from test_bind_reload_keeps import BESIDE, COMMANDS, NAME, assert_dropped, assert_kept, begun, replaced
from test_bind_zone_versions import KINDS, a, changes, make

from lab.run import SOON, wait_until

VIEW = ('match-clients { any; };',)


def test_views(world):
    """Each goes on with what it has; a change of one ends the answers of all."""
    names = NAME, BESIDE
    with begun(world, zones=None, views={"insider": (('match-clients { 10.53.99.1; };',), False), "all": (VIEW, True)}) as bind:
        for command in COMMANDS:
            assert_kept(bind, lambda command=command: bind.named.control(command), names)
        config = bind.named.config
        text = replaced(config.read_text(), "{ 10.53.99.1; }", "{ 10.53.99.2; }")
        assert_dropped(bind, lambda: (config.write_text(text), bind.named.control("reload")), names)


@pytest.fixture(scope="module")
def preloaded(world):
    with preloading(world, KINDS, PRELOADED) as path:
        yield path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("zone", PRELOADED)
def test_a_preloaded_zone_stays(preloaded, zone, command):
    """All of it, unasked; and versions go on to bring what they do."""
    wait_for(preloaded, zone, everything())
    wait_until(lambda: preloaded.daemon.call({"cmd": "status"})["resolvers"][0]["preloaded"] >= len(PRELOADED) * len(everything()), SOON,
               "both to be counted")
    offers = preloaded.daemon.offers()
    for _ in range(2):
        preloaded.named.control(command)
        assert kept(preloaded, zone) == everything()
    assert preloaded.daemon.offers() == offers
    assert_kernel_gives_nameds(preloaded, zone)
    make(preloaded, zone, changes(a("www", 110), a("came", 111)))
    wait_for(preloaded, zone, everything() | everything(("came A",)), (*EXISTING, "came A"))
    assert_kernel_gives_nameds(preloaded, zone)
    make(preloaded, zone, changes(a("www", 10), ("delete", "came")))
    wait_for(preloaded, zone, everything())
