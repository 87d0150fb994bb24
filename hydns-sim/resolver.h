/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The resolver behind the rules: a cache without limits that obeys TTLs in whole seconds. A question that it has no
 * answer to is looked up, which takes a constant time; queries that come meanwhile wait and are answered together.
 */
#ifndef HYDNS_SIM_RESOLVER_H
#define HYDNS_SIM_RESOLVER_H

#include "hydns-sim/contender.h"

#define SIM_BASE_US 1000000000ULL      /* the clock at a trace's beginning: no clock that is passed in is 0 */

struct resolver;
struct resolver *resolver_open(const struct sim_trace *t, uint32_t latency_ms);
void resolver_close(struct resolver *r);
/* Queries whose lookup is over by now are answered: *a, and when. False: none. Call until then, before query(). */
bool resolver_done(struct resolver *r, uint64_t now_us, struct sim_answer *a, uint64_t *at_us);
/* A query comes to the resolver. True: answered from the cache, *a. */
bool resolver_query(struct resolver *r, uint32_t id, uint64_t now_us, struct sim_answer *a);
/* Looks an answer up though it is in the cache. */
void resolver_renew(struct resolver *r, uint32_t id, uint64_t now_us);
uint64_t resolver_lookups(const struct resolver *r);

#endif
