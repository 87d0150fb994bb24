# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsctl doctor says of packet filters: each rule and policy that queries to a resolver would meet, and no other.

Each row is a rule set of the real nft or iptables in a network namespace of its own, with an interface v0; with the words
that the one finding must hold, or None: there must be none."""

import json
import os
import re
import subprocess

import pytest
from conftest import kernel_path

from lab.network import CLIENT_LINKS
from lab.process import run_tool
from lab.tools import Tools

if os.geteuid() != 0:
    pytest.skip("needs root: network namespaces", allow_module_level=True)

SETUP = "ip link set lo up\nip link add v0 type veth peer name v1\nip link set v0 up"
RETURN = "udp dport != 53 return"


def findings(ruleset, setup=SETUP, ns=("unshare", "--net"), ctl=(), interface="v0"):
    """Doctor's checks of the firewall once ruleset, shell commands, is there."""
    done = subprocess.run([*ns, "sh", "-ec", f"{setup}\n{ruleset}\nexec \"$0\" \"$@\"", Tools().hydnsctl, *ctl, "doctor", "--json",
                           interface], capture_output=True, text=True, timeout=60)
    assert done.stdout, f"{ruleset}: {done.stderr}"
    return [c for c in json.loads(done.stdout)["checks"] if c["check"] == "firewall"]


def nft(text):
    return f"nft -f - <<'END'\n{text}\nEND"


def chain(*rules, hook="input", policy="accept", family="inet", kind="filter", more=""):
    lines = "\n".join(rules)
    return nft(f"table {family} t {{\n{more}\nchain c {{\ntype {kind} hook {hook} priority 0; policy {policy};\n{lines}\n}}\n}}")


def judge(ruleset, expected, **where):
    found = findings(ruleset, **where)
    assert not [c for c in found if c["state"] == "skip"], "the filters could not be listed"
    bad = [c for c in found if c["state"] == "warn"]
    if expected is None:
        assert not bad, f"{ruleset}: a false alarm: {bad}"
        return
    assert len(bad) == 1, f"{ruleset}: {len(bad)} findings: {bad}"
    assert re.search(expected, bad[0]["finding"] + " | " + bad[0]["mend"]), bad[0]
    assert bad[0]["mend"]


BYPASSED = {
    "source": (["ip saddr 192.0.2.0/24 drop"], r"handle \d+ drops.*access-control: 192.0.2.0/24 deny.*blackhole \{ 192.0.2.0/24; \}"),
    "source-v6": (["ip6 saddr 2001:db8::/32 drop"], "access-control: 2001:db8::/32 deny"),
    "source-not": (["ip saddr != 192.0.2.0/24 drop"], "access-control: PREFIX deny"),
    "source-range": (["ip saddr 192.0.2.1-192.0.2.9 reject"], "rejects"),
    "protocol": (["meta l4proto udp drop"], "nft delete rule inet t c handle"),
    "protocols": (["meta l4proto { tcp, udp } drop"], "drops"),
    "ip-protocol": (["ip protocol udp drop"], "drops"),
    "interface": (['iifname "v0" drop'], r"take the interface out of hydnsd.conf"),
    "interfaces": (['iifname "v*" drop'], "drops"),
    "not-lo": (['iif != "lo" drop'], "drops"),
    "port": (["udp dport 53 drop"], "drops"),
    "ports": (["udp dport { 50-60, 100 } drop"], "drops"),
    "th-port": (["meta l4proto { tcp, udp } th dport 53 drop"], "drops"),
    "all": (["drop"], "drops"),
    "rate": (["udp dport 53 limit rate over 100/second drop"], "ip-ratelimit.*rate-limit"),
    "rate-accepted": (["udp dport 53 limit rate 100/second accept", "udp dport 53 drop"], "drops"),
    "connections": (["ct count over 10 drop"], "drops"),
    "state-new": (["ct state new drop"], "drops"),
    "mark": (["meta mark 7 drop"], "drops"),
    "spoofed": (["fib saddr . iif oif missing drop"], "drops"),
    "concatenation": (["ip saddr . udp dport { 192.0.2.1 . 53 } drop"], "drops"),
    "map": (["udp dport vmap { 22 : accept, 53 : drop }"], "drops"),
    "after-a-partial-accept": (["ip saddr 192.0.2.0/24 accept", "udp dport 53 drop"], "drops"),
    "after-another-port": ([RETURN, "ip saddr 192.0.2.1 drop"], "drops"),
    "policy": ([], "policy drop.*no rule accepts.*nft insert rule inet t c udp dport 53 accept", "drop"),
    "policy-others-accepted": (["ct state established,related accept", "iif lo accept", "tcp dport { 22, 53 } accept"],
                               "policy drop", "drop"),
    "policy-some-accepted": (["ip saddr 192.0.2.0/24 udp dport 53 accept"], "policy drop", "drop"),
    "policy-one-family": (["meta nfproto ipv4 udp dport 53 accept"], "policy drop", "drop"),
    "policy-other-interface": (['iifname "v1" accept'], "policy drop", "drop"),
    "policy-rate": (["udp dport 53 limit rate 10/second accept"], "policy drop", "drop"),
}
HARMLESS = {
    "nothing": [],
    "established": ["ct state established,related accept", "ct state invalid drop"],
    "ssh": ["tcp dport 22 accept", "tcp dport 22 drop", "tcp flags & (fin|syn) == fin|syn drop"],
    "other-port": ["udp dport 123 drop", "udp dport != 53 drop", "udp dport { 100-200 } drop"],
    "loopback": ['iifname "lo" drop', "ip saddr 127.0.0.0/8 drop", "ip daddr 127.0.0.1 drop", "ip6 saddr ::1 drop"],
    "other-interface": ['iifname "v1" drop', 'iifname { "v1", "x*" } drop'],
    "icmp": ["icmp type echo-request drop", "meta l4proto { icmp, ipv6-icmp } drop"],
    "tcp": ["meta l4proto tcp drop", "ip protocol tcp drop", "ip saddr 192.0.2.1 tcp dport 53 drop"],
    "multicast": ["fib daddr type { broadcast, multicast } drop", "meta pkttype != host drop", "ip daddr 224.0.0.0/4 drop"],
    "counters": ["udp dport 53 counter", 'udp dport 53 log prefix "q"', "udp dport 53 meta mark set 1"],
    "accepts": ["ip saddr 192.0.2.0/24 accept", "udp dport 53 accept"],
    "after-all-are-accepted": ["udp dport 53 accept", "drop"],
    "map": ["udp dport vmap { 53 : accept, 100-200 : drop }"],
}
OPEN = {     # with policy drop
    "port": ["udp dport 53 accept"], "ports": ["udp dport { 53, 853 } accept"], "new": ["ct state new,established accept"],
    "interface": ['iifname "v0" accept'], "families": ["meta nfproto ipv4 accept", "meta nfproto ipv6 udp dport 53 accept"],
    "all": ["accept"], "networks": ["ip saddr 0.0.0.0/0 accept", "ip6 saddr ::/0 accept"],
}


@pytest.mark.parametrize("row", BYPASSED)
def test_nft_rules_that_are_bypassed(row):
    rules, expected, *policy = BYPASSED[row]
    judge(chain(*rules, policy=policy[0] if policy else "accept"), expected)


@pytest.mark.parametrize("row", HARMLESS)
def test_nft_rules_that_say_nothing_of_queries(row):
    judge(chain(*HARMLESS[row]), None)


@pytest.mark.parametrize("row", OPEN)
def test_nft_policies_that_limit_nobody(row):
    judge(chain(*OPEN[row], policy="drop"), None)


@pytest.mark.parametrize("ruleset,expected", {
    "prerouting": (chain("ip saddr 192.0.2.1 drop", hook="prerouting"), "drops"),
    "ingress": (nft('table netdev t {\nchain c {\ntype filter hook ingress device "v0" priority 0;\nip saddr 192.0.2.1 drop\n}\n}'),
                "table netdev t"),
    "redirect": (chain("udp dport 53 redirect to :5353", hook="prerouting", kind="nat"), "redirects.*let Unbound listen"),
    "dnat": (chain("udp dport 53 dnat ip to 192.0.2.9", hook="prerouting", kind="nat"), "redirects.*let Unbound listen"),
    "jump": (chain("jump sub", more="chain sub {\nip saddr 192.0.2.1 drop\n}"), "chain sub, handle"),
    "goto": (chain("udp dport 53 goto sub", more="chain sub {\nip saddr 192.0.2.1 drop\n}"), "chain sub, handle"),
    "map-of-chains": (chain('iifname vmap { "v0" : jump sub }', more="chain sub {\ndrop\n}"), "chain sub, handle"),
    "set": (chain("ip saddr @blocked drop", more="set blocked {\ntype ipv4_addr\n}"), "drops"),
    "port-set": (chain("udp dport @ports drop", more="set ports {\ntype inet_service\nelements = { 53, 80 }\n}"), "drops"),
    "meter": (chain("udp dport 53 add @seen { ip saddr limit rate over 9/second } drop",
                    more="set seen {\ntype ipv4_addr\nflags dynamic,timeout\ntimeout 1m\n}"), "ip-ratelimit"),
    "sub-accepts-some": (chain("jump sub", policy="drop", more="chain sub {\nip saddr 192.0.2.1 accept\n}"), "policy drop"),
    "sub-accepts-all": (chain("jump sub", policy="drop", more="chain sub {\nudp dport 53 accept\n}"), None),
    "sub-not-reached": (chain("tcp dport 53 jump sub", more="chain sub {\nip saddr 192.0.2.1 drop\n}"), None),
    "sub-without-a-way": (chain("accept", more="chain sub {\nip saddr 192.0.2.1 drop\n}"), None),
    "other-ports-set": (chain("udp dport @ports drop", more="set ports {\ntype inet_service\nelements = { 80 }\n}"), None),
    "output": (chain("udp dport 53 drop", hook="output"), None),
    "forward": (chain(hook="forward", policy="drop"), None),
    "untracked": (chain("ct state established,related,untracked accept", policy="drop") + "\n" +
                  nft("table inet r {\nchain p {\ntype filter hook prerouting priority raw;\nudp dport 53 notrack\n}\n}"), None),
    "tracked": (chain("ct state established,related,untracked accept", policy="drop"), "policy drop"),
}.values())
def test_nft_chains_and_sets(ruleset, expected):
    judge(ruleset, expected)


@pytest.mark.parametrize("program", ["iptables", "ip6tables"])
@pytest.mark.parametrize("rules,expected", {
    "policy": (["-P INPUT DROP"], "policy DROP of INPUT.*-t filter -I INPUT -p udp --dport 53 -j ACCEPT"),
    "policy-some": (["-P INPUT DROP", "-A INPUT -s NET -p udp --dport 53 -j ACCEPT"], "policy DROP"),
    "source": (["-A INPUT -s NET -j DROP"], r"-s \S+ -j DROP.*access-control: \S+ deny.*-t filter -D INPUT -s"),
    "source-not": (["-A INPUT ! -s NET -j DROP"], "access-control: PREFIX deny"),
    "interface": (["-A INPUT -i v0 -j DROP"], "take the interface out"),
    "interfaces": (["-A INPUT -i v+ -j DROP"], "drops"),
    "not-lo": (["-A INPUT ! -i lo -j DROP"], "drops"),
    "protocol": (["-A INPUT -p udp -j REJECT"], "rejects"),
    "port": (["-A INPUT -p udp --dport 53 -j DROP"], "drops"),
    "ports": (["-A INPUT -p udp -m multiport --dports 22,50:60 -j DROP"], "drops"),
    "rate": (["-A INPUT -p udp --dport 53 -m hashlimit --hashlimit-above 9/s --hashlimit-name x -j DROP"], "ip-ratelimit"),
    "rate-accepted": (["-A INPUT -p udp -m limit --limit 9/s -j ACCEPT", "-A INPUT -p udp -j DROP"], "drops"),
    "comment": (['-A INPUT -p udp -m comment --comment "-p tcp -j ACCEPT" -j DROP'], "drops"),
    "chain": (["-N X", "-A X -s NET -j DROP", "-A INPUT -p udp -j X"], "-A X -s"),
    "goto": (["-N X", "-A X -s NET -j DROP", "-A INPUT -p udp -g X"], "-A X -s"),
    "redirect": (["-t nat -A PREROUTING -p udp --dport 53 -j REDIRECT --to-ports 5353"], "redirects.*let Unbound listen"),
    "prerouting": (["-t raw -A PREROUTING -s NET -j DROP"], "-t raw"),
    "policy-open": (["-P INPUT DROP", "-A INPUT -p udp -m udp --dport 53 -j ACCEPT"], None),
    "policy-untracked": (["-P INPUT DROP", "-t raw -A PREROUTING -p udp --dport 53 -j NOTRACK",
                          "-A INPUT -m conntrack --ctstate ESTABLISHED,UNTRACKED -j ACCEPT"], None),
    "established": (["-A INPUT -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", "-A INPUT -m state --state INVALID -j DROP"],
                    None),
    "tcp": (["-A INPUT -p tcp --dport 22 -j ACCEPT", "-A INPUT -p tcp -j DROP"], None),
    "other-port": (["-A INPUT -p udp --dport 123 -j DROP", "-A INPUT -p udp ! --dport 53 -j DROP"], None),
    "loopback": (["-A INPUT -i lo -j DROP"], None),
    "log": (["-A INPUT -p udp --dport 53 -j LOG"], None),
    "forward": (["-P FORWARD DROP"], None),
    "chain-not-reached": (["-N X", "-A X -s NET -j DROP", "-A INPUT -p tcp -j X"], None),
    "not-local": (["-A INPUT -m addrtype --dst-type MULTICAST -j DROP"], None),
}.values())
def test_iptables(program, rules, expected):
    """The rule is found once, though nft lists it as well."""
    network = "192.0.2.0/24" if program == "iptables" else "2001:db8::/32"
    judge("\n".join(f"{program} {rule.replace('NET', network)}" for rule in rules), expected)


def test_nothing_at_all():
    found = findings("")
    assert {c["subject"] for c in found} == {"nftables", "iptables", "ip6tables"} and {c["state"] for c in found} == {"ok"}


def test_services_and_interfaces_that_are_known(world):
    """With a daemon: what does not concern its resolvers' addresses and its interfaces is left out."""
    resolver = world.network.resolver
    with kernel_path(world, daemon_options={"links": CLIENT_LINKS}) as path:
        def said(*rules, policy="accept"):
            run_tool(resolver, ["sh", "-ec", "nft flush ruleset\n" + chain(*rules, policy=policy)])
            try:
                done = path.daemon.ctl("doctor", "--json", check=False)
                return [c["finding"] for c in json.loads(done.stdout)["checks"] if c["check"] == "firewall" and c["state"] == "warn"]
            finally:
                run_tool(resolver, ["nft", "flush", "ruleset"])

        assert not said("ip daddr 10.53.0.99 drop", "ip6 daddr fd53::99 drop", 'iifname "ra" drop', "udp dport 5353 drop")
        assert len(said("ip daddr 10.53.0.53 drop")) == len(said("ip6 daddr fd53::/64 drop")) == len(said('iifname "r2" drop')) == 1
        assert not said("ip daddr 10.53.0.53 accept", "ip6 daddr fd53::53 accept", policy="drop")
        assert len(said("ip daddr 10.53.0.53 accept", policy="drop")) == 1
        assert not said('iifname { "r1", "r2" } accept', policy="drop")
        assert len(said('iifname "r1" accept', policy="drop")) == 1
