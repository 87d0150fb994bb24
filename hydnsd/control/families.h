/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Address families: by which ones a resolver is asked, and of which all queries are passed, by source validation or by
 * `ipv6: no'. */
#ifndef HYDNSD_CONTROL_FAMILIES_H
#define HYDNSD_CONTROL_FAMILIES_H

#include <jansson.h>

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/netdev/sources.h"

struct hydnsd_families {
	bool served[HYDNSD_FAMILIES];
	bool passed[HYDNSD_FAMILIES];  /* all queries are, although the family is served */
	struct hydnsd_sources_state why[HYDNSD_FAMILIES]; /* of passed families */
};

/* Whether hydnsd's options pass all queries of the family; *why says which. */
bool hydnsd_families_off(const struct hydnsd *d, uint32_t family, struct hydnsd_sources_state *why);
/* resolver: HYDNS_RESOLVERS: all of them together. */
void hydnsd_families_of(struct hydnsd *d, uint32_t resolver, struct hydnsd_families *out);
/* Whether every served family is passed, and there is one. */
bool hydnsd_families_none(const struct hydnsd_families *f);
/* The passed ones: a list of `family' (protocol.def). */
json_t *hydnsd_families_json(const struct hydnsd_families *f);

#endif
