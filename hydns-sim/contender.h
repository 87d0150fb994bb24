/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The contenders of a simulation. The terms are equal: a contender has at most capacity rules; a rule answers until its TTL,
 * counted from the resolution, is over, and is removed at once; the same model of a resolver (resolver.h) answers all other
 * queries, and only its answers may become rules.
 */
#ifndef HYDNS_SIM_CONTENDER_H
#define HYDNS_SIM_CONTENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns-sim/trace.h"

struct contender;

struct contender_stats {
	uint64_t installs, evictions, offers;
	uint32_t rules;                /* now */
	size_t bytes;                  /* of the policy's own state */
};

/* An answer as the resolver has it. */
struct sim_answer {
	uint32_t id;
	uint32_t sightings;            /* queries that it answers: one, or all that came during the lookup */
	uint64_t begun_s, expires_s;   /* whole seconds, as in the resolver's cache */
	bool fresh;                    /* just looked up */
	bool refreshed;                /* looked up for a refresh, while the cache still had the answer */
};

struct contender_kind {
	const char *name, *title;
	bool online;                   /* knows nothing of the future */
	struct contender *(*open)(const struct sim_trace *t, uint32_t capacity);
	void (*close)(struct contender *c);
	/* True when a rule answers this request for id. Called for every request of the trace, in order. */
	bool (*query)(struct contender *c, uint32_t id, uint64_t now_us);
	/* The resolver gave this answer; true when the resolver should refresh it now. */
	bool (*answered)(struct contender *c, const struct sim_answer *a, uint64_t now_us);
	void (*set_capacity)(struct contender *c, uint32_t capacity, uint64_t now_us);
	void (*stats)(const struct contender *c, struct contender_stats *out);
	bool needs_ranks;              /* only for traces with known true rates */
};

extern const struct contender_kind *const sim_contenders[];    /* NULL at the end; the first is hyDNS */
const struct contender_kind *sim_contender(const char *name);   /* NULL: none has this name */

#endif
