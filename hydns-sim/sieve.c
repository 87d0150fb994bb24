/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* SIEVE: a FIFO queue and a hand that moves from the oldest to the newest and spares objects requested since its last visit.
 * Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi, "SIEVE is simpler than LRU", NSDI 2024. */
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

enum { NOT_RESIDENT, RESIDENT };

struct cache {
	struct cache_base base;
	uint32_t capacity, hand;
	struct queues in;
	bool *visited;
};

static void sieve_close(struct cache *c)
{
	queues_free(&c->in);
	free(c->visited);
	free(c);
}

static struct cache *sieve_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->capacity = capacity;
	c->hand = QUEUE_NONE;
	c->visited = calloc(ids, sizeof(*c->visited));
	if (queues_init(&c->in, ids) && c->visited)
		return c;
	sieve_close(c);
	return NULL;
}

static bool sieve_access(struct cache *c, uint32_t id)
{
	if (c->in.where[id] == NOT_RESIDENT)
		return false;
	c->visited[id] = true;
	return true;
}

static void sieve_remove(struct cache *c, uint32_t id)
{
	if (c->in.where[id] == NOT_RESIDENT)
		return;
	if (c->hand == id)
		c->hand = c->in.link[id].newer;
	queues_leave(&c->in, id);
}

static uint32_t sieve_victim(struct cache *c)
{
	uint32_t at = c->hand != QUEUE_NONE ? c->hand : c->in.queue[RESIDENT].tail;

	while (c->visited[at]) {
		c->visited[at] = false;
		at = c->in.link[at].newer != QUEUE_NONE ? c->in.link[at].newer : c->in.queue[RESIDENT].tail;
	}
	c->hand = at;
	return at;
}

static void sieve_insert(struct cache *c, uint32_t id)
{
	while (c->in.queue[RESIDENT].count >= c->capacity) {
		uint32_t victim = sieve_victim(c);

		sieve_remove(c, victim);
		c->base.gone(c->base.arg, victim);
	}
	queues_enter(&c->in, id, RESIDENT);
	c->visited[id] = false;
}

const struct cache_kind cache_sieve = {
	sieve_open, sieve_close, sieve_access, sieve_insert, sieve_remove,
	sizeof(struct queue_links) + 1,
};
