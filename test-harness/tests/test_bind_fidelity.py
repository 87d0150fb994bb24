# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every kind of answer, and of DNS cookie, with BIND: the kernel's is named's, or the query goes to named. The questions are those of
test_fidelity; what named adds, shuffles or makes anew goes to named itself, so for each group it is said how many
of its questions the kernel answers at least."""

import pytest
from conftest import bind_path
from test_cookies import ACTIVE, COOKIE, OPTIONS, STAGING, STATES, VALID, check, message, whole
from test_fidelity import GROUPS, VARIANTS, Hot, name_of, wires_of

from harness import kinds
from harness.compare import difference

# named refuses these, asks for them in vain or sends them to nobody twice in a second
LEFT_OUT = ("meta-types", "all-types", "bogus", "yxdomain")
# share of what Unbound's kernel path answers that BIND's must: below 1 where named may add something, makes
# answers anew from NSEC records, or asks for what is not cached
LEAST = {"types": 0.5, "root": 0.3, "referral": 0.1, "signed": 0.5, "signed3": 0.7}
TESTED = {group: questions for group, questions in GROUPS.items() if group not in LEFT_OUT}


@pytest.fixture(scope="module")
def hot(world):
    lenient = " ".join(f'"{zone}";' for zone in kinds.LENIENT)
    secrets = [f'cookie-secret "{secret.hex()}";' for secret in (ACTIVE, STAGING)]
    with bind_path(world, options=[f"validate-except {{ {lenient} }};", *secrets], anchors=[world.lab.anchors]) as path:
        h = Hot(path)
        h.cold_ones = set(h.heat([q for group in TESTED.values() for q in group], seconds=3))
        yield h


def small(wire):
    """The query with its name in small letters."""
    end = 12
    while wire[end]:
        end += 1 + wire[end]
    return wire[:12] + wire[12:end].lower() + wire[end:]


@pytest.mark.parametrize("group", TESTED)
def test_same_answer(hot, group):
    """Capital letters go to named, which answers with those that it has."""
    questions, kernel = TESTED[group], 0
    for options in VARIANTS.values():
        for family in (4, 6):
            mixed = wires_of(questions, options, hot.rng)
            for wires in (mixed, [small(w) for w in mixed]):
                ours, answered = hot.count(wires, family)
                theirs = hot.ask_directly(wires, family)
                different = [f"{name_of(w)}: {why}" for w, a, b in zip(wires, ours, theirs)
                             if (why := difference(a, b, shuffled=True))]
                assert not different, "\n".join(different)
                kernel += answered if wires is not mixed else 0
    expected = len(VARIANTS) * 2 * sum(q.kernel for q in questions)
    print(f"{group}: {kernel} of {expected} answered in the kernel")
    assert kernel >= LEAST.get(group, 1) * expected


@pytest.mark.parametrize("family", (4, 6))
def test_cookies(hot, family):
    """A client's alone and a valid one are the kernel's, with a new one in the reply; all else is named's, which
    refuses what it has not made."""
    hot.path.world.heat(hot.path.daemon, "www.lab.example", edns=True)
    for state, (make, _, _) in STATES.items():
        in_kernel = state in ("client-only", "valid", "valid-staging", "renewed", "a-bit-ahead")
        check(hot.path, message([(COOKIE, make(family))]), in_kernel, family)


@pytest.mark.parametrize("case", OPTIONS)
def test_other_options(hot, case):
    """named checks them all, so they are its own."""
    hot.path.world.heat(hot.path.daemon, "www.lab.example", edns=True)
    sent = [(code, whole(ACTIVE, 4, 10) if data is VALID else data) for code, data in OPTIONS[case][0]]
    check(hot.path, message(sent), False)
