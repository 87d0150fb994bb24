/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Which sources of an address family have a route by which a query from there passes rp_filter and a reply leaves. */
#ifndef HYDNSD_NETDEV_ROUTES_H
#define HYDNSD_NETDEV_ROUTES_H

#include <netinet/in.h>

#include "hydnsd/netdev/prefixes.h"
#include "hydnsd/netdev/rpfilter.h"

#define HYDNSD_ROUTES_MOST   8192      /* read of one family, which takes some milliseconds */
#define HYDNSD_ROUTES_RESULT 2048      /* prefixes that come out, of one family */

enum hydnsd_source {
	HYDNSD_SOURCE_REFUSED,
	HYDNSD_SOURCE_ROUTED,
	HYDNSD_SOURCE_OWN,             /* refused: an address of this host, a broadcast or an anycast address */
};

struct hydnsd_routes {
	struct hydnsd_prefix prefix[HYDNSD_ROUTES_RESULT]; /* the value is enum hydnsd_source; none: REFUSED */
	uint32_t count;
	uint32_t routes;               /* that were read */
	bool rules;                    /* policy rules may apply: every table that they name must agree */
	bool unclear;                  /* some cannot be expressed by tables: every source is refused */
};

/*
 * family: AF_INET, AF_INET6. Policy rules look at more than the source. So a source is ROUTED if the table main has a route for
 * it and no table that a rule may lead to forbids it. -E2BIG: more than HYDNSD_ROUTES_MOST routes; -ENOSPC: more than
 * HYDNSD_ROUTES_RESULT prefixes; or another negative errno. *out is written on success only.
 */
int hydnsd_routes_read(int family, const struct hydnsd_rpfilter *rp, struct hydnsd_routes *out);

#endif
