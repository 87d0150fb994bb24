# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The machine that a reader of doc/interfaces.md sits at, the switch that its cards lead to, and a client behind it."""

import json
import os
import re
import shutil
import signal
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from bareroot.follow import Follower, found_by_doctor
from bareroot.machine import timed
from lab.client import ask
from lab.network import Namespace, veth
from lab.process import Program, run_tool, tail
from lab.run import Run, wait_until
from lab.servers import Nsd, Unbound
from lab.tools import TOP, Tools

SLOW = 300          # seconds: the machine is emulated, perhaps beside other work
NAME = "www.example.com"
CONFIG = Path("/etc/hydns/hydnsd.conf")
PINS = Path("/sys/fs/bpf/hydns")
USER = "hydns"
CARDS, PARTNERS = ("eth0", "eth1"), ("eth2", "eth3")
UNIT, DROP_INS = TOP / "packaging/hydnsd.service.in", Path("/etc/systemd/system/hydnsd.service.d")
CLIENT = {"ca": ("192.0.2.2/24", "2001:db8::2/64"), "cb": ("198.51.100.2/24", "2001:db8:1::2/64")}
UPSTREAM = "192.0.2.242"                    # of the client's namespace, by a link of its own
# every address that a recipe gives the machine
ADDRESSES = ("192.0.2.1", "2001:db8::1", "198.51.100.1", "2001:db8:1::1", "203.0.113.53", "2001:db8:53::53")
ROOT_ZONE = """$TTL 3600
. SOA ns.root. hostmaster.root. 1 3600 600 86400 300
. NS ns.root.
ns.root. A {upstream}
www.example.com. A 192.0.2.80
www.example.com. AAAA 2001:db8::80
"""


class Here(Namespace):
    """The network namespace that this process is in, with the interface of a named one."""

    def __init__(self):
        self.name, self.role = None, "machine"

    @property
    def path(self):
        return f"/proc/{os.getpid()}/ns/net"


class Switch(Namespace):
    """Two ports, the cards' partners. set() makes of them what the document's column says."""

    def __init__(self, run):
        super().__init__(run, "switch")
        ip(Here(), *(f"link set {partner} netns {self.name}" for partner in PARTNERS))
        ip(self, *(f"link {words}" for bridge in ("sa", "sb") for words in (f"add {bridge} type bridge", f"set {bridge} up")))

    def set(self, ports):
        """ports: "access", "trunk", "LACP", "LACP, trunk" or "static group"."""
        group = {"LACP": "802.3ad lacp_rate fast", "static group": "balance-xor"}.get(ports.split(",")[0])
        both, commands = PARTNERS, []
        if group:
            commands = [f"link add bundle type bond miimon 100 mode {group}"]
            commands += [f"link set {port} {state}" for port in PARTNERS for state in ("down", "master bundle")]
            both = ("bundle", None)
        for port, bridge, tag in zip(both, ("sa", "sb"), (10, 20)):
            if port:
                commands += connect(port, bridge, tag if "trunk" in ports else None)
        ip(self, *commands)

    def one_network(self):
        """Both ports as access ports of the first network, as for a bond that needs no group."""
        ip(self, f"link set {PARTNERS[1]} master sa")

    def clear(self):
        remove(self, "bundle", *(f"{p}.{t}" for p, t in zip(PARTNERS, (10, 20))))
        ip(self, *(f"link set {port} {state}" for port in PARTNERS for state in ("nomaster", "up")))


def connect(port, bridge, tag):
    """Commands that make a port lead to a bridge, with a tag as that VLAN's."""
    commands = [f"link set {port} up"]
    if tag:
        commands.append(f"link add link {port} name {port}.{tag} type vlan id {tag}")
        port = f"{port}.{tag}"
        commands.append(f"link set {port} up")
    return [*commands, f"link set {port} master {bridge}"]


def ip(ns, *commands):
    """Commands of ip in one process: each takes half a second to start there."""
    run_tool(ns, ["ip", "-batch", "-"], seconds=SLOW, text="\n".join(commands))


def remove(ns, *links):
    """Those of them that are there."""
    there = {link["ifname"] for link in json.loads(run_tool(ns, ["ip", "-json", "link"]).stdout)}
    for link in links:
        if link in there:
            ip(ns, f"link del {link}")


class Machine(Follower):
    """Context manager. Commands run where this process runs; hydnsd starts by what would be its unit."""

    SOON = SLOW

    def __init__(self):
        self.tools, self.here, self._stack, self.daemon = Tools(), Here(), ExitStack(), None

    def __enter__(self):
        with ExitStack() as stack:
            self.run = stack.enter_context(Run())
            self.switch, self.client = Switch(self.run), Namespace(self.run, "client")
            self._wire()
            self._install()
            self._serve(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    # -- its parts -----------------------------------------------------------------------------------------------------
    def _wire(self):
        for bridge, link in (("sa", "ca"), ("sb", "cb")):
            veth(self.switch, f"p{link}", self.client, link)
            ip(self.switch, f"link set p{link} master {bridge}")
            self.client.address(link, *CLIENT[link])
        veth(self.here, "up0", self.client, "up1")
        self.here.address("up0", "192.0.2.241/30")
        self.client.address("up1", f"{UPSTREAM}/30")
        for gateway, to in (("192.0.2.1", "203.0.113.0/24"), ("2001:db8::1", "2001:db8:53::/64")):
            self.client.route(gateway, to)

    def _install(self):
        """Where `make install` puts it."""
        for program in ("hydnsd", "hydnsctl"):
            Path("/usr/sbin", program).unlink(missing_ok=True)
            Path("/usr/sbin", program).symlink_to(self.tools.built(f"hydnsd/{program}"))
        run_tool(self.here, ["systemd-sysusers", TOP / "packaging/hydns.sysusers"])
        CONFIG.parent.mkdir(exist_ok=True)
        for folder in ("/run/hydns", "/var/lib/hydns"):
            shutil.rmtree(folder, ignore_errors=True)
            Path(folder).mkdir()
            shutil.chown(folder, "hydns", "hydns")

    def _serve(self, stack):
        """The root zone, and Unbound with the plugin, at all addresses at once."""
        world = SimpleNamespace(run=self.run, tools=self.tools)
        zones = self.run.dir / "zones"
        zones.mkdir()
        (zones / "root.zone").write_text(ROOT_ZONE.format(upstream=UPSTREAM))
        (zones / "hints").write_text(f". 3600 NS ns.root.\nns.root. 3600 A {UPSTREAM}\n")
        stack.enter_context(Nsd(world, self.client, "nsd", 'zone:\n    name: "."\n    zonefile: root.zone\n', zones, ".",
                                [UPSTREAM]))
        server = ["ip-freebind: yes", *(f"interface: {a}" for a in ADDRESSES), "access-control: 0.0.0.0/0 allow",
                  "access-control: ::/0 allow"]
        self.unbound = stack.enter_context(Unbound(world, self.here, "unbound", {4: "127.0.0.1", 6: "::1"}, zones / "hints",
                                                   hydns="/run/hydns/plugin.sock", server=server, threads=1))

    # -- a set-up -----------------------------------------------------------------------------------------------------
    def bare(self, ports, *, one_network=False):
        """Two cards without an address, nothing configured, and the switch's ports as they shall be."""
        CONFIG.write_text((TOP / "packaging/hydnsd.conf.example").read_text())
        with open(CONFIG, "a") as f:
            f.write("capacity: 1000\n")
        self.switch.clear()
        self.switch.set(ports)
        if one_network:
            self.switch.one_network()
        # another set-up's device had this address
        run_tool(self.client, ["ip", "neighbour", "flush", "dev", "ca"])

    def clear(self):
        self.stop()
        print(f"\n{self.journal()}")
        shutil.rmtree(DROP_INS, ignore_errors=True)
        remove(self.here, "bond0.10", "bond0", "br0.10", "br0", "mv0", "any0", "eth0.10", "eth1.20")
        ip(self.here, *(words for card in CARDS for words in (f"address flush dev {card}", f"link set {card} down")))

    # -- hydnsd ---------------------------------------------------------------------------------------------------------
    def start(self):
        """As its unit does, which shows it its directory of pins by a mount namespace: here it may go there."""
        run_tool(self.here, ["chmod", "o+x", PINS.parent])
        for directory in (PINS, Path("/run/hydns"), Path("/var/lib/hydns")):
            run_tool(self.here, ["install", "-d", directory])
            run_tool(self.here, ["chown", "-R", USER, directory])
        rights = "".join(f",+{right.removeprefix('CAP_').lower()}" for right in unit_rights())
        self.daemon = Program(self.run, self.here, "hydnsd", [
            "setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", f"--bounding-set=-all{rights}", f"--inh-caps=-all{rights}",
            f"--ambient-caps=-all{rights}", "--no-new-privs", "hydnsd", "--config", CONFIG])
        self.daemon.wait_ready(self._answers, SLOW)

    def _answers(self):
        """hydnsd itself: while none listens, hydnsctl reads what a former one has left pinned."""
        said = self.status(check=False)
        return said and said["daemon"]

    def stop(self, sig=signal.SIGTERM):
        if self.daemon:
            self.daemon.stop(sig, seconds=SLOW)
        self.daemon = None

    def restart(self):
        """As its unit does, which shows it its directory of pins by a mount namespace: here it may go there."""
        run_tool(self.here, ["chmod", "o+x", PINS.parent])
        self.stop(signal.SIGUSR2)
        self.start()

    def status(self, check=True):
        done = run_tool(self.here, ["hydnsctl", "status", "--json"], check=check, seconds=SLOW)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def interfaces(self):
        return {i["name"]: i for i in self.status()["interfaces"]}

    def hits(self):
        return json.loads(run_tool(self.here, ["hydnsctl", "stats", "--json"], seconds=SLOW).stdout)["answered"]

    # -- its reader -----------------------------------------------------------------------------------------------------
    def type(self, text):
        if text.startswith("dig "):
            return timed(self.client.command(["bash", "-c", text]), SLOW)
        if text == "systemctl restart hydnsd":
            self.restart()
        if text.startswith("systemctl "):
            return timed(["true"], 60)
        done = timed(["bash", "-c", text], SLOW)
        return found_by_doctor(done) if text.startswith("hydnsctl doctor") else done

    def ask(self, dnssec=False):
        for address in self.addresses():
            ask(self.client, address, NAME, dnssec=dnssec)

    def journal(self):
        return tail(self.run.dir / "hydnsd.log", 25)

    def addresses(self):
        """Those of ADDRESSES that the machine has now."""
        listed = json.loads(run_tool(self.here, ["ip", "-json", "address"]).stdout)
        own = {a["local"] for link in listed for a in link["addr_info"]}
        return [a for a in ADDRESSES if a in own]

    # -- what must hold ---------------------------------------------------------------------------------------------------
    def answered(self, address):
        """The kernel's answer to the next query there; it has counted it."""
        def next_answer():
            before = self.hits()
            reply = ask(self.client, address, NAME, timeout=5)
            return reply if reply and self.hits() == before + 1 else None
        return wait_until(next_answer, SLOW, f"the kernel to answer at {address}")

    def as_the_resolver(self, address):
        """The kernel says what the resolver says."""
        by_kernel = self.answered(address)
        run_tool(self.here, ["hydnsctl", "pause"])
        before = self.hits()
        by_resolver = ask(self.client, address, NAME)
        assert self.hits() == before
        run_tool(self.here, ["hydnsctl", "resume"])
        assert content(by_kernel) == content(by_resolver)

    def nothing_left(self):
        assert "xdp" not in run_tool(self.here, ["ip", "-details", "link"]).stdout.replace("xdp_", "")
        assert not list(PINS.glob("*")) if PINS.exists() else True


def unit_rights():
    """The bounding set of hydnsd's unit and what the reader has added to it."""
    lines = "".join(file.read_text() for file in (UNIT, *DROP_INS.glob("*.conf")))
    return " ".join(re.findall(r"^CapabilityBoundingSet=(.*)$", lines, re.M)).split()


def content(reply):
    """A reply without id and TTLs."""
    return reply.flags, reply.rcode(), [sorted(rr.to_text() for rr in rrset) for rrset in reply.answer + reply.authority]


@pytest.fixture(scope="session")
def machine():
    if os.environ.get("HYDNS_GUEST") != "yes":
        pytest.skip("changes links and files of the machine: runs in kernel-matrix/guest")
    with Machine() as m:
        yield m
