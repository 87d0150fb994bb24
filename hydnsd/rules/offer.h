/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Checks an offer, which is hostile input, and makes the parts of a rule from it. */
#ifndef HYDNSD_RULES_OFFER_H
#define HYDNSD_RULES_OFFER_H

#include "hydns/ring.h"
#include "hydns-kern/store/store.h"
#include "hydnsd/rules/dependencies.h"
#include "hydnsd/rules/wire.h"

enum hydnsd_rejection {
	HYDNSD_ACCEPTED,
#define HYDNSD_REJECTION(name, question, text) HYDNSD_REJECT_##name,
#include "hydnsd/rules/rejections.def"
#undef HYDNSD_REJECTION
	HYDNSD_REJECTIONS
};
/* Its name, such as "TTL", and what an operator reads; both "" for ACCEPTED. */
const char *hydnsd_rejection_name(enum hydnsd_rejection r);
const char *hydnsd_rejection_text(enum hydnsd_rejection r);
/* True when an offer that was rejected for this reason has a sound name, type and variant. */
bool hydnsd_rejection_is_readable(enum hydnsd_rejection r);

/* Longest frame of an offer; a longer one shows that the ring is broken. */
#define HYDNSD_OFFER_MAX ((HYDNS_OFFER_DATA + HYDNS_NAME_MAX + 65535U + 7) & ~7U)

struct hydnsd_offer_limits {
	uint64_t now_ns;
	uint64_t seed;                 /* of signatures */
	__u64 place_seed[2];           /* of the places of owner names, from HELLO */
	uint32_t min_ttl, max_ttl;     /* seconds; 0: none */
	bool rotates;                  /* the resolver rotates RRsets */
};

/* An offer that has passed the checks. parts.name, .answer and .ttl point into this object: it must not be copied. */
struct hydnsd_answer {
	struct hydns_rule_parts parts; /* head without epoch, refresh_ms and resolver */
	uint64_t signature;            /* of its dependencies */
	struct hydnsd_dependency_list dependencies;
	uint64_t generation;
	uint32_t epoch;
	uint32_t count, window_ms;
	uint16_t ttl[HYDNS_TTLS_MAX];
	uint16_t pointer[HYDNS_POINTERS_MOST];
	struct hydns_gap gap;
	uint8_t data[HYDNSD_MESSAGE_MAX]; /* message from octet HYDNSD_HEADER on */
};

/* frame: len octets, a copy that the plugin cannot change, aligned as struct hydns_offer. *out is undefined when the offer
 * is rejected. */
enum hydnsd_rejection hydnsd_offer_check(const struct hydns_offer *frame, size_t len,
					 const struct hydnsd_offer_limits *limits,
					 struct hydnsd_answer *out);

#endif
