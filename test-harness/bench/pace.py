# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Runs bench/pace, the part near the kernel, and draws the names of its queries."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from lab import cpus
from lab.network import Namespace, pass_everything, poll, veth
from lab.process import run_tool
from lab.run import HarnessError, wait_until
from lab.tools import TOP

sys.path.insert(0, str(TOP / "test-harness" / "workload"))
import draw  # noqa: E402

SEQUENCE = 1 << 22           # queries until the sequence repeats
GENERATOR = cpus.OTHERS[0]   # processor of generator, XDP program and sink
YIELD = "chrt", "--idle", "0"


def sequence(directory, names, zipf, seed):
    """Writes a file of name numbers, uniform or by Zipf's law."""
    path = directory / f"names-{names}-{zipf or 'uniform'}"
    if not path.exists():
        rng = np.random.default_rng([seed, names])
        count = SEQUENCE if names > 1 else 16
        chosen = draw.choose(rng, draw.zipf(names, zipf), count) if zipf else rng.integers(0, names, count)
        chosen.astype(np.uint32).tofile(path)
    return path


def take_live_frames(link):
    """Turns on GRO: a veth receives frames from XDP only while its driver polls, with a program or with GRO. With GRO the
    polling thread also stays when programs come and go."""
    poll(link.ns, link.server)


class Link:
    """A namespace with both ends of a veth: queries leave by `client` for `server`."""
    client, server = "g0", "s0"

    def __init__(self, run, label="bench"):
        self.ns = Namespace(run, label)
        veth(self.ns, self.client, self.ns, self.server)

    @property
    def options(self):
        return ["--client", self.client, "--server", self.server]


class DoubleLink(Link):
    """The same with a second veth, for a second generator."""
    second_client, second_server = "g1", "s1"

    def __init__(self, run, label):
        super().__init__(run, label)
        veth(self.ns, self.second_client, self.ns, self.second_server)

    @property
    def options(self):
        return [*super().options, "--second-client", self.second_client, "--second-server", self.second_server]


class RoutedLink:
    """A veth between two namespaces, with addresses: for servers or clients with a socket. The kernel's generator can send from
    client_ns."""
    client, server = "c0", "s0"
    SERVICE, CLIENT = "198.51.100.53", "192.0.2.7"           # the addresses of the generator's queries
    MACS = {"server": "02:00:00:00:00:53", "client": "02:00:00:00:00:07"}

    def __init__(self, run, label):
        self.label = label
        self.client_ns, self.ns = Namespace(run, f"{label}-asks"), Namespace(run, f"{label}-answers")
        veth(self.client_ns, self.client, self.ns, self.server)
        for ns, link, mac in ((self.client_ns, self.client, "client"), (self.ns, self.server, "server")):
            with ns.netlink() as ip:
                ip.link("set", index=ip.link_lookup(ifname=link)[0], address=self.MACS[mac])
        self.ns.address(self.server, "192.0.2.1/24")
        self.ns.address("lo", f"{self.SERVICE}/32")
        self.client_ns.address(self.client, f"{self.CLIENT}/24")
        self.client_ns.route("192.0.2.1")

    def take_xdp_replies(self, pass_object):
        """Attaches the pass program to the client's end, without which it receives no XDP_TX frames from the other end."""
        pass_everything(self.client_ns, self.client, pass_object)


def poll_by_thread(link, processor):
    """Makes kernel threads on that processor poll the server's end; returns them."""
    return poll_device_by_thread(link.ns, link.server, processor)


def poll_device_by_thread(ns, device, processor):
    """The same for any device that polls. /sys shows the devices of the namespace that mounted it, so this mounts it in ns."""
    before = set(kernel_threads(device))
    run_tool(ns, ["unshare", "--mount", "sh", "-c",
                  f"mount -t sysfs sysfs /sys && echo 1 > /sys/class/net/{device}/threaded"])
    found = wait_until(lambda: set(kernel_threads(device)) - before, 5, f"a polling thread of {device}")
    for pid in found:
        os.sched_setaffinity(pid, {processor})
    return list(found)


def kernel_threads(device):
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().startswith(f"napi/{device}-"):
                yield int(comm.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            pass


def yielding(tools, *words):
    """The command of a pace that leaves its processor to whatever else runs there."""
    return [*YIELD, "taskset", "-c", str(GENERATOR), tools.built("test-harness/bench/pace"), *words]


def pace(tools, ns, command, *options, cpu=GENERATOR, seconds=300):
    """Runs pace to its end, when what it attached is gone; returns the objects that it printed."""
    argv = ["taskset", "-c", str(cpu), tools.built("test-harness/bench/pace"), command, *options]
    done = subprocess.run(ns.command(argv), capture_output=True, text=True, timeout=seconds)
    if done.returncode != 0:
        raise HarnessError(f"pace {command}: {done.stderr.strip()[-1000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


class OnDemand:
    """Context manager: floods in short runs, on request. Everything else on the generator's processor has priority, which a
    closed loop needs when its resolver asks a server there."""

    def __init__(self, tools, ns, *options):
        self.argv = ns.command(yielding(tools, "flood", "--on-demand", *options))

    def __enter__(self):
        self.process = subprocess.Popen(list(map(str, self.argv)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        return self

    def run(self, first):
        """Floods once, from this number of the sequence on; returns what pace printed."""
        try:
            print(first, file=self.process.stdin, flush=True)
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise HarnessError(f"pace flood: {self.process.stderr.read().strip()[-1000:]}")
        return json.loads(line)

    def __exit__(self, *exc):
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


def options_of(parameters):
    """The parameters of a point as options of pace; True makes a flag."""
    out = []
    for name, value in parameters.items():
        if value is True:
            out.append(f"--{name}")
        elif value:
            out += [f"--{name}", str(value)]
    return out
