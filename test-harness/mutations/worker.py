# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""One job within a sandbox: puts a fault in, builds what its tests need, runs them until one fails.

Reads a request as JSON from its input and writes one line of JSON for the build and for each test. It is the first
process of its namespace, so it also waits for what tests leave behind.
"""
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from catalogue import TOP, Fault, put_in  # noqa: E402

# Folders in the order in which they are built: each may be linked into those behind it.
LIBRARIES = {"include": [], "offload-policy": ["libhydns-policy.la"], "plugin": ["libhydns-plugin.la"],
             "hydns-kern": ["libhydns-store.la", "libhydns-kern.la"], "hydnsd": [], "test-harness": []}
ORDER = list(LIBRARIES)
SHARED = ("include", "offload-policy", "plugin")       # what the resolvers' plugins are made of
RESOLVERS = {"unbound-module": ("install-unbound", "unbound-root"), "bind-patches": ("install-bind", "bind-root")}
SKIPPED = 77                                            # exit status of automake's tests that can't run
TAIL = 25                                               # lines of output that are shown


def is_pytest(test):
    return ".py::" in test


def resolvers_of(test, part):
    """The resolvers that must be built anew for a test when this folder has a fault; None: before any fault."""
    if not is_pytest(test) and not test.endswith("/run-tests"):
        return []
    if part in RESOLVERS or part not in (None, *SHARED):
        return [part] if part in RESOLVERS else []
    return ["bind-patches"] if "bind" in test else ["unbound-module"]     # file or parameter


def daemons_of(test):
    """What a unit test of hydnsd starts, and so must be built as well: the daemon, and the one that can be held."""
    folder, _, program = test.partition("/")
    makefile = (TOP / folder / "Makefile.am").read_text().replace("\\\n", " ")
    sources = re.search(rf"^{re.sub('[/.-]', '_', program)}_SOURCES *=(.*)$", makefile, re.M)
    if folder != "hydnsd" or not sources or "tests/running.c" not in sources[1]:
        return []
    return ["hydnsd", "tests/held_hydnsd"] if "seams.c" in sources[1] else ["hydnsd"]


def make_commands(test, part, build, jobs):
    """The commands that bring up to date what a test runs, when this folder has changed (None: whatever has)."""
    begin = ORDER.index(part) if part in ORDER else (0 if part is None else len(ORDER))
    make = ["make", "-s", f"-j{jobs}", "-C"]
    commands = []
    if is_pytest(test):
        for folder in ORDER[max(begin, 1):]:
            commands.append([*make, str(build / folder), "all"])
    elif test.partition("/")[0] in ORDER:
        own, _, program = test.partition("/")
        for folder in ORDER[max(begin, 1):ORDER.index(own) + 1]:
            targets = [*([program, *daemons_of(test)] if folder == own else []), *LIBRARIES[folder]]
            if targets:
                commands.append([*make, str(build / folder), *targets])
    for resolver in resolvers_of(test, part):
        target, root = RESOLVERS[resolver]
        commands.append([*make, str(build / resolver), target, f"DESTDIR={build / root}"])
    return commands


def test_command(test, top, build):
    """(command, folder to run it in)"""
    folder, _, program = test.partition("/")
    if is_pytest(test):
        return [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "-p", "no:cacheprovider", "--tb=short", str(top / test)], top
    if program == "run-tests":
        target = {"unbound-module": "check-unbound", "bind-patches": "check-bind"}[folder]
        return ["make", "-s", "-C", str(build / folder), target], build / folder
    return [str(build / folder / program)], build / folder


def environment(top, build, cache):
    return dict(os.environ, HYDNS_BUILD=str(build), HYDNS_CACHE=str(cache), PYTHONDONTWRITEBYTECODE="1",
                HYDNS_UNBOUND=str(build / "unbound-root/usr/lib/hydns/unbound"),
                HYDNS_BIND=str(build / "bind-root/usr/lib/hydns/bind"), HYDNSD=str(build / "hydnsd/hydnsd"),
                HELD_HYDNSD=str(build / "hydnsd/tests/held_hydnsd"), srcdir=str(top))


def run(command, folder, env, limit):
    """(exit status, or None: over the limit; output; seconds)"""
    began = time.monotonic()
    with subprocess.Popen(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True) as process:
        try:
            output, _ = process.communicate(timeout=limit)
            status = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            status = None
    return status, output, time.monotonic() - began


def failing(test, output):
    """The cases of a test that failed, by name."""
    if is_pytest(test):
        return re.findall(r"^(?:FAILED|ERROR) \S+::(\S+)", output, re.M)
    failed = re.findall(r"^\[  (?:FAILED |ERROR  ) \] (?:\S+: )?([a-z]\w+)$", output, re.M)
    # one that has killed its program was the last to begin
    return list(dict.fromkeys(failed or re.findall(r"^\[ RUN      \] (\w+)$", output, re.M)[-1:]))


def outcome(test, status, output):
    """passed, failed, hung, skipped, or broken: it could not be run."""
    if status is None:
        return "hung"
    if is_pytest(test):
        if status == 0:
            return "skipped" if re.search(r"\d+ skipped", output) and not re.search(r"\d+ passed", output) else "passed"
        return "failed" if status == 1 else "broken"
    if status == SKIPPED:
        return "skipped"
    return "passed" if status == 0 else "failed"


def tell(**what):
    print(json.dumps(what), flush=True)


def tail(output):
    return "\n".join(output.splitlines()[-TAIL:])


def build_for(tests, part, request, env):
    """True when all is built."""
    done, began = [], time.monotonic()
    for test in tests:
        for command in make_commands(test, part, Path(request["build"]), request["make_jobs"]):
            if command in done:
                continue
            status, output, _ = run(command, request["top"], env, request["build_limit"])
            if status != 0:
                tell(kind="build", good=False, seconds=time.monotonic() - began, output=tail(output))
                return False
            done.append(command)
    tell(kind="build", good=True, seconds=time.monotonic() - began)
    return True


def work(request):
    top, build = Path(request["top"]), Path(request["build"])
    env = environment(top, build, request["cache"])
    fault = Fault(**request["fault"]) if request["fault"] else None
    if fault:
        path = top / fault.file
        path.write_text(put_in(fault, path.read_text()))
    else:
        # All at once, for tests share what they are built from.
        if not build_for(request["tests"], None, request, env):
            return
    for test in request["tests"]:
        if fault and not build_for([test], fault.part, request, env):
            return
        command, folder = test_command(test, top, build)
        status, output, seconds = run(command, folder, env, request["limits"].get(test, request["first_limit"]))
        result = outcome(test, status, output)
        tell(kind="test", test=test, outcome=result, seconds=seconds, cases=failing(test, output) if result != "passed" else [],
             output="" if result == "passed" else tail(output))
        if fault and result != "passed":
            return


def main():
    signal.signal(signal.SIGINT, signal.SIG_DFL)     # Ctrl-C is for whoever has started this
    request = json.load(sys.stdin)
    worker = os.fork()
    if worker == 0:
        work(request)
        os._exit(0)
    while True:
        pid, status = os.wait()
        if pid == worker:
            return 0 if os.waitstatus_to_exitcode(status) == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
