# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""hydnsctl explain when the configuration keeps all answers from the kernel or leaves nothing to answer, and with a hydns:
clause that has no effect; and the rights that it needs."""

import pwd
from pathlib import Path

from conftest import kernel_path
from test_explain import NAME, said
from test_explain_packets import check

from lab.client import ask
from lab.network import CLIENT_LINKS, SERVICE
from lab.process import run_tool
from lab.run import replaced, wait_until

CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF = 12, 13, 39        # of linux/capability.h


NO_RINGS = ["hydns-queue: no", "hydns-queue-upstream: no"]


def test_an_obstacle_of_the_start_needs_a_reload(world):
    """Without packet rings hydnsd does not get services and access list then."""
    with kernel_path(world, unbound_options={"server": ["log-queries: yes"], "clause": NO_RINGS}) as path:
        assert "log-queries is yes" in said(path, NAME, "A")
        path.unbound.control("set_option", "log-queries:", "no")
        assert "reload to offer answers" in said(path, NAME, "A")
        path.unbound.change("log-queries: yes", "log-queries: no")
        path.world.heat(path.daemon, NAME)


def test_an_obstacle_of_the_start_ends(world):
    """With packet rings hydnsd has services and access list in any case."""
    with kernel_path(world, unbound_options={"server": ["log-queries: yes"]}) as path:
        assert "log-queries is yes" in said(path, NAME, "A")
        path.unbound.control("set_option", "log-queries:", "no")
        path.world.heat(path.daemon, NAME)


def test_no_address(world):
    """No address is the kernel's: nothing is answered there, whatever is offered."""
    with kernel_path(world, unbound_options={"server": ["interface-automatic: yes"]}) as path:
        for _ in range(20):
            ask(path.network.client1, SERVICE[4], NAME)
        explain = path.daemon.explain(NAME)
        assert (explain["where"], explain["reason"]) == ("resolver", "NOT_SERVICE")
        assert "interface-automatic is yes" in explain["text"] and "name the addresses with interface:" in explain["text"]
        assert path.daemon.reasons()["ANSWERED"] == 0


def test_no_client(world):
    with kernel_path(world) as path:
        path.world.heat(path.daemon, NAME)
        text = replaced(path.unbound.config.read_text(), "10.53.0.0/16 allow", "10.53.0.0/16 deny_non_local")
        path.unbound.config.write_text(replaced(text, "fd53::/16 allow", "fd53::/16 refuse"))
        path.unbound.control("reload")
        path.unbound.control("status")
        wait_until(path.daemon.resolver_ready, 5, "Unbound to register again")
        explain = path.daemon.explain(NAME)
        assert (explain["where"], explain["beneath"]) == ("resolver", "ACL")
        assert explain["reason"] in ("ACL", "EMPTY"), "with the last rule gone the program reads no query"
        assert "access control plainly allows no client" in explain["text"]


def test_clause_without_module(world):
    """It does nothing, and both the server and unbound-checkconf say so."""
    with world.unbound(clause=()) as alone:
        alone.config.write_text(alone.config.read_text() + "hydns:\n    hydns-capacity: 5\n")
        words = 'module-config: "validator iterator" has no hydns'
        done = alone.world.tools.unbound_checkconf
        checked = run_tool(alone.ns, [done, alone.config])
        assert words in checked.stderr and "no errors" in checked.stdout
        alone.control("reload")
        wait_until(lambda: words in alone.program.log.read_text(), 10, "Unbound to warn")
        alone.change("hydns-capacity: 5", "hydns-enable: no")
        assert words not in run_tool(alone.ns, [done, alone.config]).stderr


def test_somebody_who_is_let_in(world):
    """Without --client explain takes an address that the access list allows, by the list's longest prefix."""
    refused = ("10.53.0.1", "10.53.0.2", "fd53::1", "fd53::2")
    server = [f"access-control: {a}/{128 if ':' in a else 32} refuse" for a in refused]
    with kernel_path(world, unbound_options={"server": server}) as p:
        world.heat(p.daemon, NAME)
        for client in refused:
            assert p.daemon.explain(NAME, client=client)["reason"] == "ACL"
        said = p.daemon.explain(NAME)
        assert said["reason"] == "ANSWERED" and said["client"] in ("10.53.0.3", "fd53::3")


def test_few_rights(world):
    """hydnsd that has dropped its rights can still ask the program."""
    with kernel_path(world, daemon_options={"options": ("--user", "nobody"), "links": CLIENT_LINKS}) as p:
        world.heat(p.daemon, NAME)
        status = dict(line.split(":", 1) for line in Path(f"/proc/{p.daemon.program.pid}/status").read_text().splitlines())
        assert int(status["Uid"].split()[1]) == pwd.getpwnam("nobody").pw_uid
        assert int(status["CapEff"], 16) == 1 << CAP_NET_ADMIN | 1 << CAP_NET_RAW | 1 << CAP_BPF
        for family in (4, 6):
            check(p, family, "ANSWERED")
            check(p, family, "MISS", f"never{family}.lab.example")
