# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Reads the commands that a document gives its reader from the document itself.

A section's fenced blocks without a language are commands, one a line, a backslash joins lines. A comment `# -> TEXT`
says what the command prints; it is checked; " ... " in it stands for the middle of a line. A block right below a line that
begins with a name in bold is for the servers that the line names in bold (`**Unbound**`, `**BIND** and **BIND's zones**`),
any other block for everybody.
"""

import re
from collections import namedtuple
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent.parent

Command = namedtuple("Command", "text expected")
"""text as typed, its comment included; expected: what its output must contain, or None."""

BLOCK = re.compile(r"^(?P<above>.*)\n```(?P<language>.*)\n(?P<lines>(?:.*\n)*?)```$", re.M)


def section(document, heading):
    """The text below a heading, up to the next of its own or a higher level."""
    text = (TOP / document).read_text()
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.M)
    if not found:
        raise LookupError(f"{document} has no section '{heading}'")
    rest = text[found.end():]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.M)
    return rest[:end.start()] if end else rest


def commands(document, heading, server=None):
    """The commands of a section, in their order; with server, those for this one and those for everybody."""
    return [command for servers, listed in blocks(own_part(section(document, heading))) if not servers or server in servers
            for command in listed]


def servers_by_heading(document):
    """{heading: servers that its commands are for} of all headings that have commands; without servers: {None}."""
    headings = re.findall(r"^#+ (.*)$", (TOP / document).read_text(), re.M)
    found = {h: [servers for servers, _ in blocks(own_part(section(document, h)))] for h in headings}
    return {h: set().union(*lists) or {None} for h, lists in found.items() if lists}


def own_part(text):
    """A section without the sections in it."""
    inner = re.search(r"^#+ ", text, re.M)
    return text[:inner.start()] if inner else text


def blocks(text):
    """(servers, commands) of each block of commands."""
    for block in BLOCK.finditer(text):
        if block["language"]:
            continue
        lines = block["lines"].replace("\\\n", " ").splitlines()
        servers = set(re.findall(r"\*\*(.+?)\*\*", block["above"])) if block["above"].startswith("**") else set()
        yield servers, [parse(line) for line in lines if line.strip() and not line.startswith("#")]


def parse(line):
    if "<<" in line:
        raise ValueError(f"a here-document cannot be run line by line: {line}")
    comment = re.search(r"\s# -> (.*)$", line)
    return Command(re.sub(r"\s+# .*$", "", line).strip(), comment[1].strip() if comment else None)


def shows(expected, output):
    return re.search(".*?".join(re.escape(part) for part in expected.split(" ... ")), output) is not None


def table(document, heading):
    """The rows of a section's first table: lists of cells, without the backquotes of single words."""
    rows = [line.strip("|").split("|") for line in own_part(section(document, heading)).splitlines() if line.startswith("| ")]
    return [[cell.strip().strip("`") for cell in row] for row in rows[2:]]
