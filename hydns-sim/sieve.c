/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* SIEVE: a FIFO queue and a hand that moves from the oldest to the newest, sparing what was asked for since it
 * last came by. Y. Zhang, J. Yang, Y. Yue, Y. Vigfusson, K. V. Rashmi, "SIEVE is simpler than LRU", NSDI 2024. */
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

enum { ABSENT, PLAIN, VISITED };

struct cache {
	struct cache_base base;
	uint32_t capacity, hand;
	struct queue queue;
	struct queue_links *link;
	uint8_t *state;
};

static void sieve_close(struct cache *c)
{
	free(c->link);
	free(c->state);
	free(c);
}

static struct cache *sieve_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->capacity = capacity;
	c->hand = QUEUE_NONE;
	queue_init(&c->queue);
	c->link = malloc(ids * sizeof(*c->link));
	c->state = calloc(ids, sizeof(*c->state));
	if (c->link && c->state)
		return c;
	sieve_close(c);
	return NULL;
}

static bool sieve_access(struct cache *c, uint32_t id)
{
	if (c->state[id] == ABSENT)
		return false;
	c->state[id] = VISITED;
	return true;
}

static void sieve_remove(struct cache *c, uint32_t id)
{
	if (c->state[id] == ABSENT)
		return;
	if (c->hand == id)
		c->hand = c->link[id].newer;
	queue_remove(&c->queue, c->link, id);
	c->state[id] = ABSENT;
}

static uint32_t sieve_victim(struct cache *c)
{
	uint32_t at = c->hand != QUEUE_NONE ? c->hand : c->queue.tail;

	while (c->state[at] == VISITED) {
		c->state[at] = PLAIN;
		at = c->link[at].newer != QUEUE_NONE ? c->link[at].newer : c->queue.tail;
	}
	c->hand = at;
	return at;
}

static void sieve_insert(struct cache *c, uint32_t id)
{
	while (c->queue.count >= c->capacity) {
		uint32_t victim = sieve_victim(c);

		sieve_remove(c, victim);
		c->base.gone(c->base.arg, victim);
	}
	queue_push(&c->queue, c->link, id);
	c->state[id] = PLAIN;
}

const struct cache_kind cache_sieve = {
	"sieve", "SIEVE", sieve_open, sieve_close, sieve_access, sieve_insert, sieve_remove,
	sizeof(struct queue_links) + 1,
};
