# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The packages on a bare Debian with systemd: installed, used as the guide says, upgraded under load, removed, purged. In this
order: the tests are the chapters of one story."""

import shutil
from types import SimpleNamespace

import pytest
from bareroot.test_day_one import GUIDE, Day
from lab.client import Asker

NAMES = ("hydnsd", "hydns-unbound", "hydns-bind", "hydns-tools", "hydns-doc")
UNITS = ("hydnsd", "hydns-unbound", "hydns-named")
# Questions of bareroot/example.com.zone, and the right answer of each: rcode, and rdata of NOERROR.
QUESTIONS = {("www.example.com", "A"): (0, "c0000250"), ("www.example.com", "AAAA"): (0, "20010db8" + "0" * 20 + "0080"),
             ("ns.example.com", "A"): (0, "c0000235"), ("nothing.example.com", "A"): (3, None)}
RATE = 2000         # queries a second under which packages are upgraded


class Packaged(Day):
    """A Day whose machine has the packages in /root/old and /root/new instead of building."""

    def place(self, old, new):
        for folder, name in ((old, "old"), (new, "new")):
            shutil.copytree(folder, self.machine.changes / "upper/root" / name)

    def apt(self, command):
        done = self.machine.type(f"DEBIAN_FRONTEND=noninteractive apt-get -y --no-install-recommends {command}", 400, online=True)
        print(f"# apt-get {command} [{done.seconds:.1f} s]")
        assert done.status == 0, done.output
        return done.output

    def says(self, command):
        return self.machine.type(command).output.strip()

    def pins(self):
        """{pinned map or link: its object's inode}, without the pages of resolvers, which come and go with them"""
        lines = self.says("find /sys/fs/bpf/hydns -type f ! -name 'page_*' -printf '%P %i\\n'").splitlines()
        return dict(line.split() for line in lines)


@pytest.fixture(scope="module")
def day(run, packages):
    with Packaged(run, "packages") as d:
        d.place(*packages)
        yield d


def files(which, *names):
    return " ".join(f"/root/{which}/{name}_*.deb" for name in names or NAMES)


def installed_versions(day):
    return {day.says(f"dpkg-query -W -f '${{Version}}' {name}") for name in NAMES}


@pytest.mark.limit(500)
def test_install(day):
    day.apt("update")
    day.apt(f"install {files('old')}")
    for unit in UNITS:
        assert day.says(f"systemctl is-active {unit}") == "inactive", "nothing starts by itself"
        assert day.says(f"systemctl is-enabled {unit}") == "disabled"
    for page in ("hydnsd", "hydnsd.conf", "hydnsctl", "hydns-unbound.conf", "hydns-rndc", "hydns-sim"):
        assert day.machine.type(f"test -n \"$(find /usr/share/man -name '{page}.[158].gz')\"").status == 0, page
    assert "hyDNS" in day.says("hydns-sim --version")
    assert not day.says("dpkg --verify " + " ".join(NAMES))


@pytest.mark.limit(200)
def test_first_answers(day):
    day.follow(GUIDE, "First answers", "Unbound")
    day.answered_in_kernel()


@pytest.mark.limit(200)
def test_answers_after_a_reboot(day):
    day.machine.reboot()
    day.answered_in_kernel()


def wrong_replies(answers):
    right = list(QUESTIONS.values())
    for answer in answers:
        rcode, rdata = right[answer.question]
        if answer.latency is not None and (answer.rcode != rcode or rdata is not None and answer.rdata != rdata):
            yield answer


@pytest.mark.limit(500)
def test_upgrade_under_load(day):
    """Every reply is right; the kernel goes on with the maps and the attachment that it had."""
    before, pid, pins = installed_versions(day), day.says("systemctl show -P MainPID hydnsd"), day.pins()
    assert len(before) == 1 and pins
    world = SimpleNamespace(run=day.run, tools=day.tools)
    with Asker(world, day.machine.client, "192.0.2.1", QUESTIONS, RATE) as asker:
        day.apt(f"install {files('new')}")
        answers = asker.result(now=True)
    lost = sum(a.latency is None for a in answers)
    print(f"# {len(answers)} queries during the upgrade, {lost} without a reply")
    assert len(answers) > RATE and not list(wrong_replies(answers))
    assert installed_versions(day) != before
    assert day.says("systemctl show -P MainPID hydnsd") != pid, "the new hydnsd runs"
    assert day.pins() == pins
    assert "192.0.2.1" in day.says("cat /etc/hydns/unbound.conf"), "what the operator has changed stays"
    day.answered_in_kernel()


@pytest.mark.limit(200)
def test_bind_instead(day):
    day.follow(GUIDE, "First answers", "BIND")
    day.answered_in_kernel()
    assert day.says("systemctl is-active hydns-unbound") == "inactive"


@pytest.mark.limit(200)
def test_remove(day):
    """The kernel answers nothing any more; what the operator has changed stays. hydnsd is killed before: it leaves its pins."""
    assert day.machine.type("systemctl kill --signal=SIGUSR2 hydnsd; while pidof hydnsd; do sleep 0.1; done; ls /sys/fs/bpf/hydns").status == 0
    day.apt(f"remove {' '.join(NAMES)}")
    assert "No such file" in day.says("ls /sys/fs/bpf/hydns")
    assert "xdp" not in day.says("ip -details link show dev eth0")
    for unit in UNITS:
        assert day.says(f"systemctl is-active {unit}") == "inactive"
    assert day.says("ls /etc/hydns").split() == ["hydnsd.conf", "named.conf", "rndc.key", "unbound.conf"]


@pytest.mark.limit(200)
def test_purge(day):
    day.apt(f"purge {' '.join(NAMES)}")
    left = day.says("find / -xdev \\( -path /proc -o -path /root -o -path /var/log -o -path /var/cache/apt \\) -prune -o "
                    "-name '*hydns*' -print")
    assert not left
    assert "No such file" in day.says("ls /run/hydns")
