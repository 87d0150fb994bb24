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
SYS_BPF, BPF_OBJ_GET = {"x86_64": 321, "aarch64": 280}, 7     # linux/bpf.h, asm/unistd.h

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


def counters(path, key):
    """The 64-bit numbers of one element of a map with values by processor, each summed over the processors."""
    fd = _obj_get(path)
    try:
        words = int(_facts(fd)["value_size"]) // 8
        at, value = ctypes.c_uint32(key), (ctypes.c_uint64 * (words * _possible_cpus()))()
        attributes = ctypes.create_string_buffer(
            struct.pack("=IIQQQ", fd, 0, ctypes.addressof(at), ctypes.addressof(value), 0))
        if _libc.syscall(SYS_BPF[os.uname().machine], BPF_MAP_LOOKUP_ELEM, attributes, ctypes.c_uint(32)) < 0:
            error = ctypes.get_errno()
            raise OSError(error, f"{path}: {os.strerror(error)}")
    finally:
        os.close(fd)
    return [sum(value[word::words]) for word in range(words)]


def keys(path):
    """How many elements a hash map has."""
    fd = _obj_get(path)
    try:
        size = int(_facts(fd)["key_size"])
        key, found, count = ctypes.create_string_buffer(size), ctypes.create_string_buffer(size), 0
        at = 0
        while True:
            attributes = ctypes.create_string_buffer(struct.pack("=IIQQ", fd, 0, at, ctypes.addressof(found)))
            if _libc.syscall(SYS_BPF[os.uname().machine], BPF_MAP_GET_NEXT_KEY, attributes, ctypes.c_uint(24)) < 0:
                error = ctypes.get_errno()
                if error == errno.ENOENT:
                    return count
                raise OSError(error, f"{path}: {os.strerror(error)}")
            key.raw, at, count = found.raw, ctypes.addressof(key), count + 1
    finally:
        os.close(fd)


@contextmanager
def writable(path):
    """Context manager: the map's memory, a writable mmap."""
    fd = _obj_get(path)
    try:
        facts = _facts(fd)
        size = -(-int(facts["value_size"]) // 8) * 8 * int(facts["max_entries"])
        memory = mmap.mmap(fd, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    finally:
        os.close(fd)
    with memory:
        yield memory
