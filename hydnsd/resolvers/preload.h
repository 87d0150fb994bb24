/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * PRELOAD: a plugin has asked its resolver for answers that are to stay in the kernel, and wants to know what became of these. hydnsd
 * takes everything that the plugin's rings held at that moment, and replies.
 */
#ifndef HYDNSD_RESOLVERS_PRELOAD_H
#define HYDNSD_RESOLVERS_PRELOAD_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/common.h"
#include "hydnsd/rules/offer.h"

struct hydnsd_session;

struct hydnsd_preload {
	bool waits;                    /* for the rings */
	uint32_t seq;                  /* of the message */
	uint32_t head[HYDNS_THREADS_MAX]; /* of each ring, when the message came */
};

/* Offers that were to stay and are no rules, since the last reply. */
struct hydnsd_preload_counts {
	uint64_t refused;
	enum hydnsd_rejection why;     /* the last refused */
};

/* False: one is under way already. */
bool hydnsd_preload_begin(struct hydnsd_session *s, uint32_t seq);
/* To be called after frames of the session were taken. */
void hydnsd_preload_work(struct hydnsd_session *s);
/* What became of an offer that is to stay. KNOWN is no refusal. */
void hydnsd_preload_count(struct hydnsd_preload_counts *c, enum hydnsd_rejection why);

#endif
