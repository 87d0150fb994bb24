/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The last names whose data changed in a resolver's cache or zones. They serve to discard an offer that was made before a change of
 * one of its names, but taken from another ring after that. Discarding every offer older than the last change would leave
 * few: in a busy cache, or a zone with many updates, something changes every few milliseconds.
 */
#ifndef HYDNSD_RESOLVERS_CHANGED_NAMES_H
#define HYDNSD_RESOLVERS_CHANGED_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#define HYDNSD_CHANGED_NAMES 256       /* an offer waits in its ring for a few changes at most */

struct hydnsd_changed_names {
	struct {
		uint64_t generation;
		uint64_t bits;         /* hydnsd_signature_of() the name; 0: of any */
	} last[HYDNSD_CHANGED_NAMES];
	uint32_t next;
	uint64_t newest;               /* latest generation in last */
	uint64_t forgotten;            /* latest generation that last does not hold any more */
};

void hydnsd_changed_names_record(struct hydnsd_changed_names *c, uint64_t generation, uint64_t bits);
/* True when an answer made at this generation, of names with this signature, may contain data that have changed since. */
bool hydnsd_changed_names_affect(const struct hydnsd_changed_names *c, uint64_t generation, uint64_t signature);

#endif
