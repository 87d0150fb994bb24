/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sources of one address family, as the host's routing tables judge them: with a route that a query from there passes
 * rp_filter by, and that a reply to it leaves by.
 */
#ifndef HYDNSD_NETDEV_ROUTES_H
#define HYDNSD_NETDEV_ROUTES_H

#include <netinet/in.h>

#include "hydnsd/netdev/prefixes.h"
#include "hydnsd/netdev/rpfilter.h"

#define HYDNSD_ROUTES_MOST   8192      /* that are read, of one family: some milliseconds */
#define HYDNSD_ROUTES_RESULT 2048      /* prefixes that come out, of one family */

enum hydnsd_source {
	HYDNSD_SOURCE_REFUSED,
	HYDNSD_SOURCE_ROUTED,
	HYDNSD_SOURCE_OWN,             /* refused as an address of the host's own, or a broadcast or anycast one */
};

struct hydnsd_routes {
	struct hydnsd_prefix prefix[HYDNSD_ROUTES_RESULT]; /* the value is enum hydnsd_source; none: REFUSED */
	uint32_t count;
	uint32_t routes;               /* that were read */
	bool rules;                    /* there are policy rules that may count: each table that they name must agree */
	bool unclear;                  /* ... and some that no table can say: everything is refused */
};

/*
 * family: AF_INET, AF_INET6. Policy rules look at more than a query's source; so a source is ROUTED where the table
 * main has a route for it and no table that any rule may lead to says otherwise. -E2BIG: more than HYDNSD_ROUTES_MOST
 * routes; -ENOSPC: more than HYDNSD_ROUTES_RESULT prefixes; or another negative errno. *out is filled on success
 * only.
 */
int hydnsd_routes_read(int family, const struct hydnsd_rpfilter *rp, struct hydnsd_routes *out);

#endif
