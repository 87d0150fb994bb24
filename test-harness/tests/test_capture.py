# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""`hydnsctl capture`: the queries and the kernel's replies as they were on the link, what became of each, the filters and bounds;
and that nothing is left when it ends."""

import itertools
import json
import shutil
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from conftest import bind_path, kernel_path

from lab import pcapng
from lab.client import ask, must_exchange, query
from lab.network import LINKS, SERVICE
from lab.process import Program, tail
from lab.run import SOON, wait_until

NAME, OTHER = "www.lab.example", "a1.lab.example"
colds = (f"none{n}.lab.example" for n in itertools.count())
LATE = 0.3                               # seconds that the authoritative server takes
IP_UDP = {4: 20 + 8, 6: 40 + 8}


@pytest.fixture(scope="module", params=[kernel_path, bind_path], ids=["unbound", "bind"])
def path(world, request):
    with request.param(world) as p:
        for name in NAME, OTHER:
            for version in SERVICE:
                world.heat(p.daemon, name, server=SERVICE[version])
        p.before = left(p)
        assert p.before[1] == 0
        yield p


@pytest.fixture(autouse=True)
def captures_end():
    """Also when a test fails: one may capture at a time."""
    yield
    while Capturing.all:
        Capturing.all.pop().stop(signal.SIGKILL)


class Capturing:
    """A capture in the background: from its first line on all packets are in it."""

    count, all = 0, []

    def __init__(self, path, *words, file=None):
        Capturing.count += 1
        label = f"capture{Capturing.count}"
        self.file = file or path.world.run.dir / f"{label}.pcapng"
        self.file.unlink(missing_ok=True)
        self.program = Program(path.world.run, path.network.resolver, label, path.daemon.capture_command(*words, self.file))
        self.all.append(self.program)
        self.program.wait_ready(lambda: not self.program.running() or (self.file.exists() and self.file.stat().st_size), SOON)

    def end(self, sig=signal.SIGINT, status=0):
        assert self.program.stop(sig) == status, tail(self.program.log)
        return pcapng.read(self.file)

    def wait(self):
        """It ends by itself."""
        wait_until(lambda: not self.program.running(), SOON, "the capture to end")
        return self.end()

    def summary(self):
        return self.program.log.read_text()


@contextmanager
def capturing(path, *words):
    """Yields a list that has the packets when the block is over."""
    c, packets = Capturing(path, *words), []
    try:
        yield packets
    finally:
        packets += c.end().packets


def refused(path, *words, status):
    argv = path.network.resolver.command(path.daemon.capture_command(*words))
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, timeout=60)
    assert done.returncode == status and not done.stdout
    return done.stderr


def message(packet):
    """The DNS message of a frame without VLAN tags."""
    version = {b"\x08\x00": 4, b"\x86\xdd": 6}[packet.frame[12:14]]
    return packet.frame[14 + IP_UDP[version]:]


def asked(path, name, version=4, **options):
    """Query and reply as the client has sent and got them."""
    wire = query(name, **options).to_wire()
    return wire, must_exchange(path.network.client1, SERVICE[version], wire)


def captured_exchange(packets, wire):
    """The query with these octets, and the reply behind it if there is one; both with their comment."""
    at, = [n for n, p in enumerate(packets) if message(p) == wire]
    behind = packets[at + 1] if at + 1 < len(packets) and not packets[at + 1].inbound else None
    return packets[at], behind


def bpftool(*words):
    return json.loads(subprocess.run(["bpftool", "-j", *words], capture_output=True, text=True, check=True).stdout)


def loaded_programs(path):
    """Ids of all over this hydnsd's maps: other tests have programs of their own."""
    switch = bpftool("map", "show", "pinned", path.daemon.pins / "hydns_switch")["id"]
    return {p["id"] for p in bpftool("prog", "show") if switch in p.get("map_ids", ())}


def left(path):
    """What captures leave while they run: programs, and the switch."""
    switch = bpftool("map", "dump", "pinned", path.daemon.pins / "hydns_switch")
    return loaded_programs(path), switch[0]["formatted"]["value"]["capturing"]


@pytest.mark.parametrize("version", SERVICE)
def test_query_and_reply(path, version):
    """Octet by octet, with the rule; a query that passes stands alone, with the reason."""
    with capturing(path) as packets:
        plain, small = asked(path, NAME, version), asked(path, OTHER, version, edns=True)
        missed = asked(path, next(colds), version)
    for (wire, reply), name in (plain, NAME), (small, OTHER):
        sent, answer = captured_exchange(packets, wire)
        assert message(answer) == reply and answer.at >= sent.at and sent.inbound and not answer.inbound
        assert answer.frame[:12] == sent.frame[6:12] + sent.frame[:6] and len(answer.frame) == answer.whole
        assert sent.comment == answer.comment == f"answered, rule {name}. A"
        assert sent.link == answer.link == LINKS[0]
    sent, answer = captured_exchange(packets, missed[0])
    assert answer is None and sent.comment == "passed: MISS, no rule for this question"


def test_rules_of_one_name_are_told_apart(path):
    path.world.heat(path.daemon, NAME, dnssec=True)
    with capturing(path, "--answered") as packets:
        wire, reply = asked(path, NAME, dnssec=True)
        norec, _ = asked(path, NAME, cd=True)
    assert [p.comment for p in packets] == [f"answered, rule {NAME}. A (do)"] * 2
    assert message(packets[1]) == reply and norec not in [message(p) for p in packets]


def test_reasons(path):
    """--passed takes the names of stats; --answered leaves what passes out. Both together: either."""
    def seen(*words):
        with capturing(path, *words) as packets:
            hit, unusual = asked(path, NAME)[0], asked(path, NAME, cd=True)[0]
        assert len({message(p) for p in packets if p.inbound}) == len([p for p in packets if p.inbound])
        wires = [message(p) for p in packets if p.inbound]
        return hit in wires, unusual in wires
    assert seen("--answered") == (True, False)
    assert seen("--passed", "DNS_UNUSUAL") == seen("--passed", "any") == seen("--passed", "miss", "--passed", "dns_unusual") == (False, True)
    assert seen("--passed", "MISS") == (False, False)
    assert seen("--answered", "--passed", "DNS_UNUSUAL") == seen() == (True, True)


def test_names_and_clients(path):
    """A name, whatever its letters; the names at and below one; a client."""
    def seen(*words):
        with capturing(path, *words) as packets:
            wires = [asked(path, name)[0] for name in (NAME, NAME.upper(), OTHER)]
            wires.append(asked(path, NAME, 6)[0])
        return [wire in [message(p) for p in packets] for wire in wires]
    assert seen("--name", NAME.title()) == [True, True, False, True]
    assert seen("--name", "lab.example") == seen("--name", "ab.example") == seen("--zone", "ab.example") == [False] * 4
    assert seen("--zone", "lab.example") == seen("--name", "*.example.") == seen("--zone", ".") == [True] * 4
    assert seen("--client", "10.53.1.0/24") == [True, True, True, False]
    assert seen("--client", "fd53:1::/64") == [False, False, False, True]
    assert seen("--client", "10.53.2.0/24", "--zone", ".") == [False] * 4
    assert seen("--interface", LINKS[0], "--name", OTHER) == [False, False, True, False]
    assert seen("--interface", LINKS[1]) == [False] * 4


def test_bounds(path):
    """--count, --seconds and --size end it, with a whole file that is not larger; --snaplen cuts frames."""
    def ask_some():
        for _ in range(8):
            ask(path.network.client1, SERVICE[4], NAME)
    c = Capturing(path, "--answered", "-c", 3, "--snaplen", 64)
    ask_some()
    done = c.wait()
    assert len(done.packets) == 6 and done.received == {LINKS[0]: 6} and done.lost == {LINKS[0]: 0}
    assert all(len(p.frame) == 64 < p.whole for p in done.packets)
    assert "3 packets captured, 0 lost" in c.summary() and "--count" in c.summary()
    c = Capturing(path, "--seconds", 1)
    c.wait()
    assert "--seconds" in c.summary()
    c = Capturing(path, "--size", "8K")
    while c.program.running():
        ask_some()
    done = c.wait()
    assert 0 < c.file.stat().st_size <= 8192 and len(done.packets) % 2 == 0 and "--size" in c.summary()
    assert c.file.stat().st_mode & 0o077 == 0


def test_other_readers(path):
    """tcpdump, and Wireshark's tools where they are installed; also from standard output."""
    c = Capturing(path, "--answered")
    asked(path, NAME), asked(path, NAME, 6)
    c.end()
    lines = subprocess.run(["tcpdump", "-nr", c.file], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 4 and f"A? {NAME}." in lines[0] and ".53 > " in lines[1] and "IP6 " in lines[3]
    if shutil.which("tshark"):
        said = subprocess.run(["tshark", "-r", c.file, "-T", "fields", "-e", "frame.comment", "-e", "frame.interface_name"],
                              capture_output=True, text=True, check=True).stdout
        assert said.splitlines() == [f"answered, rule {NAME}. A\t{LINKS[0]}"] * 4
    with Program(path.world.run, path.network.resolver, "to-tcpdump", path.daemon.capture_command("-c", 1, "--answered", "-"),
                 stdout=subprocess.PIPE).popen as writer:
        def ended():
            ask(path.network.client1, SERVICE[4], NAME)
            return writer.poll() is not None
        wait_until(ended, SOON, "one packet to be captured")
        read = subprocess.run(["tcpdump", "-nr", "-"], stdin=writer.stdout, capture_output=True, check=True)
    assert writer.returncode == 0 and len(read.stdout.splitlines()) == 2


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left(path, sig):
    """No program and no word in the maps, however it ends; after SIGKILL, from the first packet on. What was written is whole."""
    c = Capturing(path)
    assert loaded_programs(path) > path.before[0] and left(path)[1] == 1
    asked(path, NAME)
    wait_until(lambda: len(pcapng.read(c.file).packets) >= 2, SOON, "the packets to be written")
    done = c.end(sig, status=-sig if sig == signal.SIGKILL else 0)
    assert len(done.packets) >= 2 and bool(done.received) == (sig != signal.SIGKILL)
    wait_until(lambda: loaded_programs(path) == path.before[0], SOON, "the program to go")
    answered = path.daemon.reasons()["ANSWERED"]
    asked(path, NAME)
    assert left(path) == path.before and path.daemon.reasons()["ANSWERED"] == answered + 1


def test_paused(path):
    """The kill switch holds while somebody captures, and packets that nobody has read are in the capture when it is asked for."""
    path.daemon.ctl("pause")
    try:
        with capturing(path, "--passed", "PAUSED", "--name", NAME) as packets:
            wire, _ = asked(path, NAME)
    finally:
        path.daemon.ctl("resume")
    assert [message(p) for p in packets] == [wire] and packets[0].comment == "passed: PAUSED, the kill switch is on"


def test_parked(path):
    """A query that waits is in the capture as parked, and once more as what became of it."""
    ask(path.network.client1, SERVICE[4], "lab.example", "SOA")

    def some_were_parked():
        """Whether they come while the first one's resolution is under way is the machine's affair."""
        name = next(colds)
        path.server.forget_servers()
        with capturing(path, "--name", name) as packets, ThreadPoolExecutor(8) as clients:
            assert all(clients.map(lambda _: ask(path.network.client1, SERVICE[4], name), range(8)))
        waited = {message(p) for p in packets if p.comment.startswith("parked: PARKED, waits")}
        again = {message(p) for p in packets if "after it was parked" in p.comment and p.inbound}
        assert waited == again
        return waited

    path.network.poll()
    path.world.relay.delay = LATE
    try:
        wait_until(some_were_parked, SOON, "queries to be parked")
    finally:
        path.world.relay.behave()
        path.network.poll(on=False)


def test_restart_of_hydnsd(path):
    """A capture goes on with the program of the next hydnsd."""
    path.world.heat(path.daemon, NAME)
    c = Capturing(path, "--answered", "--name", NAME)
    path.daemon.stop(signal.SIGKILL)
    before, _ = asked(path, NAME)
    path.daemon.start()
    wait_until(path.daemon.resolver_ready, 10, "the plugin to register again")
    path.world.heat(path.daemon, NAME)

    def seen():
        asked(path, NAME)
        return len(pcapng.read(c.file).packets) > seen.count
    seen.count = len(pcapng.read(c.file).packets) + 4
    wait_until(seen, SOON, "the new program's packets in the capture")
    assert before in [message(p) for p in c.end().packets]
    wait_until(lambda: loaded_programs(path).isdisjoint(path.before[0]), SOON, "the former programs to go")
    path.before = left(path)


def test_mistakes(path, tmp_path):
    """Each says what is wrong, and no file is made."""
    file = tmp_path / "none.pcapng"
    reasons = refused(path, "--passed", "NOTHING", file, status=2)
    assert "no such reason: NOTHING" in reasons and all(r in reasons for r in path.daemon.reasons())
    for option, value in ("--count", "0"), ("--seconds", "x"), ("--size", "1"), ("--snaplen", "9999"), ("--client", "10.53.1"), \
            ("--client", "10.53.1.0/33"), ("--interface", "nosuch0"), ("--name", "a..b"):
        assert value.rpartition("/")[2] in refused(path, option, value, file, status=2)
    assert "exclude" in refused(path, "--name", "a", "--zone", "b", file, status=2)
    assert "usage" in refused(path, status=2) and "usage" in refused(path, file, file, status=2)
    assert "can't write" in refused(path, tmp_path / "none" / "x", status=1)
    assert "not loaded" in refused(path, "--pin-dir", tmp_path, file, status=1)
    c = Capturing(path)
    assert "another hydnsctl captures" in refused(path, file, status=1)
    c.end()
    assert not file.exists()
    unprivileged = subprocess.run(["setpriv", "--reuid=nobody", "--clear-groups", *map(str, path.daemon.capture_command("/dev/null"))],
                                  capture_output=True, text=True, timeout=60)
    assert unprivileged.returncode == 1 and "run as root" in unprivileged.stderr
