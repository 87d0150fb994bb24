# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Figures of a run, the table of the disruptions, and the verdict."""

from dataclasses import asdict
from math import sqrt

from .session import CALM

COLUMNS = ("disruption", "times", "took", "silent", "after", "names", "lost", "there", "lost", "there")


def allowed(lost_alone):
    """How many queries may be lost while the resolver is there: as many as by the resolver alone, and three standard
    deviations of such a number."""
    return lost_alone + 3 * sqrt(lost_alone + 1)


def figures(name, seed, seconds, result, alone):
    """What --json writes. alone: the Result with the kernel path paused, or None."""
    found = {"server": name, "seed": seed, "seconds": seconds,
             "disruptions": sum(row.events for row in result.rows.values()),
             "queries": result.queries, "replies": result.replies,
             "kernel_share": round(result.in_kernel / max(1, result.replies), 4),
             "wrong": dict(result.wrong), "noted": dict(result.noted), "strays": dict(result.strays), "left": result.left,
             "errors": dict(result.errors), "lost": result.lost, "lost_there": result.lost_there,
             "parked": result.parked, "grown": result.grown, "events": result.events, "held": result.held,
             "by_kind": {kind: asdict(row) for kind, row in result.rows.items()}}
    if alone:
        found |= {"alone": {"queries": alone.queries, "replies": alone.replies, "lost": alone.lost,
                            "lost_there": alone.lost_there, "errors": dict(alone.errors), "wrong": dict(alone.wrong),
                            "by_kind": {kind: asdict(row) for kind, row in alone.rows.items()}}}
    found["faults"] = _faults(found)
    return found


def _faults(found):
    """The faults found, in words."""
    faults = [f"{n:,} wrong: {kind}" for kind, n in found["wrong"].items()]
    words = {"twice": "doubled", "address": "from a wrong address", "unasked": "that nobody asked for"}
    faults += [f"{n:,} {words[why]}" for why, n in found["strays"].items()]
    faults += [f"left: {what}" for what in found["left"]] + found["grown"]
    lost, alone = found["lost_there"], found.get("alone")
    if alone and lost > allowed(alone["lost_there"]) + found["parked"]:
        faults.append(f"{lost:,} queries lost while the resolver was there, {found['parked']:,} of them parked in a killed hydnsd at most, "
                      f"{alone['lost_there']:,} by the resolver alone")
    if not found["replies"]:
        faults.append("no reply at all")
    return faults


def _rows(found):
    alone = found.get("alone", {}).get("by_kind", {})
    for kind, row in sorted(found["by_kind"].items(), key=lambda item: -item[1]["after"]):
        beside = alone.get(kind)
        yield (kind, row["events"], f"{row['away']:.2f}", f"{row['silent']:.2f}", f"{row['after']:.2f}", f"{row['names']:.2f}", row["lost"],
               row["lost_there"], *((beside["lost"], beside["lost_there"]) if beside else ("-", "-")), row["where"])


def table(found):
    """Lines."""
    rows = [COLUMNS, *_rows(found)]
    wide = max(len(row[0]) for row in rows)
    lines = ["The longest times without kernel answers at any client, in seconds, by the disruption before:",
             "  took: until all was back; silent: without kernel answers; after: of these, after all was back (and where)",
             "  names: until a name that the kernel had answered was answered there again",
             "  lost: queries without a reply; there: of these, while the resolver was there; then both with the kernel "
             "path paused"]
    return lines + ["  ".join([f"{row[0]:{wide}}", *(f"{cell:>6}" for cell in row[1:10]), *row[10:]]).rstrip() for row in rows]


def held(found):
    """Lines: what was held, once things were steady."""
    rows = [("held when steady", "first", "most", "last"),
            *((what, *(f"{n[key]:,}" for key in ("first", "most", "last"))) for what, n in found["held"].items())]
    wide = max(len(row[0]) for row in rows)
    return ["  ".join([f"{row[0]:{wide}}", *(f"{cell:>12}" for cell in row[1:])]) for row in rows]


def last_line(found):
    said = (f"chaos: {found['server']}, seed {found['seed']}: {found['replies']:,} replies, {found['kernel_share']:.0%} in "
            f"the kernel, {found['disruptions']} disruptions: ")
    return said + ("; ".join(found["faults"]) if found["faults"] else "0 wrong, 0 doubled, nothing left, nothing grown")


def _shrunk(found):
    """Lines: the fewest events that make a wrong reply, and the command that makes them."""
    if found["smallest"] is None:
        return [f"The {len(found['events'])} events before the first wrong reply have not made one again."]
    return [f"Of the {len(found['events'])} events before the first wrong reply {len(found['smallest'])} make one:",
            *(f"  {number} {kind}" for number, kind in found["smallest"]), f"  {found['command']}"]


def summary(found):
    """Lines, the last of which is the verdict."""
    lines = ["", *table(found), "", *held(found), "", f"Parked queries that went with a killed hydnsd: {found['parked']:,}"]
    lines += [f"Not wrong, but noted: {n:,} {kind}" for kind, n in found["noted"].items()]
    if found["errors"]:
        lines.append("Replies without an answer: " + ", ".join(f"{n:,} {rcode}" for rcode, n in found["errors"].items()))
    return [*lines, *(_shrunk(found) if "smallest" in found else ()), last_line(found)]
