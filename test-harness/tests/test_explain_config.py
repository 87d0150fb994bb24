# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What hydnsctl explain says when the configuration keeps everything from the kernel, or leaves nothing to answer; and of
a hydns: clause that does nothing."""

from conftest import kernel_path
from test_explain import NAME, said

from harness.client import ask
from harness.network import SERVICE
from harness.process import run_tool
from harness.run import wait_until


def test_an_obstacle_of_the_start_needs_a_reload(world):
    with kernel_path(world, unbound_options={"server": ["log-queries: yes"]}) as path:
        assert "log-queries is yes" in said(path, NAME, "A")
        path.unbound.control("set_option", "log-queries:", "no")
        assert "reload to go on" in said(path, NAME, "A")
        path.unbound.change("log-queries: yes", "log-queries: no")
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
        text = path.unbound.config.read_text().replace("10.53.0.0/16 allow", "10.53.0.0/16 deny_non_local")
        path.unbound.config.write_text(text.replace("fd53::/16 allow", "fd53::/16 refuse"))
        path.unbound.control("reload")
        path.unbound.control("status")
        wait_until(path.daemon.resolver_ready, 5, "Unbound to register again")
        explain = path.daemon.explain(NAME)
        assert (explain["where"], explain["reason"]) == ("resolver", "ACL")
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
