# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The documents: what they refer to is there, the table of maps is the program's, and short ones stay short."""

import re
import subprocess

import pytest

from lab.tools import TOP, built

LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
NAMED = re.compile(r"doc/([a-z-]+\.md)")
SECTION = re.compile(r"doc/([a-z-]+\.md)\)?[\s,(*#/]*\"([A-Z][^\"\n]*)\"")
HEADING = re.compile(r"^#+ (.+)$", re.M)
MAP_ROWS = re.compile(r"^\| (`hydns_.*?) \|", re.M)
MOST_WORDS = {"README.md": 600, "doc/architecture.md": 1500}


def files():
    listed = subprocess.run(["git", "-C", TOP, "ls-files", "--cached", "--others", "--exclude-standard"], capture_output=True,
                            text=True).stdout.splitlines()
    return [f for f in listed if "/corpus/" not in f and (TOP / f).is_file()] or \
        [str(p.relative_to(TOP)) for p in TOP.rglob("*.md")]


def without_code(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def anchors(text):
    """What a link to a part of the document may say: its headings as GitHub writes them, and anchors set by hand."""
    headings = HEADING.findall(without_code(text))
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings} | set(re.findall(r'<a id="([^"]+)">', text))


def documents():
    return [f for f in files() if f.endswith(".md")]


def wrong_links(document):
    text = (TOP / document).read_text()
    for path, anchor in LINK.findall(without_code(text)):
        target = (TOP / document).parent / path if path else TOP / document
        if not target.exists():
            yield f"{document}: {path} is not there"
        elif anchor and anchor not in anchors(target.read_text()):
            yield f"{document}: {path}#{anchor} is not there"


def test_links_lead_somewhere():
    assert len(documents()) > 10
    assert not [wrong for document in documents() for wrong in wrong_links(document)]


def wrong_mentions(file):
    try:
        text = (TOP / file).read_text()
    except UnicodeDecodeError:
        return
    for name in set(NAMED.findall(text)):
        if not (TOP / "doc" / name).exists():
            yield f"{file} names doc/{name}, which is not there"
    for name, heading in SECTION.findall(text):
        path = TOP / "doc" / name
        if path.exists() and heading not in HEADING.findall(without_code(path.read_text())):
            yield f'{file}: doc/{name} has no section "{heading}"'


def test_what_code_names_is_there():
    assert not [wrong for file in files() if file != "test-harness/tests/test_documents.py" for wrong in wrong_mentions(file)]


def test_maps_are_the_programs():
    """The table of maps has each map of the built object, and no other."""
    skeleton = built("hydns-kern/hydns.skel.h").read_text()
    real = set(re.findall(r"struct bpf_map \*(hydns_\w+);", skeleton))
    text = (TOP / "doc" / "architecture.md").read_text()
    listed = re.findall(r"`(hydns_\w+)`", " ".join(MAP_ROWS.findall(text)))
    assert len(real) > 10 and len(listed) == len(set(listed))
    assert set(listed) == real


@pytest.mark.parametrize("document", sorted(MOST_WORDS))
def test_short_ones_are_short(document):
    words = len((TOP / document).read_text().split())
    assert words <= MOST_WORDS[document], f"{words} words"
