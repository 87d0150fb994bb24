#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The command line of test-harness/demo. ./quickstart runs this file to check the options, or to print --help, before it
installs or builds anything; so it needs only Python. It prints nothing when the options are valid."""

import argparse
from pathlib import Path

DESCRIPTION = "The main job on real servers: the same load against the server alone, then with the kernel path."
OUTSTANDING = 100           # queries under way in a closed loop
SERVERS = {"unbound": "Unbound", "bind": "BIND"}
ROLES = {"unbound": ("recursive",), "bind": ("recursive", "authoritative")}


def options():
    p = argparse.ArgumentParser(prog="demo", description=DESCRIPTION)
    p.add_argument("--server", choices=SERVERS, default="unbound", help="[%(default)s]")
    p.add_argument("--role", choices=ROLES["bind"], default="recursive", help="authoritative: the server has all zones "
                   "itself, the load has RD clear, and a hot name is updated [%(default)s]")
    p.add_argument("--seconds", type=positive, default=20, help="length of each of the two runs [%(default)s]")
    p.add_argument("--rate", type=positive, help="queries per second; default: as fast as answers come, with "
                   f"{OUTSTANDING} queries under way")
    p.add_argument("--queries", type=positive, help="queries to generate; default: about enough for the seconds, and "
                   "the run ends when they are used up")
    p.add_argument("--fresh", type=share, default=0.1, help="share of queries for names that nobody asks again, "
                   "which the resolver must look up [%(default)s]")
    p.add_argument("--no-rings", action="store_true", help="with hyDNS: leave packet rings off")
    p.add_argument("--poll", action="store_true", help="in both runs the server's host polls its links (NAPI), as a network card's "
                   "driver does; default: as veth does, only while an XDP program is attached")
    p.add_argument("--seed", default="1", help="of zones and workload [%(default)s]")
    p.add_argument("--json", type=Path, default=Path("demo.json"), help="figures [%(default)s]")
    p.add_argument("--plot", type=Path, default=Path("demo.png"), help="picture [%(default)s]")
    p.add_argument("--cold", action="store_true", help="start both runs with an empty cache; default: with one in "
                   "which every repeated question was asked once")
    p.add_argument("--keep", action="store_true", help="leave everything running, with some load, to look around")
    p.add_argument("--stop", action="store_true", help="end what --keep has left, and what crashed runs have left")
    args = p.parse_args()
    if args.role not in ROLES[args.server]:
        p.error(f"{SERVERS[args.server]} is no {args.role} server here: --server bind")
    return args


def share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a share from 0 to 1")
    return value


def positive(text):
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above 0")
    return int(text)


if __name__ == "__main__":
    options()
