# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The commands that a document tells its reader to type, from the document itself.

A section's fenced blocks without a language are commands, one a line, a backslash joins lines. A comment `# -> TEXT`
says what the command prints; it is checked.
"""

import re
from collections import namedtuple
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent

Command = namedtuple("Command", "text expected")
"""text as typed, its comment included; expected: what its output must contain, or None."""


def section(document, heading):
    """The text below a heading, up to the next of its own or a higher level."""
    text = (TOP / document).read_text()
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.M)
    if not found:
        raise LookupError(f"{document} has no section '{heading}'")
    rest = text[found.end():]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.M)
    return rest[:end.start()] if end else rest


def commands(document, heading):
    """The commands of a section, in their order."""
    blocks = re.findall(r"^```\n(.*?)^```$", section(document, heading), re.M | re.S)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [parse(line) for line in lines if line.strip() and not line.startswith("#")]


def parse(line):
    if "<<" in line:
        raise ValueError(f"a here-document cannot be run line by line: {line}")
    comment = re.search(r"\s# -> (.*)$", line)
    return Command(re.sub(r"\s+# .*$", "", line).strip(), comment[1].strip() if comment else None)
