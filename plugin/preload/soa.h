/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The present SOA of each preloaded zone (hydns/soa.h), as set.c keeps it behind the table of children. Under the set's lock.
 */
#ifndef HYDNS_PLUGIN_PRELOAD_SOA_H
#define HYDNS_PLUGIN_PRELOAD_SOA_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/ring.h"
#include "hydns/soa.h"
#include "plugin/plugin.h"

/* Zero: there is none. */
struct hydns_soas {
	struct hydns_soa_now *now;      /* by the zone's number, in the map */
	uint64_t *shape;                /* of each: what its id stands for */
	uint32_t zones;
	uint32_t element;               /* of the map, where the first begins */
};

/* Takes this memory, which is zero. False: no memory. */
bool hydns_soas_begin(struct hydns_soas *s, struct hydns_soa_now *now, uint32_t zones, uint32_t element);
void hydns_soas_end(struct hydns_soas *s);
/* No program may begin to use the zone's. True: one may be using it. */
bool hydns_soas_close(struct hydns_soas *s, uint32_t zone);
/* From now on it is this one. Of no effect for zones that there is no room for. */
void hydns_soas_open(struct hydns_soas *s, uint32_t zone, const struct hydns_zone_soa *soa);
/* Whether answers show a SOA of another shape than before; false too where there was none. */
bool hydns_soas_differs(const struct hydns_soas *s, uint32_t zone, const struct hydns_zone_soa *soa);
/* What an offer says of it. False: there is none now, or, if it must be signed, not with a signature. */
bool hydns_soas_find(const struct hydns_soas *s, uint32_t zone, bool is_signed, struct hydns_offer_soa *out);
/* It is known, and has no signature. */
bool hydns_soas_is_bare(const struct hydns_soas *s, uint32_t zone);

#endif
