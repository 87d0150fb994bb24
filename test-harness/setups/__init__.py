# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
"""The recipes of doc/interfaces.md, typed into a machine with cards (kernel-matrix/guest), and what does not work there.

 the machine: hydnsd, Unbound     namespace "switch"                    namespace "client"
 +--------------------------+     +------------------------------+      +------------------------+
 | eth0 ----------------------wire-- eth2  access, trunk, or a    |      |                        |
 | eth1 ----------------------wire-- eth3  bond; bridges sa, sb --veth---- ca 192.0.2.2          |
 |                          |     |                            --veth---- cb 198.51.100.2       |
 | up0 192.0.2.241/30 --------------------------------------------veth---- up1: NSD, the root zone |
 +--------------------------+     +------------------------------+      +------------------------+

machine.py has the machine and the switch. A switch is set as the document's table says ("access", "LACP", ...).
"""
