# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The page of hydns-metrics, as HTTP: who reaches it, what it says of hydnsd, and how often it asks for that. (What a browser makes
of it: test_page_browser.py. What rude clients do to it: test_metrics_http.py.)"""

import json
import re
import stat
import subprocess
import time
from contextlib import ExitStack

import pytest
from metrics_paths import metrics_path

from lab.client import ask
from lab.fake_hydnsd import FakeHydnsd
from lab.metrics import PAGE, Metrics
from lab.network import SERVICE
from lab.run import SOON, wait_until
from lab.tools import TOP

NAME = "www.lab.example"
COMMANDS = ("status", "stats", "top", "pending")


@pytest.fixture(scope="module")
def path(world):
    with metrics_path(world, page=PAGE) as p:
        yield p


def test_it_shows_what_hydnsd_says(path):
    """Its replies, and their reasons in the words of reasons.def."""
    path.world.heat(path.daemon, NAME)

    def full():
        ask(path.network.client1, SERVICE[4], NAME, cd=True)         # passes
        live = path.metrics.page.live()
        return live["passing"] and any(n["where"] == "kernel" for n in live["top"]["names"]) and live
    live = wait_until(full, SOON, "a name and a reason to be there")
    for command in COMMANDS:
        assert live[command].keys() | {"ok"} == path.daemon.call({"cmd": command}).keys(), command
    name = next(n for n in live["top"]["names"] if n["where"] == "kernel")
    assert name["age_ms"] == max(0, 1000 * name["ttl"] - name["expires_in_ms"])
    seconds = live["top"]["window_ms"] / 1000
    assert live["answered_per_s"] == pytest.approx(live["top"]["answered"] / seconds)
    assert live["passed_per_s"] == pytest.approx(live["top"]["passed"] / seconds)
    words = dict(re.findall(r'^HYDNS_REASON\((\w+),.*"passed: (.*)"\)', (TOP / "include/hydns/reasons.def").read_text(), re.M))
    assert [(r["text"], r["queries"]) for r in live["passing"]] == sorted(
        ((words[r], n) for r, n in live["top"]["reasons"].items()), key=lambda r: -r[1])


def test_its_findings_are_doctors(path):
    """Each of them, in doctor's own words."""
    doctor = {(c["check"], c["subject"], c["state"], c["mend"]) for c in json.loads(path.daemon.ctl("doctor", "--json", check=False).stdout)["checks"]}
    live = {(c["check"], c["subject"], c["state"], c["mend"]) for c in path.metrics.page.live()["health"]}
    own = {c for c in live if c[0] == "attached"}      # doctor says more of an interface
    assert live - own <= doctor and {c[0] for c in live} >= {"kill-switch", "resolver", "sources", "attached"}
    path.daemon.ctl("pause")
    try:
        finding = wait_until(lambda: next((f for f in path.metrics.page.live()["health"] if f["state"] == "warn"), None), SOON, "a finding")
        assert (finding["check"], finding["mend"]) == ("kill-switch", "hydnsctl resume")
    finally:
        path.daemon.ctl("resume")


def test_hydnsd_away(path):
    with path.daemon.stopped():
        live = wait_until(lambda: not (v := path.metrics.page.live())["up"] and v, SOON, "hydnsd to be missed")
        assert live["why"] and live["top"] is None and [(f["check"], f["state"]) for f in live["health"]] == [("daemon", "fail")]
    wait_until(path.metrics.page.up, SOON, "hydnsd to be back")


# -- who reaches it --------------------------------------------------------------------------------------------
def another(path, **where):
    """One more hydns-metrics for the same hydnsd."""
    return Metrics(path.world, path.world.network.resolver, path.daemon.control_socket, listen="127.0.0.1:10963", **where)


def test_off_by_default(path):
    with another(path) as metrics:
        listening = subprocess.run(metrics.ns.command(["ss", "-tlnHp"]), capture_output=True, text=True, check=True).stdout
        own = [line.split()[3] for line in listening.splitlines() if f"pid={metrics.program.pid}," in line]
        assert own == [metrics.listen]
        for target in ("/live.json", "/page", "/index.html"):
            assert metrics.request(path=target)[0] == 404
        assert "<" not in metrics.request(path="/")[2]


@pytest.mark.parametrize("where", (f"{SERVICE[4]}:10954", f"[{SERVICE[6]}]:10954", "0.0.0.0:10954", "[::]:10954", "128.0.0.1:10954", "localhost:10954",
                                   "10954", "unix:page"))
def test_only_for_this_host(world, where):
    done = subprocess.run([world.tools.built("hydnsd/hydns-metrics"), "--listen", "127.0.0.1:1", "--page", where], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 2 and "--page takes" in done.stderr


def test_unix_socket(path, tmp_path):
    """For its user or a group; figures and page may each have one."""
    where = tmp_path / "page.sock"
    with another(path, page=f"unix:{where}") as metrics:
        assert metrics.page.up() and stat.S_IMODE(where.stat().st_mode) == 0o600
        metrics.stop()
        assert not where.exists()
        metrics.argv += ["--group", "daemon"]
        metrics.start()
        assert metrics.page.up() and stat.S_IMODE(where.stat().st_mode) == 0o660


@pytest.mark.parametrize("hosts, status", [
    (["localhost"], 200), (["LocalHost:8080"], 200), (["127.0.0.1:10954"], 200), (["127.9.9.9"], 200), (["[::1]:1"], 200), (["[::1]"], 200),
    (["evil.example"], 421), (["evil.example:10954"], 421), (["localhost.evil.example"], 421), (["127.0.0.1.evil.example"], 421), (["localhost."], 421),
    (["10.0.0.1"], 421), (["128.0.0.1"], 421), (["[::2]:1"], 421), (["[::1"], 421), (["::1"], 421), (["[localhost]"], 421), (["localhost:"], 421),
    (["localhost:x"], 421), (["localhost:1:1"], 421), (["[::1]x"], 421), (["a" * 300], 421), ([" "], 421), (["127.1"], 421), (["user@localhost"], 421),
    (["localhost", "evil.example"], 421), (["evil.example", "localhost"], 421), ([], 0)])
def test_names_that_others_own(path, hosts, status):
    """A page of elsewhere whose name leads to 127.0.0.1 meanwhile (DNS rebinding) gets nothing."""
    for target in ("/", "/live.json"):
        request = f"GET {target} HTTP/1.1\r\n" + "".join(f"Host: {h}\r\n" for h in hosts) + "\r\n"
        reply = path.metrics.page.raw(request.encode())
        said = int(reply.split(b" ", 2)[1])
        assert said == status if status else said in (400, 421), reply[:200]
        assert (said == 200) == (b"hydnsd" in reply)
    assert path.metrics.page.raw(b"GET / HTTP/1.0\r\n\r\n").split(b" ", 2)[1] == b"421"


def test_every_response_is_guarded(path):
    """The policy lets run what the page holds, and nothing else; errors have it, too."""
    for method, target in (("GET", "/"), ("HEAD", "/"), ("GET", "/live.json"), ("GET", "/x"), ("POST", "/")):
        _, headers, _ = path.metrics.page.request(method, target)
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy.pop("style-src").startswith("'sha256-") and policy.pop("script-src").startswith("'sha256-")
        assert policy == {"default-src": "'none'", "connect-src": "'self'", "img-src": "data:", "base-uri": "'none'", "form-action": "'none'",
                          "frame-ancestors": "'none'"}
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store" and "Access-Control-Allow-Origin" not in headers
    document = path.metrics.page.request(path="/")[2]
    assert not re.search(r"""\son\w+=|\sstyle=|\bsrc=|https?://(?!www\.w3\.org/2000/svg)|@import|url\(|innerHTML|insertAdjacent|document\.write|eval""", document)


# -- how often it asks -----------------------------------------------------------------------------------------
def replies_of(daemon):
    return {command: {k: v for k, v in daemon.call({"cmd": command}).items() if k != "ok"} for command in COMMANDS}


def test_many_viewers_cost_hydnsd_no_more_than_one(path, tmp_path):
    """All who ask while it waits for hydnsd share one ask, with one connection; and what it asks for is bounded."""
    with FakeHydnsd(tmp_path / "control", replies_of(path.daemon)) as hydnsd, \
            Metrics(path.world, path.world.network.resolver, hydnsd.path, listen="127.0.0.1:10963", page="127.0.0.1:10964") as metrics:
        hydnsd.open.clear()
        with ExitStack() as stack:
            viewers = [stack.enter_context(metrics.page.connect(local=f"127.0.0.{1 + i % 4}")) for i in range(40)]
            for v in viewers:
                v.sendall(metrics.page.get())
            wait_until(lambda: hydnsd.asked, SOON, "hydnsd to be asked")
            hydnsd.open.set()
            for v in viewers:
                assert json.loads(b"".join(iter(lambda: v.recv(65536), b"")).partition(b"\r\n\r\n")[2])["up"]
        assert len(hydnsd.asked) < 10                # one, unless some of them came a second later
        assert [r["cmd"] for r in hydnsd.asked[0]] == list(COMMANDS) and all(0 < r["limit"] <= 20 for r in hydnsd.asked[0][2:])
        begin, before = time.monotonic(), len(hydnsd.asked)
        for _ in range(100):
            assert metrics.page.up()
        assert len(hydnsd.asked) - before <= time.monotonic() - begin + 1
