/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RRsets that a resolver has renewed, waiting a moment: the renewed answer itself is mostly offered right
 * after and replaces its rule, so that only what still counts down the former TTLs then must go.
 */
#ifndef HYDNSD_RESOLVERS_TTL_UPDATES_H
#define HYDNSD_RESOLVERS_TTL_UPDATES_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/ring.h"

#define HYDNSD_TTL_UPDATES   512          /* of one resolver at once: 10,000 a second */
#define HYDNSD_TTL_UPDATE_WAIT_MS  25           /* at least; at most twice that */

struct hydnsd_ttl_update {
	uint64_t due_ms;
	uint64_t generation;
	uint64_t end_ns;
	uint16_t rrtype;               /* network order */
	bool shared;                   /* as in struct hydns_changed, */
	uint8_t section;                 /* and this */
	uint8_t name_len;
	uint8_t name[HYDNS_NAME_MAX];  /* wire format, lower case */
};
struct hydnsd_ttl_updates {               /* zero: none */
	struct hydnsd_ttl_update wait[HYDNSD_TTL_UPDATES];
	uint32_t first, count;
};

static inline bool hydnsd_ttl_updates_full(const struct hydnsd_ttl_updates *r)
{
	return r->count == HYDNSD_TTL_UPDATES;
}

/* Copies a valid frame whose renewed is not 0; r must not be full. */
void hydnsd_ttl_updates_put(struct hydnsd_ttl_updates *r, const struct hydns_changed *c, uint64_t now_ms);
/* Takes the oldest that has waited long enough, to be used before the next call; NULL: none. */
const struct hydnsd_ttl_update *hydnsd_ttl_updates_take(struct hydnsd_ttl_updates *r, uint64_t now_ms);
/* Milliseconds until there is one to take; -1: none waits. */
int hydnsd_ttl_updates_next(const struct hydnsd_ttl_updates *r, uint64_t now_ms);

#endif
