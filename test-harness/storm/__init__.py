# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The storm: servers disturbed at random, and every reply judged (test-harness/chaos).

zone.py         the names of storm.example., and the questions about them
ledger.py       what was served, changed, flushed and out of service, and when
zone_server.py    the zone's server for a resolver: logs each record set that it gives away
updates.py      the zone in an authoritative BIND: changes by dynamic updates
servers.py      the servers that can be put into the storm, and the commands of each
disruptions.py  what is done to them, by kind
clients.py      who asks, and from where
judge.py        is a reply right?
faults.py       faults to show that the judge finds them
session.py      all of it in one run
report.py       figures, table and verdict
"""
