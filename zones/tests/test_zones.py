# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The generated tree is reproducible, accepted by NSD, signed, and as names.tsv describes it."""

import csv
import hashlib
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

import dns.flags
import dns.message
import dns.query
import dns.rcode
import pytest

SOURCE = Path(__file__).resolve().parent.parent
SMALL = ("--domains", "150", "--names", "4000", "--address", "127.0.0.1")


def run(*args, **kwargs):
    return subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True, **kwargs)


def generate(output, *args):
    done = run(SOURCE / "generate", output, *args)
    assert done.returncode == 0, done.stderr
    return output


def digests(tree):
    return {str(p.relative_to(tree)): hashlib.sha256(p.read_bytes()).hexdigest()
            for p in sorted(tree.rglob("*")) if p.is_file()}


def rows(path):
    with open(path) as f:
        return list(csv.DictReader(f, delimiter="\t", quoting=csv.QUOTE_NONE))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("zones") / "tree", *SMALL)


def zone_names(tree):
    return re.findall(r'name: "(.*)"', (tree / "nsd-zones.conf").read_text())


def test_equal_seeds_give_equal_files(tree, tmp_path):
    assert digests(tree) == digests(generate(tmp_path / "again", *SMALL))


def test_another_seed_gives_another_tree(tree, tmp_path):
    other = generate(tmp_path / "other", *SMALL, "--seed", "2")
    assert {r["name"] for r in rows(tree / "names.tsv")}.isdisjoint(
        r["name"] for r in rows(other / "names.tsv") if r["name"].count(".") > 1)
    assert (tree / "trust-anchor.key").read_text() != (other / "trust-anchor.key").read_text()


def test_a_second_run_replaces_the_first(tmp_path):
    generate(tmp_path / "t", *SMALL)
    (tmp_path / "t/zones/left-over.zone").write_text("")
    generate(tmp_path / "t", *SMALL)
    assert not (tmp_path / "t/zones/left-over.zone").exists()


def test_nsd_accepts_every_zone(tree):
    names = zone_names(tree)
    assert len(names) == len(set(names)) == len(list((tree / "zones").iterdir())) > 150
    for name in names:
        path = tree / "zones" / (f"{name}.zone" if name != "." else "root.zone")
        done = subprocess.run(["nsd-checkzone", name, path], capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stdout}{done.stderr}"
        assert "error" not in done.stdout + done.stderr


def test_signatures_verify(tree):
    signed = [p for p in (tree / "zones").iterdir() if "RRSIG" in p.read_text()]
    assert {"root.zone", "se.zone"} < {p.name for p in signed}
    for path in signed:
        done = subprocess.run(["ldns-verify-zone", path], capture_output=True, text=True)
        assert done.returncode == 0, f"{path.name}: {done.stdout}{done.stderr}"


def test_realistic_and_large_enough(tmp_path):
    tree = generate(tmp_path / "full")
    names = rows(tree / "names.tsv")
    existing = [n for n in names if n["kind"] != "negative"]
    ttls = [int(n["ttl"]) for n in existing]
    assert len(existing) >= 100000 and len({n["name"] for n in names}) == len(names)
    assert [int(n["rank"]) for n in names] == list(range(1, len(names) + 1))
    assert min(ttls) == 20 and max(ttls) == 86400 and 60 <= statistics.median(ttls) <= 600
    assert 17 <= statistics.mean(len(n["name"]) for n in existing) <= 30
    assert max(len(label) for n in existing for label in n["name"].split(".")) <= 63
    for kind, least in (("alias", 0.1), ("address", 0.4), ("text", 0.005)):
        assert sum(n["kind"] == kind for n in existing) > least * len(existing)
    for rrtype in ("A", "AAAA", "HTTPS", "MX", "TXT"):
        assert any(rrtype in n["types"].split(",") for n in existing)
    assert sum(n["secure"] == "1" for n in existing) > 1000
    kinds = {(f["kind"], f["secure"]) for f in rows(tree / "fresh.tsv")}
    assert kinds == {(k, s) for k in ("wildcard", "nxdomain") for s in "01"}
    manifest = json.loads((tree / "manifest.json").read_text())
    assert manifest["names_existing"] == len(existing) and 200 <= manifest["zones"] <= 2000


def test_refuses_what_it_cannot_do(tmp_path):
    (tmp_path / "mine").write_text("precious")
    for args, cause in (((tmp_path,), "not empty"),
                        ((tmp_path / "x", "--names", "100"), "not a number from"),
                        ((tmp_path / "x", "--names", "2000", "--domains", "1000"), "at least 12 times"),
                        ((tmp_path / "x", "--address", "localhost"), "not an IPv4 or IPv6 address")):
        done = run(SOURCE / "generate", *args)
        assert done.returncode != 0 and cause in done.stderr
    assert (tmp_path / "mine").read_text() == "precious" and not (tmp_path / "x").exists()
    done = run(SOURCE / "live", tmp_path / "x", "five", "A", "192.0.2.1")
    assert done.returncode != 0 and "run generate" in done.stderr


# -- served by NSD ------------------------------------------------------------------------------------
def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Nsd:
    def __init__(self, tree, directory):
        self.port = free_port()
        conf = directory / "nsd.conf"
        conf.write_text(f"""server:
    ip-address: 127.0.0.1
    port: {self.port}
    username: ""
    chroot: ""
    database: ""
    rrl-ratelimit: 0
    zonesdir: "{tree}"
    pidfile: "{directory}/nsd.pid"
    xfrdfile: "{directory}/xfrd.state"
    zonelistfile: "{directory}/zone.list"
    xfrdir: "{directory}"
remote-control:
    control-enable: no
include: "{tree}/nsd-zones.conf"
""")
        self.process = subprocess.Popen(["nsd", "-d", "-c", conf], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self.wait_for(lambda: self.ask(".", "SOA").answer)

    def ask(self, name, rrtype, dnssec=False):
        query = dns.message.make_query(name, rrtype, want_dnssec=dnssec)
        return dns.query.udp(query, "127.0.0.1", timeout=1, port=self.port)

    def wait_for(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            assert self.process.poll() is None, "NSD has ended"
            try:
                if condition():
                    return
            except (dns.exception.Timeout, OSError):
                pass
            time.sleep(0.05)
        raise AssertionError("NSD does not reach the expected state")

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=10)


@pytest.fixture(scope="module")
def nsd(tree, tmp_path_factory):
    server = Nsd(tree, tmp_path_factory.mktemp("nsd"))
    yield server
    server.stop()


def follow(nsd, name, rrtype):
    """Returns the authoritative server's last answer, the RRset at the chain's end if there is one, and the number of CNAMEs
    followed. (NSD follows a chain itself as far as it has the zones.)"""
    links = 0
    while links < 8:
        answer = nsd.ask(name, rrtype)
        wanted = [r for r in answer.answer if r.rdtype == dns.rdatatype.from_text(rrtype)]
        alias = [r for r in answer.answer if r.rdtype == dns.rdatatype.CNAME]
        links += len(alias)
        if wanted or not alias or answer.authority:
            return answer, wanted, links
        name = str(alias[-1][0].target)
    raise AssertionError(f"{name}: chain does not end")


def test_the_lists_are_true(tree, nsd):
    sample = rows(tree / "names.tsv")[::13]
    chains = set()
    for n in sample:
        types = [] if n["types"] == "-" else n["types"].split(",")
        for rrtype in ("A", "AAAA", "HTTPS", "MX", "TXT"):
            answer, wanted, links = follow(nsd, n["name"], rrtype)
            chains.add(links)
            assert bool(wanted) == (rrtype in types), f"{n['name']} {rrtype}"
            code = dns.rcode.NXDOMAIN if n["kind"] == "negative" else dns.rcode.NOERROR
            assert answer.rcode() == code, f"{n['name']} {rrtype}"
            if n["kind"] == "address" and wanted and rrtype in ("A", "AAAA", "HTTPS"):
                assert wanted[0].ttl == int(n["ttl"])
    assert chains == {0, 1, 2, 3}


def test_fresh_names(tree, nsd):
    for f in rows(tree / "fresh.tsv"):
        answer = nsd.ask(f"n0t-5een-before.{f['suffix']}", "A")
        if f["kind"] == "wildcard":
            assert answer.answer and answer.rcode() == dns.rcode.NOERROR
        else:
            assert answer.rcode() == dns.rcode.NXDOMAIN


def test_delegations_lead_down(tree, nsd):
    """NSD has all zones, so this asks each zone for its own name servers, and these for their addresses."""
    for name in zone_names(tree):
        servers = [rr.target for rr in nsd.ask(name, "NS").answer[0]]
        assert servers
        for server in servers:
            assert [rr.address for rr in nsd.ask(server, "A").answer[0]] == ["127.0.0.1"]


def test_live_zone_changes_at_run_time(tree, nsd):
    name = "five.hydns-live.net"
    first = nsd.ask(name, "A").answer[0]
    assert first.ttl == 5 and [rr.address for rr in first] == ["198.18.0.5"]
    for i, rdata in enumerate((["192.0.2.1"], ["192.0.2.2", "192.0.2.3"], [])):
        done = run(SOURCE / "live", tree, "five", "A", *rdata)
        assert done.returncode == 0, done.stderr
        os.kill(nsd.process.pid, signal.SIGHUP)
        # NSD's processes read the new zone at different times
        nsd.wait_for(lambda want=rdata: sorted(rr.address for rrset in nsd.ask(name, "A").answer
                                               for rr in rrset) == want)
        nsd.wait_for(lambda serial=2 + i: nsd.ask("hydns-live.net", "SOA").answer[0][0].serial == serial)
    assert nsd.ask(name, "AAAA").answer
