/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The times at which each question of a trace is asked, for contenders that know the future. */
#ifndef HYDNS_SIM_FUTURE_H
#define HYDNS_SIM_FUTURE_H

#include "hydns-sim/trace.h"

struct future {
	uint64_t *at_us;               /* all requests, by id, then in order */
	size_t *first;                 /* by id: index of its first; one more at the end */
	size_t *cursor;                /* by id: index of its next one */
};
bool future_init(struct future *f, const struct sim_trace *t, uint64_t base_us);
void future_free(struct future *f);
/* The next request for id has come. */
static inline void future_pass(struct future *f, uint32_t id)
{
	f->cursor[id]++;
}
/* Requests for id that are still to come before end; *last (if any): when the last of them comes. */
uint64_t future_hits(const struct future *f, uint32_t id, uint64_t end_us, uint64_t *last_us);
/* When id is asked for next; UINT64_MAX: never. */
uint64_t future_next(const struct future *f, uint32_t id);

#endif
