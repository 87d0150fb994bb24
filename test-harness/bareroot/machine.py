# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A machine booted from the bare root: its own processes, mounts, network and control group, with systemd as the first."""

import os
import shutil
import subprocess
import time
from collections import namedtuple
from contextlib import suppress
from pathlib import Path

from lab.network import Namespace, pass_everything, veth
from lab.run import HarnessError, is_alive, remove_groups, start_time, wait_until

from . import image

BOOT = Path(__file__).resolve().parent / "boot"
SOURCE = "/root/hydns"
ARCHIVES = "var/cache/apt/archives"
CACHE = image.cache().parent       # on the host and here: what is built there holds its own path
ADDRESSES = ("192.0.2.1/24", "2001:db8::1/64")
CLIENT_ADDRESSES = ("192.0.2.2/24", "2001:db8::2/64")
ENVIRONMENT = ("HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "TERM=dumb", "LANG=C.UTF-8",
               f"HYDNS_CACHE={CACHE}")

Done = namedtuple("Done", "status output seconds")


class Machine:
    """Context manager. run: the harness's Run, which removes the machine, also after a crash."""

    def __init__(self, run, name, pass_object):
        self.run, self.name, self.pass_object = run, name, pass_object
        self.netns = Namespace(run, name)
        self.client = Namespace(run, f"{name}-client")
        self.changes = run.dir / name
        self.root = image.bare_root()
        self.first = None          # (pid, start time) of its systemd, as the host sees it
        self._wire()
        self._prepare()

    def __enter__(self):
        self.boot()
        return self

    def __exit__(self, *exc):
        self.power_off()

    # -- its parts -------------------------------------------------------------------------------------------------
    def _wire(self):
        """eth0 is there when the machine boots; systemd-networkd, which it has, gives it its addresses."""
        veth(self.netns, "eth0", self.client, "c0")
        self.client.address("c0", *CLIENT_ADDRESSES)
        pass_everything(self.client, "c0", self.pass_object)

    def _prepare(self):
        """Writes what Debian's installer asks for: a host name, addresses, the sources of packages."""
        lines = ["[Match]", "Name=eth0", "[Network]", "LinkLocalAddressing=no", "IPv6AcceptRA=no",
                 *(f"Address={a}" for a in ADDRESSES)]
        self.write("etc/systemd/network/eth0.network", "\n".join(lines) + "\n")
        wants = self.changes / "upper/etc/systemd/system/multi-user.target.wants"
        wants.mkdir(parents=True)
        (wants / "systemd-networkd.service").symlink_to("/lib/systemd/system/systemd-networkd.service")
        self.write("etc/resolv.conf", Path("/etc/resolv.conf").read_text())
        self.write("etc/hostname", "bare\n")
        self.write("etc/hosts", "127.0.0.1 localhost bare\n::1 localhost\n")
        self.write("etc/dpkg/dpkg.cfg.d/throwaway", "force-unsafe-io\n")      # its disk need not survive a crash
        copy_source(self.changes / "upper" / SOURCE.lstrip("/"))
        copy_packages(image.archives(), self.changes / "upper" / ARCHIVES)

    def write(self, path, text, mode=0o644):
        """Before the machine boots: a file of its root."""
        file = self.changes / "upper" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def replace(self, path, change):
        """While it runs: change() makes a file's octets from the former ones."""
        file = Path(f"/proc/{self.first[0]}/root") / path
        fresh = file.with_name(f"{file.name}.new")
        fresh.write_bytes(change(file.read_bytes()))
        fresh.chmod(file.stat().st_mode)
        fresh.rename(file)

    # -- on and off -------------------------------------------------------------------------------------------------------
    def boot(self):
        shared = [CACHE, str(CACHE).lstrip("/")]
        with open(self.run.dir / f"{self.name}-boot.log", "ab") as log:
            self._process = subprocess.Popen([BOOT, self._group, self.netns.path, self.root, self.changes, *shared],
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        self.run.record(self._process.pid)
        wait_until(self._find_first, 20, "the machine's first process")
        self.run.record(self.first[0])
        wait_until(self._is_up, 60, "the machine to be up")

    @property
    def _group(self):
        return f"hydns-{self.run.id}-{self.name}"

    def _find_first(self):
        """Finds the child of unshare once it is systemd."""
        if self._process.poll() is not None:
            raise HarnessError(f"the machine does not boot: {(self.run.dir / f'{self.name}-boot.log').read_text()[-500:]}")
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in children:
            with suppress(ProcessLookupError, FileNotFoundError):     # it has ended meanwhile
                if Path(f"/proc/{pid}/comm").read_text().strip() == "systemd":
                    self.first = (int(pid), start_time(int(pid)))
                    return True
        return False

    def _is_up(self):
        return self.type("systemctl is-system-running", 10).output.strip() in ("running", "degraded")

    def reboot(self):
        self.type("systemctl reboot", 10)
        wait_until(lambda: self._process.poll() is not None, 60, "the machine to go down")
        self.boot()

    def power_off(self):
        if self.first and is_alive(*self.first):
            os.kill(self.first[0], 9)
        self._process.wait()
        copy_packages(self.changes / "upper" / ARCHIVES, image.archives())
        remove_groups(self.run.dir, self.name)

    # -- what its user does -------------------------------------------------------------------------------------------------
    def type(self, command, limit=60, *, online=False):
        """Runs a command line as root in the source tree. online: with the host's network, as packages need it."""
        inside = ["nsenter", "-t", str(self.first[0]), "--mount", "--pid", "--uts", "--ipc", "--cgroup",
                  *([] if online else ["--net"]), "--", "env", "-i", *ENVIRONMENT, "bash", "-c", f"cd {SOURCE} && {command}"]
        return timed(inside, limit)

    def type_on_client(self, command, limit=60):
        """The client is a namespace with the host's own programs."""
        return timed(self.client.command(["bash", "-c", command]), limit)


def timed(argv, limit):
    begun = time.monotonic()
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", timeout=limit)
    except subprocess.TimeoutExpired as e:
        output = (e.stdout or b"").decode(errors="replace") if isinstance(e.stdout, bytes) else e.stdout or ""
        return Done(124, f"{output}\nnot done within {limit} s", limit)
    return Done(done.returncode, done.stdout, time.monotonic() - begun)


def copy_source(target):
    """Copies the files that git tracks, as they are now; all files of an unpacked archive."""
    target.mkdir(parents=True)
    top = image.TOP
    listed = subprocess.run(["git", "-C", top, "-c", f"safe.directory={top}", "ls-files", "-z"], capture_output=True)
    names = listed.stdout if listed.returncode == 0 else \
        b"\0".join(os.fsencode(p.relative_to(top)) for p in top.rglob("*") if p.is_file() and "build" not in p.relative_to(top).parts)
    names = b"\0".join(n for n in names.split(b"\0") if n and (top / os.fsdecode(n)).exists())
    packed = subprocess.run(["tar", "-C", top, "--null", "-T", "-", "-cf", "-"], input=names, stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "-C", target, "--no-same-owner", "-xf", "-"], input=packed.stdout, check=True)


def copy_packages(here, there):
    """Copies downloaded packages that are not there yet: a machine has its own folder, because APT locks it."""
    there.mkdir(parents=True, exist_ok=True)
    for package in here.glob("*.deb"):
        if not (there / package.name).exists():
            part = there / f".{package.name}.{os.getpid()}"
            shutil.copy2(package, part)
            part.rename(there / package.name)
