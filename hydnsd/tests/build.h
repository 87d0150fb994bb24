/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What tests share: offers made by ldns (an independent implementation of DNS), a rule store in plain memory, and a check of
 * published rules by ldns. */
#ifndef HYDNSD_TESTS_BUILD_H
#define HYDNSD_TESTS_BUILD_H

#include "hydnsd/rules/offer.h"
#include "hydnsd/rules/rules.h"

#define BUILD_RRS_MAX 70

struct build_spec {
	const char *name;
	uint16_t type;
	unsigned rcode;
	const char *answer[BUILD_RRS_MAX + 1]; /* master-file lines, NULL at the end */
	const char *authority_section[9], *additional[BUILD_RRS_MAX + 1];
	const char *errors;            /* texts of extended errors with code 6, by spaces; build_offer() sets the flag */
	const char *left_out[4];       /* left-out names; build_offer() sets the flag */
	uint8_t variant, flags;
	uint32_t ttl;                  /* of the offer; 0: 300 */
	uint32_t count;                /* sightings in 10 s; 0: 10 */
	uint64_t generation;           /* 0: 1 */
};

union build_offer {
	struct hydns_offer offer;
	uint8_t octet[HYDNS_OFFER_DATA + HYDNS_NAME_MAX + 65535 + 8];
};

/* Returns the frame's length. Aborts the test program when a line of the spec is malformed. */
size_t build_offer(union build_offer *out, const struct build_spec *spec, uint64_t now_ns);

struct build_store {
	struct hydns_geometry geometry;
	struct hydns_store_memory memory;
	struct hydns_line *hits;       /* the same as memory.hits, but writable, as for the program */
	struct hydnsd_rules *rules;
};
void build_store_open(struct build_store *s, uint32_t capacity, uint32_t min_hits, uint64_t now_ns);
/* As when hydnsd is killed: forgets everything about the rules that is not in the memory, and takes the memory over. */
void build_store_reopen(struct build_store *s, uint32_t capacity, uint64_t now_ns);
void build_store_close(struct build_store *s);
/* Counts hits as the program does. */
void build_store_hit(struct build_store *s, uint32_t handle, uint32_t hits);
/* A whole grace period. */
void build_store_grace(struct build_store *s);

/* Reads by ldns the messages that clients would get, with every rotation of every RRset. NULL, or what is wrong with one. */
const char *build_rule_fault(const struct hydns_rule *rule);

#endif
