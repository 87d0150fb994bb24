# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The machines, wires and servers that the demo and the end-to-end tests run on.

One topology, in network namespaces of this run alone (their names carry the run's id):

      client 1                        resolver                            authority
 +-----------------+          +-----------------------+           +------------------------+
 | c1 10.53.1.2    |---veth---| r1 10.53.1.1          |           | NSD: root and all zones |
 |    fd53:1::2    |  [XDP]   |    fd53:1::1          |           | on the address of every |
 | up to ...30     |          |                       |           | name server, on lo      |
 +-----------------+          |  lo 10.53.0.53        |           |                         |
      client 2                |     fd53::53  Unbound,|---veth----| u0 10.53.3.2 fd53:3::2  |
 +-----------------+          |     hydnsd            |ra      u0 | relay: a name server    |
 | c2 10.53.2.2    |---veth---| r2 10.53.2.1          |           | that waits and counts   |
 |    fd53:2::2    |  [XDP]   |    fd53:2::1          |           +------------------------+
 +-----------------+          |  lo 10.53.0.54        |
                              |     fd53::54  the same|
                              |     Unbound, alone    |
                              +-----------------------+

[XDP]: hyDNS attaches to r1 and r2. c1 and c2 hold a program that passes everything, because a veth
delivers what the other end sends by XDP_TX only while it has an XDP program itself.
bpffs is mounted in the run's own directory, so that nothing of the machine's is touched and one umount
removes every pin. Namespaces are entered by setns() and nsenter: `ip netns exec` would remount /sys.
"""
