/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What rp_filter demands of IPv4 sources on the interfaces that the program is attached to. */
#ifndef HYDNSD_NETDEV_RPFILTER_H
#define HYDNSD_NETDEV_RPFILTER_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "hydnsd/daemon/options.h"

#define HYDNSD_RPFILTER_DEVICES 64

enum hydnsd_rpfilter_mode { HYDNSD_RPFILTER_OFF, HYDNSD_RPFILTER_STRICT, HYDNSD_RPFILTER_LOOSE }; /* as in sysctl */

struct hydnsd_rpfilter {
	enum hydnsd_rpfilter_mode mode;        /* the strictest that counts on any of them */
	/* A source's route must leave by each of these: which of them a query came by the program's tables can't tell. */
	unsigned device[HYDNSD_RPFILTER_DEVICES];
	uint32_t count;
	bool full;                     /* there are more */
	unsigned first;                /* device that queries may come by, strict or not */
	bool several;                  /* ... and it is not the only one */
	char vrf[IF_NAMESIZE];         /* an interface that is part of a VRF; "": none */
};

/* vlan: the program takes frames of VLANs, too. 0, or a negative errno and nothing in out. */
int hydnsd_rpfilter_read(const struct hydnsd_list *interfaces, bool vlan, struct hydnsd_rpfilter *out);
const char *hydnsd_rpfilter_text(enum hydnsd_rpfilter_mode mode);

#endif
