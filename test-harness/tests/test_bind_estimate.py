# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""What `hydnsctl preload --estimate` says of a zone's file is what preloading the zone takes."""

import json
import re

import pytest
from test_bind_preload import preloads
from test_bind_zone_versions import CLIENTS, POLICY, is_signed

from lab import zones
from lab.process import run_tool
from lab.run import wait_until

KINDS = {"unsigned.test": "", "nsec.test": "dnssec-policy default;", "nsec3.test": "dnssec-policy nsec3;"}
RECORDS = zones.RECORDS + """\
last A 192.0.2.60
signed-below NS ns.other.test.
signed-below DS 12345 13 2 0123456789012345678901234567890123456789012345678901234567890123
tree DNAME elsewhere.test.
"""
COLD = 1000              # so that nothing else gets a rule
MEMORY = 0.03            # the estimate's share of the slots' octets by which it may be wrong


def estimate(world, file, *words):
    return json.loads(run_tool(world.network.resolver, [world.tools.hydnsctl, "preload", "--estimate", file, "--json", *words]).stdout)


def questions(daemon, zone):
    """As named counts them once the zone is loaded; or None."""
    for note in daemon.call({"cmd": "status"})["resolvers"][0]["notes"]:
        if found := re.match(rf"{re.escape(zone)}: (\d+) questions asked, the answers to", note):
            return int(found[1])
    return None


ASKED = 1       # proof that is_signed() may have brought into the kernel


@pytest.mark.parametrize("zone", KINDS)
def test_estimate_of_a_zone(world, tmp_path, zone):
    """The number of questions and of rules is exact, the memory near; and a hydnsd of the capacity that it names has room."""
    statements = f'type primary; file "{zone}.zone"; allow-update {{ {CLIENTS} }}; masterfile-format text; {KINDS[zone]}'
    served = {zone: statements + (" inline-signing no;" if KINDS[zone] else "")}
    unsigned = zones.text(RECORDS, origin=zone)
    file = tmp_path / "zone"
    file.write_text(unsigned)
    # of the unsigned zone, whose estimate is known before the start, exactly; a signed one has more
    capacity = estimate(world, file)["capacity"] * (4 if KINDS[zone] else 1)
    daemon = world.hydnsd(capacity=capacity)
    named = world.named(daemon, recursion=False, zones=served, statements=POLICY, options=("preferred-glue A;",),
                        clause=(*preloads(zone), f"hydns-admission {COLD};"))
    (named.dir / f"{zone}.zone").write_text(unsigned)
    with daemon, named:
        wait_until(daemon.resolver_ready, 10, "BIND's plugin to register with hydnsd")
        wait_until(lambda: not KINDS[zone] or is_signed(world, zone), 20, f"{zone} to be signed")
        named.control("sync", zone)          # returns before the file is there

        def expected():
            return estimate(world, named.dir / f"{zone}.zone", "--socket", daemon.control_socket)

        def agree():
            status, e = daemon.call({"cmd": "status"}), expected()
            return e["signed"] == bool(KINDS[zone]) and questions(daemon, zone) == e["questions"] and not status["limbo"] \
                and status["resolvers"][0]["preloaded"] == e["rules"] <= status["rules"] <= e["rules"] + ASKED \
                and abs(status["slot_bytes"] - e["slot_bytes"]) <= MEMORY * e["slot_bytes"]
        wait_until(agree, 10, lambda: f"{expected()}; {daemon.call({'cmd': 'status'})}")
        assert expected()["zone"] == f"{zone}."
        assert expected()["hydnsd"]["capacity"] == capacity and expected()["hydnsd"]["fits"]
        said = daemon.ctl("preload", "--estimate", named.dir / f"{zone}.zone").stdout
        assert f"has capacity {capacity:,}: the zone fits" in said and f"{expected()['rules']:,} rules are preloaded now" in said
        print(f"{zone}: slots of {expected()['slot_bytes']} octets estimated, {daemon.call({'cmd': 'status'})['slot_bytes']} taken")
