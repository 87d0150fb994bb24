# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Programs in namespaces: start, record in the run, watch, end."""

import os
import signal
import subprocess
from pathlib import Path

from .run import HarnessError, process_stat, wait_until

TICKS = os.sysconf("SC_CLK_TCK")


class Program:
    """One running program, its output in <run>/<label>.log."""

    def __init__(self, run, ns, label, argv, stdin=subprocess.DEVNULL, stdout=None, pass_fds=()):
        self.label = label
        self.log = run.dir / f"{label}.log"
        with open(self.log, "a") as log:
            self.popen = subprocess.Popen(ns.command(argv), stdin=stdin, stdout=stdout or log, stderr=log,
                                          start_new_session=True, pass_fds=pass_fds)
        run.record(self.popen.pid)

    @property
    def pid(self):
        return self.popen.pid

    def running(self):
        return self.popen.poll() is None

    def must_run(self):
        if not self.running():
            raise HarnessError(f"{self.label} ended with status {self.popen.returncode}; the end of {self.log}:\n"
                               + tail(self.log))
        return True

    def wait_ready(self, check, seconds):
        wait_until(lambda: self.must_run() and check(), seconds,
                   f"{self.label} to be ready (its log: {self.log})")

    def stop(self, sig=signal.SIGTERM, seconds=10):
        """Sends the signal, waits, and kills when that does not help. Returns the exit status."""
        if self.running():
            self.popen.send_signal(sig)
            try:
                self.popen.wait(seconds)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait(5)
        return self.popen.returncode

    def processes(self):
        """Pids of its living children."""
        found = {pid: process_stat(pid) for pid in os.listdir("/proc") if pid.isdecimal()}
        return {int(pid) for pid, fields in found.items() if fields and int(fields[3]) == self.pid}

    def switches(self):
        """Context switches of all its threads so far: how often they woke, and were interrupted."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/status")
        lines = [line for status in tasks for line in status.read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)

    def environment(self):
        """As words NAME=VALUE, as it was started with."""
        return set(Path(f"/proc/{self.pid}/environ").read_text().split("\0"))

    def cpu_seconds(self):
        """User and system time of the process and all its threads."""
        with open(f"/proc/{self.pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


def tail(path, lines=15):
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""


def run_tool(ns, argv, seconds=30, check=True, text=None):
    """Runs a short command in the namespace, with text on its standard input. check: a failure is a HarnessError that holds
    the command's output."""
    done = subprocess.run(ns.command(argv), capture_output=True, text=True, timeout=seconds, input=text)
    if check and done.returncode != 0:
        raise HarnessError(f"{' '.join(map(str, argv))}: status {done.returncode}: "
                           f"{(done.stderr + done.stdout).strip()}")
    return done
