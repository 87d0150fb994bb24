/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * S3-FIFO: a small queue of newcomers (a tenth), a main queue with reinsertion, and a ghost queue of numbers as long as the
 * main one. J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023,
 * algorithm 1: two-bit counters; objects of the small queue with more than one request move to the main queue, the numbers of
 * the others to the ghost queue; a newcomer whose number is there goes to the main queue at once.
 */
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

#define SMALL_PART 10                  /* one in so many */
#define FREQ_MAX   3
#define FREQ_MOVES 1                   /* more than this: to the main queue */

enum where { NOWHERE, SMALL, MAIN, GHOST };

struct cache {
	struct cache_base base;
	uint32_t capacity, small_size, ghost_size;
	struct queues in;
	uint8_t *freq;
};

static void s3fifo_close(struct cache *c)
{
	queues_free(&c->in);
	free(c->freq);
	free(c);
}

static struct cache *s3fifo_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->capacity = capacity;
	c->small_size = capacity / SMALL_PART ? capacity / SMALL_PART : 1;
	c->ghost_size = capacity - c->small_size;
	c->freq = calloc(ids, 1);
	if (queues_init(&c->in, ids) && c->freq)
		return c;
	s3fifo_close(c);
	return NULL;
}

static bool resident(const struct cache *c, uint32_t id)
{
	return c->in.where[id] == SMALL || c->in.where[id] == MAIN;
}

static bool s3fifo_access(struct cache *c, uint32_t id)
{
	if (!resident(c, id))
		return false;
	if (c->freq[id] < FREQ_MAX)
		c->freq[id]++;
	return true;
}

static void s3fifo_remove(struct cache *c, uint32_t id)
{
	if (resident(c, id))
		queues_leave(&c->in, id);
}

static void evict_main(struct cache *c)
{
	for (;;) {
		uint32_t id = c->in.queue[MAIN].tail;

		queues_leave(&c->in, id);
		if (!c->freq[id]) {
			c->base.gone(c->base.arg, id);
			return;
		}
		c->freq[id]--;
		queues_enter(&c->in, id, MAIN);
	}
}

static void to_ghost(struct cache *c, uint32_t id)
{
	if (!c->ghost_size)
		return;
	while (c->in.queue[GHOST].count >= c->ghost_size)
		queues_leave(&c->in, c->in.queue[GHOST].tail);
	queues_enter(&c->in, id, GHOST);
}

/* False: nobody left, the last ones moved to the main queue. */
static bool evict_small(struct cache *c)
{
	while (c->in.queue[SMALL].count) {
		uint32_t id = c->in.queue[SMALL].tail;

		queues_leave(&c->in, id);
		if (c->freq[id] > FREQ_MOVES) {
			c->freq[id] = 0;
			queues_enter(&c->in, id, MAIN);
			continue;
		}
		c->base.gone(c->base.arg, id);
		to_ghost(c, id);
		return true;
	}
	return false;
}

static void s3fifo_insert(struct cache *c, uint32_t id)
{
	bool known = c->in.where[id] == GHOST;

	if (known)
		queues_leave(&c->in, id);
	while (c->in.queue[SMALL].count + c->in.queue[MAIN].count >= c->capacity)
		if (!c->in.queue[MAIN].count || c->in.queue[SMALL].count >= c->small_size) {
			if (!evict_small(c))
				evict_main(c);
		} else {
			evict_main(c);
		}
	c->freq[id] = 0;
	queues_enter(&c->in, id, known ? MAIN : SMALL);
}

const struct cache_kind cache_s3fifo = {
	s3fifo_open, s3fifo_close, s3fifo_access, s3fifo_insert, s3fifo_remove,
	2 * sizeof(struct queue_links) + 2,
};
