# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The demo's table, JSON and plot, from figures that others measured."""

import json
import platform
import subprocess

KEYS = ("replies_per_second", "p50_us", "p95_us", "p99_us", "lost", "resolver_cpu_seconds_per_million",
        "kernel_share")
LABELS = {
    "replies_per_second": "replies per second", "p50_us": "latency, median (us)", "p95_us": "latency, 95 % below (us)",
    "p99_us": "latency, 99 % below (us)", "lost": "queries without an answer",
    "resolver_cpu_seconds_per_million": "resolver CPU seconds per million replies",
    "kernel_share": "share answered in the kernel",
}
VARIANTS = ("plain", "do", "norec", "do norec")      # as hydnsctl names them


def _text(key, value):
    if key == "kernel_share":
        return f"{value:.1%}"
    return f"{value:,.0f}" if key in ("replies_per_second", "lost") else f"{value:,.1f}"


def table(off, on, name):
    """Lines: what, the resolver alone, with the kernel path. name: the resolver's."""
    rows = [("", f"{name} alone", "with hyDNS")] + [(LABELS[k], _text(k, off[k]), _text(k, on[k])) for k in KEYS]
    return [f"  {what:42}{a:>16}{b:>16}" for what, a, b in rows]


def busy_lines(details):
    """How busy the processors were: where the load generator's are the busier ones, the resolver could answer more."""
    busy = [details[m]["processors_busy"] for m in ("off", "on")]
    return ["  processors busy: " + ", ".join(f"{words} {busy[0][role]:.0%} -> {busy[1][role]:.0%}" for role, words in (
        ("resolver", "the resolver's"), ("others", "those of load generator and authoritative servers")))]


def loss_lines(off, on, details):
    """Lines on lost queries or replies, with the full socket buffers that the kernel counted; none when nothing was lost."""
    return [f"  lost {way}: {figures['lost']}; found their socket's buffer full: "
            + (", ".join(f"{n} in {role}" for role, n in details[half]["socket_overflows"].items()) or "none")
            for half, way, figures in (("off", "alone", off), ("on", "with hyDNS", on)) if figures["lost"]]


def recursion_lines(off, details):
    """How much of the resolver's CPU an answer in front of it can save at most. Replies that need recursion still cost the
    resolver as much as before, and more than answers from its cache; so the CPU per reply falls by less than the share that
    the kernel answers."""
    shares = [details[m]["recursions"] / details[m]["replies"] for m in ("off", "on")]
    replies = f"  replies that needed recursion: {shares[0]:.1%} -> {shares[1]:.1%}"
    if details["off"]["recursion_cpu_seconds"] is None:
        return [f"{replies}; their cost can't be measured: many never-repeated names needed no recursion"]
    cost = details["off"]["recursion_cpu_seconds"] * 1e6
    bound = max(0, 1 - cost * shares[0] / off["resolver_cpu_seconds_per_million"])
    return [f"{replies}; one took {cost:.0f} us of resolver CPU in "
            "a load of nothing else,",
            f"  so answering everything else in front of the resolver would save {bound:.1%} of its CPU at most"]


def update_lines(details):
    """Lines on the dynamic updates, without and with the kernel path."""
    alone, on = (details[m]["updates"] for m in ("off", "on"))
    return [f"  {on['updates']} dynamic updates of {on['name']} while it was asked for: {on['outdated']} of "
            f"{on['replies']:,} replies had what an update",
            f"  acknowledged before had replaced, {on['lost']} were lost, {on['kernel_share']:.0%} came from the kernel; "
            f"an update took {alone['median_ms']:.1f} -> {on['median_ms']:.1f} ms"]


def series_lines(series, bin_seconds=2.0):
    """Kernel share over time as bars."""
    lines, begin, answered, passed = [], 0.0, 0, 0
    for s in series:
        answered, passed = answered + s["answered"], passed + s["passed"]
        if s["seconds"] - begin >= bin_seconds and answered + passed:
            share = answered / (answered + passed)
            lines.append(f"  {begin:5.0f} s  {share:6.1%}  {'#' * round(40 * share)}")
            begin, answered, passed = s["seconds"], 0, 0
    return lines


def top_lines(names):
    """Lines on the hottest names, each with its variant: a name with DO and one without are two rules."""
    lines = [f"  {'name':44}{'type':8}{'for':10}{'per second':>12}  answered by"]
    return lines + [f"  {n['name'][:43]:44}{n['type']!s:8}{VARIANTS[n['variant']]:10}{n['rate']:>12,.0f}  {n['where']}"
                    for n in names]


def environment(tools, server):
    """The kernel, machine and versions on which the figures depend."""
    def first_line(*argv):
        done = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
        return (done.stdout + done.stderr).strip().splitlines()[0]
    with open("/proc/cpuinfo") as f:
        models = [line.partition(":")[2].strip() for line in f if line.startswith("model name")]
    with open("/proc/meminfo") as f:
        memory = int(f.readline().split()[1]) // 1024
    return {"kernel": platform.release(), "machine": platform.machine(), "cpus": len(models),
            "cpu_model": models[0] if models else "unknown", "memory_mib": memory,
            server: first_line(*(tools.bind("sbin/named") if server == "bind" else [tools.unbound]), "-V"),
            "hydnsd": first_line(tools.hydnsd, "--version"),
            "nsd": first_line(tools.nsd, "-v"), "dnsperf": dnsperf_version(tools.dnsperf),
            "link": "veth between network namespaces of one machine, XDP in native mode"}


def dnsperf_version(path):
    text = subprocess.run([str(path), "-h"], capture_output=True, text=True)
    return next((line for line in (text.stdout + text.stderr).splitlines() if line.startswith("Version")), "unknown")


def write_json(file, off, on, extra):
    file.write_text(json.dumps({"off": off, "on": on, **extra}, indent=1) + "\n")


def write_plot(file, off, on, series, name):
    """Draws throughput, latency and CPU as pairs of bars, and the kernel's share over time."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7))
    colors, names = ("#8a8a8a", "#1f6fb4"), (f"{name} alone", "with hyDNS")

    def pair(axis, keys, labels, title, unit):
        for i, figures in enumerate((off, on)):
            axis.bar([k + 0.4 * i for k in range(len(keys))], [figures[key] for key in keys], 0.38, color=colors[i],
                     label=names[i])
        axis.set_xticks([k + 0.2 for k in range(len(keys))], labels)
        axis.set_title(title)
        axis.set_ylabel(unit)

    pair(axes[0][0], ["replies_per_second"], [""], "Throughput", "replies per second")
    pair(axes[0][1], ["p50_us", "p95_us", "p99_us"], ["50 %", "95 %", "99 %"], "Latency below which", "microseconds")
    axes[0][1].set_yscale("log")      # the median and the tail are far apart
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="upper center", ncol=2)
    pair(axes[1][0], ["resolver_cpu_seconds_per_million"], [""], f"CPU of {name} and hydnsd",
         "seconds per million replies")
    share = axes[1][1]
    share.plot([s["seconds"] for s in series], [100 * s["kernel_share"] for s in series], color=colors[1])
    share.axhline(60, linestyle=":", color="#444444", linewidth=1)
    share.set_ylim(0, 100)
    share.set_xlabel("seconds since start")
    share.set_ylabel("percent")
    share.set_title("Answered in the kernel")
    figure.tight_layout(rect=(0, 0, 1, 0.95))
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
