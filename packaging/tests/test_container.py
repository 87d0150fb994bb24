# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The image and the compose file of packaging/container, by podman, on the bare root as Debian's image.

 client (namespace)                    server (namespace: the containers' "host" network)
 +-----------------------------+       +------------------------------------------+
 | c0 192.0.2.2 [XDP_PASS]     |-veth--| eth0 192.0.2.1 [XDP]                     |
 | NSD: example.com. .53       |       | containers: hydnsd, unbound              |
 +-----------------------------+       +------------------------------------------+

podman runs in a mount namespace with control groups of version 2 alone, its own storage and its own bpffs.
"""

import json
import os
import resource
import shutil
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from bareroot import image
from lab.client import ask
from lab.network import Namespace, pass_everything, veth
from lab.run import wait_until
from lab.servers import Nsd
from lab.tools import TOP, Tools

CONTAINER = TOP / "packaging" / "container"
ZONE = TOP / "test-harness" / "bareroot" / "example.com.zone"
CAP_SYS_RESOURCE = 24
PREPARE = "umount -R /sys/fs/cgroup; mount -t cgroup2 cgroup2 /sys/fs/cgroup && mount -t bpf bpf /sys/fs/bpf && echo ready && exec sleep infinity"

# podman-compose 1.0.3, Debian 12's, gives every container its default network, too, which podman refuses beside a network_mode.
# And a machine without CAP_SYS_RESOURCE can't raise limits: there containers have the machine's.
WITHOUT_DEFAULT_NETWORK = """#!/usr/bin/env bash
words=()
while [ $# != 0 ]; do
	case $1 in --net|--network-alias|@LIMITS@) shift 2 ;; *) words+=("$1"); shift ;; esac
done
exec podman "${words[@]}"
"""


class Podman:
    """Context manager. run: the harness's Run."""

    def __init__(self, run):
        self.folder = Path(tempfile.mkdtemp(prefix="hydns-podman-", dir="/var/tmp"))
        # A container may have no more than who starts it.
        limits = {name: min(most, at_most(which)) for name, which, most in
                  (("nofile", resource.RLIMIT_NOFILE, 4096), ("nproc", resource.RLIMIT_NPROC, 4096))}
        (self.folder / "containers.conf").write_text(
            f"[containers]\ndefault_ulimits={json.dumps([f'{name}={n}:{n}' for name, n in limits.items()])}\n")
        (self.folder / "storage.conf").write_text(
            f'[storage]\ndriver="overlay"\ngraphroot="{self.folder}/graph"\nrunroot="{self.folder}/run"\n')
        self.for_compose = self.folder / "podman"
        self.for_compose.write_text(WITHOUT_DEFAULT_NETWORK.replace("@LIMITS@", "--no-such-option" if may_raise() else "--ulimit"))
        self.for_compose.chmod(0o755)
        self.environment = dict(os.environ, CONTAINERS_CONF=str(self.folder / "containers.conf"),
                                CONTAINERS_STORAGE_CONF=str(self.folder / "storage.conf"),
                                HYDNS_INTERFACE="eth0")
        self.first = subprocess.Popen(["unshare", "--mount", "--propagation", "private", "sh", "-c", PREPARE],
                                      stdout=subprocess.PIPE, text=True)
        run.record(self.first.pid)
        if self.first.stdout.readline() != "ready\n":
            pytest.skip("no control groups of version 2, or no bpffs, can be mounted here")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.call(["podman", "rm", "--all", "--force", "--time", "2"])
        self.call(["umount", "--recursive", self.folder / "graph" / "overlay"])
        self.first.kill()
        self.first.wait()
        shutil.rmtree(self.folder)

    def call(self, command, ns=None, limit=300, **more):
        net = [f"--net={ns.path}"] if ns else []
        return subprocess.run(["nsenter", "-t", str(self.first.pid), "--mount", *net, "--", *map(str, command)], capture_output=True,
                              text=True, env=self.environment, timeout=limit, cwd=CONTAINER, **more)

    def must(self, command, ns=None, limit=300):
        done = self.call(command, ns, limit)
        assert done.returncode == 0, f"{' '.join(map(str, command))}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout


def at_most(which):
    """The hard limit, as a number above all others where there is none."""
    hard = resource.getrlimit(which)[1]
    return 1 << 62 if hard == resource.RLIM_INFINITY else hard


def may_raise():
    effective = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return bool(int(effective.split()[1], 16) >> CAP_SYS_RESOURCE & 1)


@pytest.fixture(scope="module")
def podman(run, root):
    if shutil.which("podman") is None or shutil.which("podman-compose") is None:
        pytest.skip("podman and podman-compose are not installed")
    with Podman(run) as p:
        packed = subprocess.Popen(["tar", "-C", image.bare_root(), "--exclude=./dev/*", "-cf", "-", "."], stdout=subprocess.PIPE)
        p.call(["podman", "import", "-", "localhost/bare:12"], stdin=packed.stdout)
        assert packed.wait() == 0
        done = p.call(["podman", "run", "--rm", "--cgroups=disabled", "--network=host", "localhost/bare:12", "true"])
        if done.returncode != 0:
            pytest.skip(f"podman runs nothing here: {done.stderr.strip()}")
        yield p


@pytest.fixture(scope="module")
def networks(run):
    """(client, server)"""
    client, server, tools = Namespace(run, "container-client"), Namespace(run, "container-server"), Tools()
    veth(server, "eth0", client, "c0")
    server.address("eth0", "192.0.2.1/24")
    client.address("c0", "192.0.2.2/24")
    pass_everything(client, "c0", tools.pass_object)
    zones = run.dir / "container-zones"
    zones.mkdir()
    (zones / "example.com.zone").write_text(ZONE.read_text())
    with Nsd(SimpleNamespace(run=run, tools=tools), client, "container-nsd",
             'zone:\n    name: "example.com."\n    zonefile: example.com.zone\n', zones, "example.com.", ["192.0.2.53"]):
        yield client, server


@pytest.mark.limit(400)
def test_image(podman, packages):
    podman.must(["podman", "build", "--network=host", "--cgroupns=host", "--isolation=chroot", "--build-arg", "BASE=localhost/bare:12", "-t",
                 "localhost/hydns", "-f", CONTAINER / "Dockerfile", packages[0]])
    print(podman.must(["podman", "images"]))


def compose(podman, server, *command):
    return podman.call(["podman-compose", "--podman-path", podman.for_compose, "-f", CONTAINER / "compose.yaml",
                        "--podman-run-args=--cgroups=disabled", *command], server)


def logs(podman):
    return "".join(f"{name}:\n{done.stdout}{done.stderr}" for name in ("container_hydnsd_1", "container_unbound_1")
                   for done in [podman.call(["podman", "logs", name])])


@pytest.mark.limit(200)
def test_two_containers_answer(podman, networks, run):
    client, server = networks
    conf = run.dir / "unbound.conf"
    conf.write_text((CONTAINER / "unbound.conf").read_text() +
                    '    domain-insecure: "example.com"\nstub-zone:\n    name: "example.com"\n    stub-addr: 192.0.2.53\n')
    podman.environment["HYDNS_UNBOUND_CONF"] = str(conf)
    done = compose(podman, server, "up", "--detach", "--no-build")

    def hits():
        reply = ask(client, "192.0.2.1", "www.example.com", timeout=1)
        assert reply is None or [r.to_text() for r in reply.answer[0]] == ["192.0.2.80"]
        stats = podman.call(["podman", "exec", "container_hydnsd_1", "hydnsctl", "stats", "--json"])
        return stats.returncode == 0 and json.loads(stats.stdout)["answered"]

    try:
        wait_until(lambda: (hits() or 0) >= 3, 40, "answers of the kernel")
    except Exception:
        print(done.stdout, done.stderr, logs(podman))
        raise


@pytest.mark.limit(100)
def test_stop_detaches(podman, networks):
    _, server = networks
    assert server.xdp_attached("eth0")
    podman.must(["podman", "stop", "container_hydnsd_1"])
    assert not server.xdp_attached("eth0")
