# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The coverage table names tests that exist, and each of its rows names one or says that there is none."""

import re
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent
ROOMS = [TOP / "offload-policy" / "tests", TOP / "hydns-kern", TOP / "hydnsd", TOP / "plugin", TOP / "test-harness"]
TABLE = (TOP / "doc" / "coverage.md").read_text()
NAMED = re.compile(r"`((?:[\w-]+/)*[\w-]+\.(?:py|c))::(\w+)(?:\[([^`]+)\])?`")
FILE = re.compile(r"`((?:\w[\w.-]*/)+[\w.-]+)`")


def rows():
    """Feature and last column of every row."""
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in TABLE.splitlines() if line.startswith("| ")]
    return [(row[0], row[-1]) for row in cells if row[0] not in ("feature", "---")]


def function_of(text, name, language):
    """The test is defined, and for C also handed to its runner."""
    if language == "py":
        return re.search(rf"^ *def {name}\(", text, re.M)
    return re.search(rf"^static void {name}\(void \*\*", text, re.M) and re.search(rf"(?:cmocka_unit_test\w*|[A-Z]+)\({name}\b", text)


def fault(file, name, case):
    """Why this is not a test, or None."""
    paths = [p for room in ROOMS for p in room.rglob(Path(file).name) if p.match(file)]
    if len(paths) != 1:
        return f"{file}: {paths or 'not there'}"
    text = paths[0].read_text()
    if not function_of(text, name, paths[0].suffix[1:]):
        return f"{file} has no test {name}"
    return f'{file} has no case "{case}"' if case and f'"{case}"' not in text else None


def test_named_tests_exist():
    assert not [why for named in sorted(set(NAMED.findall(TABLE))) if (why := fault(*named))]


def test_every_row_names_its_test():
    found = rows()
    assert len(found) > 40, "the table could not be read"
    assert not [feature for feature, last in found if not NAMED.search(last) and not last.startswith("none yet")]


def test_named_files_exist():
    assert not [f for f in FILE.findall(TABLE) if not (TOP / f).exists()]
