# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Every kind of answer, and of DNS cookie, with BIND: the kernel's answer is named's, or the query passes. The questions are
those of test_fidelity. Queries whose answers named extends or synthesises pass, so each group has the least share of its
questions that the kernel must answer."""

import pytest
from conftest import bind_path
from test_cookies import ACTIVE, COOKIE, OPTIONS, STAGING, STATES, VALID, check, message, whole
from test_fidelity import GROUPS, VARIANTS, Hot, name_of, wires_of

from lab import answer_zones
from lab.compare import difference
from lab.network import CLIENT1
from lab.run import SOON, wait_until

# Share of what Unbound's kernel path answers that BIND's must: less where named may add something, makes answers
# anew from NSEC records, follows no more aliases, or keeps no more types of a name.
LEAST, USUAL = {"types": 0.6, "root": 0.3, "referral": 0.3, "all-types": 0}, 0.9


class SmallLetters:
    """The chance that a letter becomes a capital: never, because queries with capitals are not offered."""

    @staticmethod
    def random():
        return 1.0


@pytest.fixture(scope="module")
def hot(world):
    lenient = " ".join(f'"{zone}";' for zone in answer_zones.LENIENT)
    secrets = [f'cookie-secret "{secret.hex()}";' for secret in (ACTIVE, STAGING)]
    with bind_path(world, options=[f"validate-except {{ {lenient} }};", *secrets], anchors=[world.zones.anchors]) as path:
        h = Hot(path)
        letters, h.rng = h.rng, SmallLetters()
        h.heat([q for group in GROUPS if group not in ("meta-types", "all-types") for q in GROUPS[group]], seconds=0)
        h.rng = letters
        yield h


def small(wire):
    """The query with its name in small letters."""
    end = 12
    while wire[end]:
        end += 1 + wire[end]
    return wire[:12] + wire[12:end].lower() + wire[end:]


def kernel_answers(hot, questions):
    """All variants of the questions, each with the same answer from the kernel path and from named; how many in small
    letters the kernel gave."""
    kernel = 0
    hot.ask_directly(wires_of(questions, {}, hot.rng))     # names that were not hot are cached with this query's letters
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
    return kernel


@pytest.mark.parametrize("group", GROUPS)
def test_same_answer(hot, group):
    """Queries with capital letters pass, and named answers with the letters of its cache."""
    expected = len(VARIANTS) * 2 * sum(q.kernel for q in GROUPS[group])
    least = LEAST.get(group, USUAL) * expected

    def enough():
        kernel = kernel_answers(hot, GROUPS[group])
        print(f"{group}: {kernel} of {expected} answered in the kernel")
        return kernel >= least
    wait_until(enough, SOON, f"{least:.0f} of {expected} to be answered in the kernel")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("family", (4, 6))
def test_cookies(hot, family, state):
    """The kernel answers a client cookie alone and a valid server cookie, with a new one in the reply; all other queries pass,
    and named refuses cookies that it did not make."""
    hot.path.world.heat(hot.path.daemon, "www.lab.example", edns=True)
    in_kernel = state in ("client-only", "valid", "valid-staging", "renewed", "a-bit-ahead")
    check(hot.path, message([(COOKIE, STATES[state][0](family))]), in_kernel, family,
          local=CLIENT1[family])


@pytest.mark.parametrize("case", OPTIONS)
def test_other_options(hot, case):
    """named checks all other options, so these queries pass."""
    hot.path.world.heat(hot.path.daemon, "www.lab.example", edns=True)
    sent = [(code, whole(ACTIVE, 4, 10) if data is VALID else data) for code, data in OPTIONS[case][0]]
    check(hot.path, message(sent), False, local=CLIENT1[4])
