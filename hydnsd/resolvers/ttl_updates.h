/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * TTL updates that wait a moment. Mostly the resolver's plugin offers the refreshed answer right after the update, and it
 * replaces its rule. Then only rules that still count down the former TTL have to change.
 */
#ifndef HYDNSD_RESOLVERS_TTL_UPDATES_H
#define HYDNSD_RESOLVERS_TTL_UPDATES_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/ring.h"

#define HYDNSD_TTL_UPDATES        512  /* of one resolver at once: 10,000 a second */
#define HYDNSD_TTL_UPDATE_WAIT_MS 25   /* at least; at most twice that */

struct hydnsd_ttl_update {
	uint64_t due_ms;
	uint64_t generation;
	uint64_t end_ns;
	uint16_t rrtype;               /* network order */
	bool shared;                   /* as in struct hydns_changed */
	uint8_t section;               /* the same */
	uint8_t name_len;
	uint8_t name[HYDNS_NAME_MAX];  /* wire format, lower case */
};
struct hydnsd_ttl_updates {            /* zero: none */
	struct hydnsd_ttl_update wait[HYDNSD_TTL_UPDATES];
	uint32_t first, count;
};

static inline bool hydnsd_ttl_updates_full(const struct hydnsd_ttl_updates *r)
{
	return r->count == HYDNSD_TTL_UPDATES;
}

/* Copies a valid frame whose ttl_of is not 0; r must not be full. */
void hydnsd_ttl_updates_put(struct hydnsd_ttl_updates *r, const struct hydns_changed *c, uint64_t now_ms);
/* Takes the oldest one if it has waited long enough, else NULL. Valid until the next call. */
const struct hydnsd_ttl_update *hydnsd_ttl_updates_take(struct hydnsd_ttl_updates *r, uint64_t now_ms);
/* Milliseconds until the next can be taken; -1: none waits. */
int hydnsd_ttl_updates_next(const struct hydnsd_ttl_updates *r, uint64_t now_ms);

#endif
