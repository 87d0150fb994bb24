/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The most hits by knowing the exact rates: at every moment it has rules for the capacity names with the highest true rates,
 * among those whose answer the resolver has, from the moment on at which the resolver has it. The generator draws queries
 * independently, so only the rates predict the next query, and no other choice of as many names has more expected hits. Names
 * that never repeat never get a rule. This is an upper bound for every policy that does not know the future, but for the
 * queries that come during a lookup: a policy that refreshes early saves these.
 *
 * Ranks represent rates: churn only swaps names between them. A tree of partial sums counts the living answers of higher rank
 * (P. M. Fenwick, "A new data structure for cumulative frequency tables", Software: Practice and Experience 24(3), 1994).
 */
#include <stdlib.h>
#include "hydns-sim/contender.h"
#include "hydns-sim/lives.h"
#include "hydns-sim/resolver.h"

struct contender {
	const struct sim_trace *trace;
	uint32_t capacity;
	uint32_t *rank;                /* by id */
	uint32_t *name;                /* by rank */
	uint32_t *sum;                 /* Fenwick's tree, from 1 on: living answers by rank */
	size_t swapped;                /* of the trace's swaps */
	struct lives lives;
};

static void add(struct contender *c, uint32_t rank, uint32_t n)
{
	for (uint32_t i = rank + 1; i <= c->trace->ranks; i += i & -i)
		c->sum[i] += n;
}

/* Living answers of a lower rank number, which is a higher rate. */
static uint32_t above(const struct contender *c, uint32_t rank)
{
	uint32_t n = 0;

	for (uint32_t i = rank; i; i -= i & -i)
		n += c->sum[i];
	return n;
}

static void over(void *arg, uint32_t id)
{
	struct contender *c = arg;

	add(c, c->rank[id], UINT32_MAX);       /* less one */
}

static void swap(struct contender *c, uint32_t a, uint32_t b)
{
	uint32_t x = c->name[a], y = c->name[b];
	uint32_t more = lives_has(&c->lives, y), less = lives_has(&c->lives, x);

	add(c, a, more - less);
	add(c, b, less - more);
	c->name[a] = y;
	c->name[b] = x;
	c->rank[x] = b;
	c->rank[y] = a;
}

static void advance(struct contender *c, uint64_t now_us)
{
	const struct sim_trace *t = c->trace;

	lives_advance(&c->lives, now_us);
	for (; c->swapped < t->swaps && SIM_BASE_US + t->swap[c->swapped].at_us <= now_us; c->swapped++)
		swap(c, t->swap[c->swapped].a, t->swap[c->swapped].b);
}

static bool rates_query(struct contender *c, uint32_t id, uint64_t now_us)
{
	advance(c, now_us);
	return id < c->trace->ranks && lives_has(&c->lives, id) && above(c, c->rank[id]) < c->capacity;
}

static bool rates_answered(struct contender *c, const struct sim_answer *a, uint64_t now_us)
{
	advance(c, now_us);
	if (a->id >= c->trace->ranks || lives_has(&c->lives, a->id))
		return false;
	lives_begin(&c->lives, a->id, a->expires_s);
	if (lives_has(&c->lives, a->id))
		add(c, c->rank[a->id], 1);
	return false;
}

static void rates_close(struct contender *c)
{
	lives_free(&c->lives);
	free(c->rank);
	free(c->name);
	free(c->sum);
	free(c);
}

static struct contender *rates_open(const struct sim_trace *t, uint32_t capacity)
{
	struct contender *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->trace = t;
	c->capacity = capacity;
	c->rank = malloc(t->ranks * sizeof(*c->rank));
	c->name = malloc(t->ranks * sizeof(*c->name));
	c->sum = calloc((size_t)t->ranks + 1, sizeof(*c->sum));
	if (!lives_init(&c->lives, t->ids, over, c) || !c->rank || !c->name || !c->sum) {
		rates_close(c);
		return NULL;
	}
	for (uint32_t i = 0; i < t->ranks; i++)
		c->rank[i] = c->name[i] = i;
	return c;
}

static void rates_stats(const struct contender *c, struct contender_stats *out)
{
	*out = (struct contender_stats){
		.rules = c->lives.count < c->capacity ? c->lives.count : c->capacity,
	};
}

const struct contender_kind contender_rates = {
	.name = "rates", .title = "exact rates", .open = rates_open, .close = rates_close, .query = rates_query,
	.answered = rates_answered, .stats = rates_stats, .needs_ranks = true,
};
