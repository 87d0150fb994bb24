# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The C parts built once more with a sanitizer, in a tree of their own below the build tree, which stays as it is."""

import os
import shutil
import subprocess

FOLDERS = ("include", "offload-policy", "plugin", "hydns-kern", "hydnsd", "hydns-sim")
COMMON = "-O1 -g -fno-omit-frame-pointer"
UNDEFINED = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
# clang: for libFuzzer, which measures by its code which input reaches something new.
FLAGS = {
    "address": {"CFLAGS": f"{COMMON} {UNDEFINED}"},
    "thread": {"CFLAGS": f"{COMMON} -fsanitize=thread", "FUZZ_CFLAGS": "-std=gnu11 -Wall -Wextra"},    # they have the other one otherwise
    "fuzzer": {"CC": "clang", "CFLAGS": f"{COMMON} {UNDEFINED} -fsanitize=fuzzer-no-link", "CPPFLAGS": "-DHYDNS_LIBFUZZER",
               "FUZZ_LINK": "-fsanitize=fuzzer"},
}
# Made from the BPF programs, which no sanitizer changes.
MADE = ("hydns.bpf.o", "hydns.skel.h", "capture.bpf.o", "capture.skel.h", "again.bpf.o", "again.skel.h", "pass.bpf.o", "tests/slow.bpf.o",
        "tests/slow.skel.h", "tests/tc.bpf.o", "tests/tc.skel.h")


def tree_of(build, sanitizer):
    return build / "sanitize" / sanitizer


def configure(build, tree):
    """A tree with the same answers of configure, and the same objects of the BPF programs."""
    status = tree / "config.status"
    if not status.exists() or status.stat().st_mtime < (build / "config.status").stat().st_mtime:
        tree.mkdir(parents=True, exist_ok=True)
        shutil.copy2(build / "config.status", status)
        subprocess.run(["./config.status"], cwd=tree, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (tree / "hydns-kern" / "tests").mkdir(parents=True, exist_ok=True)
    for name in MADE:
        made, copy = build / "hydns-kern" / name, tree / "hydns-kern" / name
        if made.exists() and (not copy.exists() or copy.stat().st_mtime < made.stat().st_mtime):
            shutil.copy2(made, copy)


def make(tree, folder, flags, *targets, **more):
    command = ["make", "-k", f"-j{len(os.sched_getaffinity(0))}", "-C", str(tree / folder), *(f"{k}={v}" for k, v in flags.items()), *targets]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **more)
