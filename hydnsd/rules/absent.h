/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Questions that are asked often and have no rule, as far as hydnsd hears of them: what was offered lately and refused, and
 * rules that left lately. A small table; among those that meet in one place of it the hottest stay. One thread.
 */
#ifndef HYDNSD_RULES_ABSENT_H
#define HYDNSD_RULES_ABSENT_H

#include "hydns/abi.h"
#include "hydnsd/rules/offer.h"

#define HYDNSD_ABSENT_MS       60000   /* so long one is remembered */
#define HYDNSD_ABSENT_RATE_MIN 100000  /* in 10^6 s: what is asked less than once in 10 s is not hot */

enum hydnsd_left {
	HYDNSD_LEFT_NOT,               /* it was refused */
	HYDNSD_LEFT_WITHDRAWN,
	HYDNSD_LEFT_EXPIRED,
	HYDNSD_LEFT_EVICTED,
};

struct hydnsd_absence {
	const uint8_t *name;           /* wire format, lower case */
	uint8_t name_len;
	uint8_t variant;
	uint8_t authority;
	uint16_t qtype;                /* network order */
	enum hydnsd_rejection refused; /* with HYDNSD_LEFT_NOT */
	enum hydnsd_left left;
	uint64_t rate;                 /* queries that the resolver had, or hits that the rule had, in 10^6 s */
	uint64_t key;                  /* of the question, by the store's hash; in what each() shows it is not set */
	uint64_t at_ms;
};

struct hydnsd_absent;

struct hydnsd_absent *hydnsd_absent_new(void); /* NULL without memory */
void hydnsd_absent_free(struct hydnsd_absent *a);
/* Replaces what is known of the same question. */
void hydnsd_absent_note(struct hydnsd_absent *a, const struct hydnsd_absence *what);
/* All that are not older than HYDNSD_ABSENT_MS, in no order. */
void hydnsd_absent_each(const struct hydnsd_absent *a, uint64_t now_ms, void (*fn)(const struct hydnsd_absence *, void *),
			void *arg);
/* Sightings in so many ms, as a rate. */
uint64_t hydnsd_absent_rate(uint32_t count, uint32_t window_ms);
/* FULL, WITHDRAWN; and what an operator reads. */
const char *hydnsd_absent_reason(const struct hydnsd_absence *what);
const char *hydnsd_absent_text(const struct hydnsd_absence *what);
size_t hydnsd_absent_bytes(void);

#endif
