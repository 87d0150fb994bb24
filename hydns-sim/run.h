/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* One contender plays one trace. */
#ifndef HYDNS_SIM_RUN_H
#define HYDNS_SIM_RUN_H

#include "hydns-sim/contender.h"

#define RUN_INTERVALS 200

struct run_options {
	uint32_t capacity;
	double warm_up;                /* share of the requests that are not counted in the totals */
	uint32_t latency_ms;           /* of a lookup */
	double halve_at;               /* share of the requests after which the capacity is halved; 0: never */
};

struct run_interval {
	uint64_t requests, hits, installs;
	double seconds;
};

struct run_result {
	const struct contender_kind *kind;
	uint32_t capacity;
	uint64_t requests, hits;       /* after the warm-up */
	uint64_t lookups;              /* of the resolver, in all */
	struct contender_stats stats;  /* at the end */
	uint32_t rules_most;
	uint64_t installs_most_s;      /* in the worst second after the warm-up */
	double installs_s;             /* a second, on average, after the warm-up */
	double marked_ms;              /* from the marked question's first answer to its first hit; below 0: never */
	struct run_interval interval[RUN_INTERVALS];
};

static inline double run_hit_rate(const struct run_result *r)
{
	return r->requests ? (double)r->hits / (double)r->requests : 0;
}

/* False without memory, or when the contender can't do what the options ask for. */
bool sim_run(const struct contender_kind *kind, const struct sim_trace *t, const struct run_options *o,
	     struct run_result *out);

#endif
