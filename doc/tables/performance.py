# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Tables and plot of doc/performance.md, from what hydns-bench --json has written."""

from . import number, table

QUESTIONS = ("capacity", "versus", "zone", "authority", "mixed", "latency", "cost", "overhead", "queue", "misses", "flood", "watched",
             "reload", "publish")
PLOTTED = ("versus", "capacity", "latency", "misses")
# parameters of a point that make a query another than the plain one
KINDS = {"octets": "name of {} octets", "type": "{}", "records": "{} records, rotated", "ipv6": "IPv6", "edns": "EDNS",
         "cookie": "a valid cookie", "capacity": "store sized for {:,}"}
IDLE = 0.9           # load average for each processor, below which it may be that of the bench before
RINGS = {"alone": "Unbound alone", "sockets": "sockets", "clients": "packet rings for clients",
         "rings": "packet rings both ways", "released": "Unbound as it was released"}
NAMES = {"cached": "cached", "unique": "never repeated"}
PERCENTILES = ("p50", "p99", "p99.9")
WAYS = {"alone": "alone", "attached": "alone, program attached", "unparked": "kernel path that parks nothing",
        "parked": "kernel path", "hydns": "kernel path", "rules": "rules alone", "all": "all ways"}
ZONE_SERVERS = {"hydns": "**hyDNS**", "NSD": "NSD", "Knot": "Knot, sockets", "Knot, XDP": "Knot, XDP", "BIND": "BIND alone",
                "dnsdist": "dnsdist before BIND"}
WITH_HYDNS = {"alone": "alone", "attached": "alone, program attached", "plugin": "with the plugin", "alone again": "another alone"}


def points(results, name, **wanted):
    return [p for p in results[name]["points"] if all(p.get(k) == v for k, v in wanted.items())]


def unmeasured(question):
    """In place of a table."""
    return [f"`hydns-bench {question}` measures this; no figures are kept yet."]


def kept(results):
    """The questions that were measured."""
    return [name for name in QUESTIONS if results.get(name)]


def cpus_used(results):
    cpus = results[QUESTIONS[0]]["environment"]["cpus"]
    return len({*cpus["resolver"], *cpus["others"]})


def noise(results):
    """What the figures are worth."""
    loads = [results[name]["environment"]["load_average"][0] for name in kept(results)]
    kind = "quick runs" if all(results[name]["quick"] for name in kept(results)) else "full runs" \
        if not any(results[name]["quick"] for name in kept(results)) else "quick and full runs"
    cpus = cpus_used(results)
    if max(loads) < IDLE * cpus:
        return [f"These are {kind} on an otherwise idle machine. Single figures differ by a tenth or two from run to run; compare ratios."]
    return [f"**These are {kind} on a machine that did other work:** its load average was {min(loads):.0f} to {max(loads):.0f} on {cpus} "
            "processors.", "What was measured had less than a processor and less than its caches. Take rates as what is reached at least,",
            "times as what is needed at most, and ratios as rough."]


def runs(results):
    """Which run each figure is from."""
    rows = []
    for name in kept(results):
        about = results[name]["environment"]
        rows.append((f"`{name}`", about["date"].replace("T", " ").partition("+")[0], "quick" if results[name]["quick"] else "full",
                     number(about["load_average"][0])))
    return table(("question", "measured (UTC)", "run", "load average before"), rows)


def machine(results):
    about = results[QUESTIONS[0]]["environment"]
    what = {"cpu_model": "processor", "kernel": "kernel", "unbound": "Unbound", "bind": "BIND", "link": "link"}
    return table(("what", "which"), [("processors used", cpus_used(results)),
                                     *((text, str(about[key]).strip()) for key, text in what.items() if key in about)])


def millions(point):
    low, high = min(point["runs"]), max(point["runs"])
    return f"{point['replies_per_second'] / 1e6:.2f} ({low / 1e6:.2f} to {high / 1e6:.2f})"


def query(point):
    words = [text.format(point[key]) for key, text in KINDS.items() if point.get(key)]
    return ", ".join(words) or "A"


def capacity(results):
    rows = [(f"{p['rules']:,}", f"Zipf {p['zipf']}" if p["zipf"] else "uniform" if p["rules"] > 1 else "", query(p), millions(p),
             f"{p['ratio_to_echo']:.2f}") for p in points(results, "capacity", contender="hydns") if "processors" not in p]
    return table(("rules", "names drawn", "query", "M replies/s (range)", "share of echo"), rows)


def processors(results):
    rows = []
    for p in points(results, "capacity", contender="hydns", processors=2):
        echo = points(results, "capacity", contender="echo", processors=2, rules=p["rules"])[0]
        rows.append((f"{p['rules']:,}", millions(p), f"{p['ratio_to_one_processor']:.2f}", f"{echo['ratio_to_one_processor']:.2f}"))
    return table(("rules", "M replies/s of two processors", "times one processor", "echo's"), rows)


def servers(results):
    names = {"hydns": "**kernel path**", "echo": "echo (the link's limit)"}
    rows = [(names.get(p["contender"], p["contender"]), f"{p['replies_per_second'] / 1e3:,.0f}", number(p["hydns_times"]))
            for p in sorted(points(results, "versus"), key=lambda p: -p["replies_per_second"])]
    absent = [a["contender"] for a in results["versus"]["absent"]]
    return [*table(("server, on one processor", "thousand replies/s", "kernel path answers, times"), rows),
            *(["", f"Not installed or not able to run here: {', '.join(absent)}."] if absent else [])]


def of_zone(results, part, head, rows):
    """A table of rows(points), where that was measured."""
    found = points(results, "zone", part=part) if results.get("zone") else []
    return table(head, rows(found)) if found else unmeasured("zone")


def zone(results):
    def rows(found):
        rates = {(p["names"], p["contender"]): f"{p['replies_per_second'] / 1e3:,.0f}" for p in found}
        return [(f"{names:,}", *(rates.get((names, c), "") for c in ZONE_SERVERS)) for names in sorted({p["names"] for p in found})]
    return of_zone(results, "names", ("names, thousand replies/s of", *ZONE_SERVERS.values()), rows)


def zone_preloaded(results):
    others = "NSD", "Knot", "Knot, XDP"
    head = ("names", "in the kernel", *(f"times {ZONE_SERVERS[c]}" for c in others), "answers preloaded", "in, s", "MB in all",
            "octets a name more")

    def rows(found):
        times = {(p["names"], p["contender"]): number(p["hydns_times"]) for p in found}
        return [(f"{p['names']:,}", f"{p['kernel_share']:.1%}", *(times.get((p["names"], c), "") for c in others),
                 f"{p['kept']:,} of {p['questions']:,}", number(p["preload_seconds"]),
                 number(sum(n for what, n in p.items() if what.endswith("_bytes")) / 1e6),
                 number(p["octets_per_name"]) if p["octets_per_name"] is not None else "")
                for p in found if p["contender"] == "hydns"]
    return of_zone(results, "names", head, rows)


def zone_absent(results):
    head = ("names", "server", "thousand replies/s", "hyDNS answers, times", "in the kernel", "processor", "CPU of the server a reply, us")
    return of_zone(results, "absent", head, lambda found: [
        (f"{p['names']:,}", ZONE_SERVERS[p["contender"]], f"{p['replies_per_second'] / 1e3:,.0f}", number(p["hydns_times"]),
         f"{p['kernel_share']:.1%}" if "kernel_share" in p else "", f"{p['processor_busy']:.0%}", number(p["cpu_us_of_resolver"]))
        for p in found])


def of_authority(results, part, head, row):
    """A table with a row for each point of a part, where that was measured."""
    rows = [row(p) for p in points(results, "authority", part=part)] if results.get("authority") else []
    return table(head, rows) if rows else [f"`hydns-bench authority` measures this (`--only {part}`); no figures are kept yet."]


def authority_kinds(results):
    ways = {"kernel_share": "its names", "share_do": "its names, with DO", "share_plain": "its names, without EDNS",
            "share_absent": "names that do not exist", "share_below": "names below its own"}
    head = ("zone", "names", "answers preloaded", "in, s", "rules", "octets a name", *(f"in the kernel: {text}" for text in ways.values()))
    return of_authority(results, "kinds", head, lambda p: (
        p["kind"], f"{p['names']:,}", f"{p['kept']:,} of {p['questions']:,}", number(p["preload_seconds"]), f"{p['rules']:,}",
        number(p["octets_per_name"]), *(f"{p[way]:.1%}" for way in ways)))


def authority_updates(results):
    head = ("names", "updates/s: wanted, acknowledged", "in the kernel: names of the zone", "names that are updated",
            "names that do not exist", "outdated replies", "replies lost")
    return of_authority(results, "updates", head, lambda p: (
        f"{p['names']:,}", f"{p['rate']:,}, {p['updates_per_second']:,.0f}",
        *(f"{p[f'kernel_share_{client}']:.1%}" for client in ("names", "changing", "absent")), f"{p['outdated']:,} of {p['asked']:,}",
        number(p["lost"])))


def authority_flood(results):
    head = ("server", "flood/s (times what BIND alone answers)", "good queries lost", "p50, us", "p99, us", "named's processor",
            "flood: answered; by the kernel")
    return of_authority(results, "flood", head, lambda p: (
        ZONE_SERVERS[p["contender"]], f"{p['flood_per_second']:,} ({number(p['multiple_reached'])})" if p["multiple"] else "none",
        lost(p), *(f"{p['latency_us'][n]:,.0f}" for n in ("p50", "p99")), f"{p['processor_busy']:.1%}",
        f"{p['flood_answered']:.1%}; {p['flood_by_kernel']:.1%}" if p["multiple"] else ""))


def mixed(results):
    rows = []
    for p in points(results, "mixed", contender="hydns"):
        alone = points(results, "mixed", contender="resolver", names=p["names"], capacity=p["capacity"])[0]
        rows.append((f"{p['names']:,}", f"{p['capacity']:,}", f"{alone['replies_per_second'] / 1e3:,.0f}",
                     f"{p['replies_per_second'] / 1e3:,.0f}", number(p["times_resolver"]), f"{p['kernel_share']:.0%}"))
    return table(("names, Zipf 1.0", "store, rules", "Unbound alone, thousand replies/s", "with hyDNS", "times", "in the kernel"), rows)


def latency(results):
    rows = []
    for p in points(results, "latency", contender="hydns"):
        alone = points(results, "latency", contender="resolver", concurrency=p["concurrency"], rate=p["rate"])[0]
        load = f"{p['rate']:,} queries/s" if p["rate"] else f"{p['concurrency']} under way"
        rows.append((load, *(f"{alone['latency_us'][n]:,.0f}, {p['latency_us'][n]:,.0f}" for n in PERCENTILES)))
    return table(("load", *(f"{n}: Unbound alone, with hyDNS (us)" for n in PERCENTILES)), rows)


def cost(results):
    """Each way goes through the stages of those before it."""
    rows, before = [], 0.0
    for p in sorted(points(results, "cost", query="A"), key=lambda p: p["nanoseconds"]):
        rows.append((p["way"], number(p["nanoseconds"]), number(p["nanoseconds"] - before), p["stages"]))
        before = p["nanoseconds"]
    rows += [(f"answered: {p['query']}", number(p["nanoseconds"]), "", "") for p in points(results, "cost", way="answered")
             if p["query"] != "A"]
    return table(("a packet ends as", "ns", "more", "after the stages before and"), rows)


def program(results):
    p = next(p for p in points(results, "cost") if "verified_instructions" in p)
    return table(("the XDP program", ""), [("instructions that the verifier walks", number(p["verified_instructions"])),
                                           ("BPF instructions", number(p["bpf_instructions"])),
                                           ("machine code, octets", number(p["machine_code_octets"]))])


def memory(results):
    p = next(p for p in points(results, "cost") if "octets_per_rule" in p)
    parts = {"maps_bytes": "maps", "daemon_bytes": "hydnsd", "ghosts_bytes": "the policy's memory of rules that have left"}
    rows = [(text, number(p[key] / p["rules"]), number(p[key] / 1e6)) for key, text in parts.items()]
    return table(("part", "octets a rule", f"MB for {p['rules']:,} rules"),
                 [*rows, ("in all", number(p["octets_per_rule"]), number(sum(p[key] for key in parts) / 1e6))])


def overhead(results):
    rows = [(p["resolver"], p["load"], WITH_HYDNS[p["contender"]],
             *(f"{p[f'{what}_to_alone']:.3f} ± {p[f'{what}_to_alone_95']:.3f}" for what in ("cpu_in_all", "replies")))
            for p in points(results, "overhead") if p["contender"] != "alone"]
    return table(("resolver", "names", "contender", "CPU for a reply, times the resolver's alone", "replies/s, times"), rows)


def rings(results):
    rows = []
    for p in points(results, "queue"):
        if p["load"] in NAMES and "concurrency" not in p:
            ratios = [f"{p[f'{what}_to_sockets']:.2f} ± {p[f'{what}_to_sockets_95']:.2f}" if p["contender"] != "sockets" else "1"
                      for what in ("replies", "cpu_of_resolver", "cpu_in_all")]
            rows.append((NAMES[p["load"]], RINGS[p["contender"]], f"{p['replies_per_second']:,.0f}", *ratios))
    return table(("names", "by", "replies/s", "replies/s, times", "CPU of Unbound for a reply, times", "CPU in all, times"), rows)


def new_names(results):
    rows = [(RINGS[p["contender"]], f"{p['replies_per_second']:,.0f}",
             *(f"{p[f'{what}_to_alone']:.3f} ± {p[f'{what}_to_alone_95']:.3f}" if p["contender"] != "alone" else "1"
               for what in ("replies", "cpu_of_resolver", "cpu_in_all")))
            for p in points(results, "queue", load="new")]
    return table(("by", "replies/s", "replies/s, times", "CPU of Unbound and hydnsd for a reply, times", "CPU in all, times"), rows)


def ring_times(results):
    rows = []
    for p in points(results, "queue", contender="rings"):
        if "latency_us" in p:
            sockets = points(results, "queue", contender="sockets", load=p["load"], concurrency=p["concurrency"])[0]
            rows.append((NAMES[p["load"]], p["concurrency"],
                         *(f"{sockets['latency_us'][n]:,.0f}, {p['latency_us'][n]:,.0f}; {ratio:.2f} ± {half:.2f}"
                           for n, (ratio, half) in p["times_sockets"].items())))
    return table(("names", "under way", *(f"{n}: sockets, packet rings (us); times" for n in ("p50", "p95", "p99"))), rows)


def idle_rings(results):
    rows = [(RINGS[p["contender"]], number(p["switches_per_second"]), f"{p['cpu_percent']:.3f} %",
             f"{p['resident_octets'] / 2**20:.0f} MiB") for p in points(results, "queue", load="idle")]
    return table(("Unbound that nobody asks", "context switches a second", "of a processor", "memory"), rows)


def lost(p):
    return f"{p['lost']:,} of {p['lost_of']:,}"


def of_misses(results, part, head, row):
    """A table with a row for each point of a part, where that was measured."""
    rows = [row(p) for p in points(results, "misses", part=part)] if results.get("misses") else []
    return table(head, rows) if rows else [f"`hydns-bench misses` measures this (`--only {part}`); no figures are kept yet."]


def crowds(results):
    head = "resolver", "crowd asks", "contender", "first reply to last, ms", "CPU of the resolver a client, us", "clients without a reply"
    return of_misses(results, "coalescing", head, lambda p: (
        p["resolver"], p["crowd"], WAYS[p["contender"]], number(p["milliseconds"]), number(p["cpu_us_a_client"]), lost(p)))


def outage(results):
    head = ("resolver", "contender", "queries/s, silence", "silent names: in the kernel or parked; passed later",
            "other names, replies/s: before, in the outage", "p99, us: before, in the outage", "lost")
    return of_misses(results, "outage", head, lambda p: (
        p["resolver"], WAYS[p["contender"]], f"{p['rate']:,}, {p['outage_seconds']} s",
        f"{p['kernel_or_parked']:.1%}; {p['parked_then_passed']:.1%}" if "kernel_or_parked" in p else "",
        f"{p['replies_before']:,}, {p['replies_per_second']:,.0f}", f"{p['p99_us_before']:,.0f}, {p['p99_us']:,.0f}", number(p["lost"])))


def bounds(results):
    head = ("resolver", "contender", "`hydns-pending-max`", "parked; passed at once, at most", "p50, p99.9, ms",
            "clients without a reply")
    return of_misses(results, "threshold", head, lambda p: (
        p["resolver"], WAYS[p["contender"]], p.get("pending_max", ""), f"{p['parked']:,}; {p['passed']:,}" if "parked" in p else "",
        f"{number(p['p50_ms'])}, {number(p['milliseconds'])}", lost(p)))


def ways(results):
    head = "resolver", "under way", "contender", "replies/s", *(f"{n}, us" for n in PERCENTILES), "lost"
    return of_misses(results, "concurrency", head, lambda p: (
        p["resolver"], f"{p['concurrency']:,}", WAYS[p["contender"]], f"{p['replies_per_second']:,.0f}",
        *(f"{p['latency_us'][n]:,.0f}" for n in PERCENTILES), lost(p)))


def forwarded(results):
    head = "contender", "under way", "replies/s", "p50, us", "p99.9, us", "CPU of resolver and hydnsd a reply, us", "with the links"
    return of_misses(results, "forwarding", head, lambda p: (
        p["contender"], p["concurrency"], f"{p['replies_per_second']:,.0f}", *(f"{p['latency_us'][n]:,.0f}" for n in ("p50", "p99.9")),
        number(p["cpu_us_of_resolver"]), number(p["cpu_us_in_all"])))


def flooded(results):
    """For each flood and server: without it, and at the most that there was of it."""
    if not results.get("flood"):
        return unmeasured("flood")
    floods, rows = [p for p in points(results, "flood") if p.get("multiple")], []
    for p in floods:
        if p["multiple"] == max(q["multiple"] for q in floods):
            rows.append((p["part"], p["contender"], f"{p['flood_per_second']:,} ({number(p['multiple_reached'])})",
                         f"{p['replies_ratio']:.3f}",
                         *(f"{p['latency_us'][n]:,.0f} ({number(p['latency_ratio'][n])})" for n in ("p50", "p99")),
                         f"{p['processor_busy']:.0%}",
                         f"{p['flood_answered']:.1%}; {p['flood_by_kernel']:.1%}; {p['dropped_by_kernel']:.1%}"))
    return table(("flood", "server", "flood/s (times what Unbound can take)", "good replies, times those without", "p50, us (times)",
                  "p99, us (times)", "processor", "flood: answered; by the kernel; dropped there"), rows)


def watched(results):
    rows = [(p["resolver"], p["contender"], p["against"], f"{p['ratio']:.3f} ± {p['error']:.3f}", f"{p['cpu_ratio']:.2f}",
             f"{p['logged']:,}, {p['lost']:,}" if p.get("logged") else "") for p in points(results, "watched")]
    return table(("resolver", "watched by", "against", "replies/s, times", "CPU of resolver and hydnsd a reply, times",
                  "kernel answers logged, lost"), rows)


def scrapes(results):
    rows = [(p["resolver"], p["contender"], p["scrapes"], *(f"{p[key][n]:.1f}" for key in ("scrape_cpu_ms", "scrape_ms") for n in ("p50", "p95")))
            for p in points(results, "watched") if p.get("scrapes")]
    return table(("resolver", "watched by", "scrapes", "CPU time, p50, ms", "p95", "from request to reply, p50, ms", "p95"), rows)


def reload(results):
    rows = [(p["resolver"], WITH_HYDNS[p["contender"]], number(p["milliseconds"]), f"{p['lost']:,} of {p['lost_of']:,}",
             number(p["command_ms"])) for p in points(results, "reload")]
    return table(("resolver", "contender", "silence, median ms", "queries lost in all", "until the command returns, ms"), rows)


def publish(results):
    rows = [(p["what"], {"store": "the store's writer, while the kernel answers", "hydnsd": "ring, hydnsd and policy"}[p["contender"]],
             f"{p['rules_per_second'] / 1e6:.2f} M rules/s") for p in points(results, "publish") if "rules_per_second" in p]
    rows += [(p["what"], "ring, hydnsd and policy", f"{number(p['microseconds'])} us, 99 % below {number(p['p99_us'])} us")
             for p in points(results, "publish") if "microseconds" in p]
    return table(("what", "by", "median"), rows)


def goals(results):
    every = [g for name in kept(results) for g in results[name]["goals"]]
    measured = [g for g in every if g["measured"] is not None]
    return [f"Of the project's {len(every)} goals these runs measured {len(measured)} and met {sum(g['met'] for g in measured)}."]


TABLES = {t.__name__: t for t in (
    noise, runs, machine, capacity, processors, servers, zone, zone_preloaded, zone_absent, authority_kinds,
    authority_updates, authority_flood, mixed, latency, cost, program, memory, overhead, rings,
    new_names, ring_times, idle_rings, crowds, outage, bounds, ways, forwarded, flooded, watched, scrapes, reload,
    publish, goals)}
BLUE, ORANGE, GREY, LIGHT = "#1f6fb4", "#c8641e", "#8a8a8a", "#c8c8c8"


def draw_servers(axis, results):
    bars = sorted(points(results, "versus"), key=lambda p: p["replies_per_second"])
    colours = {"hydns": BLUE, "echo": LIGHT}
    axis.barh([{"hydns": "kernel path"}.get(p["contender"], p["contender"]) for p in bars],
              [p["replies_per_second"] / 1e6 for p in bars], color=[colours.get(p["contender"], GREY) for p in bars])
    axis.set(title="Each on one processor, 1,000 names", xlabel="million replies per second")


def draw_capacity(axis, results):
    plain = [p for p in points(results, "capacity") if "processors" not in p and query(p) == "A"]
    for contender, zipf, name, colour, style in (("echo", None, "echo, the link's limit", LIGHT, "-"), ("hydns", None, "uniform", BLUE, "-"),
                                                 ("hydns", 1.0, "Zipf 1.0", ORANGE, ":")):
        line = sorted((p["rules"], p["replies_per_second"] / 1e6) for p in plain
                      if p["contender"] == contender and p["zipf"] == zipf)
        axis.plot(*zip(*line), marker="o", linestyle=style, color=colour, label=name)
    axis.set(title="By the number of rules", xscale="log", xlabel="rules", ylabel="million replies per second", ylim=(0, None))
    axis.legend(fontsize=8)


def draw_latency(axis, results):
    for contender, name, colour in (("resolver", "Unbound alone", GREY), ("hydns", "with hyDNS", BLUE)):
        loops = sorted(((p["concurrency"], p["latency_us"]) for p in points(results, "latency", contender=contender, rate=None)),
                       key=lambda loop: loop[0])
        for percentile, style in (("p50", "-"), ("p99", ":")):
            axis.plot([n for n, _ in loops], [us[percentile] for _, us in loops], marker="o", markersize=3, linestyle=style,
                      color=colour, label=f"{name}, {percentile}")
    axis.set(title="Time to reply", xscale="log", yscale="log", xlabel="queries under way", ylabel="microseconds")
    axis.legend(fontsize=8)


def draw_ways(axis, results, title, unit, value):
    """Of hits and misses by the number of queries under way."""
    for resolver, style in (("Unbound", "-"), ("BIND", ":")):
        for contender, colour in (("alone", GREY), ("rules", ORANGE), ("all", BLUE)):
            line = sorted((p["concurrency"], value(p)) for p in points(results, "misses", part="concurrency", resolver=resolver,
                                                                       contender=contender))
            axis.plot(*zip(*line), marker="o", markersize=3, linestyle=style, color=colour, label=f"{resolver}, {WAYS[contender]}")
    axis.set(title=f"Hits and misses: {title}", xscale="log", yscale="log", xlabel="queries under way", ylabel=unit)
    axis.legend(fontsize=8)


def draw_ways_rate(axis, results):
    draw_ways(axis, results, "replies per second", "thousand replies per second", lambda p: p["replies_per_second"] / 1e3)


def draw_ways_tail(axis, results):
    draw_ways(axis, results, "the slowest of 1,000", "milliseconds to reply, 99.9 %", lambda p: p["latency_us"]["p99.9"] / 1e3)


def draw(results, file):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "hydns", "font.size": 9})
    figure = pyplot.figure(figsize=(14, 8))
    grid = figure.add_gridspec(2, 6)
    for place, part in ((grid[0, :2], draw_servers), (grid[0, 2:4], draw_capacity), (grid[0, 4:], draw_latency),
                        (grid[1, :3], draw_ways_rate), (grid[1, 3:], draw_ways_tail)):
        axis = figure.add_subplot(place)
        part(axis, results)
        axis.set_axisbelow(True)
        axis.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))     # leaves the metadata out
    pyplot.close(figure)
