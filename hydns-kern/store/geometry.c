/* SPDX-License-Identifier: GPL-2.0-only */
#include "hydns-kern/store/geometry.h"

#include <stdbool.h>
#include <string.h>

/*
 * Octets of slots for each rule of the capacity, and rules beyond it: replaced ones wait out their grace period.
 * doc/notebook/rules.md says what rules of real resolvers take ("Memory of a rule"); where they take more on average,
 * fewer than the capacity fit.
 */
#define RULE_OCTETS     160
#define WAITING_SHARE   32              /* one of so many; 25 ms at a million renewals a second */
#define WAITING_LEAST   256
/* So that a tiny store can hold some of every size: as many as there are sizes. */
#define SPANS_LEAST     32

static __u64 quotient(__u64 n, __u32 by)
{
	return (n + by - 1) / by;
}

/* Without sharing where that takes no less memory. */
static __u32 own_hits(__u32 cpus, __u32 present)
{
	__u32 own = present < HYDNS_HITS_OWN ? present : HYDNS_HITS_OWN;

	return cpus > own + HYDNS_HITS_SHARED ? own : cpus;
}

void hydns_geometry_for(__u32 capacity, __u32 cpus, __u32 present, struct hydns_geometry *out)
{
	__u64 waiting = quotient(capacity, WAITING_SHARE), rules;
	__u32 buckets = 2;

	rules = capacity + (waiting < WAITING_LEAST ? WAITING_LEAST : waiting);
	memset(out, 0, sizeof(*out));
	out->abi_version = HYDNS_ABI_VERSION;
	out->cpus = cpus;
	out->own_hits = own_hits(cpus, present);
	out->lines = (__u32)quotient(rules, HYDNS_LINE_WORDS);
	out->spans = (__u32)quotient(rules * RULE_OCTETS, HYDNS_SPAN);
	if (out->spans < SPANS_LEAST)
		out->spans = SPANS_LEAST;
	/* At most half full: nearly every key then stands in its first bucket. */
	while ((__u64)buckets * HYDNS_BUCKET_ENTRIES < 2ULL * capacity)
		buckets *= 2;
	out->buckets = buckets;
}

__u32 hydns_geometry_hit_rows(const struct hydns_geometry *g)
{
	return g->own_hits < g->cpus ? g->own_hits + HYDNS_HITS_SHARED : g->cpus;
}

struct hydns_counting hydns_geometry_counting(const struct hydns_geometry *g, __u32 cpu)
{
	bool shared = cpu >= g->own_hits;
	__u32 row = shared ? g->own_hits + cpu % HYDNS_HITS_SHARED : cpu;

	return (struct hydns_counting){ .first = row * g->lines, .shared = shared };
}

__u32 hydns_geometry_chunks(const struct hydns_geometry *g)
{
	return (__u32)quotient((__u64)g->spans * HYDNS_SPAN, HYDNS_CHUNK);
}
