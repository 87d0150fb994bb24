# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydnsd and plugins of another ABI version: copies of the built files in which the number behind the mark of include/hydns/abi.h is
another. The layouts are the same, which no side relies on: it is the number that they go by."""

import os
import shutil

from .layouts import number

MARK = b"hyDNS ABI: \0"
PRESENT = number("HYDNS_ABI_VERSION")


def in_version(data, version):
    """A program's octets, in that version."""
    data, found, at = bytearray(data), 0, 0
    while (at := data.find(MARK, at)) >= 0:
        place = slice(at + len(MARK), at + len(MARK) + 4)
        if int.from_bytes(data[place], "little") == PRESENT:
            data[place] = version.to_bytes(4, "little")
            found += 1
        at += len(MARK)
    assert found, "there is no mark of the ABI version: build from this tree"
    return bytes(data)


def of_version(run, file, version):
    """A path of the file in that version."""
    if version == PRESENT:
        return file
    copy = run.dir / f"abi-{version}" / file.name
    if copy.exists():
        return copy
    copy.parent.mkdir(exist_ok=True)
    fresh = copy.with_suffix(".new")
    fresh.write_bytes(in_version(file.read_bytes(), version))
    shutil.copymode(file, fresh)
    os.chmod(copy.parent, 0o755)     # named reads its plugin as another user
    fresh.rename(copy)
    return copy


class Versions:
    """Of a daemon and a resolver, which take another version when they are started next."""

    def __init__(self, run, daemon, resolver):
        self.run, self.daemon, self.resolver = run, daemon, resolver
        self._files = {side: side.file for side in (daemon, resolver)}
        self.of = {daemon: PRESENT, resolver: PRESENT}

    def set(self, side, version):
        side.file = of_version(self.run, self._files[side], version)
        self.of[side] = version
