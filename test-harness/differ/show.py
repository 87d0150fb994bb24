# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Shows messages in presentation form, a difference with all that is known of it, and the figures of a run."""

import binascii
from collections import Counter

import dns.exception
import dns.message

from .asking import AGAIN, DIRECT, KERNEL, REFERENCE_ASKED

PLACES = {KERNEL: "through the kernel path", DIRECT: "past it, before", AGAIN: "past it, after",
          REFERENCE_ASKED: "reference"}


def message(wire):
    """Lines: the presentation form if the message can be read, and the octets."""
    if wire is None:
        return ["(silence)"]
    try:
        lines = str(dns.message.from_wire(wire, one_rr_per_rrset=True)).splitlines()
    except (dns.exception.DNSException, ValueError) as why:
        lines = [f"(no presentation form: {type(why).__name__}: {why})"]
    octets = binascii.hexlify(wire).decode()
    return lines + ["; " + octets[at:at + 96] for at in range(0, len(octets), 96)]


def _indented(title, lines):
    return [f"  -- {title}"] + ["     " + line for line in lines]


def difference(found):
    """Lines of everything about one difference."""
    flow, when = found.flow, found.phase + (f", during: {found.disturbance}" if found.disturbance else "")
    lines = [f"== {found.difference}", f"   phase {when}; client {flow.group.client}, IPv{flow.group.family}; "
             + ("answered in the kernel" if flow.by_kernel else "answered by the resolver itself")]
    if found.later is not None and found.later_ms:
        lines.append(f"   asked again {found.later_ms:.0f} ms later: "
                     + ("still different" if found.later else "the same"))
    lines += _indented("query", message(flow.wire))
    if found.smallest:
        lines += _indented("smallest query that still differs", message(found.smallest))
    for place, title in PLACES.items():
        if flow.sent[place]:
            lines += _indented(title, message(flow.replies[place]))
    return lines + _indented("rule now", (found.rule or "none").splitlines())


def signature(found):
    """What two differences must have in common to count as one: kind, query type, and who answered."""
    wire, at = found.flow.wire, 12
    while at < len(wire) and 0 < wire[at] < 64:
        at += 1 + wire[at]
    return found.difference.kind, wire[at + 1:at + 3].hex(), found.flow.by_kernel, bool(found.later)


def distinct(found, most):
    """The first of each signature, and how often each came: [(Found, count)]."""
    counts, first = Counter(), {}
    for f in found:
        counts[signature(f)] += 1
        first.setdefault(signature(f), f)
    return [(first[s], n) for s, n in counts.most_common(most)]


def figures(session):
    """What --json writes."""
    return {
        "server": session.stand.server.name, "queries": session.total, "asked_again": session.repeated,
        "seconds": round(session.seconds, 1),
        "queries_per_second": round(session.finished / session.seconds), "seed": session.seed,
        "answered_in_kernel": session.in_kernel, "kernel_share": round(session.kernel_share, 4),
        "by_packet_ring": session.by_ring, "differences": sum(session.kinds.values()), "kinds": dict(session.kinds),
        "explained_by_a_second_look": session.explained, "of_the_moment_before": session.moments,
        "a_second_off": session.judge.second_off, "gave_up": session.judge.gave_up,
        "rules": +session.judge.used, "reference_not_asked": +session.alone, "commands": session.given,
        "of_crowds": session.of_crowds, "parked": session.parked.sums, "forwarded": session.forwarded.sums,
        "forwarded_share": round(session.forwarded_share, 4), "parked_share": round(session.parked_share, 4),
        "parked_at_once": session.parked.most, "changes_of_servers": session.stand.authorities.changes if session.stand.slow else 0,
        "lost_by_the_kernel": session.losses.now(), "phases": {phase.name: count for phase, count in session.phase_counts()}, "reasons": session.reasons,
    }


def _parked(f):
    p = f["parked"]
    lines = [f"parked: {p['parked']:,} ({f['parked_share']:.1%}), {f['parked_at_once']:,} at once; of these {p['answered']:,} "
             f"answered by a rule, {p['passed']:,} left to the resolver; timed out {p['timed_out']:,}, of these dropped "
             f"{p['discarded']:,}, refused {p['refused']:,}, lost {p['lost']:,}"]
    if f["of_crowds"]:
        lines.append(f"asked by crowds, of slow and silent servers: {f['of_crowds']:,}; servers fell silent or came back "
                     f"{f['changes_of_servers']:,} times")
    return lines


def _forwarded(f):
    w = f["forwarded"]
    return [f"forwarded: {w['sent']:,} requests, {w['joined']:,} queries waited with others; of {w['answers']:,} answers "
            f"{w['relayed']:,} became rules, {w['rejected']:,} were withdrawn meanwhile; timed out {w['timed_out']:,}, again "
            f"{w['again']:,}, late {w['late']:,}, false {w['mismatched']:,}"] if w["sent"] else []


def summary(f):
    lines = [f"{f['server']}: {f['queries']:,} queries in {f['seconds']:.0f} s ({f['queries_per_second']:,} a second), "
             f"{f['asked_again']:,} of them asked again, {sum(f['commands'].values()):,} commands meanwhile",
             f"answered in the kernel: {f['answered_in_kernel']:,} ({f['kernel_share']:.1%})",
             f"came by packet rings: {f['by_packet_ring']:,} ({f['by_packet_ring'] / f['queries']:.1%})",
             *_parked(f), *_forwarded(f),
             f"differences: {f['differences']:,}" + "".join(f"; {kind}: {n:,}" for kind, n in f["kinds"].items())]
    lines.append("right until a TTL update a moment before, and right at the second look: "
                 f"{f['of_the_moment_before']:,}")
    seconds = f["a_second_off"]
    lines.append(f"a second off: {seconds['clock']:,} while the clock's second changed, {seconds['end']:,} otherwise, "
                 "as when an RRset's end moves by one second")
    if f["gave_up"]:
        lines.append("only one could not resolve: " + ", ".join(f"{who} {n:,}" for who, n in f["gave_up"].items()))
    lines += [f"{what}: " + (", ".join(f"{k} {n:,}" for k, n in sorted(counts.items())) or "none") for what, counts in (
        ("explained by a second look", f["explained_by_a_second_look"]),
        ("differs from the reference as allowed", f["rules"]), ("the reference was not asked", f["reference_not_asked"]),
        ("commands", f["commands"]))]
    if f["lost_by_the_kernel"]:
        lines.append("the kernel lost between clients and resolver: " + ", ".join(
            f"{n:,} {where}" for where, n in f["lost_by_the_kernel"].items()))
    lines.append("queries by phase: " + ", ".join(f"{name} {n:,}" for name, n in f["phases"].items()))
    passed = {name: n for name, n in f["reasons"].items() if name != "ANSWERED"}
    return lines + ["passed: " + ", ".join(f"{name} {n:,}" for name, n in sorted(passed.items(), key=lambda i: -i[1]))]
