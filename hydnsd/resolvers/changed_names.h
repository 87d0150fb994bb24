/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The last names whose data changed in a resolver's cache, so that an offer made before a change, but
 * taken from another ring after it, is discarded, and no other: in a busy cache something changes every
 * few milliseconds, and discarding every older offer would leave few.
 */
#ifndef HYDNSD_RESOLVERS_CHANGED_NAMES_H
#define HYDNSD_RESOLVERS_CHANGED_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define HYDNSD_CHANGED_NAMES 256             /* offers wait in a ring for a few of them at most */

struct hydnsd_changed_names {
	struct {
		uint64_t generation;
		uint64_t bits;         /* hydnsd_signature_of() the name */
	} last[HYDNSD_CHANGED_NAMES];
	uint32_t next;
	uint64_t newest;               /* generation in last */
	uint64_t forgotten;            /* newest generation that is no longer in last */
};

void hydnsd_changed_names_record(struct hydnsd_changed_names *c, uint64_t generation, uint64_t bits);
/* May an answer made at this generation, of names with this signature, contain changed data? */
bool hydnsd_changed_names_affect(const struct hydnsd_changed_names *c, uint64_t generation, uint64_t signature);

#endif
