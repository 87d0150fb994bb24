# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The machines, wires and servers on which the demo and the end-to-end tests run.

Each run has the same topology, in network namespaces of its own (their names hold the run's id):

      client 1                        resolver                          authoritative
 +-----------------+          +-----------------------+           +------------------------+
 | c1 10.53.1.2    |---veth---| r1 10.53.1.1          |           | NSD: root and all zones |
 |    fd53:1::2    |  [XDP]   |    fd53:1::1          |           | on the address of every |
 | up to ...30     |          |                       |           | name server, on lo      |
 +-----------------+          |  lo 10.53.0.53        |           |                         |
      client 2                |     fd53::53  Unbound,|---veth----| u0 10.53.3.2 fd53:3::2  |
 +-----------------+          |     hydnsd            |ra      u0 | relay: a name server    |
 | c2 10.53.2.2    |---veth---| r2 10.53.2.1          |           | that delays and counts  |
 |    fd53:2::2    |  [XDP]   |    fd53:2::1          |           +------------------------+
 +-----------------+          |  lo 10.53.0.54        |
                              |     fd53::54 reference|
                              +-----------------------+

The reference is the same resolver without the kernel path.
[XDP]: hyDNS attaches to r1 and r2. c1 and c2 hold a program that passes everything: a veth delivers the XDP_TX frames of
its peer only while it has an XDP program itself.
The bpffs is mounted in the run's directory: the machine's own stays as it is, and one umount removes every pin.
The lab enters namespaces by setns() and nsenter, since `ip netns exec` would remount /sys.
"""
