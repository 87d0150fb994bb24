/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* A trace in memory: which questions were asked when. Generated, or read from a file. */
#ifndef HYDNS_SIM_TRACE_H
#define HYDNS_SIM_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_request {
	uint64_t at_us;                /* since the trace's first second; never decreases */
	uint32_t id;                   /* of the question, 0..ids-1 */
};

/* Two names change places in the order of popularity. */
struct sim_swap {
	uint64_t at_us;
	uint32_t a, b;                 /* ranks */
};

struct sim_trace {
	struct sim_request *request;
	size_t count, room;
	uint32_t *ttl;                 /* by id, seconds; 0: cannot be offloaded */
	uint32_t ids, id_room;
	/* what the generator knows of the true rates: the ids 0..ranks-1 are the names of these ranks, most popular
	 * first, but for the swaps so far; ranks 0: the rates are unknown */
	uint32_t ranks;
	struct sim_swap *swap;
	size_t swaps, swap_room;
	uint32_t marked;               /* a question that the report watches (a flash crowd's), or SIM_NO_ID */
};
#define SIM_NO_ID UINT32_MAX

void sim_trace_init(struct sim_trace *t);
void sim_trace_free(struct sim_trace *t);
/* False without memory. A request earlier than the last one gets that one's time. */
bool sim_trace_add(struct sim_trace *t, uint64_t at_us, uint32_t id);
/* Makes room for id in ttl[] and sets it. False without memory. */
bool sim_trace_set_ttl(struct sim_trace *t, uint32_t id, uint32_t ttl);
/* False without memory. */
bool sim_trace_swap(struct sim_trace *t, uint64_t at_us, uint32_t a, uint32_t b);
double sim_trace_seconds(const struct sim_trace *t);

#endif
