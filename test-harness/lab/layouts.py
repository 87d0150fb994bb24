# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Structs and numbers of the C code as its compiler sees them (src/layouts.c): Python has no second definition."""

import functools
import json
import struct
import subprocess

from .tools import built

CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}


class Layout:
    """One struct. A field is an unsigned integer, a tuple of them, or bytes where its elements are no integers."""

    def __init__(self, size, fields):
        self.fields = sorted((offset, name, octets, elements) for name, (offset, octets, elements) in fields.items())
        text, at = "=", 0
        for offset, _, octets, elements in self.fields:
            text += f"{offset - at}x" + (f"{elements}{CODES[octets]}" if octets in CODES else f"{octets}s")
            at = offset + octets * elements
        self.struct = struct.Struct(text + f"{size - at}x")
        self.size = size

    def pack(self, **values):
        """The struct as bytes; fields that are not given are zero."""
        flat = []
        for _, name, octets, elements in self.fields:
            value = values.pop(name, None)
            if elements > 1:
                flat += value or [0] * elements
            else:
                flat.append((0 if octets in CODES else b"") if value is None else value)
        assert not values, f"no such field: {sorted(values)}"
        return self.struct.pack(*flat)

    def set(self, buffer, **values):
        """Writes these fields into the buffer and keeps its other octets."""
        for offset, name, octets, elements in self.fields:
            if name in values:
                value = values.pop(name)
                one = f"={elements}{CODES[octets]}" if octets in CODES else f"={octets}s"
                struct.pack_into(one, buffer, offset, *(value if elements > 1 else (value,)))
        assert not values, f"no such field: {sorted(values)}"

    def unpack(self, data):
        """{field: value}"""
        flat, found, at = self.struct.unpack_from(data), {}, 0
        for _, name, _, elements in self.fields:
            found[name] = flat[at] if elements == 1 else flat[at:at + elements]
            at += elements
        return found


@functools.cache
def _compiled():
    return json.loads(subprocess.run([built("test-harness/layouts")], capture_output=True, check=True).stdout)


@functools.cache
def layout(name):
    return Layout(**_compiled()["structs"][name])


def number(name):
    return _compiled()["numbers"][name]


def names(prefix):
    """{number: name without the prefix} of the numbers whose names begin with it."""
    return {n: name.removeprefix(prefix) for name, n in _compiled()["numbers"].items() if name.startswith(prefix)}
