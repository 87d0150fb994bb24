/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * By which interface, VLAN, addresses and next hop the kernel would send a datagram to an upstream server. It asks the kernel each
 * time; nothing is kept. Frames of the program do not show the kernel that a neighbour is in use, so this asks it to look, too.
 */
#ifndef HYDNSD_FORWARDING_WAY_H
#define HYDNSD_FORWARDING_WAY_H

#include <stdint.h>

#include "hydns/forwarding.h"

enum hydnsd_way {
	HYDNSD_WAY_UNKNOWN,            /* the kernel could not be asked */
	HYDNSD_WAY_FOUND,
	HYDNSD_WAY_NO_ROUTE,           /* there is none, or none that a plain frame could take */
	HYDNSD_WAY_NO_NEIGHBOUR,       /* the next hop's Ethernet address is not known yet: the kernel looks for it */
	HYDNSD_WAY_DETACHED,           /* the program is not on the interface */
	HYDNSD_WAY_TAGGED,             /* it is in a VLAN, and the program reads no tags */
	HYDNSD_WAYS
};
/* "no-route" */
const char *hydnsd_way_name(enum hydnsd_way w);
const char *hydnsd_way_text(enum hydnsd_way w);

/* addr and port of *way are given; sets the others but flags, if the way is found. *device: the interface that the frame would
 * leave by, under VLAN devices, or the one that the route names, if that is as far as it got; 0: there is none. */
enum hydnsd_way hydnsd_way_find(struct hydns_forward_way *way, uint32_t *device);

#endif
