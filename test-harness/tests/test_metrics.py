# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydns-metrics on the real path: every figure of status and stats, by its name; hydnsd away or hung; where it can be reached."""

import re
import select
import signal
import socket
import stat
import subprocess
import sys
from contextlib import ExitStack, suppress

import pytest
from metrics_paths import metrics_path

from lab import rings
from lab.client import ask
from lab.forwarding import SERVERS, forward_zone, nsd
from lab.metrics import Metrics, installed, list_labels, rows, samples
from lab.network import SERVICE
from lab.run import SOON, wait_until
from lab.tools import TOP

sys.path.insert(0, str(TOP / "doc"))
from tables.protocol import PROTOCOL  # noqa: E402

NAME = "www.lab.example"

# Figures of the control protocol that are no metrics of their own, and why.
LEFT_OUT = {
    "status.abi": "a label of hydns_build_info",
    "status.pid": "a name of the process, no quantity",
    "status.resolvers[].pid": "a name of the process, no quantity",
    "status.other_versions[].pid": "a name of the process, no quantity",
    "status.other_versions[].abi": "a name of its version, no quantity",
    "status.resolvers[].authority": "the label index",
    "status.resolvers[].rings_full": "the same number as stats.resolvers[].packet_rings.full",
    "status.resolvers[].lanes[].queue": "a label of the lane",
    "status.resolvers[].lanes[].number": "a label of the lane",
    "status.composition.programs[].id": "a name of the program, no quantity",
    "status.composition.programs[].stage": "a fact of its code, which does not change",
    "status.resolvers[].stale.ttl": "of its configuration, and of no use in a plot",
    "status.resolvers[].stale.replies": "in stats.stale_replies, which does not begin anew",
    "stats.held_back": "a sum of two of stats.bounds",
    "stats.resolvers[].authority": "the label index",
    "stats.resolvers[].rules": "the same number as status.resolvers[].rules",
    "stats.monitor.analyses[].age_ms": "of findings, which are text",
    "stats.monitor.analyses[].findings[].least": "of text that differs from window to window",
    "stats.monitor.analyses[].findings[].most": "of text that differs from window to window",
    "stats.monitor.windows[].age_ms": "history, which Prometheus keeps itself",
    "stats.monitor.windows[].length_ms": "history, which Prometheus keeps itself",
    "stats.monitor.windows[].queries": "history, which Prometheus keeps itself",
    "stats.monitor.windows[].answered": "history, which Prometheus keeps itself",
    "stats.monitor.windows[].clients": "history, which Prometheus keeps itself",
    "stats.monitor.windows[].names": "history, which Prometheus keeps itself",
}
# Figures that differ from one reply to the next: not compared.
MOVING = {"status.uptime_s", "status.resolvers[].heartbeat_age_ms", "stats.resolvers[].packet_rings.wakeups"}
# no window of it ends meanwhile
MONITOR = ["--monitor", "yes", "--monitor-window", "3600"]
UNIT = {"NUMBER": 1, "MILLISECONDS": 1000, "MICROSECONDS": 1e6}


# -- the table -------------------------------------------------------------------------------------------------
def figures(thing, path):
    """Paths of all that protocol.def lists as numbers, truths or counts in an object."""
    for field in PROTOCOL.fields(thing):
        here = f"{path}.{field.name}"
        inner = re.fullmatch(r"(LIST|OBJECT)\((\w+)\)", field.types)
        if field.where not in ("REPLY", "BOTH"):
            continue
        if inner and inner[2] == "histogram":
            yield here
        elif inner and inner[2] in PROTOCOL.own:
            yield from figures(inner[2], here + ("[]" if inner[1] == "LIST" else ""))
        elif set(re.findall(r"\w+", field.types)) & {"INTEGER", "NUMBER", "TRUTH", "COUNTS"}:
            yield here


def test_every_figure_is_a_metric_or_has_a_reason():
    known = {f for command in ("status", "stats") for f in figures(command, command)}
    paths = [path for path, *_ in rows()]
    assert len(known) > 90 and len(paths) == len(set(paths))
    assert not known - set(paths) - set(LEFT_OUT), "neither in metrics.def nor left out with a reason"
    assert not set(LEFT_OUT) - known and not set(LEFT_OUT) & set(paths), "left out, but not a figure, or a metric"
    numbers = {path for path, _, _, value, *_ in rows() if value not in ("LENGTH", "WORD", "BUCKETS")}
    assert numbers <= known, "in metrics.def, but not in protocol.def"


def expected(path, reply):
    """[(labels, value)] that the reply has at a path, by a walk of our own."""
    at = [((), reply)]
    for step in path.split(".")[1:]:
        key, is_list = step.removesuffix("[]"), step.endswith("[]")
        at = [(labels, thing[key]) for labels, thing in at]
        if is_list:
            at = [(labels + tuple((label, str(e[field])) for label, field in list_labels(key)), e) for labels, found in at for e in found]
    return at


def histogram_samples(name, labels, histogram):
    """{(name, labels): value} of a histogram: each of Prometheus' buckets has all up to its bound."""
    found, so_far = {(f"{name}_sum", tuple(sorted(labels))): histogram["sum_s"]}, 0
    for bound, n in histogram["counts"].items():
        so_far += n
        found[f"{name}_bucket", tuple(sorted((*labels, ("le", "+Inf" if bound == "inf" else bound))))] = so_far
    return found | {(f"{name}_count", tuple(sorted(labels))): so_far}


def expected_samples(row, reply):
    """{(name, labels): value} of one line of the table."""
    path, name, _, kind, label, _ = row
    found = {}
    for labels, value in expected(path, reply):
        if kind == "COUNTS":
            found |= {(name, tuple(sorted((*labels, (label, key))))): n for key, n in value.items()}
        elif kind == "BUCKETS":
            found |= histogram_samples(name, labels, value)
        elif kind == "WORD":
            found[name, tuple(sorted((*labels, (label, value))))] = 1
        elif value is not None:
            found[name, tuple(sorted(labels))] = len(value) if kind == "LENGTH" else value / UNIT.get(kind, 1)
    return found


def without_of(found):
    """The label `of` of packets comes from reasons.def, not from a reply."""
    return {(name, tuple(label for label in labels if label[0] != "of")): value for (name, labels), value in found.items()}


def differences(status, stats, scraped):
    """What a scrape lacks of the replies, or has otherwise."""
    scraped = without_of(scraped)
    return [(key, value, scraped.get(key)) for row in rows() if row[0] not in MOVING
            for key, value in expected_samples(row, stats if row[0].startswith("stats.") else status).items()
            if scraped.get(key) != pytest.approx(value, rel=1e-9)]


# -- the real path ---------------------------------------------------------------------------------------------
def test_every_number_agrees(world):
    """With rules, packet rings and a forwarded zone: each number of both replies, when two replies around a scrape are the
    same."""
    with nsd(world), metrics_path(world, daemon_options={"options": MONITOR}, unbound_options={"server": forward_zone(SERVERS[0])}) as p:
        rings.wait_open(p.daemon)
        world.heat(p.daemon, NAME)
        for name in ("www.forwarded.example", "one.forwarded.example", "nothing.lab.example"):
            ask(p.network.client1, SERVICE[4], name)

        def agree():
            before = p.daemon.call({"cmd": "status"}), p.daemon.call({"cmd": "stats"})
            scraped = p.metrics.fresh()
            wrong = differences(*before, scraped)
            print(wrong[:5])
            return not wrong and scraped
        scraped = wait_until(agree, 30, "a scrape to agree with status and stats")
        names = {name for name, _ in scraped}
        assert {name + "_count" * (kind == "HISTOGRAM") for _, name, kind, *_ in rows()} <= names, "no sample of a line of the table"
        assert scraped["hydns_up", ()] == 1 and [v for (n, _), v in scraped.items() if n == "hydns_build_info"] == [1]
        of = {dict(labels)["reason"]: dict(labels)["of"] for name, labels in scraped if name == "hydns_packets_total"}
        assert (of["ANSWERED"], of["NOT_UDP"], of["EMPTY"]) == ("query", "other", "unread")
        assert scraped["hydns_packets_total", (("of", "query"), ("reason", "ANSWERED"))] > 0


def test_a_scrape_looks_at_no_rule(world):
    """What rules have answered is as of hydnsd's last look: one soon comes that lacks an answer that hydnsctl counts."""
    with metrics_path(world) as p:
        world.heat(p.daemon, NAME)
        asked = "hydns_metrics_answer_seconds", ()

        def answers(scraped):
            return sum(value for (name, _), value in scraped.items() if name == "hydns_resolver_answer_age_seconds_count")

        def lacks_one():
            """hydns-metrics has asked hydnsd after the answer, and before this test does."""
            last = p.metrics.scrape()[asked]
            ask(p.network.client1, SERVICE[4], NAME)
            scraped = p.metrics.scrape()
            counted = sum(p.daemon.call({"cmd": "stats"})["resolvers"][0]["answer_age"]["counts"].values())
            return scraped[asked] != last and answers(scraped) < counted
        wait_until(lacks_one, SOON, "a scrape that lacks an answer")


def test_promtool_finds_nothing_to_mend(world):
    """Names, help and types after Prometheus' conventions."""
    with metrics_path(world) as p:
        status, headers, body = p.metrics.request()
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    done = subprocess.run([installed("promtool"), "check", "metrics"], input=body, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr
    bad = subprocess.run([installed("promtool"), "check", "metrics"], input=body.replace("_total", ""), capture_output=True, text=True)
    assert bad.returncode, "promtool sees nothing"


# -- hydnsd away, hung, and back -------------------------------------------------------------------------------
def backlog(ns, path):
    """Connections that wait to be accepted at a unix socket."""
    text = subprocess.run(ns.command(["ss", "-xlH"]), capture_output=True, text=True, check=True).stdout
    return int(next(line for line in text.splitlines() if f" {path} " in line).split()[2])


def asking(metrics, listener):
    """A client for whose request hydns-metrics connects to the listener; None when it has the figures of a moment before."""
    client = metrics.connect()
    client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    if listener in select.select([listener, client], [], [])[0]:
        return client
    client.close()
    return None


def test_hydnsd_away_and_hung(world):
    """A scrape says so and succeeds; a hung hydnsd has one connection of ours in its backlog, however often we ask."""
    with metrics_path(world) as p:
        assert p.metrics.up() == 1
        with p.daemon.stopped():
            wait_until(lambda: p.metrics.up() == 0, SOON, "hydns_up to be 0 while hydnsd hangs")
            for _ in range(3):
                assert p.metrics.fresh()["hydns_up", ()] == 0
            assert backlog(world.network.resolver, p.daemon.control_socket) == 1
        wait_until(lambda: p.metrics.up() == 1, SOON, "hydns_up to be 1 when hydnsd goes on")
        p.daemon.stop(signal.SIGKILL)
        wait_until(lambda: p.metrics.up() == 0, SOON, "hydns_up to be 0 without hydnsd")
        assert {name for name, _ in p.metrics.scrape()} == {"hydns_up", "hydns_metrics_answer_seconds"}
        p.daemon.start()
        wait_until(lambda: p.metrics.up() == 1, SOON, "hydns_up to be 1 with a new hydnsd")


def test_something_else_at_the_control_socket(world, tmp_path):
    """Garbage, no line end, a reply that is not ok, and one without end: hydns_up is 0."""
    replies = iter((b"no JSON\n{}\n", b"{}", b'{"ok": false}\n{"ok": false}\n', b'{"ok":true}\n[1]\n', b"x" * (9 << 20)))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "control"))
        listener.listen()
        with Metrics(world, world.network.resolver, tmp_path / "control") as metrics:
            for reply in replies:
                with ExitStack() as stack:
                    client = stack.enter_context(wait_until(lambda: asking(metrics, listener), SOON, "a question to hydnsd"))
                    asked, _ = listener.accept()
                    stack.enter_context(asked)
                    with suppress(BrokenPipeError, ConnectionResetError):
                        asked.sendall(reply)
                    asked.close()
                    text = b"".join(iter(lambda: client.recv(65536), b"")).decode()
                assert "\nhydns_up 0\n" in text
            assert metrics.program.running()


def test_requests_wait_for_nobody(world):
    """While hydnsd hangs, and requests wait for it, the program answers what needs no figures; and it ends in good order."""
    with metrics_path(world) as p, p.daemon.stopped(), ExitStack() as stack:
        waiting = [stack.enter_context(p.metrics.connect()) for _ in range(10)]
        for s in waiting:
            s.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        assert p.metrics.request(path="/")[0] == 200
        assert p.metrics.stop(signal.SIGTERM) == 0


# -- where it can be reached -----------------------------------------------------------------------------------
def listening(ns):
    """Addresses and ports where somebody listens for TCP."""
    text = subprocess.run(ns.command(["ss", "-tlnHp"]), capture_output=True, text=True, check=True).stdout
    return [line.split()[3] for line in text.splitlines() if "hydns-metrics" in line]


@pytest.mark.parametrize("listen", (f"{SERVICE[4]}:9999", f"[{SERVICE[6]}]:9999", "[::1]:10953", "127.0.0.1:10953"))
def test_only_where_configured(world, listen):
    with metrics_path(world, listen=listen) as p:
        assert listening(world.network.resolver) == [listen]
        assert p.metrics.up() == 1


def test_unix_socket(world, tmp_path):
    """Only for its user or a group; nothing by TCP; the file goes when the program ends, and a dead one's is replaced."""
    where = tmp_path / "metrics.sock"
    with metrics_path(world, listen=f"unix:{where}") as p:
        assert listening(world.network.resolver) == []
        assert p.metrics.up() == 1
        assert stat.S_IMODE(where.stat().st_mode) == 0o600
        with ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(p.metrics.connect())
            assert p.metrics.up() == 1
        p.metrics.stop(signal.SIGKILL)
        assert where.exists()
        p.metrics.argv += ["--group", "daemon"]
        p.metrics.start()
        assert p.metrics.up() == 1 and stat.S_IMODE(where.stat().st_mode) == 0o660
        assert p.metrics.stop(signal.SIGTERM) == 0 and not where.exists()


@pytest.mark.parametrize("arguments, status, said", [
    (["--listen", "10953"], 2, "--listen takes an address and a port"), (["--listen", "localhost:1"], 2, "--listen takes"),
    (["--listen", "::1:80"], 2, "--listen takes"), (["--listen", "[::1:80"], 2, "--listen takes"), (["--listen", "[]:80"], 2, "--listen takes"),
    (["--listen", "127.0.0.1:0"], 2, "--listen takes"), (["--listen", "127.0.0.1:65536"], 2, "--listen takes"),
    (["--listen", "127.0.0.1:-1"], 2, "--listen takes"), (["--listen", "127.0.0.1:"], 2, "--listen takes"), (["--listen", ""], 2, "--listen takes"),
    (["--listen", "unix:x"], 2, "an absolute path"), (["--listen", "192.0.2.99:80"], 1, "cannot listen"),
    (["--listen", "unix:/nonexistent/a/b"], 1, "cannot listen"), (["--group", "daemon"], 2, "--group is for"), (["x"], 2, "takes no argument"),
    (["--nothing"], 2, "Try"), (["--help"], 0, "usage: hydns-metrics"), (["--version"], 0, "hyDNS")])
def test_command_line(world, arguments, status, said):
    done = subprocess.run([world.tools.built("hydnsd/hydns-metrics"), *arguments], capture_output=True, text=True, timeout=30)
    assert done.returncode == status and said in done.stdout + done.stderr


def test_the_parser_of_this_test():
    text = '# HELP a b\na{x="\\\\\\"\\n"} 1.5e+10\nb 2\n'
    assert samples(text) == {("a", (("x", '\\"\n'),)): 1.5e10, ("b", ()): 2}
    for wrong in ('a{x="\n"} 1', "a{} 1", "a", 'a{x="y} 1', "a 1\na 2"):
        with pytest.raises(AssertionError):
            samples(wrong)
