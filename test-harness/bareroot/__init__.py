# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""A bare Debian root with systemd as its first process, on which the commands of README and guide are run.

 client (namespace of this run)              the machine (namespaces of its own, booted from a bare root)
 +---------------------------------+         +------------------------------------------------+
 | c0 192.0.2.2/24 2001:db8::2/64  |--veth---| eth0 192.0.2.1/24 2001:db8::1/64  [XDP]        |
 | [XDP_PASS], dig                 |         |   systemd, hydnsd, the resolver                |
 | NSD: example.com. at 192.0.2.53 |         |   the source tree in /root/hydns               |
 +---------------------------------+         +------------------------------------------------+

image.py makes the root, machine.py boots it, documents.py reads the commands, and test_day_one.py is the first day.
Commands that install packages or build have the host's network; all others only what is drawn here.
"""
