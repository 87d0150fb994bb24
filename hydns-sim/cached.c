/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Makes contenders of the replacement policies of cache.h, and of the a-priori choice of the n most queried names. */
#include <stdlib.h>
#include <string.h>
#include "hydns-sim/cache.h"
#include "hydns-sim/contender.h"
#include "hydns-sim/lives.h"

struct contender {
	const struct cache_kind *kind; /* NULL: a-priori top-n */
	struct cache *cache;
	bool *chosen;                  /* top-n */
	uint32_t capacity;
	struct lives lives;
	struct contender_stats stats;
};

static void gone(void *arg, uint32_t id)
{
	struct contender *c = arg;

	if (!lives_has(&c->lives, id))
		return;                /* a newcomer that was not admitted */
	lives_end(&c->lives, id);
	c->stats.evictions++;
}

static void over(void *arg, uint32_t id)
{
	struct contender *c = arg;

	if (c->kind)
		c->kind->remove(c->cache, id);
}

static void cached_close(struct contender *c)
{
	if (c->cache)
		c->kind->close(c->cache);
	free(c->chosen);
	lives_free(&c->lives);
	free(c);
}

static struct contender *cached_open(const struct sim_trace *t, uint32_t capacity, const struct cache_kind *kind)
{
	struct contender *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->kind = kind;
	c->capacity = capacity;
	if (kind)
		c->cache = kind->open(capacity, t->ids);
	if (!lives_init(&c->lives, t->ids, over, c) || (kind && !c->cache)) {
		cached_close(c);
		return NULL;
	}
	if (kind)
		*(struct cache_base *)c->cache = (struct cache_base){ gone, c };
	return c;
}

static bool cached_query(struct contender *c, uint32_t id, uint64_t now_us)
{
	lives_advance(&c->lives, now_us);
	if (c->kind)
		c->kind->access(c->cache, id);
	return lives_has(&c->lives, id);
}

static bool cached_answered(struct contender *c, const struct sim_answer *a, uint64_t now_us)
{
	lives_advance(&c->lives, now_us);
	if (lives_has(&c->lives, a->id) || (c->chosen && !c->chosen[a->id]))
		return false;
	lives_begin(&c->lives, a->id, a->expires_s);
	c->stats.installs++;
	if (c->kind)
		c->kind->insert(c->cache, a->id);
	return false;
}

static void cached_stats(const struct contender *c, struct contender_stats *out)
{
	*out = c->stats;
	out->rules = c->lives.count;
	out->bytes = c->kind ? c->kind->bytes_each * (size_t)c->capacity : 0;
}

/* -- a-priori top-n -------------------------------------------------------------------------------------- */
struct total {
	uint32_t count, id;
};

static int by_count(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	return x->count != y->count ? (x->count < y->count ? 1 : -1) : (x->id > y->id) - (x->id < y->id);
}

/* Marks the n most queried ids of the whole trace. */
static bool choose(struct contender *c, const struct sim_trace *t)
{
	struct total *total = calloc(t->ids, sizeof(*total));

	c->chosen = calloc(t->ids, sizeof(*c->chosen));
	if (!total || !c->chosen) {
		free(total);
		return false;
	}
	for (uint32_t i = 0; i < t->ids; i++)
		total[i].id = i;
	for (size_t i = 0; i < t->count; i++)
		if (t->ttl[t->request[i].id])
			total[t->request[i].id].count++;
	qsort(total, t->ids, sizeof(*total), by_count);
	for (uint32_t i = 0; i < t->ids && i < c->capacity; i++)
		c->chosen[total[i].id] = true;
	free(total);
	return true;
}

static struct contender *topn_open(const struct sim_trace *t, uint32_t capacity)
{
	struct contender *c = cached_open(t, capacity, NULL);

	if (c && !choose(c, t)) {
		cached_close(c);
		return NULL;
	}
	return c;
}

const struct contender_kind contender_topn = {
	.name = "topn", .title = "a-priori top-n", .open = topn_open, .close = cached_close, .query = cached_query,
	.answered = cached_answered, .stats = cached_stats,
};

#define CONTENDER(which)
#define CACHED(which, text)                                                                              \
	static struct contender *which##_open(const struct sim_trace *t, uint32_t capacity)              \
	{                                                                                                \
		return cached_open(t, capacity, &cache_##which);                                         \
	}                                                                                                \
	const struct contender_kind contender_##which = {                                                \
		.name = #which, .title = text, .online = true, .open = which##_open,                     \
		.close = cached_close, .query = cached_query, .answered = cached_answered,               \
		.stats = cached_stats,                                                                   \
	};
#include "hydns-sim/contenders.def"
