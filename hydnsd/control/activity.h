/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What happened lately: rejections by question (for `explain`), outcomes over a window (for `top`). */
#ifndef HYDNSD_CONTROL_ACTIVITY_H
#define HYDNSD_CONTROL_ACTIVITY_H

#include "hydns/ring.h"
#include "hydns/reasons.h"
#include "hydnsd/daemon/daemon.h"

struct hydnsd_activity *hydnsd_activity_new(void);
void hydnsd_activity_free(struct hydnsd_activity *a);

/* Key of an offer's question, for the next function. */
uint64_t hydnsd_activity_key(struct hydnsd *d, uint32_t resolver, const struct hydns_offer *o);
/* Records the rejection of a question, by its key, in a small table, where a newer one may replace an older one. */
void hydnsd_activity_refused(struct hydnsd *d, uint64_t key, enum hydnsd_rejection why);
/* The last rejection of this question (qtype in network order), or HYDNSD_ACCEPTED: none is recorded. */
enum hydnsd_rejection hydnsd_activity_last_rejection(struct hydnsd *d, uint32_t resolver,
						   const uint8_t *name, uint8_t name_len, uint16_t qtype,
						   uint8_t variant, uint64_t *age_ms);

/* Every second: records the outcome counters. */
void hydnsd_activity_tick(struct hydnsd *d);
/* Outcomes (HYDNS_REASONS entries) of the last seconds. Returns how long these are, in ms; 0: unknown. */
uint64_t hydnsd_activity_window(struct hydnsd *d, uint64_t *reasons);

#endif
