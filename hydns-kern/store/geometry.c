/* SPDX-License-Identifier: GPL-2.0-only */
#include "hydns-kern/store/geometry.h"

#include <stdbool.h>
#include <string.h>

#include "hydns/abi.h"

/*
 * Octets of slots for each rule. doc/notebook/rules.md ("Memory of a rule") has the sizes of real resolvers' rules; where the
 * mean is larger, fewer rules than the capacity fit.
 */
#define RULE_OCTETS     160
/* Room for retired rules: 1/RETIRED_SHARE of the capacity. With 800,000 rules that is what a million replacements a second
 * retire in 25 ms. */
#define RETIRED_SHARE   32
#define RETIRED_LEAST   256
/* One span for each size, so that a tiny store can hold every size. */
#define SPANS_LEAST     32

static __u64 quotient(__u64 n, __u32 by)
{
	return (n + by - 1) / by;
}

/* CPUs with a row of their own: all of them where sharing rows would save no memory. */
static __u32 own_hits(__u32 cpus, __u32 present)
{
	__u32 own = present < HYDNS_HITS_OWN ? present : HYDNS_HITS_OWN;

	return cpus > own + HYDNS_HITS_SHARED ? own : cpus;
}

void hydns_geometry_for(__u32 capacity, __u32 cpus, __u32 present, struct hydns_geometry *out)
{
	__u64 retired = quotient(capacity, RETIRED_SHARE), rules;
	__u32 buckets = 2;

	rules = capacity + (retired < RETIRED_LEAST ? RETIRED_LEAST : retired);
	memset(out, 0, sizeof(*out));
	out->abi_version = hydns_abi_version();
	out->cpus = cpus;
	out->own_hits = own_hits(cpus, present);
	out->lines = (__u32)quotient(rules, HYDNS_LINE_WORDS);
	out->spans = (__u32)quotient(rules * RULE_OCTETS, HYDNS_SPAN);
	if (out->spans < SPANS_LEAST)
		out->spans = SPANS_LEAST;
	/* At most half full: then nearly every key is in its first bucket. */
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

/* Words: hits by row, claims, and hits accounted for. */
__u64 hydns_geometry_bytes(const struct hydns_geometry *g)
{
	return (__u64)g->spans * HYDNS_SPAN + (__u64)g->buckets * sizeof(struct hydns_bucket) +
	       ((__u64)hydns_geometry_hit_rows(g) + 2) * g->lines * sizeof(struct hydns_line);
}
