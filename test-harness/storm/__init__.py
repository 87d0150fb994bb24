# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The storm: servers disturbed at random, and every reply judged (test-harness/chaos).

zone.py         the names of storm.example., and the questions about them
ledger.py       what was served, changed, flushed and out of service, and when
zone_server.py  the authoritative server of the zone, for a resolver: logs each RRset that it sends
updates.py      the zone in an authoritative BIND: changes by dynamic updates
servers.py      the servers that can be put into the storm, and the commands of each
disruptions.py  what is done to them, by kind
network.py      what is done to addresses, links and packets; weather.bpf.c does the last
limits.py       what runs out
clocks.py       the resolver's wall clock
configuration.py  access lists, views, zones and local data that change
clients.py      the clients
judge.py        is a reply right?
faults.py       deliberate faults, to test the judge
session.py      all of it in one run
shrink.py       the fewest events that make a wrong reply
parked.py       instead of all this: kills beside parked queries, and what becomes of each
forwarded.py    the same beside forwarded queries
growth.py       what is held after each disruption, and whether it grows
held.py         what these processes and the kernel hold, and whether it grows
soak.py         instead of disturbances: the demo's load for hours (test-harness/soak)
report.py       figures, table and verdict
"""
