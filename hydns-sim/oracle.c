/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Contenders that know the future. They have the same TTLs as the others and need not make a rule of an answer.
 *
 *   clairvoyant  knows for each answer how often it will be requested in its rule's life, and when last. A rule's worth is
 *                the number of hits still to come in its life, for each second up to the last of them. It evicts the rule
 *                of least worth. (Counting hits alone favours long lives and gives fewer hits.)
 *   optimum      knows the time of every request. A hit is a pair of requests for one name within one life; it needs a rule
 *                for the time between. The largest set of such intervals of which at most capacity overlap is found by
 *                dropping, whenever one too many overlap, the one that ends last (M. C. Carlisle, E. L. Lloyd, "On the
 *                k-coloring of intervals", Discrete Applied Mathematics 59, 1995; L. A. Belady's MIN of 1966 with the
 *                choice not to admit). No policy without refresh hits more often.
 */
#include <stdlib.h>
#include <string.h>
#include "hydns-sim/contender.h"
#include "hydns-sim/future.h"
#include "hydns-sim/lives.h"
#include "hydns-sim/resolver.h"

struct contender {
	bool optimum;
	uint32_t capacity;
	struct future future;
	struct lives lives;
	double *worth;                 /* by id */
	uint32_t *heap, *heap_at;      /* least worth at the top; heap_at by id */
	uint32_t count;
	struct contender_stats stats;
};

/* -- heap --------------------------------------------------------------------------------------------------- */
static void put(struct contender *c, uint32_t at, uint32_t id)
{
	c->heap[at] = id;
	c->heap_at[id] = at;
}

static void sift(struct contender *c, uint32_t at, uint32_t id)
{
	while (at && c->worth[c->heap[(at - 1) / 2]] > c->worth[id]) {
		put(c, at, c->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	for (;;) {
		uint64_t child = 2 * (uint64_t)at + 1;

		if (child >= c->count)
			break;
		if (child + 1 < c->count && c->worth[c->heap[child + 1]] < c->worth[c->heap[child]])
			child++;
		if (c->worth[c->heap[child]] >= c->worth[id])
			break;
		put(c, at, c->heap[child]);
		at = (uint32_t)child;
	}
	put(c, at, id);
}

static void leave(struct contender *c, uint32_t id)
{
	uint32_t at = c->heap_at[id], moved = c->heap[--c->count];

	if (moved != id)
		sift(c, at, moved);
}

static void over(void *arg, uint32_t id)
{
	leave(arg, id);
}

/* -- worth --------------------------------------------------------------------------------------------------- */
/* Below 0 when it will not be requested again in its life. */
static double worth_of(const struct contender *c, uint32_t id, uint64_t expires_s, uint64_t now_us)
{
	uint64_t last_us = now_us, end_us = expires_s * 1000000, hits, next;

	if (c->optimum) {
		next = future_next(&c->future, id);
		return next < end_us ? 1e18 - (double)next : -1;
	}
	hits = future_hits(&c->future, id, end_us, &last_us);
	return hits ? (double)hits / (double)(last_us - now_us + 1) : -1;
}

static void drop(struct contender *c, uint32_t id)
{
	leave(c, id);
	lives_end(&c->lives, id);
}

static bool oracle_query(struct contender *c, uint32_t id, uint64_t now_us)
{
	future_pass(&c->future, id);
	lives_advance(&c->lives, now_us);
	if (!lives_has(&c->lives, id))
		return false;
	c->worth[id] = worth_of(c, id, c->lives.expires_s[id], now_us);
	if (c->worth[id] < 0)
		drop(c, id);
	else
		sift(c, c->heap_at[id], id);
	return true;
}

static bool oracle_answered(struct contender *c, const struct sim_answer *a, uint64_t now_us)
{
	double worth;

	lives_advance(&c->lives, now_us);
	if (lives_has(&c->lives, a->id))
		return false;
	worth = worth_of(c, a->id, a->expires_s, now_us);
	if (worth < 0 || (c->count >= c->capacity && worth <= c->worth[c->heap[0]]))
		return false;
	if (c->count >= c->capacity) {
		drop(c, c->heap[0]);
		c->stats.evictions++;
	}
	c->worth[a->id] = worth;
	lives_begin(&c->lives, a->id, a->expires_s);
	c->count++;
	sift(c, c->count - 1, a->id);
	c->stats.installs++;
	return false;
}

static void oracle_close(struct contender *c)
{
	future_free(&c->future);
	lives_free(&c->lives);
	free(c->worth);
	free(c->heap);
	free(c->heap_at);
	free(c);
}

static struct contender *oracle_open(const struct sim_trace *t, uint32_t capacity, bool optimum)
{
	struct contender *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->optimum = optimum;
	c->capacity = capacity;
	c->worth = calloc(t->ids, sizeof(*c->worth));
	c->heap_at = calloc(t->ids, sizeof(*c->heap_at));
	c->heap = calloc((size_t)capacity + 1, sizeof(*c->heap));
	if (c->worth && c->heap && c->heap_at && future_init(&c->future, t, SIM_BASE_US) &&
	    lives_init(&c->lives, t->ids, over, c))
		return c;
	oracle_close(c);
	return NULL;
}

static struct contender *clairvoyant_open(const struct sim_trace *t, uint32_t capacity)
{
	return oracle_open(t, capacity, false);
}

static struct contender *optimum_open(const struct sim_trace *t, uint32_t capacity)
{
	return oracle_open(t, capacity, true);
}

static void oracle_stats(const struct contender *c, struct contender_stats *out)
{
	*out = c->stats;
	out->rules = c->count;
}

const struct contender_kind contender_clairvoyant = {
	.name = "clairvoyant", .title = "clairvoyant", .open = clairvoyant_open, .close = oracle_close,
	.query = oracle_query, .answered = oracle_answered, .stats = oracle_stats,
};
const struct contender_kind contender_optimum = {
	.name = "optimum", .title = "optimum", .open = optimum_open, .close = oracle_close, .query = oracle_query,
	.answered = oracle_answered, .stats = oracle_stats,
};
