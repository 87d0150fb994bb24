# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The control protocol as hydnsd/control/protocol.def lists it, and the tables of doc/control-protocol.md."""

import re
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from . import table

CONTROL = Path(__file__).resolve().parent.parent.parent / "hydnsd" / "control"
ENTRY = re.compile(r'^PROTOCOL_(\w+)\(([^"]*?)(?:,\s*((?:"[^"]*"\s*)+))?\)$', re.M)
COMMAND = re.compile(r"^CTL_COMMAND\((\w+), (REPORT|HANDLER),", re.M)
WORDS = {"TEXT": "string", "INTEGER": "integer", "NUMBER": "number", "TRUTH": "boolean", "NOTHING": "null",
         "COUNTS": "integers by name"}
PLACES = {"REPLY": "", "BOTH": "; also from the pinned maps", "PINS": "; only from the pinned maps", "HYDNSCTL": "; added by hydnsctl",
          "SOMETIMES": "; optional",
          "MEASURED": "; with `--measure`", "COSTED": "; with `--costs`"}
PLOTTED = ()


class Field(NamedTuple):
    name: str
    where: str      # None: an argument
    types: str
    meaning: str


class Protocol:
    """commands, reports (those without arguments that change nothing), {command: arguments}, {object: its own fields}, {object: the objects that it includes}"""

    def __init__(self):
        text = (CONTROL / "protocol.def").read_text()
        served = COMMAND.findall((CONTROL / "commands.def").read_text())
        self.commands, self.reports = [name for name, _ in served], [name for name, by in served if by == "REPORT"]
        self.arguments, self.own, self.included = defaultdict(list), defaultdict(list), defaultdict(list)
        for macro, words, meaning in ENTRY.findall(text):
            of, *words = [w.strip() for w in words.split(",")]
            meaning = "".join(re.findall(r'"([^"]*)"', meaning))
            if macro == "INCLUDE":
                self.included[of] += words
            elif macro == "ARGUMENT":
                self.arguments[of].append(Field(words[0], None, words[1], meaning))
            else:
                self.own[of].append(Field(*words, meaning))
        assert len(ENTRY.findall(text)) == len(re.findall(r"^PROTOCOL_", text, re.M)), "protocol.def has an entry of another form"

    def fields(self, thing):
        """Of an object, with those that it includes."""
        return [f for other in self.included[thing] for f in self.fields(other)] + self.own[thing]


PROTOCOL = Protocol()


def link(thing):
    return f"[{thing}](#{thing})" if thing in PROTOCOL.own or thing in PROTOCOL.included else WORDS[thing]


def in_words(types):
    """TEXT | LIST(rule) as the document writes it."""
    inner = re.fullmatch(r"(LIST|OBJECT)\((.*)\)", types)
    if inner:
        return ("list of " if inner[1] == "LIST" else "") + in_words(inner[2])
    return " or ".join(in_words(t) if "(" in t else link(t) for t in types.split(" | "))


def of_object(thing):
    rows = [[f"`{f.name}`", in_words(f.types) + PLACES[f.where], f.meaning] for f in PROTOCOL.own[thing]]
    also = [f"All fields of {' and '.join(map(link, PROTOCOL.included[thing]))}{', and' if rows else '.'}"] if PROTOCOL.included[thing] else []
    return also + ([""] if also and rows else []) + (table(["field", "type", "meaning"], rows) if rows else [])


def commands(_):
    rows = [[f"`{c}`", ", ".join(f"`{a.name}`" for a in PROTOCOL.arguments[c]), link(c)] for c in PROTOCOL.commands]
    return table(["cmd", "arguments", "reply"], rows)


def arguments(_):
    return table(["command", "argument", "type", "meaning"],
                 [[f"`{c}`", f"`{a.name}`", in_words(a.types), a.meaning] for c in PROTOCOL.commands for a in PROTOCOL.arguments[c]])


def one(thing):
    return lambda _: of_object(thing)


TABLES = {"commands": commands, "arguments": arguments} | {o: one(o) for o in [*PROTOCOL.own, *PROTOCOL.included]}
