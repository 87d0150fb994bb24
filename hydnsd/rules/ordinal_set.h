/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A multiset of ordinals, of any size: the rules that depend on a name that many rules depend on (dependencies.c). A hash
 * table with linear probing that grows and shrinks with its content: 5 to 11 octets for each ordinal, more after many have
 * left. One thread.
 */
#ifndef HYDNSD_RULES_ORDINAL_SET_H
#define HYDNSD_RULES_ORDINAL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hydnsd_ordinal_set {            /* zero: empty */
	uint32_t *entry;               /* ordinal + 1; 0: empty */
	uint32_t entries;               /* a power of two, or 0 */
	uint32_t count;
};

/* False: no memory, and nothing was done. */
bool hydnsd_ordinal_set_add(struct hydnsd_ordinal_set *c, uint32_t ordinal);
/* Removes the ordinal once. False: it is not there. */
bool hydnsd_ordinal_set_drop(struct hydnsd_ordinal_set *c, uint32_t ordinal);
/* out: room for c->count. */
void hydnsd_ordinal_set_list(const struct hydnsd_ordinal_set *c, uint32_t *out);
void hydnsd_ordinal_set_clear(struct hydnsd_ordinal_set *c);

#endif
