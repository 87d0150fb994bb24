# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The place of faults: a copy of the tree, in namespaces of its own.

Build trees hold absolute paths, so the copy must stand where the original does. Each fault gets a mount namespace in
which an overlay covers the source tree (and the build tree, and the cache of built resolvers), with the copy below
and an empty layer above. So the caller's files are never written, a fault costs one incremental build, and taking it
out again costs nothing. A process namespace ends with its first process whatever a test has started; /run, /tmp and
the harness's own folder are empty ones, so that runs outside are not taken for leftovers.

The copy lies in a folder of the caller's disk, the layers in memory, both below SCRATCH.
"""
import contextlib
import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

EMPTY = {"/run": "0755", "/tmp": "1777", "/var/lib/hydns-harness": "0755"}      # with their modes
ENTERED = "HYDNS_MUTATE_ENTERED"


def enter():
    """Goes on in a mount namespace of its own: what is mounted there ends with this process, however it ends."""
    if os.environ.get(ENTERED):
        del os.environ[ENTERED]
        return
    os.environ[ENTERED] = "1"
    os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


def _copy(source, target, leave_out=()):
    """A copy with all times kept, for make compares them; shared on disk where the file system can."""
    target.mkdir(parents=True)
    names = [str(p) for p in sorted(source.iterdir()) if p not in leave_out]
    subprocess.run(["cp", "-a", "--reflink=auto", "-t", str(target), "--", *names], check=True)


class Sandbox:
    """Context manager: the copy. trees: absolute paths that jobs see as overlays."""

    def __init__(self, top, build, cache, folder):
        self.top, self.build, self.cache = top, build, cache
        self.scratch = folder / f"hydns-mutate-{os.getpid()}"
        self.trees = []
        self.jobs = 0
        self.running = set()

    def __enter__(self):
        _remove_abandoned(self.scratch.parent)
        (self.scratch / "layers").mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "hydns-mutate", str(self.scratch / "layers")], check=True)
        inside = self.build.is_relative_to(self.top)
        self._add(self.top, () if inside else (self.build,))
        if not inside:
            self._add(self.build)
        return self

    def __exit__(self, *exc):
        subprocess.run(["umount", "--lazy", str(self.scratch / "layers")], check=False)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _add(self, tree, leave_out=()):
        _copy(tree, self._below(len(self.trees)), {*leave_out, tree / ".git"})
        self.trees.append(tree)

    def add_resolvers(self):
        """The built resolvers too, copied while nobody builds there."""
        with open(self.cache / "lock", "a", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._add(self.cache, {self.cache / name for name in ("bare-root", "kernels", "fetch.log")})

    def _below(self, i):
        return self.scratch / f"copy{i}"

    def _mounts(self, layer, lower):
        """Shell lines that lay the overlays: `lower` are further layers over the copy, the newest first."""
        lines = ["set -e"]
        # What others have mounted there would stay in the list of mounts, at paths that are gone.
        hidden = "|".join(f"{path}/" for path in EMPTY)
        lines.append(f"awk '$2 ~ \"^({hidden})\" {{print $2}}' /proc/mounts | sort -r | xargs -r umount -l")
        lines += [f"mkdir -p {path} && mount -t tmpfs -o mode={mode} hydns-mutate {path}" for path, mode in EMPTY.items()]
        lines.append("mkdir -p /run/lock /run/netns")
        for i, tree in enumerate(self.trees):
            upper, work = layer / f"upper{i}", layer / f"work{i}"
            below = ":".join([*(str(l / f"upper{i}") for l in lower), str(self._below(i))])
            lines.append(f"mkdir -p {upper} {work} '{tree}' && mount -t overlay -o "
                         f"'lowerdir={below},upperdir={upper},workdir={work}' hydns-mutate '{tree}'")
        lines.append(f"cd '{self.top}' && exec \"$@\"")
        return "\n".join(lines)

    @contextlib.contextmanager
    def job(self, command, lower=(), keep=None, **popen):
        """Starts a command in new namespaces over a fresh layer, or over `keep`, which then stays for others to lie on.
        Its end, or the end of this block, ends all that it has started."""
        self.jobs += 1
        layer = keep or self.scratch / "layers" / f"job{self.jobs}"
        process = subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc", "--propagation",
                                    "private", "sh", "-c", self._mounts(layer, lower), "job", *command], **popen)
        self.running.add(process)
        try:
            yield process
        finally:
            process.kill()       # and with it the first process of the namespace, so all of them
            process.wait()
            self.running.discard(process)
            if not keep:
                shutil.rmtree(layer, ignore_errors=True)

    def end_jobs(self):
        """From another thread: those under way end now."""
        for process in list(self.running):
            process.kill()

    def base(self):
        return self.scratch / "layers" / "base"


def _remove_abandoned(folder):
    """Removes what a killed run has left on disk."""
    for path in folder.glob("hydns-mutate-*"):
        pid = path.name.rpartition("-")[2]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(path, ignore_errors=True)
