/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Address families: by which of them a resolver is asked, and which are passed as a whole, by source validation or by the
 * option ipv6. */
#ifndef HYDNSD_CONTROL_FAMILIES_H
#define HYDNSD_CONTROL_FAMILIES_H

#include <jansson.h>

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/netdev/sources.h"

struct hydnsd_families {
	bool served[HYDNSD_FAMILIES];
	bool passed[HYDNSD_FAMILIES];  /* although served */
	struct hydnsd_sources_state why[HYDNSD_FAMILIES]; /* of those that are passed */
};

/* What hydnsd's options keep out of the kernel, whoever asks; false: nothing. */
bool hydnsd_families_off(const struct hydnsd *d, uint32_t family, struct hydnsd_sources_state *why);
/* authority: HYDNS_RESOLVERS means all resolvers together. */
void hydnsd_families_of(struct hydnsd *d, uint32_t resolver, struct hydnsd_families *out);
/* It is asked, and all that it is asked is passed. */
bool hydnsd_families_none(const struct hydnsd_families *f);
/* Those that are passed: [{family, note, mend}]. */
json_t *hydnsd_families_json(const struct hydnsd_families *f);

#endif
