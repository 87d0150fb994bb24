# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The commands that run fuzzers and sanitizers, and the corpora in the tree. (The fuzzers are tests of make check.)"""

import re
import subprocess
from pathlib import Path

import pytest
from lab.tools import build_tree

HARNESS = Path(__file__).resolve().parent.parent
RUN, SANITIZE = HARNESS / "fuzz" / "run", HARNESS / "sanitize"
CORPUS = HARNESS / "fuzz" / "corpus"
FILES_MOST, OCTETS_MOST = 150, 512


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script, words", [
    (RUN, ["--seconds", "0"]), (RUN, ["no-such-fuzzer"]), (RUN, ["--build", "/nowhere", "offers"]),
    (SANITIZE, []), (SANITIZE, ["memory"]), (SANITIZE, ["thread", "no-such-folder/x"]), (SANITIZE, ["--build", "/nowhere", "thread"]),
], ids=lambda value: " ".join(value) if isinstance(value, list) else value.name)
def test_wrong_usage(script, words):
    done = run(script, *words)
    assert done.returncode == 2 and "usage" in done.stderr and not done.stdout


def test_each_corpus_has_a_fuzzer_and_is_small():
    fuzzers = re.search(r"^fuzzers: (.*) \(", run(RUN, "--help").stdout, re.M)[1].split(", ")
    assert {path.name for path in CORPUS.iterdir()} == set(fuzzers) - {"program"}
    for folder in CORPUS.iterdir():
        files = list(folder.iterdir())
        assert 0 < len(files) <= FILES_MOST and max(path.stat().st_size for path in files) <= OCTETS_MOST, folder


def test_an_input_is_repeated():
    fuzzer, corpus = build_tree() / "hydnsd" / "tests" / "fuzz_parked", sorted((CORPUS / "parked").iterdir())
    done = run(fuzzer, *corpus)
    assert (done.returncode, done.stdout) == (0, f"{len(corpus)} files\n")
    assert run(fuzzer, CORPUS / "no-such-file").returncode == 1
