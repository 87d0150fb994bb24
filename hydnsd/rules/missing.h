/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Missing questions, as far as hydnsd can know them: what was offered lately and rejected, and rules that were removed lately.
 * A small table; of those that share a set of it, the hottest stay. One thread.
 */
#ifndef HYDNSD_RULES_MISSING_H
#define HYDNSD_RULES_MISSING_H

#include "hydns/common.h"
#include "hydnsd/rules/offer.h"

#define HYDNSD_MISSING_MS       60000  /* so long one is remembered */
#define HYDNSD_MISSING_RATE_MIN 100000 /* in 10^6 s: a question asked less than once in 10 s is not hot */

enum hydnsd_removal {
	HYDNSD_REMOVAL_NOT,            /* it had no rule: its offer was rejected */
	HYDNSD_REMOVAL_WITHDRAWN,
	HYDNSD_REMOVAL_EXPIRED,
	HYDNSD_REMOVAL_EVICTED,
};

struct hydnsd_missing {
	const uint8_t *name;           /* wire format, lower case */
	uint8_t name_len;
	uint8_t variant;               /* as in the rule, with HYDNS_VARIANT_TEMPLATE */
	uint8_t resolver;
	uint16_t qtype;                /* network order */
	enum hydnsd_rejection refused; /* with HYDNSD_REMOVAL_NOT */
	enum hydnsd_removal removal;
	uint64_t rate;                 /* queries to the resolver, or hits of the rule, in 10^6 s */
	uint64_t key;                  /* of the question, by the store's hash */
	uint64_t at_ms;
};

struct hydnsd_missing_table;

struct hydnsd_missing_table *hydnsd_missing_new(void); /* NULL without memory */
void hydnsd_missing_free(struct hydnsd_missing_table *a);
/* Replaces what is known of the same question. a: may be NULL. */
void hydnsd_missing_record(struct hydnsd_missing_table *a, const struct hydnsd_missing *what);
/* Calls fn for all that are not older than HYDNSD_MISSING_MS, in no order. */
void hydnsd_missing_each(const struct hydnsd_missing_table *a, uint64_t now_ms,
			 void (*fn)(const struct hydnsd_missing *, void *), void *arg);
/* Sightings in so many ms, as a rate. */
uint64_t hydnsd_missing_rate(uint32_t count, uint32_t window_ms);
/* Its name, such as "FULL" or "WITHDRAWN", and what an operator reads. */
const char *hydnsd_missing_reason(const struct hydnsd_missing *what);
const char *hydnsd_missing_text(const struct hydnsd_missing *what);
size_t hydnsd_missing_bytes(void);

#endif
