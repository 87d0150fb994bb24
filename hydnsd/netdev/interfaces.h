/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Attaches the program to interfaces, and follows these by rtnetlink. */
#ifndef HYDNSD_NETDEV_INTERFACES_H
#define HYDNSD_NETDEV_INTERFACES_H

#include "hydnsd/daemon/daemon.h"

/* Reads what the interfaces ask of the program, into d->facts; a look at them does that, too. */
void hydnsd_interfaces_facts(struct hydnsd *d);

/* Attaches to all configured interfaces, and detaches from others that a former hydnsd answered on. Logs an interface that is
 * missing or refuses, and tries it again. A negative errno: rtnetlink does not work. news is called, in here too, before the
 * program is taken off the interface with the index `leaves', and with 0 after a look at all interfaces. */
int hydnsd_interfaces_start(struct hydnsd *d, void (*news)(struct hydnsd *d, unsigned leaves), char *why, size_t room);
/* detach: takes the program off. */
void hydnsd_interfaces_stop(struct hydnsd *d, bool detach);
/* After options were read again: interfaces, vlan-offload. */
void hydnsd_interfaces_update(struct hydnsd *d);
/* Every HYDNSD_HOUSEKEEPING_MS: looks again after a notice or an error, but not too often (hydnsd_netlink_not_before()). */
void hydnsd_interfaces_tick(struct hydnsd *d);
/* Periodic: tries again where attaching has failed, and detaches where VLAN tags are not seen any more. */
void hydnsd_interfaces_retry(struct hydnsd *d);

/* Whether the program is attached to this one. */
bool hydnsd_interfaces_attached_to(const struct hydnsd *d, uint32_t ifindex);
/* Index of the first interface with the program; 0: there is none. */
unsigned hydnsd_interfaces_first_attached(const struct hydnsd *d);
struct hydnsd_interface_state {
	const char *name;
	bool attached;
	unsigned index;                /* of the interface attached to, or 0 */
	const char *note;              /* why not attached, or what does not work well; or "" */
};
/* The n-th interface; false: there is none. */
bool hydnsd_interfaces_get(const struct hydnsd *d, uint32_t n, struct hydnsd_interface_state *out);

#endif
