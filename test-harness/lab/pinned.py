# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Pinned BPF maps without hydnsd: their memory, writable, for tests that damage the rule store; and counters by processor."""

import ctypes
import errno
import mmap
import os
import struct
from contextlib import contextmanager
from pathlib import Path

BPF_MAP_LOOKUP_ELEM, BPF_MAP_GET_NEXT_KEY = 1, 4
# linux/bpf.h, enum bpf_map_type: hash maps, tries and device maps have elements that come and go; of the others with such elements a
# look-up says which there are
HASH, LPM_TRIE, ARRAY_OF_MAPS, SOCKMAP, DEVMAP_HASH = 1, 11, 12, 15, 25
SYS_BPF, BPF_OBJ_PIN, BPF_OBJ_GET = {"x86_64": 321, "aarch64": 280}, 6, 7     # linux/bpf.h, asm/unistd.h
# Kinds of objects with a number: the command of bpf(2) that opens one.
PROGRAM, MAP, LINK = 13, 14, 30

_libc = ctypes.CDLL(None, use_errno=True)


def _obj_get(path):
    name = ctypes.create_string_buffer(os.fsencode(path))
    attributes = ctypes.create_string_buffer(struct.pack("=QII", ctypes.addressof(name), 0, 0))
    fd = _libc.syscall(SYS_BPF[os.uname().machine], BPF_OBJ_GET, attributes, ctypes.c_uint(16))
    if fd < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{path}: {os.strerror(error)}")
    return fd


def _facts(fd):
    return dict(line.split(":\t") for line in open(f"/proc/self/fdinfo/{fd}").read().splitlines() if ":\t" in line)


def _possible_cpus():
    last = Path("/sys/devices/system/cpu/possible").read_text().strip().split(",")[-1]
    return int(last.split("-")[-1]) + 1


def exists(kind, number):
    """Whether the kernel still has the object of this kind with this number."""
    attributes = ctypes.create_string_buffer(struct.pack("=III", number, 0, 0))
    fd = _libc.syscall(SYS_BPF[os.uname().machine], kind, attributes, ctypes.c_uint(12))
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def pin_again(path, other):
    """Pins a pinned object at one more path."""
    name = ctypes.create_string_buffer(os.fsencode(other))
    with opened(path) as (fd, _):
        attributes = ctypes.create_string_buffer(struct.pack("=QII", ctypes.addressof(name), fd, 0))
        if _libc.syscall(SYS_BPF[os.uname().machine], BPF_OBJ_PIN, attributes, ctypes.c_uint(16)) < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"{other}: {os.strerror(error)}")


@contextmanager
def opened(path):
    """Context manager: the map's descriptor and its facts."""
    fd = _obj_get(path)
    try:
        yield fd, _facts(fd)
    finally:
        os.close(fd)


def _command(path, command, fd, key, value):
    """One of bpf(2) that takes a map, a key and a value, or None for the key. False: there is none."""
    attributes = ctypes.create_string_buffer(
        struct.pack("=IIQQQ", fd, 0, 0 if key is None else ctypes.addressof(key), ctypes.addressof(value), 0))
    if _libc.syscall(SYS_BPF[os.uname().machine], command, attributes, ctypes.c_uint(32)) >= 0:
        return True
    error = ctypes.get_errno()
    if error == errno.ENOENT:
        return False
    raise OSError(error, f"{path}: {os.strerror(error)}")


def counters(path, key):
    """The 64-bit numbers of one element of a map with values by processor, each summed over the processors."""
    with opened(path) as (fd, facts):
        words = int(facts["value_size"]) // 8
        value = (ctypes.c_uint64 * (words * _possible_cpus()))()
        if not _command(path, BPF_MAP_LOOKUP_ELEM, fd, ctypes.c_uint32(key), value):
            raise OSError(errno.ENOENT, f"{path}: no element {key}")
    return [sum(value[word::words]) for word in range(words)]


def _keys(path, fd, size):
    key, found, count = None, ctypes.create_string_buffer(size), 0
    while _command(path, BPF_MAP_GET_NEXT_KEY, fd, key, found):
        key = ctypes.create_string_buffer(found.raw, size)
        count += 1
    return count


def _present(path, fd, facts):
    value = ctypes.create_string_buffer(int(facts["value_size"]))
    return sum(_command(path, BPF_MAP_LOOKUP_ELEM, fd, ctypes.c_uint32(i), value) for i in range(int(facts["max_entries"])))


def entries(path):
    """How many elements a map has whose elements come and go; None for others, and for what is no map."""
    with opened(path) as (fd, facts):
        kind = int(facts.get("map_type", 0))
        if kind in (HASH, LPM_TRIE, DEVMAP_HASH):
            return _keys(path, fd, int(facts["key_size"]))
        return _present(path, fd, facts) if kind in (ARRAY_OF_MAPS, SOCKMAP) else None


def memory(path):
    """Octets of a map, as the kernel accounts them."""
    with opened(path) as (_, facts):
        return int(facts["memlock"])


def unread(path):
    """Octets of a ring buffer that nobody has read, headers of records among them."""
    with opened(path) as (fd, _):
        positions = [mmap.mmap(fd, mmap.PAGESIZE, prot=mmap.PROT_READ, offset=page * mmap.PAGESIZE) for page in range(2)]
    read, written = (int.from_bytes(page[:8], "little") for page in positions)
    for page in positions:
        page.close()
    return written - read & 2**64 - 1


@contextmanager
def writable(path):
    """Context manager: the map's memory, a writable mmap."""
    with opened(path) as (fd, facts):
        size = -(-int(facts["value_size"]) // 8) * 8 * int(facts["max_entries"])
        memory = mmap.mmap(fd, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    with memory:
        yield memory
