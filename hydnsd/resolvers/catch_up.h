/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * CATCH_UP: a plugin has suspended rules because data changed while hydnsd was away or hung, and asks when those that are
 * left are right. hydnsd takes everything that the plugin's rings held at that moment. Then it queues a withdrawal of rules
 * of other epochs, behind all withdrawals that the frames have begun. After that one and a grace period no program holds a
 * rule that is to go, and hydnsd acknowledges.
 */
#ifndef HYDNSD_RESOLVERS_CATCH_UP_H
#define HYDNSD_RESOLVERS_CATCH_UP_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/common.h"

struct hydnsd_session;

/* Zero: none is under way. */
struct hydnsd_catch_up {
	enum { HYDNSD_CAUGHT_UP, HYDNSD_CATCH_UP_RINGS, HYDNSD_CATCH_UP_RULES } waits; /* for rings, or for the withdrawal */
	uint32_t seq;                  /* of the message */
	uint32_t head[HYDNS_THREADS_MAX]; /* of each ring, when the message came */
};

/* False: one is under way already. */
bool hydnsd_catch_up_begin(struct hydnsd_session *s, uint32_t seq);
/* To be called after frames of the session were taken. */
void hydnsd_catch_up_work(struct hydnsd_session *s);

#endif
