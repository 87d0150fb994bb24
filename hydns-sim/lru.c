/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* LRU: evicts the least recently requested object. R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger, "Evaluation techniques
 * for storage hierarchies", IBM Systems Journal 9(2), 1970. */
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

enum { NOT_RESIDENT, RESIDENT };

struct cache {
	struct cache_base base;
	uint32_t capacity;
	struct queues in;
};

static void lru_close(struct cache *c)
{
	queues_free(&c->in);
	free(c);
}

static struct cache *lru_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->capacity = capacity;
	if (queues_init(&c->in, ids))
		return c;
	lru_close(c);
	return NULL;
}

static bool lru_access(struct cache *c, uint32_t id)
{
	if (c->in.where[id] == NOT_RESIDENT)
		return false;
	queues_leave(&c->in, id);
	queues_enter(&c->in, id, RESIDENT);
	return true;
}

static void lru_remove(struct cache *c, uint32_t id)
{
	if (c->in.where[id] == RESIDENT)
		queues_leave(&c->in, id);
}

static void lru_insert(struct cache *c, uint32_t id)
{
	while (c->in.queue[RESIDENT].count >= c->capacity) {
		uint32_t victim = c->in.queue[RESIDENT].tail;

		queues_leave(&c->in, victim);
		c->base.gone(c->base.arg, victim);
	}
	queues_enter(&c->in, id, RESIDENT);
}

const struct cache_kind cache_lru = {
	lru_open, lru_close, lru_access, lru_insert, lru_remove,
	sizeof(struct queue_links),
};
