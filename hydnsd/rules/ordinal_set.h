/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Ordinals, some perhaps several times, in any number: what dependencies.c keeps of a name that many rules depend on. A hash
 * table with linear probing that grows and shrinks with its content: 5 to 11 octets each, more after many have left. One thread.
 */
#ifndef HYDNSD_RULES_ORDINAL_SET_H
#define HYDNSD_RULES_ORDINAL_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hydnsd_ordinal_set {                  /* zero: none */
	uint32_t *entry;               /* ordinal + 1; 0: empty */
	uint32_t entries;               /* a power of two, or 0 */
	uint32_t count;
};

/* False: no memory, and nothing was done. */
bool hydnsd_ordinal_set_add(struct hydnsd_ordinal_set *c, uint32_t ordinal);
/* Takes one of them. False: it is not there. */
bool hydnsd_ordinal_set_drop(struct hydnsd_ordinal_set *c, uint32_t ordinal);
/* out: room for c->count. */
void hydnsd_ordinal_set_list(const struct hydnsd_ordinal_set *c, uint32_t *out);
void hydnsd_ordinal_set_clear(struct hydnsd_ordinal_set *c);

#endif
