# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A share of the long run of unusual queries through the loaded program, judged by dnspython."""

import os
import re
import subprocess
from pathlib import Path

import pytest

PACKETS = Path(__file__).resolve().parent.parent / "fuzz" / "packets"
COUNT = 40000


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: BPF")
def test_kernel_answers_nothing_malformed():
    done = subprocess.run([PACKETS, "--count", str(COUNT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    answered, passed = map(int, re.search(r"(\d+) answered, (\d+) passed", done.stdout).groups())
    assert answered + passed == COUNT and answered > COUNT // 10


@pytest.mark.parametrize("words", [["--count", "0"], ["--count", "many"], ["--no-such-option"]], ids=" ".join)
def test_wrong_usage(words):
    done = subprocess.run([PACKETS, *words], capture_output=True, text=True)
    assert done.returncode == 2 and "usage" in done.stderr
