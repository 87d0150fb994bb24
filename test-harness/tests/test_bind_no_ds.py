# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A preloaded zone of BIND's whose delegations have no DS: the kernel says so as named does, with the proof and without, before anybody
has asked; and no more once one has come."""

import itertools
import random

import pytest
from test_bind_names import answers, asked
from test_bind_preload import preloading
from test_bind_zone_versions import KINDS, POLICY, changes, make

from lab.preloaded import has_part_of_names
from lab.run import wait_until

OPTOUT = "optout.test"
ZONES = KINDS | {OPTOUT: "dnssec-policy optout;"}
STATEMENTS = (*POLICY,
              "dnssec-policy optout { keys { csk lifetime unlimited algorithm ecdsap256sha256; }; nsec3param iterations 0 optout yes; };")
CUTS = tuple(f"cut{n}" for n in range(50))
DEEP = ("far.only", "far.two.rows")          # the only names below those that they are in
SECURE = ("secure", "far.secure")
DIGEST = "1 13 2 " + "ab" * 32
RECORDS = "@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.10\nlast A 192.0.2.16\n" + \
    "".join(f"{cut} NS ns.{cut}\nns.{cut} A 192.0.2.20\n" for cut in CUTS) + "".join(f"{cut} NS ns.elsewhere.test.\n" for cut in DEEP) + \
    "".join(f"{cut} NS ns.elsewhere.test.\n{cut} DS {DIGEST}\n" for cut in SECURE)
VARIANTS = tuple(itertools.product((False, True), (False, True)))
ROUNDS = 20


@pytest.fixture(scope="module")
def auth(world):
    with preloading(world, ZONES, statements=STATEMENTS, text=RECORDS) as path:
        yield path


def denied(auth, zone, cuts):
    """Those whose DS the kernel would deny from a template; to all clients."""
    return {cut for cut in cuts if all(answers(auth, zone, cut, "DS", rd, do) for rd, do in VARIANTS)}


def wait_for(auth, zone, cuts):
    wait_until(lambda: has_part_of_names(auth) and denied(auth, zone, cuts) == set(cuts), 20,
               lambda: f"{set(cuts) - denied(auth, zone, cuts)} of {zone}")


@pytest.mark.parametrize("zone", ZONES)
def test_the_kernel_denies_all(auth, zone):
    """200 questions of 200, and each as named answers it."""
    wait_for(auth, zone, CUTS + DEEP)
    assert all(asked(auth, zone, cut, "DS", rd, do) for cut in CUTS + DEEP for rd, do in VARIANTS)


@pytest.mark.parametrize("zone", ZONES)
def test_what_else_is_asked_about_delegations(auth, zone):
    """DS where there is one, of names below, and of the zone itself; and what a delegation is asked otherwise."""
    wait_for(auth, zone, CUTS)
    for (name, rdtype), (rd, do) in itertools.product((*itertools.product((*SECURE, *CUTS[:2], "x.cut3"), ("DS", "KEY", "TXT", "A")),
                                                       ("@", "DS"), ("www", "DS"), ("nowhere", "DS")), VARIANTS):
        asked(auth, zone, name, rdtype, rd, do)


@pytest.mark.parametrize("zone", ZONES)
def test_another_version(auth, zone):
    """The SOA is the present one; and of the other delegations nothing has gone."""
    wait_for(auth, zone, CUTS)
    for octet in (111, 10):
        make(auth, zone, changes(("replace", "www", 300, "A", f"192.0.2.{octet}")))
        for cut, (rd, do) in itertools.product(CUTS[:5], VARIANTS):
            asked(auth, zone, cut, "DS", rd, do)
    wait_for(auth, zone, CUTS)


@pytest.mark.parametrize("zone", ZONES)
def test_ds_comes_and_goes(auth, zone):
    """No answer is given from before a version that is served: every change is looked at by a question right behind it."""
    wait_for(auth, zone, CUTS + DEEP)
    rng = random.Random(zone)
    secure = set()
    for _ in range(ROUNDS):
        cut = rng.choice(CUTS[:4] + DEEP)
        make(auth, zone, [("delete", cut, "DS")] if cut in secure else [("add", cut, 300, "DS", DIGEST)])
        secure ^= {cut}
        for name, (rd, do) in itertools.product((cut, rng.choice(CUTS), *rng.sample(DEEP, 1)), VARIANTS):
            asked(auth, zone, name, "DS", rd, do)
    make(auth, zone, [("delete", cut, "DS") for cut in secure])
    wait_for(auth, zone, CUTS + DEEP)


@pytest.mark.parametrize("zone", ZONES)
def test_delegations_come_and_go(auth, zone):
    wait_for(auth, zone, CUTS)
    for change in (("add", "new", 300, "NS", "ns.elsewhere.test."), ("delete", "new"),
                   ("replace", "new", 300, "A", "192.0.2.90"), ("delete", "new")):
        make(auth, zone, changes(change))
        for rd, do in VARIANTS:
            asked(auth, zone, "new", "DS", rd, do)
    make(auth, zone, changes(("add", "new", 300, "NS", "ns.elsewhere.test.")))
    wait_for(auth, zone, ("new",))
    make(auth, zone, changes(("delete", "new")))
