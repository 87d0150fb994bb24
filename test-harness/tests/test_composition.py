# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What the program consists of: by options, by what the host has, by what resolvers ask for; and that it is exchanged under load
without a loss."""

import json
import signal
import threading
from contextlib import contextmanager

import dns.message
import pytest
from conftest import bind_path, kernel_path
from test_capture import capturing

from lab.batch import exchange_all
from lab.client import ask, query
from lab.network import SERVICE
from lab.process import run_tool
from lab.run import wait_until

HOT = "www.lab.example"
ALL = "monitor: yes\nvlan: yes\nipv6: yes\npartial-checksum: yes\nguard: count\nguard-client-queries: 1000000\n"
NONE = "monitor: no\nvlan: no\nipv6: yes\npartial-checksum: auto\n"
RELOADS = 6                # at least, during a load
BATCH = 400


@contextmanager
def configured(world, resolver=kernel_path, text=NONE, options=()):
    """A path whose hydnsd reads a file; .config is that."""
    file = world.run.dir / "composed.conf"
    file.write_text(text)
    with resolver(world, daemon_options={"options": ["--config", file, *options]}) as p:
        p.config = file
        yield p


def composition(path):
    return path.daemon.call({"cmd": "status"})["composition"]


def part(path, name):
    return next(p for p in composition(path)["parts"] if p["part"] == name)


def program(path, name):
    return next(p for p in composition(path)["programs"] if p["program"] == name)


def reload(path, text):
    path.config.write_text(text)
    return path.daemon.call({"cmd": "reload"}, timeout=60)


class Reloading:
    """Exchanges the program, there and back, until it is left; .done: how often."""

    def __init__(self, path):
        self.path, self.done, self.over, self.error = path, 0, False, None

    def _run(self):
        try:
            while not self.over:
                assert reload(self.path, NONE if self.done % 2 else ALL)["fault"] == ""
                self.done += 1
        except Exception as e:          # noqa: BLE001: for the test, in its own thread
            self.error = e

    def __enter__(self):
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        return self

    def __exit__(self, *exc):
        self.over = True
        self.thread.join()
        assert not self.error, self.error


def wires(run):
    """Queries of names that are rules, and of names that are new."""
    names = [HOT if i % 4 else f"c{run}-{i}.wild.lab.example" for i in range(BATCH)]
    return [query(name, "A").to_wire() for name in names]


def data(wire):
    """What does not depend on time or on the turn of the records: a message without id and TTLs."""
    m = dns.message.from_wire(wire)
    return m.rcode(), m.flags, sorted((s.name, s.rdtype, sorted(map(str, s))) for s in m.answer)


def load(path, run):
    """Asks a batch over each family; every reply must be there, and that of a name always the same. Returns how many."""
    seen = {}
    for service in SERVICE.values():
        questions = wires(run)
        for question, reply in zip(questions, exchange_all(path.network.client1, service, questions, timeout=5.0)):
            name = dns.message.from_wire(question).question[0].name
            assert reply, f"no reply for {name}"
            assert data(reply) == seen.setdefault(name, data(reply))
    return BATCH * len(SERVICE)


def answered(path):
    return path.daemon.call({"cmd": "stats"})["answered"]


@pytest.mark.limit(240)
@pytest.mark.parametrize("resolver, options", [(kernel_path, ()), (bind_path, ()), (kernel_path, ("--attach-mode", "generic"))],
                         ids=["unbound", "bind", "generic"])
def test_nothing_is_lost_under_load(world, resolver, options):
    with configured(world, resolver, options=options) as path:
        world.heat(path.daemon, HOT)
        before, reasons, hits, sent, run = composition(path)["exchanges"], path.daemon.reasons(), answered(path), 0, 0
        counted = path.unbound.stats()["total.num.queries"] if resolver is kernel_path else None
        with Reloading(path) as reloading:
            while reloading.done < RELOADS and not reloading.error:
                sent += load(path, run)
                run += 1
        after = path.daemon.reasons()
        assert composition(path)["exchanges"] - before >= RELOADS - 1
        assert all(after[r] >= n for r, n in reasons.items())
        assert answered(path) - hits > sent / 4
        if counted is not None:
            assert path.unbound.stats()["total.num.queries"] - counted == sent


@pytest.mark.parametrize("resolver", [kernel_path, bind_path], ids=["unbound", "bind"])
def test_the_guard_follows(world, resolver):
    """Turned on, given another limit, and turned off, while hydnsd runs."""
    def guarded(queries):
        return f"{NONE}guard: enforce\nguard-client-queries: {queries}\nguard-client-slip: 0\n"

    def lost():
        questions = [query(HOT, "A").to_wire() for _ in range(40)]
        return sum(not reply for reply in exchange_all(path.network.client1, SERVICE[6], questions, timeout=3.0))

    with configured(world, resolver) as path:
        world.heat(path.daemon, HOT)
        for text, drops in ((guarded(5), True), (guarded(1000000), False), (guarded(5), True), (NONE, False)):
            assert not reload(path, text)["restart"]
            assert part(path, "guard")["in"] == ("guard" in text)
            before = path.daemon.reasons()["GUARDED"]
            assert lost() == path.daemon.reasons()["GUARDED"] - before
            assert (path.daemon.reasons()["GUARDED"] > before) == drops


@pytest.mark.limit(240)
def test_while_somebody_captures(world):
    with configured(world) as path:
        world.heat(path.daemon, HOT)
        with capturing(path) as packets, Reloading(path) as reloading:
            run = 0
            while reloading.done < RELOADS and not reloading.error:
                load(path, f"x{run}")
                run += 1
        assert len(packets) > BATCH


def test_reload_says_what_it_did(world):
    with configured(world) as path:
        assert reload(path, NONE)["changed"] == []
        said = reload(path, NONE.replace("monitor: no", "monitor: yes\nmonitor-window: 1") + "capacity: 5000\n")
        assert (sorted(said["changed"]), said["restart"], said["fault"]) == (["monitor", "monitor-window"], ["capacity"], "")
        assert part(path, "monitor") | {"text": ""} == {"part": "monitor", "text": "", "in": True, "wanted": True, "why": "monitor: yes"}
        assert path.daemon.call({"cmd": "stats"})["monitor"]["on"]
        shown = path.daemon.ctl("reload").stdout
        assert "in force only after a restart of hydnsd: capacity" in shown
        assert reload(path, NONE)["changed"]
        assert not path.daemon.call({"cmd": "stats"})["monitor"]["on"] and not program(path, "hydns_left")["in"]


@pytest.mark.parametrize("wrong", ["monitor: maybe\n", "no-such-option: 1\n", "monitor: yes\nmonitor-condition: none off\n",
                                   "monitor: yes\nmonitor-hook: relative\n"], ids=["value", "option", "condition", "hook"])
def test_a_wrong_file_changes_nothing(world, wrong):
    with configured(world) as path:
        before = composition(path)
        path.config.write_text("vlan: yes\n" + wrong)
        done = path.daemon.ctl("reload", check=False)
        assert done.returncode == 1 and done.stderr
        assert composition(path) == before
        assert reload(path, NONE)["changed"] == []


SWITCHES = ["net.ipv4.conf.lo.forwarding", "net.ipv6.conf.lo.forwarding"]


def look_up_routes(path, on):
    """Whether the kernel looks up routes for XDP."""
    run_tool(path.daemon.ns, ["sysctl", "-qw", *(f"{s}={int(on)}" for s in SWITCHES)])


def test_routing_is_followed(world):
    """The host has two interfaces to clients: replies go by its routing tables as soon as the kernel can look there."""
    with configured(world, text="") as path:
        look_up_routes(path, False)
        try:
            wait_until(lambda: not part(path, "fib")["in"], 20, "replies to go back")
            assert SWITCHES[0] in part(path, "fib")["why"]
            look_up_routes(path, True)
            wait_until(lambda: part(path, "fib")["in"], 20, "replies to be routed")
            assert path.daemon.call({"cmd": "status"})["routed"]
            load(path, "routed")
            assert reload(path, "reply-path: swap\n")["changed"] == ["reply-path"] and not part(path, "fib")["in"]
        finally:
            look_up_routes(path, False)


def test_only_what_is_asked_for(world):
    with configured(world, text="") as path:
        assert part(path, "logs") | {"text": ""} == {"part": "logs", "text": "", "in": False, "wanted": False,
                                                    "why": "no resolver logs or limits answers"}
        assert part(path, "parking")["in"] and "lets queries wait" in part(path, "parking")["why"]
        assert part(path, "ipv6")["in"] and "IPv6 address" in part(path, "ipv6")["why"]
        loaded = {p["program"]: p for p in composition(path)["programs"] if p["in"]}
        assert {"hydns_xdp", "hydns_dry", "hydns_miss"} <= set(loaded) and "hydns_logged" not in loaded
        assert all(p["instructions"] > 0 and p["verified"] > 0 and p["octets"] > 0 for p in loaded.values())
        shown = path.daemon.ctl("status").stdout
        assert "hydns_miss" in shown and "hydns_logged" not in shown and "no resolver logs or limits answers" in shown


def runs(path):
    """As the kernel has counted so far, of the attached program."""
    shown = run_tool(path.daemon.ns, ["bpftool", "-j", "prog", "show", "id", str(program(path, "hydns_xdp")["id"])]).stdout
    return json.loads(shown).get("run_cnt", 0)


def test_measured_by_the_kernel(world):
    with configured(world) as path:
        def measured():
            asked = threading.Thread(target=load, args=(path, "m"))
            asked.start()
            shown = json.loads(path.daemon.ctl("status", "--json", "--measure=2").stdout)
            asked.join()
            return {p["program"]: p for p in shown["composition"]["programs"] if "ns" in p}
        found = wait_until(measured, 30, "a packet in the time that was measured")
        assert set(found) <= {"hydns_xdp", "hydns_sent", "hydns_stray"}    # no figure for stages
        assert found["hydns_xdp"]["runs"] > 0 and found["hydns_xdp"]["ns"] > 0
        before = runs(path)
        load(path, "after")
        assert runs(path) == before        # nobody measures any more


@pytest.mark.limit(240)
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6])
def test_killed_in_the_middle(world, delay):
    with configured(world) as path:
        world.heat(path.daemon, HOT)
        path.config.write_text(ALL)
        path.daemon.program.popen.send_signal(signal.SIGHUP)
        threading.Event().wait(delay)      # any moment of the exchange is one
        path.daemon.stop(signal.SIGKILL)
        assert all(exchange_all(path.network.client1, SERVICE[4], wires("k"), timeout=5.0))
        path.daemon.start()
        wait_until(path.daemon.resolver_ready, 20, "the resolver to come back")
        wait_until(lambda: part(path, "monitor")["in"], 20, "the new configuration")
        world.heat(path.daemon, HOT)


def costs(path, *words, before=(), **how):
    d = path.daemon
    return run_tool(d.ns, [*before, d.world.tools.hydnsctl, "--socket", d.control_socket, "--pin-dir", d.pins, "status", "--costs", *words],
                    seconds=200, **how)


def untouched(path):
    """What the attached program has counted and spent, and what it has of rules and parked queries."""
    status, stats = (path.daemon.call({"cmd": c}) for c in ("status", "stats"))
    guarded = {k: v for k, v in stats["guard"].items() if isinstance(v, int)}
    reasons = {r: path.daemon.reasons()[r] for r in ("ANSWERED", "MISS", "PARKED", "FORWARDED", "GUARDED", "GUARD_TRUNCATED", "REFRESH")}
    return {"reasons": reasons, "answered": stats["answered"], "rules": status["rules"], "guard": guarded,
            "exchanges": status["composition"]["exchanges"], "program": program(path, "hydns_xdp")["id"]}


@pytest.mark.limit(240)
@pytest.mark.parametrize("resolver", [kernel_path, bind_path], ids=["unbound", "bind"])
def test_costs_of_the_parts(world, resolver):
    """By copies that do not disturb the attached program, and that its guard would stop at once."""
    limited = ALL.replace("guard: count", "guard: enforce").replace("1000000", "1000")
    with configured(world, resolver, limited) as path:
        world.heat(path.daemon, HOT)
        before = untouched(path)
        shown = json.loads(costs(path, "--json").stdout)["composition"]
        assert untouched(path) == before
        assert shown["answered_ns"] > 0 and shown["no_rule_ns"] > 0
        assert {"ipv6", "vlan", "guard", "monitor", "parking"} <= {p["part"] for p in shown["parts"] if p["in"]}
        for p in shown["parts"]:
            measured = p["in"] and p["part"] not in ("logs", "fib")
            assert {"instructions", "answered_ns", "no_rule_ns"} <= set(p) if measured else p["part"] == "fib" or "answered_ns" not in p
            assert p.get("instructions", 1) > 0
        load(path, "costs")


def test_costs_without_the_rights(world):
    with configured(world) as path:
        said = costs(path, before=["setpriv", "--bounding-set", "-all", "--inh-caps", "-all"], check=False)
        assert said.returncode == 1 and said.stdout == "" and "cannot measure costs: run it as root" in said.stderr
