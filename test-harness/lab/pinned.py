# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The memory of a pinned BPF map, writable: for tests that damage the rule store."""

import ctypes
import mmap
import os
import struct
from contextlib import contextmanager

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


@contextmanager
def writable(path):
    """Context manager: the map's memory, a writable mmap."""
    fd = _obj_get(path)
    try:
        facts = dict(line.split(":\t") for line in open(f"/proc/self/fdinfo/{fd}").read().splitlines() if ":\t" in line)
        size = -(-int(facts["value_size"]) // 8) * 8 * int(facts["max_entries"])
        memory = mmap.mmap(fd, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE)
    finally:
        os.close(fd)
    with memory:
        yield memory
