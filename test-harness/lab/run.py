# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A run: its directory, its id and its processes; and the removal of crashed runs."""

import os
import secrets
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from pyroute2 import netns

RUNS = Path("/var/lib/hydns-harness")      # not /run: zones and workloads may be too big for a tmpfs
PREFIX = "hydns"
MEMORY_GROUPS = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")     # of version 1, or of version 2
PATIENCE = 30        # seconds, the least bound of a wait for a state: a bound shall catch what hangs, not what is slow
SOON = PATIENCE      # for what takes milliseconds on an idle machine


class HarnessError(Exception):
    """Something that the harness needs is missing or did not happen; the text says what, and how to mend it."""


def wait_until(check, seconds, what, patience=PATIENCE):
    """Polls check() until it returns something true, and returns that. HarnessError when a call that began after the bound,
    the greater of seconds and patience, returned nothing true either. what: what was awaited, for the error; or a function that
    says it then."""
    seconds = max(seconds, patience)
    deadline = time.monotonic() + seconds
    while True:
        called = time.monotonic()
        value = check()
        if value:
            return value
        if called > deadline:
            raise HarnessError(f"{what() if callable(what) else what}: not within {seconds} s")
        time.sleep(0.02)


def replaced(text, old, new):
    """The text with its first old replaced by new. HarnessError when it has none: a test would change nothing."""
    if old not in text:
        raise HarnessError(f"this is not in the text to change: {old}")
    return text.replace(old, new, 1)


def process_stat(pid):
    """The fields of proc_pid_stat(5) from the process's state on, or None when it has ended."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields


def start_time(pid):
    """Start time of a process in clock ticks since boot, or None. Pid and start time together name one process."""
    fields = process_stat(pid)
    return int(fields[19]) if fields else None


def is_alive(pid, started):
    return started is not None and start_time(pid) == started


class Run:
    """Context manager. Everything that a run makes is in self.dir or has self.id in its name. HYDNS_RUN_ID in the environment
    sets the id, for a caller that checks later whether the run left anything."""

    def __init__(self):
        self.id = os.environ.get("HYDNS_RUN_ID") or secrets.token_hex(3)
        self.dir = RUNS / self.id
        self.kept = False
        self.baseline = set()

    def __enter__(self):
        if os.geteuid() != 0:
            raise HarnessError("not root: namespaces and BPF need it; run this with sudo")
        clean()
        RUNS.mkdir(mode=0o755, exist_ok=True)
        # Renamed into place once it says which process it is of: another run that cleans up must never see it without.
        raw = RUNS / f".{self.id}"
        raw.mkdir(mode=0o755)
        (raw / "pid").write_text(f"{os.getpid()} {start_time(os.getpid())}\n")
        raw.rename(self.dir)
        bpf = self.dir / "bpf"
        bpf.mkdir()
        subprocess.run(["mount", "-t", "bpf", "bpf", str(bpf)], check=True)
        return self

    def __exit__(self, *exc):
        if self.kept:
            return
        # A second Ctrl-C must not interrupt the cleanup after the first.
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        destroy(self.dir)
        signal.signal(signal.SIGINT, before)

    def keep(self):
        """Leaves everything running when the run ends; `demo --stop` removes it."""
        (self.dir / "kept").touch()
        self.kept = True

    def small_disk(self, name, size, inodes):
        """Makes self.dir/name a file system of its own of so many octets and files. The log of a program of this name is there, too."""
        path = self.dir / name
        path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},nr_inodes={inodes},mode=755", "tmpfs", str(path)], check=True)
        (self.dir / f"{name}.log").symlink_to(path / "log")

    def set_baseline(self):
        """Marks what is here now: reset() will keep it."""
        self.baseline = self._contents() | set(processes(self.dir))

    def _contents(self):
        return {*self.dir.iterdir(), *(self.dir / "bpf").iterdir()}

    def reset(self):
        """Kills the processes started and removes the files and pins made since set_baseline(), which a failed test may have
        left."""
        for found in processes(self.dir):
            if found not in self.baseline:
                os.kill(found[0], signal.SIGKILL)
        wait_until(lambda: set(processes(self.dir)) <= self.baseline, 5, "killed processes to end")
        for path in self._contents() - self.baseline:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()

    def record(self, pid):
        with open(self.dir / "processes", "a") as f:
            f.write(f"{pid} {start_time(pid)}\n")

    def netns_name(self, role):
        return f"{PREFIX}-{self.id}-{role}"


def processes(run_dir):
    """(pid, start time) of the recorded processes that are still alive."""
    try:
        lines = (run_dir / "processes").read_text().splitlines()
    except FileNotFoundError:
        return []
    found = [(int(pid), int(began)) for pid, began in (line.split() for line in lines) if began != "None"]
    return [p for p in found if is_alive(*p)]


def _unrecorded(run_dir):
    """(pid, start time) of processes in the run's namespaces: an interrupt may come between a program's start and its record.
    Not those with a terminal: they are a user's shells."""
    inodes = set()
    for name in netns.listnetns():
        if name.startswith(f"{PREFIX}-{run_dir.name}-"):
            with suppress(FileNotFoundError):
                inodes.add(os.stat(f"/run/netns/{name}").st_ino)
    for entry in Path("/proc").iterdir() if inodes else ():
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if entry.name.isdecimal() and int(entry.name) != os.getpid() and os.stat(entry / "ns/net").st_ino in inodes:
                fields = process_stat(entry.name)
                if fields and fields[4] == "0":
                    yield int(entry.name), int(fields[19])


def kill_all(run_dir):
    """Ends the run's processes by SIGTERM, and by SIGKILL those that are still there after 5 seconds."""
    def left():
        return {*processes(run_dir), *_unrecorded(run_dir)}

    def end(sig):
        for pid, _ in left():
            with suppress(ProcessLookupError):
                os.kill(pid, sig)
    end(signal.SIGTERM)
    try:
        wait_until(lambda: not left(), 5, "processes to end", patience=0)
    except HarnessError:
        end(signal.SIGKILL)
        wait_until(lambda: not left(), 5, "killed processes to end")


def remove_groups(run_dir, name="*"):
    """Removes the run's control groups, or the one of this name; waits up to 5 seconds for their last processes to end. In a
    mount namespace, because the host may have no cgroup2 mounted. Groups of memory are where the host has them."""
    for root in MEMORY_GROUPS:
        for group in root.glob(f"{PREFIX}-{run_dir.name}-{name}"):
            with suppress(OSError):
                group.rmdir()
    if (run_dir / "groups").is_dir():
        script = 'mount -t cgroup2 cgroup2 groups && for try in $(seq 50); do ' \
                 'find groups/"$0"-$1 -depth -type d -exec rmdir {} + 2>/dev/null; ' \
                 'ls -d groups/"$0"-$1 >/dev/null 2>&1 || exit 0; sleep 0.1; done; ' \
                 'echo "control groups are left: $(ls -d groups/"$0"-$1)" >&2'
        subprocess.run(["unshare", "--mount", "--propagation=private", "sh", "-c", script, f"{PREFIX}-{run_dir.name}", name],
                       cwd=run_dir, check=False)


def destroy(run_dir):
    """Removes a run: processes, control groups, bpffs with its pins and attachments, namespaces, directory. May be called
    again."""
    kill_all(run_dir)
    remove_groups(run_dir)
    for disk in (run_dir.iterdir() if run_dir.is_dir() else ()):
        while os.path.ismount(disk):
            done = subprocess.run(["umount", "--lazy", str(disk)], capture_output=True, text=True)
            if done.returncode != 0 and os.path.ismount(disk):      # else another run cleaned up at the same time
                raise HarnessError(f"{disk} cannot be unmounted: {done.stderr.strip()}")
    for name in netns.listnetns():
        if name.startswith(f"{PREFIX}-{run_dir.name}-"):
            with suppress(FileNotFoundError):      # another run cleaned up at the same time
                netns.remove(name)
    shutil.rmtree(run_dir, ignore_errors=True)


def kept_runs():
    return [d for d in _runs() if (d / "kept").exists()]


def _is_running(run_dir):
    try:
        pid, began = (run_dir / "pid").read_text().split()
    except FileNotFoundError:      # removed between listing and reading: nothing is left to clean up
        return True
    return is_alive(int(pid), int(began))


def _runs():
    return [d for d in (RUNS.iterdir() if RUNS.is_dir() else []) if not d.name.startswith(".")]


def remains(run_id):
    """Names of what exists of a run: its directory, its namespaces."""
    return [d.name for d in _runs() if d.name == run_id] + \
           [name for name in netns.listnetns() if name.startswith(f"{PREFIX}-{run_id}-")]


def clean():
    """Destroys runs whose process ended without cleaning up, except kept ones."""
    for d in _runs():
        if not (d / "kept").exists() and not _is_running(d):
            destroy(d)
