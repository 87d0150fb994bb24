# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Draws the results: a panel of bars for each unit of each bench."""

KINDS = (".png", ".svg", ".pdf")
UNITS = {"replies_per_second": "replies per second", "nanoseconds": "nanoseconds", "rules_per_second": "rules per second",
         "microseconds": "microseconds", "milliseconds": "milliseconds",
         "switches_per_second": "context switches per second"}
# keys of a point that are no parameters of it
SKIPPED = {"bench", "contender", "runs", "ratio_to_echo", "ratio_to_one_processor", "answered_share", "stages", "replies", "lost",
           "times_resolver", "lost_of", "overflows", "cpu_us_a_client", "upstream_queries", "outage_seconds", "replies_before",
           "p99_us_before", "p99_us", "silent_unanswered", "kernel_or_parked", "parked_then_passed", "p50_ms", "parked", "passed",
           "asked_per_second", "replies_ratio", "processor_busy", "good_by_kernel", "lost_on_link", "multiple_reached", "flood_answered",
           "flood_truncated", "flood_by_kernel", "flood_octets", "dropped_by_kernel", "cpu_us_of_resolver", "preload_seconds", "questions",
           "kept", "maps_bytes", "daemon_bytes", "resolver_bytes", "octets_per_name", *UNITS}
LATENCY = "microseconds to reply, half of the queries; the line goes on to 99 %"
LABEL_MOST = 110


def _value(value):
    """A value in few letters."""
    if isinstance(value, int) and value >= 1000 and value % 1000 == 0:
        return f"{value // 1000} k" if value < 1_000_000 else f"{value / 1e6:g} M"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _label(point):
    about = [k if v is True else f"{k} {_value(v)}" for k, v in point.items()
             if k not in SKIPPED and v not in (None, "") and isinstance(v, (int, float, str, bool))]
    return ", ".join([point["contender"], *about])[:LABEL_MOST]


def panels(results):
    """Yields (title, unit, [(label, median, least, most)])."""
    for r in results:
        for unit, name in UNITS.items():
            bars = [(_label(p), p[unit], min(p["runs"]), max(p["runs"])) for p in r.points if unit in p]
            if bars:
                yield r.bench, name, bars
        bars = [(_label(p), l["p50"], l["p50"], l["p99"]) for p in r.points for l in [p.get("latency_us")] if l]
        if bars:
            yield r.bench, LATENCY, bars


def write(file, results):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn = list(panels(results))
    if not drawn:
        return
    heights = [1 + 0.22 * len(bars) for *_, bars in drawn]
    figure, axes = pyplot.subplots(len(drawn), 1, figsize=(11, sum(heights)), squeeze=False,
                                   gridspec_kw={"height_ratios": heights})
    for axis, (title, unit, bars) in zip(axes[:, 0], drawn):
        places = range(len(bars), 0, -1)
        medians = [m for _, m, _, _ in bars]
        axis.barh(places, medians, 0.7, color="#1f6fb4",
                  xerr=[[max(0, m - low) for _, m, low, _ in bars], [max(0, high - m) for _, m, _, high in bars]])
        axis.set_yticks(places, [label for label, *_ in bars], fontsize=7)
        if unit == LATENCY:
            axis.set_xscale("log")
        axis.set_xlabel(unit, fontsize=8)
        axis.set_title(title, fontsize=9)
    figure.tight_layout()
    # the same figures give the same SVG: leave date and version out
    no_metadata = dict.fromkeys(("Creator", "Date", "Format", "Type")) if str(file).endswith(".svg") else None
    figure.savefig(file, dpi=110, metadata=no_metadata)
    pyplot.close(figure)
