# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""Mistakes of an operator's first day, each made in a running system: the affected program and doctor name the cause and the
mend, in the words of the operator's resolver. With -s the table is printed.

A row says what the program's text and doctor's finding must hold, as regular expressions of cause and mend."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import namedtuple
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab.client import ask
from lab.network import SERVICE
from lab.process import Program, run_tool
from lab.rings import lanes
from lab.run import SOON, replaced, wait_until
from lab.servers import Named, Restartable

NAME = "www.lab.example"
USER = "nobody"
GROUP = "daemon"          # any that the host has and USER is not in
SERVERS = ["unbound", "bind"]
both = pytest.mark.parametrize("server", SERVERS)

Row = namedtuple("Row", "mistake server program text check finding")
ROWS = []


@pytest.fixture(scope="module", autouse=True)
def table():
    yield
    for row in ROWS:
        print(f"\n{row.mistake}{f' ({row.server})' if row.server else ''}\n    {row.program}: {row.text}\n"
              f"    doctor: {row.check['state']} {row.check['check']} {row.check['subject'] or ''}: {row.check['finding']}"
              + (f"\n            mend: {row.check['mend']}" if row.check["mend"] else ""))


# -- what is asked ----------------------------------------------------------------------------------------------------
def settings(world, config=None):
    """As an operator has them whose programs are in their places; config: what stands for /etc/hydns."""
    tools = world.tools
    bind = tools.bind("sbin/named")
    places = [Path(tools.hydnsd).parent, Path(tools.unbound).parent, Path(bind[-1]).parent.parent / "bin"]
    return ["env", bind[1], f"PATH={':'.join(map(str, places))}:{os.environ['PATH']}",
            f"HYDNS_CONFIG_DIR={config or world.run.dir / 'none'}"]


def doctor(daemon, *words, config=None, before=(), program=None):
    argv = [*before, *settings(daemon.world, config), program or daemon.world.tools.hydnsctl, "--socket", daemon.control_socket,
            "--pin-dir", daemon.pins, "doctor", "--json", *words]
    return json.loads(run_tool(daemon.ns, argv, check=False).stdout)["checks"]


def record(mistake, server, program, text, said, checks, wanted):
    """said: (cause, mend) in the program's text; wanted: (check, state, cause, mend or None) of one of doctor's findings."""
    lines = [line for line in text.splitlines() if re.search(said[0], line)]
    assert lines, f"{program} does not name the cause, {said[0]}:\n{text}"
    assert any(re.search(said[1], line) for line in lines), f"{program} does not name the mend, {said[1]}: {lines}"
    name, state, cause, mend = wanted
    found = [c for c in checks if c["check"] == name and re.search(cause, c["finding"])]
    assert found, f"doctor does not name the cause, {cause}: {[c for c in checks if c['state'] in ('warn', 'fail')]}"
    assert found[0]["state"] == state, found[0]
    assert mend is None or re.search(mend, found[0]["mend"]), found[0]
    ROWS.append(Row(mistake, server, program, lines[-1], found[0]["check"] and found[0], found[0]))


def others_fail(checks, *expected):
    """Other failing findings than a row expects: beside a true cause there must be no false one."""
    return [c for c in checks if c["state"] == "fail" and c["check"] not in expected]


# -- what is run --------------------------------------------------------------------------------------------------------
def run_hydnsd(daemon, *words, config="/dev/null", before=()):
    """hydnsd as the daemon would be started, until it ends by itself: (status, what it says)."""
    argv = daemon.argv()
    argv[argv.index("--config") + 1] = config
    done = run_tool(daemon.ns, [*before, *argv, *words], check=False)
    return done.returncode, done.stdout + done.stderr


class Log:
    """What a server has written to its log from here on."""

    def __init__(self, world, label):
        self.path = world.run.dir / f"{label}.log"
        self.begin = self.path.stat().st_size if self.path.exists() else 0

    def __call__(self):
        return self.path.read_bytes()[self.begin:].decode(errors="replace")

    def wait(self, words):
        wait_until(lambda: re.search(words, self()), 20, f"'{words}' in {self.path}")
        return self()


@contextmanager
def resolver(world, kind, *, socket=None, edit=None, module=True, **options):
    """Unbound or named with a plugin for the socket; edit: changes the text of its configuration. Yields it with its log."""
    daemon = SimpleNamespace(plugin_socket=socket) if module else None
    made = (world.unbound if kind == "unbound" else world.named)(daemon, **options)
    if edit:
        made.config.write_text(edit(made.config.read_text()))
    log = Log(world, made.name)
    with made:
        if kind == "bind":
            ask(world.network.client1, SERVICE[4], NAME)    # the plugin starts with the first response
        yield SimpleNamespace(server=made, config=made.config, log=log)


def socket_word(server):
    return "hydns-socket:" if server == "unbound" else "hydns-socket "


@contextmanager
def unit_files(world, **files):
    """A directory in the place of /etc/hydns."""
    directory = world.run.dir / "etc-hydns"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for name, text in files.items():
        (directory / f"{name}.conf").write_text(text)
    yield directory


# -- hydnsd and the host ------------------------------------------------------------------------------------------------
def test_wrong_interface(world):
    daemon = world.hydnsd()
    daemon.interfaces = ("r9",)
    daemon.attached = lambda: "is ready" in log()
    log = Log(world, "hydnsd")
    with daemon:
        record("wrong interface", "", "hydnsd's log", log(), ("interface r9 does not exist", "create it or correct the option"),
               doctor(daemon), ("link", "fail", r"no such interface \(there are:.* r1", "sed -i .*interface: "))
    status, said = run_hydnsd(daemon, "--check")
    with unit_files(world, hydnsd="interface: r9\nplugin-group: root\n") as etc:
        assert status == 0
        record("wrong interface, before the start", "", "hydnsd --check", said, ("r9 does not exist", "ip -br link shows"),
               doctor(daemon, "r1", config=etc), ("config", "warn", "r9 does not exist", "hydnsd --config .* --check"))


def test_no_interface(world):
    daemon = world.hydnsd()
    daemon.interfaces = ()
    daemon.attached = lambda: "is ready" in log()
    log = Log(world, "hydnsd")
    with daemon:
        assert "is ready, without an interface" in log()
        record("no interface", "", "hydnsd's log", log(), ("no interface is configured", "write `interface: eth0'"),
               doctor(daemon), ("link", "fail", "names no interface", "echo 'interface: "))
    assert "in order" not in run_hydnsd(daemon, "--check")[1]


def test_no_bpffs(world):
    daemon = world.hydnsd()
    daemon.pins = world.run.dir / "no-bpffs"
    status, said = run_hydnsd(daemon)
    assert status == 1
    record("no bpffs", "", "hydnsd", said, ("no-bpffs is not in a bpffs", r"mount one \(mount -t bpf bpf"), doctor(daemon, "r1"),
           ("bpffs", "fail", "no-bpffs is not in a bpffs", "mount -t bpf bpf"))
    status, said = run_hydnsd(daemon, "--check")
    assert status == 2 and "error: pin-dir" in said and "in order" not in said
    shutil.rmtree(daemon.pins, ignore_errors=True)


def test_no_rights(world):
    """The programs lie where that user may go."""
    daemon, copies = world.hydnsd(), world.run.dir / "programs"
    copies.mkdir(exist_ok=True)
    for program in (world.tools.hydnsd, world.tools.hydnsctl):
        shutil.copy(program, copies)
    as_user = ["setpriv", "--reuid", USER, "--regid", "nogroup", "--clear-groups", "--inh-caps=-all"]
    done = run_tool(daemon.ns, [*as_user, copies / "hydnsd", *daemon.argv()[1:]], check=False)
    assert done.returncode == 1
    record("no rights: hydnsd", "", "hydnsd", done.stderr, ("CAP_BPF and CAP_NET_ADMIN are missing", "start hydnsd as root"),
           doctor(daemon, "r1", before=as_user, program=copies / "hydnsctl"), ("rights", "warn", "lacks CAP_BPF and CAP_NET_ADMIN", "as root"))
    with daemon:
        done = run_tool(daemon.ns, [*as_user, copies / "hydnsctl", "--socket", daemon.control_socket, "status"], check=False)
        record("no rights: hydnsctl", "", "hydnsctl", done.stderr, ("no permission to use", "run as root"),
               doctor(daemon, before=as_user, program=copies / "hydnsctl"), ("daemon", "fail", "no permission to use .*: run as root", None))


def test_a_user_that_it_may_not_become(world):
    """It is started as one by its service, and named another."""
    daemon, copy = world.hydnsd(options=("--user", "daemon")), world.run.dir / "hydnsd-copy"
    shutil.copy(world.tools.hydnsd, copy)
    as_user = ["setpriv", "--reuid", USER, "--regid", "nogroup", "--clear-groups", "--inh-caps=-all,+bpf,+net_admin",
               "--ambient-caps=-all,+bpf,+net_admin"]
    done = run_tool(daemon.ns, [*as_user, copy, *daemon.argv()[1:]], check=False)
    assert done.returncode == 1 and re.search(r"user, group: .* started as another one.*systemctl edit hydnsd", done.stderr), done.stderr


def test_capacity_beyond_memory(world):
    """In a memory cgroup, as MemoryMax= of a unit makes one."""
    if not Path("/sys/fs/cgroup/memory").is_dir() and "memory" not in Path("/sys/fs/cgroup/cgroup.controllers").read_text():
        pytest.skip("this host limits no memory by cgroups")
    v1 = Path("/sys/fs/cgroup/memory").is_dir()
    group = Path("/sys/fs/cgroup/memory" if v1 else "/sys/fs/cgroup") / f"hydns-{world.run.id}"
    group.mkdir()
    try:
        (group / ("memory.limit_in_bytes" if v1 else "memory.max")).write_text("64M")
        limited = ["sh", "-c", f'echo $$ >{group}/cgroup.procs && exec "$0" "$@"']
        daemon = world.hydnsd(capacity=1000000)
        status, said = run_hydnsd(daemon, before=limited)
        assert status == 1
        with unit_files(world, hydnsd="capacity: 1000000\ninterface: lo\nplugin-group: root\n") as etc:
            record("capacity beyond memory", "", "hydnsd", said, ("no memory for the rule store", "lower capacity, or raise"),
                   doctor(daemon, "r1", config=etc, before=limited),
                   ("config", "warn", r"capacity: 1000000 rules take \d+ MiB.* allows 64 MiB: lower it", "--check"))
    finally:
        group.rmdir()


def test_foreign_program(world):
    resolver_ns, daemon = world.network.resolver, world.hydnsd()
    daemon.attached = lambda: "is ready" in log()
    log = Log(world, "hydnsd")
    load = ["ip", "link", "set", "dev", "r1", "xdpdrv", "obj", world.tools.pass_object, "sec", "xdp.frags"]
    run_tool(resolver_ns, load)
    try:
        before = doctor(daemon, "r1")
        with daemon:
            record("foreign XDP program", "", "hydnsd's log", log(),
                   ("r1: another XDP program is attached", r"detach it \(ip link set dev r1 xdp off\)"), before,
                   ("xdp", "fail", r"foreign XDP program is attached, id \d+, name hydns_pass",
                    "ip link set dev r1 xdpdrv off; or.*attach-mode: dispatcher"))
            now = doctor(daemon)
            assert any(c["check"] == "xdp" and c["state"] == "fail" and "foreign" in c["finding"] for c in now)
            assert any(c["check"] == "attached" and "another XDP program" in c["finding"] for c in now)
            run_tool(resolver_ns, re.search(r"ip link set dev r1 xdpdrv off", str(now))[0].split())
            wait_until(lambda: not others_fail(doctor(daemon), "resolver"), 15, "hydnsd to attach once the other is off")
    finally:
        run_tool(resolver_ns, ["ip", "link", "set", "dev", "r1", "xdpdrv", "off"], check=False)


def test_foreign_program_by_a_link(world):
    """One that a link holds can't be taken off by ip; the command is bpftool's."""
    resolver_ns, other, daemon = world.network.resolver, world.hydnsd(), world.hydnsd()
    daemon.pins, daemon.control_socket = world.run.dir / "bpf" / "other", world.run.dir / "other.sock"
    with other:
        found = [c for c in doctor(daemon, "r1") if c["check"] == "xdp"]
        assert found[0]["state"] == "fail" and re.search("name hydns", found[0]["finding"])
        command = re.match(r"bpftool link detach id \d+", found[0]["mend"])[0]
        run_tool(resolver_ns, command.split())
        assert not resolver_ns.xdp_attached("r1")


def test_second_hydnsd(world):
    with world.hydnsd() as daemon:
        status, said = run_hydnsd(daemon)
        assert status == 1
        record("second hydnsd", "", "hydnsd", said, ("another process listens at .*control.sock", "stop it, or choose another path"),
               doctor(daemon), ("daemon", "ok", rf"runs as pid {daemon.program.pid}", None))


# -- hydnsd and the resolver ----------------------------------------------------------------------------------------------
def test_before_the_start_nothing_fails(world):
    """What the guide has a new operator run first."""
    checks = doctor(world.hydnsd(), "r1")
    assert not others_fail(checks), checks
    daemon = next(c for c in checks if c["check"] == "daemon")
    assert daemon["state"] == "skip" and daemon["mend"] == "systemctl enable --now hydnsd"
    packaging = world.tools.build / "packaging"
    with unit_files(world, **{name: (packaging / f"{name}.conf.example").read_text() for name in ("unbound", "named")}) as etc:
        checks = doctor(world.hydnsd(), "r1", config=etc)     # what they name is made by the first start
        assert not others_fail(checks) and {c["state"] for c in checks if c["check"] == "config"} == {"skip"}, checks


@both
def test_no_daemon(world, server):
    daemon = world.hydnsd()
    with resolver(world, server, socket=daemon.plugin_socket) as r:
        record("no daemon", server, "the resolver's log", r.log.wait("cannot be reached"),
               (f"hydnsd cannot be reached at {daemon.plugin_socket}", "start hydnsd or correct the path"), doctor(daemon, "r1"),
               ("daemon", "fail", "hydnsd is not running", "systemctl restart hydnsd"))


@both
def test_wrong_start_order(world, server):
    """It mends itself: doctor says what is missing, and nothing after it has started."""
    daemon = world.hydnsd()
    with resolver(world, server, socket=daemon.plugin_socket) as r:
        r.log.wait("cannot be reached")
        before = doctor(daemon, "r1")
        with daemon:
            wait_until(daemon.resolver_ready, 10, "the resolver to register")
            record("wrong start order", server, "the resolver's log", r.log(), ("every query goes through the resolver until it can",
                   "start hydnsd"), before, ("daemon", "fail", "hydnsd is not running", "systemctl restart hydnsd"))
            r.log.wait("connected to hydnsd")
            assert not others_fail(doctor(daemon))


@both
def test_wrong_socket_path(world, server):
    wrong = world.run.dir / "wrong.sock"
    with world.hydnsd() as daemon, resolver(world, server, socket=wrong) as r:
        record("wrong socket path", server, "the resolver's log", r.log.wait("cannot be reached"),
               (f"cannot be reached at {wrong}", "correct the path"), doctor(daemon),
               ("resolver", "fail", f"hydns-socket in {r.config} is {wrong}, but hydnsd listens at {daemon.plugin_socket}",
                f'write {socket_word(server)}.?"{daemon.plugin_socket}".*into {r.config}, then: restart'))


def test_wrong_control_socket(world):
    with world.hydnsd() as daemon:
        right, daemon.control_socket = daemon.control_socket, world.run.dir / "elsewhere.sock"
        said = run_tool(daemon.ns, [world.tools.hydnsctl, "--socket", daemon.control_socket, "top"], check=False).stderr
        checks = doctor(daemon)
        daemon.control_socket = right
        record("wrong socket path of hydnsctl", "", "hydnsctl", said, ("there is no socket", "name its socket with --socket"), checks,
               ("daemon", "fail", f"runs as pid {daemon.program.pid} and listens at {right}", f"hydnsctl --socket {right} doctor"))


def test_module_forgotten(world):
    clause = "\nhydns:\n    hydns-enable: yes\n"
    with world.hydnsd() as daemon, resolver(world, "unbound", module=False, edit=lambda text: text + clause) as r:
        record("module-config forgotten", "unbound", "the resolver's log", r.log.wait("hydns: clause"),
               ("there is a hydns: clause, but module-config: .validator iterator. has no hydns", "hydns"), doctor(daemon),
               ("resolver", "fail", f"without the hydns module: module-config of {r.config} is validator iterator",
                f'write .module-config: "hydns validator iterator". into server: of {r.config}'))


def test_plugin_forgotten(world):
    with world.hydnsd() as daemon, resolver(world, "bind", module=False) as r:
        record("plugin statement forgotten", "bind", "hydnsctl status", daemon.ctl("status").stdout, ("none has registered", ""),
               doctor(daemon), ("resolver", "fail", f"runs without the plugin: {r.config} has no statement 'plugin query",
                                f"echo 'plugin query .hydns.so. .*>>{r.config}"))


def test_other_unbound(world):
    """The distribution's, without hyDNS: its executable knows none of the options, here for their names are other ones."""
    made = world.unbound(None)
    program = world.run.dir / "other" / "unbound"
    program.parent.mkdir(exist_ok=True)
    program.write_bytes(Path(world.tools.unbound).read_bytes().replace(b"hydns-socket", b"other-socket"))
    program.chmod(0o755)
    with world.hydnsd() as daemon:
        running = Program(world.run, daemon.ns, "other-unbound", [program, "-d", "-c", made.config])
        try:
            running.wait_ready(lambda: made._answers(SERVICE[4]), 20)
            found = [c for c in doctor(daemon) if c["check"] == "resolver"]
            assert len(found) == 1 and found[0]["state"] == "fail"
            assert f"{program} (pid {running.pid}) is an Unbound without hyDNS" in found[0]["finding"]
            assert found[0]["mend"] == "systemctl disable --now unbound; systemctl enable --now hydns-unbound"
        finally:
            running.stop()


class NamedAsUser(Named):
    def start(self):
        self.program = Program(self.world.run, self.ns, self.name,
                               [*self.program_of("sbin/named"), "-u", USER, "-g", "-n", self.threads, "-c", self.config])
        self.program.wait_ready(lambda: all(self._answers(a) for a in self.service.values()), 20)


@contextmanager
def resolver_as_user(world, server, socket):
    if server == "unbound":
        with resolver(world, server, socket=socket, server=[f'username: "{USER}"']) as r:
            yield r
        return
    made = NamedAsUser(world, world.network.resolver, "named", SERVICE, world.hints, hydns=socket,
                       options=[f'session-keyfile "{world.run.dir}/named/session.key";'])
    made.dir.chmod(0o777)
    shutil.copy(world.tools.bind_plugin, made.dir)
    made.config.write_text(replaced(made.config.read_text(), str(world.tools.bind_plugin), f"{made.dir}/hydns.so"))
    log = Log(world, made.name)
    with made:
        # its first response that is no error starts the plugin
        wait_until(lambda: (reply := ask(world.network.client1, SERVICE[4], NAME)) and reply.answer, SOON, "named to answer")
        yield SimpleNamespace(server=made, config=made.config, log=log)


@both
def test_user_not_in_the_group(world, server):
    with world.hydnsd(options=["--plugin-group", GROUP]) as daemon, resolver_as_user(world, server, daemon.plugin_socket) as r:
        record("no rights: the resolver's user", server, "the resolver's log", r.log.wait("may not be used"),
               ("may not be used by this process", f"add the resolver's user to group {GROUP}, which is hydnsd's plugin-group"),
               doctor(daemon), ("resolver", "fail", rf"runs as {USER}, which is not in group {GROUP} \(plugin-group of hydnsd.conf\)",
                                rf"usermod -aG {GROUP} {USER}; restart"))


@both
def test_plugin_group_missing(world, server):
    start = Log(world, "hydnsd")
    with world.hydnsd() as daemon, resolver_as_user(world, server, daemon.plugin_socket) as r:
        r.log.wait("open to root alone.*set plugin-group in hydnsd.conf")
        record("plugin-group missing", server, "hydnsd's log", start(), ("plugin-group is not set, so only root may connect",
               "write `plugin-group: hydns' into .*usermod -aG hydns"), doctor(daemon),
               ("resolver", "fail", rf"runs as {USER}, but only root may connect.*plugin-group is missing from hydnsd.conf",
                rf"usermod -aG hydns {USER}; echo 'plugin-group: hydns' >>"))


# -- the resolver's configuration -----------------------------------------------------------------------------------------
class Cage(Restartable):
    """The configuration of a resolver, as it is seen in a chroot of its own."""

    def __init__(self, world, server, proc=True):
        self.world, self.ns, self.server, self.name = world, world.network.resolver, server, f"caged-{server}"
        self.proc = proc           # whether it has one, which the plugin needs
        self.dir = world.run.dir / self.name
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir()
        (self.dir / "proc").mkdir()
        shutil.copy(world.hints, self.dir / "hints")
        self.made = (world.unbound if server == "unbound" else world.named)(SimpleNamespace(plugin_socket="/plugin.sock"))
        text = self.made.config.read_text().replace(str(world.hints), "/hints")
        if server == "unbound":
            text = text.replace('chroot: ""', f'chroot: "{self.dir}"').replace(f'directory: "{self.made.dir}"', 'directory: "/"')
        else:
            shutil.copy(world.tools.bind_plugin, self.dir / "hydns.so")
            text = text.replace(f'"{self.made.dir}"', '"/"').replace(str(world.tools.bind_plugin), "/hydns.so")
        self.config = self.dir / "resolver.conf"
        self.config.write_text(text)

    def start(self):
        argv = [*self.made.command, "-d", "-c", self.config] if self.server == "unbound" else \
            [*self.world.tools.bind("sbin/named"), "-t", self.dir, "-c", "/resolver.conf", "-g", "-n", "2"]
        mount = f"mount -t proc proc {self.dir}/proc && " if self.proc else ""
        self.program = Program(self.world.run, self.ns, self.name,
                               ["unshare", "--mount", "sh", "-c", mount + 'exec "$0" "$@"', *argv])
        self.program.wait_ready(lambda: all(self.made._answers(a) for a in SERVICE.values()), 20)


@both
def test_chroot(world, server):
    cage = Cage(world, server)
    log = Log(world, cage.name)
    with world.hydnsd() as daemon, cage:
        ask(world.network.client1, SERVICE[4], NAME)
        checks = doctor(daemon)
        record("chroot", server, "the resolver's log", log.wait("cannot be reached"),
               ("hydnsd cannot be reached at /plugin.sock", "correct the path"), checks,
               ("resolver", "fail", rf"runs in the chroot {cage.dir}: its hydns-socket /plugin.sock is {cage.dir}/plugin.sock",
                rf"echo 'plugin-socket: {cage.dir}/plugin.sock' >>"))
    daemon.options = ["--plugin-socket", cage.dir / "plugin.sock"]
    with daemon, cage:
        ask(world.network.client1, SERVICE[4], NAME)
        wait_until(daemon.resolver_ready, 10, "the caged resolver to register by the second socket")


def test_chroot_without_proc(world):
    cage = Cage(world, "bind", proc=False)
    log = Log(world, cage.name)
    with world.hydnsd() as daemon, cage:
        ask(world.network.client1, SERVICE[4], NAME)
        record("chroot without /proc", "bind", "the resolver's log", log.wait("can't look for the listening sockets"),
               ("can't look for the listening sockets in /proc/self/fd", "mount /proc"), doctor(daemon),
               ("resolver", "fail", rf"runs in the chroot {cage.dir}, where there is no /proc",
                rf"mount -t proc proc {cage.dir}/proc"))


@both
def test_views(world, server):
    if server == "unbound":
        options = {"server": ["access-control-view: 10.53.1.0/24 inside"], "edit": lambda text: text + 'view:\n    name: "inside"\n'}
        note = "clients of access-control entries with a view or tags"
    else:
        own = ["recursion yes;"]
        options = {"views": {"inside": (["match-clients { 10.53.1.0/24; };", *own], False), "others": (own, True)}}
        note = "clients that an earlier view may match are left to the resolver"
    with world.hydnsd() as daemon, resolver(world, server, socket=daemon.plugin_socket, **options):
        if server == "bind":
            ask(world.network.client2, SERVICE[4], NAME)
        wait_until(daemon.resolver_ready, 10, "the resolver to register")
        checks = doctor(daemon)
        record("views", server, "hydnsctl status", daemon.ctl("status").stdout, (note, ""), checks,
               ("note", "warn", note, "unbound.conf.*hydns-unbound-control reload" if server == "unbound" else
                "named.conf.*hydns-rndc reconfig"))
        assert not others_fail(checks)


@both
def test_access_missing(world, server):
    """Nobody but the host itself may ask."""
    def without(text):
        return re.sub(r"\n *access-control: .*", "", text)

    options = {"edit": without} if server == "unbound" else {"clients": "localhost;"}
    with world.hydnsd() as daemon, resolver(world, server, socket=daemon.plugin_socket, **options):
        ask(world.network.client1, SERVICE[4], NAME)
        wait_until(daemon.resolver_ready, 10, "the resolver to register")
        said = daemon.ctl("explain", "--client", "10.53.1.2").stdout
        checks = doctor(daemon)
        record("access-control missing" if server == "unbound" else "allow-query and allow-recursion for nobody", server,
               "hydnsctl explain --client", said, ("stand in no access-control entry" if server == "unbound" else
               "not surely let in by allow-query", "access-control: NETBLOCK allow" if server == "unbound" else "allow-query"), checks,
               ("access", "fail", ("access-control of unbound.conf" if server == "unbound" else "allow-recursion of named.conf")
                + " lets in no client but this host itself",
                "access-control: PREFIX allow" if server == "unbound" else r"allow-recursion \{ PREFIX; \}"))
        assert not others_fail(checks, "access")


@both
def test_a_setting_that_keeps_all_answers_out(world, server):
    """It is the only finding: without offers the plugin sends no address and no access list."""
    options = {"server": ["log-queries: yes"]} if server == "unbound" else {"options": ["querylog yes;"]}
    with world.hydnsd() as daemon, resolver(world, server, socket=daemon.plugin_socket, **options) as r:
        wait_until(lambda: daemon.call({"cmd": "status"})["resolvers"], 10, "the resolver to register")
        word = "log-queries is yes" if server == "unbound" else "queries are logged"
        wait_until(lambda: any(word in n for n in daemon.call({"cmd": "status"})["resolvers"][0]["notes"]), 10, "its note")
        checks = doctor(daemon)
        record("a setting that keeps all answers out", server, "the resolver's log", r.log(), (word, "hydns-allow-unlogged"), checks,
               ("note", "fail", f"no answer is offered to the kernel: {word}", "unbound.conf" if server == "unbound" else "named.conf"))
        assert not others_fail(checks, "note")
        assert not [c for c in checks if c["check"] in ("services", "access")]


@both
@pytest.mark.parametrize("rule,what", [("udp dport 53 drop", "firewall with a port"),
                                       ("ip saddr 10.53.1.0/24 drop", "firewall without a port")])
def test_firewall(world, server, rule, what):
    """Only doctor can meet it: XDP answers before the rule sees the query."""
    network = world.network
    with world.hydnsd() as daemon, resolver(world, server, socket=daemon.plugin_socket):
        wait_until(daemon.resolver_ready, 10, "the resolver to register")
        world.heat(daemon, NAME)
        run_tool(network.resolver, ["nft", "-f", "-"], text="table inet filter {\n    chain input {\n        type filter hook input "
                 f"priority 0;\n        {rule}\n    }}\n}}\n")
        try:
            assert ask(network.client1, SERVICE[4], NAME).answer, "the kernel path has not answered past the rule"
            rings = lanes(daemon)                 # which no filter sees either
            wait_until(lambda: all(lane["open"] for lane in lanes(daemon)), SOON, "packet rings")
            reply = ask(network.client1, SERVICE[4], "never-asked.lab.example", timeout=2 if rings else 0.3)
            assert bool(reply) == bool(rings), "the rule does not hold, or reaches packet rings"
            source = "saddr" in rule
            words = {"unbound": "access-control: 10.53.1.0/24 deny" if source else "unbound.conf who may ask",
                     "bind": r"blackhole \{ 10.53.1.0/24; \}" if source else "named.conf who may ask"}
            checks = doctor(daemon)
            record(what, server, "hydnsctl explain", daemon.ctl("explain", NAME, "A").stdout, ("answered in kernel", ""), checks,
                   ("firewall", "warn", r"table inet filter, chain input, handle \d+ drops queries to a resolver",
                    rf"{words[server]}.*nft delete rule inet filter input handle \d+"))
            other = words["bind" if server == "unbound" else "unbound"]
            assert not re.search(other, str(checks)), "doctor speaks of the resolver that is not there"
            command = re.search(r"nft delete rule inet filter input handle \d+", str(checks))[0]
            run_tool(network.resolver, command.split())
            assert not [c for c in doctor(daemon) if c["check"] == "firewall" and c["state"] == "warn"]
        finally:
            run_tool(network.resolver, ["nft", "flush", "ruleset"])


# -- a typo in each of the three files ----------------------------------------------------------------------------------
def test_typo_in_hydnsd_conf(world):
    daemon = world.hydnsd()
    with unit_files(world, hydnsd="plugin-group: root\ncapacty: 5000\n") as etc:
        status, said = run_hydnsd(daemon, config=etc / "hydnsd.conf")
        assert status == 2
        record("typo in hydnsd.conf", "", "hydnsd", said, (r"hydnsd.conf line 2: unknown option 'capacty'", "see hydnsd --help"),
               doctor(daemon, "r1", config=etc),
               ("config", "fail", "hydnsd.conf line 2: unknown option 'capacty'", f"change {etc}/hydnsd.conf.*hydnsd --config"))


def test_typo_in_unbound_conf(world):
    """The resolver's own message, and doctor's by unbound-checkconf."""
    daemon = world.hydnsd()
    made = world.unbound(daemon)
    text = replaced(made.config.read_text(), "hydns-socket:", "hydns-sokcet:")
    with unit_files(world, unbound=text) as etc:
        done = run_tool(daemon.ns, [world.tools.unbound, "-d", "-c", etc / "unbound.conf"], check=False)
        assert done.returncode != 0
        line = text.splitlines().index(next(s for s in text.splitlines() if "sokcet" in s)) + 1
        record("typo in unbound.conf", "unbound", "unbound", done.stderr, (rf"unbound.conf:{line}: error: unknown keyword 'hydns-sokcet'",
               "hydns-sokcet"), doctor(daemon, "r1", config=etc),
               ("config", "fail", rf"unbound.conf:{line}: error: unknown keyword 'hydns-sokcet'",
                f"unbound-checkconf {etc}/unbound.conf && systemctl restart hydns-unbound"))


@pytest.mark.parametrize("right,wrong", [("hydns-socket", "hydns-sokcet"), ("recursion yes", "recursionn yes")])
def test_typo_in_named_conf(world, right, wrong):
    daemon = world.hydnsd()
    made = world.named(daemon)
    text = replaced(made.config.read_text(), right, wrong)
    with unit_files(world, named=text) as etc:
        done = run_tool(daemon.ns, [*world.tools.bind("sbin/named"), "-g", "-c", etc / "named.conf"], check=False)
        assert done.returncode != 0
        word = wrong.split()[0]
        record("typo in named.conf", "bind", "named", done.stderr, (rf"named.conf:\d+.*unknown option '{word}'", word),
               doctor(daemon, "r1", config=etc), ("config", "fail", rf"named.conf:\d+.*unknown option '{word}'",
                                                  f"named-checkconf {etc}/named.conf && systemctl restart hydns-named"))
