/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* LRU: what was not asked for longest leaves. R. L. Mattson, J. Gecsei, D. R. Slutz, I. L. Traiger,
 * "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970. */
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

struct cache {
	struct cache_base base;
	uint32_t capacity;
	struct queue queue;
	struct queue_links *link;
	bool *resident;
};

static void lru_close(struct cache *c)
{
	free(c->link);
	free(c->resident);
	free(c);
}

static struct cache *lru_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->capacity = capacity;
	queue_init(&c->queue);
	c->link = malloc(ids * sizeof(*c->link));
	c->resident = calloc(ids, sizeof(*c->resident));
	if (c->link && c->resident)
		return c;
	lru_close(c);
	return NULL;
}

static bool lru_access(struct cache *c, uint32_t id)
{
	if (!c->resident[id])
		return false;
	queue_remove(&c->queue, c->link, id);
	queue_push(&c->queue, c->link, id);
	return true;
}

static void lru_remove(struct cache *c, uint32_t id)
{
	if (!c->resident[id])
		return;
	queue_remove(&c->queue, c->link, id);
	c->resident[id] = false;
}

static void lru_insert(struct cache *c, uint32_t id)
{
	while (c->queue.count >= c->capacity) {
		uint32_t victim = c->queue.tail;

		lru_remove(c, victim);
		c->base.gone(c->base.arg, victim);
	}
	queue_push(&c->queue, c->link, id);
	c->resident[id] = true;
}

const struct cache_kind cache_lru = {
	"lru", "LRU", lru_open, lru_close, lru_access, lru_insert, lru_remove,
	sizeof(struct queue_links),
};
