/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver behind the rules: an unlimited cache with TTLs in whole seconds. It looks up questions that the cache has no
 * answer to, which takes a constant time; queries for them wait meanwhile and are answered together.
 */
#ifndef HYDNS_SIM_RESOLVER_H
#define HYDNS_SIM_RESOLVER_H

#include "hydns-sim/contender.h"

#define SIM_BASE_US 1000000000ULL      /* the clock at a trace's begin, so that no clock value is 0 */

struct resolver;
struct resolver *resolver_open(const struct sim_trace *t, uint32_t latency_ms);
void resolver_close(struct resolver *r);
/* Ends one lookup that is over by now: its answer, and when it ended. False when there is none. Call it until it returns false
 * before resolver_query(). */
bool resolver_done(struct resolver *r, uint64_t now_us, struct sim_answer *a, uint64_t *at_us);
/* A query comes to the resolver; true when the cache answers it, with *a. */
bool resolver_query(struct resolver *r, uint32_t id, uint64_t now_us, struct sim_answer *a);
/* Looks up an answer that is in the cache. */
void resolver_refresh(struct resolver *r, uint32_t id, uint64_t now_us);
uint64_t resolver_lookups(const struct resolver *r);

#endif
