/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * S3-FIFO: a small queue of newcomers (a tenth), a main queue with reinsertion, a ghost queue of numbers as long
 * as the main one. J. Yang, Y. Zhang, Z. Qiu, Y. Yue, K. V. Rashmi, "FIFO queues are all you need for cache
 * eviction", SOSP 2023, algorithm 1: two-bit counters; from the small queue whoever was asked for more than once
 * moves to the main queue, the others' numbers to the ghost queue; a newcomer whose number is there goes to the
 * main queue at once.
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
	struct queue queue[GHOST + 1];
	struct queue_links *link;
	uint8_t *where, *freq;
};

static void s3fifo_close(struct cache *c)
{
	free(c->link);
	free(c->where);
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
	for (int q = SMALL; q <= GHOST; q++)
		queue_init(&c->queue[q]);
	c->link = malloc(ids * sizeof(*c->link));
	c->where = calloc(ids, 1);
	c->freq = calloc(ids, 1);
	if (c->link && c->where && c->freq)
		return c;
	s3fifo_close(c);
	return NULL;
}

static bool resident(const struct cache *c, uint32_t id)
{
	return c->where[id] == SMALL || c->where[id] == MAIN;
}

static bool s3fifo_access(struct cache *c, uint32_t id)
{
	if (!resident(c, id))
		return false;
	if (c->freq[id] < FREQ_MAX)
		c->freq[id]++;
	return true;
}

static void leave(struct cache *c, uint32_t id)
{
	queue_remove(&c->queue[c->where[id]], c->link, id);
	c->where[id] = NOWHERE;
}

static void enter(struct cache *c, uint32_t id, enum where where)
{
	queue_push(&c->queue[where], c->link, id);
	c->where[id] = (uint8_t)where;
}

static void s3fifo_remove(struct cache *c, uint32_t id)
{
	if (resident(c, id))
		leave(c, id);
}

static void evict_main(struct cache *c)
{
	for (;;) {
		uint32_t id = c->queue[MAIN].tail;

		leave(c, id);
		if (!c->freq[id]) {
			c->base.gone(c->base.arg, id);
			return;
		}
		c->freq[id]--;
		enter(c, id, MAIN);
	}
}

static void to_ghost(struct cache *c, uint32_t id)
{
	if (!c->ghost_size)
		return;
	while (c->queue[GHOST].count >= c->ghost_size)
		leave(c, c->queue[GHOST].tail);
	enter(c, id, GHOST);
}

/* False: nobody left, the last ones moved to the main queue. */
static bool evict_small(struct cache *c)
{
	while (c->queue[SMALL].count) {
		uint32_t id = c->queue[SMALL].tail;

		leave(c, id);
		if (c->freq[id] > FREQ_MOVES) {
			c->freq[id] = 0;
			enter(c, id, MAIN);
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
	bool known = c->where[id] == GHOST;

	if (known)
		leave(c, id);
	while (c->queue[SMALL].count + c->queue[MAIN].count >= c->capacity)
		if (!c->queue[MAIN].count || c->queue[SMALL].count >= c->small_size) {
			if (!evict_small(c))
				evict_main(c);
		} else {
			evict_main(c);
		}
	c->freq[id] = 0;
	enter(c, id, known ? MAIN : SMALL);
}

const struct cache_kind cache_s3fifo = {
	"s3fifo", "S3-FIFO", s3fifo_open, s3fifo_close, s3fifo_access, s3fifo_insert, s3fifo_remove,
	2 * sizeof(struct queue_links) + 2,
};
