# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A crowd: many clients that ask one question, or a few, within a moment, and what becomes of each."""

from dataclasses import dataclass, field

from .client import Asker


@dataclass
class Crowd:
    """What a crowd got."""
    asked: int
    lost: int
    twice: int
    strays: list = field(repr=False)      # other datagrams that answer no query
    answers: set = field(repr=False)      # (question number, rcode, data): different ones
    spread_ms: float                      # from a question's first reply to its last, of the question where that is most
    latencies: list = field(repr=False, default_factory=list)      # of the replies, in ns, sorted
    sent_first: bool = False              # the last query was sent before the first reply came


def _spread_ms(replied):
    came = {}
    for a in replied:
        came.setdefault(a.question, []).append(a.sent + a.latency)
    return max((max(times) - min(times) for times in came.values()), default=0) / 1e6


def gather(world, ns, server, questions, clients, seconds, *, timeout=10.0, **options):
    """Has so many clients ask these questions in turn, evenly over so many seconds, or longer when the asker gets no processor; waits
    for all. options: those of Asker."""
    with Asker(world, ns, server, questions, clients / seconds, queries=clients, timeout=timeout, watch=True, **options) as asker:
        answers = asker.result()
    replied = [a for a in answers if a.latency is not None]
    return Crowd(len(answers), len(answers) - len(replied), sum(s.why == "twice" for s in asker.strays),
                 [s for s in asker.strays if s.why != "twice"], {(a.question, a.rcode, a.rdata) for a in replied},
                 _spread_ms(replied), sorted(a.latency for a in replied),
                 max(a.sent for a in answers) < min((a.sent + a.latency for a in replied), default=float("inf")))
