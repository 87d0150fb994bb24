# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Disruptions by what runs out: descriptors, file size, address space and memory of hydnsd and of the resolver, space on their disks,
places in the store and in rings. Limits are set while the process runs. hydnsd must live on where it is refused something; that the
kernel kills it for want of memory is as if somebody else did."""

import mmap
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path

from lab import rings
from lab.client import Asker
from lab.network import CLIENT1, SERVICE
from lab.run import MEMORY_GROUPS, PREFIX, SOON, wait_until

from . import zone

AWAY = 1.5                        # seconds at most that a limit stands, beside what is done meanwhile
KILLED = 3.0                      # seconds within which a process without memory asks for more
MEMORY = 1 << 12                  # octets of new memory of a process that is to be killed
CAPACITY = 8                      # rules of a tiny store
PARKED = 2                        # queries that may be parked where that is hardly any
PIECE = bytes(1 << 16)
# More names with large answers than the rings of offers hold of these, each asked for so often, so many a second. A resolver without a
# processor answers too few of them: again with new names.
NEW_NAMES, TIMES, RATE, ROUNDS = 600, 5, 1200, 4
KILL, TERM = signal.SIGKILL, signal.SIGTERM
DESCRIPTORS, FILE_SIZE, ADDRESS_SPACE, LOCKED = "nofile", "fsize", "as", "memlock"     # options of prlimit(1)


@contextmanager
def _limited(process, what, most):
    """The soft limit, for the block."""
    soft, hard = _prlimit(process, f"--{what}", "--raw", "--noheadings", "--output=SOFT,HARD").split()
    _prlimit(process, f"--{what}={most}:{hard}")
    running = process.program
    try:
        yield
    finally:
        if running is process.program and running.running():
            _prlimit(process, f"--{what}={soft}:{hard}")


def _prlimit(process, *words):
    """As the process's user: root may lack the right to limit others."""
    pid = process.program.pid
    return subprocess.run(["prlimit", f"--pid={pid}", *words], user=os.stat(f"/proc/{pid}").st_uid, check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def _open_descriptors(process):
    return len(os.listdir(f"/proc/{process.program.pid}/fd"))


def _address_space(process):
    """Octets."""
    return int(Path(f"/proc/{process.program.pid}/statm").read_text().split()[0]) * mmap.PAGESIZE


# -- what hydnsd has to do meanwhile ---------------------------------------------------------------------
def _resolver_again(d):
    """Its plugin can't register while hydnsd takes no connection."""
    stopped = d.stop_resolver(KILL)
    d.start_resolver(KILL, *stopped)


def _reload(d):
    d.hydnsd_reloaded()


WORK = {"resolver killed": _resolver_again, "reload": _reload, "flush": lambda d: d.flush(),
        "resolver reloaded": lambda d: d.reloaded()}


def _work(d):
    for name in d.rng.sample(sorted(WORK), 2):
        WORK[name](d)
        d.detail = f"{d.detail}, {name}" if d.detail else name
        d.wait(AWAY / 2)


def _must_live(d):
    """hydnsd has not ended; if it has, that is a finding, and it is started again."""
    if not d.daemon.program.running():
        d.growth.find(f"hydnsd ended with status {d.daemon.program.popen.returncode} beside: {d.detail}")
        d.start_hydnsd()


def _hydnsd_without(d, what, most):
    with _limited(d.daemon, what, most):
        _work(d)
        d.wait(AWAY)
    _must_live(d)


def hydnsd_without_descriptors(d):
    _hydnsd_without(d, DESCRIPTORS, _open_descriptors(d.daemon))


def hydnsd_without_file_size(d):
    _hydnsd_without(d, FILE_SIZE, 0)


def hydnsd_without_address_space(d):
    _hydnsd_without(d, ADDRESS_SPACE, _address_space(d.daemon))


def hydnsd_without_locked_memory(d):
    _hydnsd_without(d, LOCKED, 0)


# -- the resolver ----------------------------------------------------------------------------------------
def _start_if_ended(d, alive):
    """alive: when the resolver was last known to live. Its ledger entries are those of a killed one."""
    if not d.resolver.program.running():
        d.detail += f"; it ended with status {d.resolver.program.popen.returncode}"
        d.start_resolver(KILL, alive, time.monotonic_ns() + d.HEARTBEAT)


def _resolver_without(d, what, most):
    """It may fail at queries, or end, as it would alone."""
    with d.ledger.span(d.ledger.down, "the resolver is refused something"):
        alive = time.monotonic_ns()
        with _limited(d.resolver, what, most):
            end = time.monotonic() + d.rng.uniform(0, AWAY)
            while time.monotonic() < end and d.resolver.program.running():
                alive = time.monotonic_ns()
                time.sleep(0.01)
        _start_if_ended(d, alive)


def resolver_without_descriptors(d):
    _resolver_without(d, DESCRIPTORS, _open_descriptors(d.resolver))


def resolver_without_address_space(d):
    _resolver_without(d, ADDRESS_SPACE, _address_space(d.resolver))


def resolver_stopped(d):
    """Queries wait in its rings and sockets until they are full."""
    with d.ledger.span(d.ledger.down, "the resolver is stopped"), d.stopped(d.resolver):
        d.wait(AWAY)


# -- memory ----------------------------------------------------------------------------------------------
@contextmanager
def _memory_group(d, octets):
    """Gives a function that puts a process into a control group in which it can get so much memory more."""
    first, second = MEMORY_GROUPS
    of_first = first.is_dir()
    root = first if of_first else second
    group = root / f"{PREFIX}-{d.world.run.id}-storm"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if of_first else "memory.max")).write_text(str(octets))
        yield lambda pid: (group / "cgroup.procs").write_text(str(pid))
        for pid in (group / "cgroup.procs").read_text().split():
            (root / "cgroup.procs").write_text(pid)
    finally:
        wait_until(lambda: not (group / "cgroup.procs").read_text(), SOON, f"{group} to be empty")
        group.rmdir()


def _take_memory(d, process, work):
    """work(d) makes it ask for memory. Returns when the kernel has killed it, or after some seconds; when it was last known to live."""
    alive = time.monotonic_ns()
    with _memory_group(d, MEMORY) as put:
        put(process.program.pid)
        work(d)
        end = time.monotonic() + KILLED
        while process.program.running() and time.monotonic() < end:
            alive = time.monotonic_ns()
            time.sleep(0.01)
    d.detail = "lives" if process.program.running() else "killed"
    return alive


def hydnsd_without_memory(d):
    _take_memory(d, d.daemon, _resolver_again)
    if not d.daemon.program.running():
        d.wait(AWAY)
        d.start_hydnsd()


def resolver_without_memory(d):
    with d.ledger.span(d.ledger.down, "the resolver has no memory"):
        _start_if_ended(d, _take_memory(d, d.resolver, lambda d: None))


def resolver_without_locked_memory(d):
    """Its packet rings are made anew meanwhile, and again when it may lock memory."""
    with d.ledger.span(d.ledger.down, "the resolver is refused something"):
        with _limited(d.resolver, LOCKED, 0):
            d.reloaded()
            d.wait(AWAY)
            lanes = len(rings.lanes(d.daemon))
        d.reloaded()
        d.detail = f"{lanes} lanes"


# -- disks and the store ---------------------------------------------------------------------------------
@contextmanager
def _filled(directory):
    """Neither an octet nor a file more has room, for the block."""
    fillers = directory / "fillers"
    fillers.mkdir()
    try:
        with suppress(OSError), open(fillers / "octets", "wb", buffering=0) as file:
            while file.write(PIECE):
                pass
        _take_inodes(fillers)
        yield
    finally:
        shutil.rmtree(fillers)


def _take_inodes(directory):
    for number in range(1 << 20):
        try:
            (directory / str(number)).touch()
        except OSError as error:
            if error.errno != ENOSPC:
                raise
            return


def hydnsd_disk_full(d):
    """Of its sockets, its state and its log."""
    with _filled(d.daemon.dir):
        _work(d)
    _must_live(d)


def hydnsd_started_on_a_full_disk(d):
    """It can't make its sockets: systemd would start it again and again."""
    d.daemon.stop(KILL)
    with _filled(d.daemon.dir):
        d.count_parked()
        d.daemon.launch()
        d.wait(AWAY)
    if d.daemon.program.running():
        d.daemon.wait_attached()
        d.after_start()
    else:
        d.detail = f"status {d.daemon.program.popen.returncode}"
        d.start_hydnsd()


def resolver_disk_full(d):
    """Of its zones, its journals and its log."""
    with _filled(d.resolver.dir):
        d.wait(AWAY)


def _with_other(d, name, value, detail):
    """One hydnsd for which this is otherwise, and then one as before."""
    former, d.detail = getattr(d.daemon, name), str(detail)
    for now, most in ((value, AWAY), (former, 0)):
        d.daemon.stop(TERM)
        with d.after_stop(TERM):
            setattr(d.daemon, name, now)
        d.start_hydnsd()
        d.wait(most)


def tiny_store(d):
    """With few rules' places."""
    _with_other(d, "capacity", CAPACITY, CAPACITY)


def tiny_parking(d):
    """With few places for parked queries."""
    _with_other(d, "options", (*d.daemon.options, "--pending-max", PARKED), PARKED)


# -- rings of offers -------------------------------------------------------------------------------------
def _offers_without_room(d):
    return sum(r["dropped_offers"] for r in d.daemon.call({"cmd": "stats"})["resolvers"])


def full_offer_rings(d):
    """hydnsd reads none while the resolver has more to offer than they hold."""
    batch, before, without = d.rng.randrange(1 << 30), _offers_without_room(d), 0
    for number in range(ROUNDS):
        names = [(f"n{n}.b{batch + number}.{zone.LARGE.owner.rstrip('.')}", zone.LARGE.rdtype) for n in range(NEW_NAMES)]
        with d.stopped(d.daemon), Asker(d.world, d.world.network.client1, SERVICE[4], names, RATE, local=CLIENT1[4], edns=True,
                                        timeout=1, queries=NEW_NAMES * TIMES) as asker:
            asker.finish()
        without = _offers_without_room(d) - before
        if without or d.alone:
            break
    d.detail = f"{without} offers had none"
    if not without and not d.alone:
        d.growth.find(f"{ROUNDS} times {NEW_NAMES} new answers had room in the rings of offers")


KINDS = {
    "hydnsd: no descriptors": hydnsd_without_descriptors,
    "hydnsd: no file size": hydnsd_without_file_size,
    "hydnsd: no address space": hydnsd_without_address_space,
    "hydnsd: no memory": hydnsd_without_memory,
    "hydnsd: disk full": hydnsd_disk_full,
    "hydnsd: started on a full disk": hydnsd_started_on_a_full_disk,
    "hydnsd: no locked memory": hydnsd_without_locked_memory,
    "hydnsd: tiny store": tiny_store,
    "hydnsd: tiny parking": tiny_parking,
    "hydnsd: full rings of offers": full_offer_rings,
    "resolver: no descriptors": resolver_without_descriptors,
    "resolver: no address space": resolver_without_address_space,
    "resolver: no memory": resolver_without_memory,
    "resolver: no locked memory": resolver_without_locked_memory,
    "resolver: disk full": resolver_disk_full,
    "resolver stopped": resolver_stopped,
}
