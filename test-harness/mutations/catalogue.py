# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The faults: read from *.toml beside this file, found in the sources, put into them.

A fault is a piece of one line and what stands there instead. Text, and no patch with lines around it, because most
edits of a file leave it where it is; and it is refused, never guessed, when it is there no longer or more than once.
"""
import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent.parent
KEYS = {"name", "file", "within", "old", "new", "effect", "seen_by", "since"}
OPTIONAL = {"within", "since"}
MAKEFILES = {"hydns-kern", "hydnsd", "plugin", "offload-policy", "test-harness"}
SCRIPTS = {"unbound-module/run-tests", "bind-patches/run-tests"}


class CatalogueError(Exception):
    """An error in a fault's entry: what, and where."""


@dataclass(frozen=True)
class Fault:
    name: str           # a few words with hyphens, by which --only finds it
    file: str           # in the source tree
    old: str            # piece of a line
    new: str            # in its place
    effect: str         # what goes wrong
    seen_by: tuple      # tests, the smallest first; one of them must fail
    within: str = ""    # a text of the file that stands once, before the line: its function's first line
    since: str = ""     # the first release of Unbound that has what it spoils, as "1.23"

    @property
    def part(self):
        """The folder that the summary counts it under."""
        return self.file.split("/")[0]


def _fault(entry, table):
    what = f"{table.name}: fault {entry.get('name', '(without a name)')}"
    unknown = set(entry) - KEYS
    missing = KEYS - OPTIONAL - set(entry)
    if unknown or missing:
        raise CatalogueError(f"{what}: " + (f"unknown {', '.join(sorted(unknown))}" if unknown else
                                            f"no {', '.join(sorted(missing))}"))
    if "\n" in entry["old"] + entry["new"] or not entry["old"] or entry["old"] == entry["new"]:
        raise CatalogueError(f"{what}: old and new must be two pieces of one line")
    if not entry["seen_by"]:
        raise CatalogueError(f"{what}: name the test that must see it")
    return Fault(**{**entry, "seen_by": tuple(entry["seen_by"])})


def read(folder=HERE):
    """All faults, in the order of the tables."""
    faults = []
    for table in sorted(folder.glob("*.toml")):
        try:
            entries = tomllib.loads(table.read_text())
        except tomllib.TOMLDecodeError as e:
            raise CatalogueError(f"{table.name}: {e}") from None
        faults += [_fault(entry, table) for entry in entries.get("fault", [])]
    names = [f.name for f in faults]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise CatalogueError(f"two faults have the name {', '.join(sorted(twice))}")
    return faults


def put_in(fault, text):
    """The file's text with the fault in it; CatalogueError when its line is not there, or not the only one."""
    begin = 0
    if fault.within:
        if text.count(fault.within) != 1:
            raise CatalogueError(f"{fault.name}: {fault.file} has {text.count(fault.within)} times: {fault.within}")
        begin = text.index(fault.within)
    elif text.count(fault.old) > 1:
        raise CatalogueError(f"{fault.name}: {fault.file} has {text.count(fault.old)} times: {fault.old}"
                             " (name its function with within)")
    at = text.find(fault.old, begin)
    if at < 0:
        raise CatalogueError(f"{fault.name}: {fault.file} no longer has: {fault.old}")
    return text[:at] + fault.new + text[at + len(fault.old):]


@functools.lru_cache(maxsize=None)
def _text(path):
    return path.read_text() if path.is_file() else None


def _test_fault(test, top):
    """Why there is no such test, or None when there is."""
    path, _, node = test.partition("::")
    if path in SCRIPTS:
        return None
    if path.endswith(".py"):
        text = _text(top / path)
        function = node.partition("[")[0].rpartition("::")[2]
        if text is None:
            return f"there is no {path}"
        return None if function and re.search(rf"^\s*def {re.escape(function)}\(", text, re.M) else \
            f"{path} has no test {function or '(none is named)'}"
    folder, _, program = path.partition("/")
    if folder not in MAKEFILES:
        return f"{path} is neither a test program of {', '.join(sorted(MAKEFILES))} nor a test of pytest's"
    makefile = _text(top / folder / "Makefile.am")
    return None if re.search(rf"(^|\s){re.escape(program)}(\s|$)", makefile) else f"{folder}/Makefile.am has no {program}"


def in_release(fault, release):
    """Does Unbound of this release, (major, minor), have what the fault spoils?"""
    return not fault.since or tuple(map(int, fault.since.split("."))) <= release


def faults_of(catalogue, top=TOP):
    """What is wrong with the entries, as a list of lines: lines that are gone, and tests that there are not."""
    wrong = []
    for fault in catalogue:
        text = _text(top / fault.file)
        try:
            if text is None:
                raise CatalogueError(f"{fault.name}: there is no {fault.file}")
            put_in(fault, text)
        except CatalogueError as e:
            wrong.append(str(e))
        wrong += [f"{fault.name}: {why}" for why in (_test_fault(t, top) for t in fault.seen_by) if why]
    return wrong
