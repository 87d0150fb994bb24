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
	/* Strict devices. A source's route must leave by each: the program's tables do not say by which one a query came. */
	unsigned device[HYDNSD_RPFILTER_DEVICES];
	uint32_t count;
	bool full;                     /* there are more strict devices */
	unsigned first;                /* device that queries may come by, strict or not */
	bool several;                  /* there are others */
	char vrf[IF_NAMESIZE];         /* an interface that is part of a VRF; "": none */
};

/* vlan: the program answers tagged frames, too. 0, or a negative errno; *out is written on success only. */
int hydnsd_rpfilter_read(const struct hydnsd_list *interfaces, bool vlan, struct hydnsd_rpfilter *out);
const char *hydnsd_rpfilter_text(enum hydnsd_rpfilter_mode mode);

#endif
