/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * SETTLE: a plugin that has suspended rules, because data changed while no hydnsd was there, or while this one hung,
 * asks for the moment from which those that are left are right. Everything that its rings held when it asked has been
 * taken; then a withdrawal of what bears another epoch queues behind all withdrawals that the frames began, and with a
 * grace period after it no program holds any of these rules.
 */
#ifndef HYDNSD_RESOLVERS_CATCH_UP_H
#define HYDNSD_RESOLVERS_CATCH_UP_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/common.h"

struct hydnsd_session;

/* One under way; zero: none. */
struct hydnsd_catch_up {
	enum { HYDNSD_CAUGHT_UP, HYDNSD_CATCH_UP_RINGS, HYDNSD_CATCH_UP_RULES } waits;
	uint32_t seq;                  /* of the message */
	uint32_t head[HYDNS_THREADS_MAX]; /* the rings', when it came */
};

/* False: one is under way already. */
bool hydnsd_catch_up_begin(struct hydnsd_session *s, uint32_t seq);
/* When some of its frames have been taken. */
void hydnsd_catch_up_work(struct hydnsd_session *s);

#endif
