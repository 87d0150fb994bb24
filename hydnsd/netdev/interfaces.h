/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Interfaces: attaches to them, follows them through rtnetlink. */
#ifndef HYDNSD_NETDEV_LINKS_H
#define HYDNSD_NETDEV_LINKS_H

#include "hydnsd/daemon/daemon.h"

/* What partial-checksum: auto means for these interfaces. */
bool hydnsd_interfaces_partial_checksum(const struct hydnsd_list *interfaces);

/* Attaches to all interfaces, and leaves those that a former hydnsd answered on and that are not configured. One that
 * is missing or refuses is logged and tried again. An error: rtnetlink does not work. */
int hydnsd_interfaces_start(struct hydnsd *d, char *why, size_t room);
/* detach: takes the program off. */
void hydnsd_interfaces_stop(struct hydnsd *d, bool detach);
/* The options have been read again: interfaces, vlan-offload. */
void hydnsd_interfaces_update(struct hydnsd *d);
/* Every HYDNSD_HOUSEKEEPING_MS: looks at what has changed, unless it was told so just before, and at what could not be
 * read. */
void hydnsd_interfaces_tick(struct hydnsd *d);
/* Periodic: tries again where attaching has failed, and leaves where VLAN tags are not seen any more. */
void hydnsd_interfaces_retry(struct hydnsd *d);

/* Index of the first interface that is attached to; 0: none is. */
unsigned hydnsd_interfaces_first_attached(const struct hydnsd *d);
struct hydnsd_interface_state {
	const char *name;
	bool attached;
	const char *note;              /* "" or why not */
};
/* The n-th interface; false: there is none. */
bool hydnsd_interfaces_get(const struct hydnsd *d, uint32_t n, struct hydnsd_interface_state *out);

#endif
