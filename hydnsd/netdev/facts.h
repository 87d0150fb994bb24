/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the host's interfaces ask of the program. */
#ifndef HYDNSD_NETDEV_FACTS_H
#define HYDNSD_NETDEV_FACTS_H

#include "hydnsd/daemon/options.h"
#include "hydnsd/netdev/netdev.h"

/* Names of interfaces; "": there is none. */
struct hydnsd_facts {
	char unfinished[IF_NAMESIZE];  /* its driver leaves UDP checksums unfinished */
	char tagged[IF_NAMESIZE];      /* a VLAN device or a switch that takes VLAN tags in frames that the program sees */
	bool several;                  /* packets may leave by several interfaces */
};

/* of: the interfaces that the program is attached to, or is to be. all: every link of this network namespace. */
void hydnsd_facts_read(const struct hydnsd_list *of, bool native, const struct netdev_link *all, size_t n, struct hydnsd_facts *out);

#endif
