# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""lab/cost.py: what tests cost."""
import os
import subprocess
import sys

from lab.scripts import HARNESS

TESTS = '''
import subprocess
def test_of_a_child():
    subprocess.run(["python3", "-c", "import time\\nwhile time.process_time() < 0.5: pass"], check=True)
def test_of_nothing():
    pass
'''


def test_a_child_counts_for_its_test(tmp_path):
    (tmp_path / "test_two.py").write_text(TESTS)
    env = dict(os.environ, PYTHONPATH=str(HARNESS), PYTHONDONTWRITEBYTECODE="1")
    subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "lab.cost", "--cost", tmp_path / "costs", "test_two.py"],
                   cwd=tmp_path, env=env, check=True, capture_output=True)
    lines = dict(reversed(line.split()) for line in (tmp_path / "costs").read_text().splitlines())
    assert float(lines["test_two.py::test_of_a_child"]) >= 0.5 > float(lines["test_two.py::test_of_nothing"])
    said = subprocess.run([sys.executable, "-m", "lab.cost", tmp_path / "costs"], env=env, check=True, capture_output=True, text=True).stdout
    assert " 2 tests  test_two.py  (most: " in said and said.rstrip().endswith("test_of_a_child)")
