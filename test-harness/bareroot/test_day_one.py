# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The first day of a user: the commands of README and guide on a bare root, up to "answered in kernel", and a reboot."""

import json
import re
import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bareroot import documents  # noqa: E402
from bareroot.follow import Follower, found_by_doctor  # noqa: E402
from bareroot.fixtures import root, run  # noqa: E402,F401
from bareroot.machine import Machine  # noqa: E402
from lab.tools import Tools  # noqa: E402
from lab.servers import Nsd  # noqa: E402
from lab.versions import PRESENT, in_version  # noqa: E402

GUIDE = "doc/operator-guide.md"
AUTHORITATIVE, LOAD_TEST = "doc/guide-authoritative.md", "doc/guide-load-test.md"
MOST_COMMANDS = 10
FOLLOWED = {}       # {(document, heading): servers} whose commands were typed
HERE = Path(__file__).resolve().parent


class Day(Follower):
    """Context manager: a machine with its user, and an authoritative server for example.com. at the wire's other end."""

    def __init__(self, run, name):
        self.run, self.name, self.tools, self._stack = run, name, Tools(), ExitStack()

    def __enter__(self):
        with ExitStack() as stack:
            self.machine = Machine(self.run, self.name, self.tools.pass_object)
            self.machine.write("usr/local/bin/editor", (HERE / "editor").read_text(), 0o755)
            zones = self.run.dir / f"{self.name}-zones"
            zones.mkdir()
            (zones / "example.com.zone").write_text((HERE / "example.com.zone").read_text())
            stack.enter_context(Nsd(SimpleNamespace(run=self.run, tools=self.tools), self.machine.client, f"{self.name}-nsd",
                                    'zone:\n    name: "example.com."\n    zonefile: example.com.zone\n', zones, "example.com.",
                                    ["192.0.2.53"]))
            stack.enter_context(self.machine)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exc):
        return self._stack.__exit__(*exc)

    def follow(self, document, heading, server=None):
        listed = super().follow(document, heading, server)
        assert len(listed) <= MOST_COMMANDS, f"{document}, '{heading}', takes {len(listed)} commands"
        FOLLOWED.setdefault((document, heading), set()).add(server)

    def type(self, text):
        if text.startswith(("dig ", "dnsperf ")):
            return self.machine.type_on_client(text)
        if text.startswith("hydnsctl doctor"):
            return found_by_doctor(self.machine.type(text))
        online = any(word in text for word in ("apt-get", "quickstart", "make", "build-packages"))
        return self.machine.type(text, 1500 if online else 60, online=online)

    def ask(self, dnssec=False):
        """As a client: a name that the kernel shall answer."""
        for family in ("@192.0.2.1", "@2001:db8::1"):
            self.machine.type_on_client(f"dig +short +tries=1 +time=1 {'+dnssec ' * dnssec}{family} www.example.com")

    def answered_in_kernel(self):
        self.do(documents.Command("hydnsctl explain www.example.com A", "answered in kernel"))
        before = self.hits()
        for address in ("192.0.2.1", "2001:db8::1"):
            assert self.dig(address) == "192.0.2.80"
        assert self.hits() >= before + 2, "the kernel has not answered what it was asked"

    def scraped(self):
        """hydns-metrics, by its unit, gets hydnsd's figures. (There is no HTTP client.)"""
        request = r"exec 3<>/dev/tcp/127.0.0.1/10953; printf 'GET /metrics HTTP/1.0\r\n\r\n' >&3; cat <&3"
        self.do(documents.Command(f'bash -c "{request}"', "hydns_up 1"))

    def shows_a_page(self):
        """hydns-metrics, by its unit with the variable that the guide sets."""
        heading, place = "A page in a browser", "/run/systemd/system/hydns-metrics.service.d"
        lines = re.search(r"```ini\n(.*?)```", documents.section(GUIDE, heading), re.S)[1].splitlines()
        self.do(documents.Command(f"mkdir -p {place}; printf '%s\\n' {' '.join(map(shlex.quote, lines))} >{place}/page.conf; systemctl daemon-reload", None))
        self.follow(GUIDE, heading)
        request = r"exec 3<>/dev/tcp/127.0.0.1/10954; printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' >&3; cat <&3"
        self.do(documents.Command(f'bash -c "{request}"', "<title>hyDNS</title>"))
        self.do(documents.Command(f"rm -r {place}; systemctl daemon-reload; systemctl restart hydns-metrics", None))

    def dig(self, address):
        return self.machine.type_on_client(f"dig +short +tries=1 +time=2 @{address} www.example.com").output.strip()

    def nothing_is_left(self, changed):
        """changed: the files in /etc/hydns that differ from those installed."""
        assert self.machine.type("ls -A /sys/fs/bpf/hydns /run/hydns").output.count("No such file") == 2
        assert "xdp" not in self.machine.type("ip -details link show dev eth0").output
        left = self.machine.type("find / -xdev \\( -path /proc -o -path /root -o -path /var/log -o -path /var/lib \\) -prune -o "
                                 "-name '*hydns*' -print").output.split()
        assert sorted(left) == ["/etc/hydns", "/etc/hydns/hydnsd.conf"], "what was changed stays, and nothing else"
        assert self.machine.type("ls /etc/hydns").output.split() == changed

    def hits(self):
        done = self.machine.type("hydnsctl stats --json")
        return json.loads(done.output)["answered"]

    def journal(self):
        return self.machine.type("journalctl --no-pager --lines=25 -u hydnsd -u hydns-unbound -u hydns-named -u named").output


@pytest.fixture(scope="module")
def readme(run):
    with Day(run, "readme") as day:
        yield day


@pytest.fixture(scope="module")
def unbound(run):
    with Day(run, "unbound") as day:
        yield day


@pytest.fixture(scope="module")
def bind(run):
    with Day(run, "bind") as day:
        yield day


@pytest.fixture(scope="module")
def packaged(run):
    with Day(run, "packaged") as day:
        yield day


# The tests of one machine are the chapters of one story: in this order.
@pytest.mark.limit(600)
def test_readme_until_answered_in_kernel(readme):
    readme.follow("README.md", "Start in ten lines")
    readme.answered_in_kernel()


@pytest.mark.limit(900)
def test_guide_by_hand(readme):
    """Over what is there; that its packages suffice, quickstart shows, which installs the same ones."""
    readme.follow(GUIDE, "By hand")
    readme.machine.type("systemctl restart hydnsd hydns-unbound")
    readme.answered_in_kernel()


@pytest.mark.limit(600)
def test_unbound_until_answered_in_kernel(unbound):
    unbound.follow(GUIDE, "Install", "Unbound")
    unbound.follow(GUIDE, "First answers", "Unbound")
    unbound.answered_in_kernel()


def test_the_daemons_are_confined(unbound):
    """As shipped: none as root, also while it starts, and systemd's judgement of each unit's exposure, in tenths, is no worse than this."""
    for unit, user, most in (("hydnsd", "hydns", 25), ("hydns-unbound", "unbound", 49)):
        pid = unbound.machine.type(f"systemctl show --property=MainPID --value {unit}").output.strip()
        assert unbound.machine.type(f"ps -o user= -p {pid}").output.strip() == user
        judged = unbound.machine.type(f"systemd-analyze security --no-pager --threshold={most} {unit}")
        print(judged.output.strip().splitlines()[-1])
        assert judged.status == 0, judged.output


@pytest.mark.limit(200)
def test_unbound_after_a_reboot(unbound):
    unbound.machine.reboot()
    unbound.answered_in_kernel()


@pytest.mark.limit(200)
def test_watch_and_pause_unbound(unbound):
    unbound.follow(GUIDE, "Watch", "Unbound")
    unbound.follow(GUIDE, "Prometheus and Grafana")
    unbound.scraped()
    unbound.shows_a_page()
    for heading in ("dnstap and query logs", "See the packets", "Pause", "Stale answers after a crash"):
        unbound.follow(GUIDE, heading)
    unbound.answered_in_kernel()


def follow_all(day, document):
    for heading in documents.servers_by_heading(document):
        day.follow(document, heading)


@pytest.mark.limit(200)
def test_load_test(unbound):
    """The kernel has answered dnsperf, too."""
    before = unbound.hits()
    follow_all(unbound, LOAD_TEST)
    assert unbound.hits() > before
    unbound.answered_in_kernel()


@pytest.mark.limit(600)
def test_upgrade_unbound(unbound):
    unbound.follow(GUIDE, "Upgrade", "Unbound")
    unbound.answered_in_kernel()


@pytest.mark.limit(200)
def test_another_abi(unbound):
    """As if a release of the next ABI had been installed, and hydnsd restarted."""
    for path in ("usr/sbin/hydnsd", "usr/bin/hydnsctl", "usr/lib/hydns/unbound/sbin/unbound"):
        unbound.machine.replace(path, lambda data: in_version(data, PRESENT + 1))
    unbound.machine.type("systemctl restart hydnsd")
    unbound.follow(GUIDE, "Another ABI")
    unbound.answered_in_kernel()


@pytest.mark.limit(300)
def test_remove_unbound(unbound):
    unbound.follow(GUIDE, "Remove", "Unbound")
    unbound.nothing_is_left(["hydnsd.conf", "unbound.conf"])


@pytest.mark.limit(1700)
def test_ten_commands_until_watched(packaged):
    """From nothing; the transcript is what it prints."""
    packaged.follow(GUIDE, "In ten commands")
    packaged.answered_in_kernel()
    packaged.scraped()


@pytest.mark.limit(900)
def test_bind_until_answered_in_kernel(bind):
    bind.follow(GUIDE, "Install", "BIND")
    bind.follow(GUIDE, "First answers", "BIND")
    bind.answered_in_kernel()


@pytest.mark.limit(200)
def test_bind_after_a_reboot(bind):
    bind.machine.reboot()
    bind.answered_in_kernel()


@pytest.mark.limit(200)
def test_watch_bind(bind):
    bind.follow(GUIDE, "Watch", "BIND")


@pytest.mark.limit(200)
def test_binds_zones(bind):
    """On the machine where BIND has been a resolver: "Install" says the same for both."""
    assert documents.commands(GUIDE, "Install", "BIND's zones") == documents.commands(GUIDE, "Install", "BIND")
    bind.follow(GUIDE, "First answers", "BIND's zones")
    bind.answered_in_kernel()


@pytest.mark.limit(300)
def test_authoritative_guide(bind):
    follow_all(bind, AUTHORITATIVE)
    bind.answered_in_kernel()


@pytest.mark.limit(600)
def test_upgrade_bind(bind):
    bind.follow(GUIDE, "Upgrade", "BIND")
    bind.answered_in_kernel()


@pytest.mark.limit(300)
def test_remove_bind(bind):
    bind.follow(GUIDE, "Remove", "BIND")
    bind.nothing_is_left(["hydnsd.conf", "named.conf", "rndc.key"])
    bind.machine.type("rm /etc/hydns/named.conf")      # as the guide says: it was for the patched server


@pytest.mark.limit(600)
def test_debians_own_bind(bind):
    bind.follow(GUIDE, "Install", "Debian's BIND")
    bind.follow(GUIDE, "First answers", "Debian's BIND")
    bind.answered_in_kernel()


@pytest.mark.limit(200)
def test_debians_own_bind_after_a_reboot(bind):
    bind.machine.reboot()
    bind.answered_in_kernel()


@pytest.mark.limit(600)
def test_upgrade_debians_own_bind(bind):
    bind.follow(GUIDE, "Upgrade", "Debian's BIND")
    bind.answered_in_kernel()


@pytest.mark.limit(300)
def test_remove_from_debians_own_bind(bind):
    bind.follow(GUIDE, "Remove", "Debian's BIND")
    assert bind.dig("192.0.2.1") == "192.0.2.80", "named answers on its own"
    bind.nothing_is_left(["hydnsd.conf", "rndc.key"])


def test_every_command_of_the_guide_was_typed():
    """Of a section whose commands differ by server, for each of them; BIND's zones share all but the first answers with BIND."""
    shared = {(heading, "BIND's zones") for heading in ("Install", "Watch", "Upgrade", "Remove")}
    untyped = {(heading, server) for heading, servers in documents.servers_by_heading(GUIDE).items() for server in servers
               if server not in FOLLOWED.get((GUIDE, heading), ())}
    assert untyped == shared
    for document in (AUTHORITATIVE, LOAD_TEST):
        assert set(documents.servers_by_heading(document)) == {heading for d, heading in FOLLOWED if d == document}
    for heading, server in shared:
        assert documents.commands(GUIDE, heading, server) == documents.commands(GUIDE, heading, "BIND")
