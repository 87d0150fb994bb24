/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to the store: one rule's content. */
#ifndef HYDNS_KERN_STORE_RULE_H
#define HYDNS_KERN_STORE_RULE_H

#include <stdbool.h>
#include "hydns-kern/store/store.h"

/* Writes parts into a slot, which must be large enough. The slot's hits, ordinal and size class stay. */
void hydns_rule_write(struct hydns_rule *slot, const struct hydns_rule_parts *p);

/* Whether lengths, counts and offsets of parts are within bounds and consistent. */
bool hydns_rule_parts_valid(const struct hydns_rule_parts *p);

/* Whether a slot of slot_size octets holds a whole rule: checks every field, and the answer against its sum, so that
 * a half-written slot is refused. */
bool hydns_rule_valid(const struct hydns_rule *r, __u32 slot_size);

__u64 hydns_rule_hash(const struct hydns_rule *r, const __u64 seed[2]);
bool hydns_rule_has_key(const struct hydns_rule *r, const __u8 *name, __u8 name_len, __u16 qtype,
			__u8 variant, __u8 resolver);

#endif
