/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* LFU: evicts the object with the fewest requests since its insertion; of equals the one that has had its count longest. In
 * constant time: a list of counts in use, each with its objects. K. Shah, A. Mitra, D. Matani, "An O(1) algorithm for
 * implementing the LFU cache eviction scheme", 2010. */
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

struct level {                         /* objects of one count; levels form a queue, least count at the tail */
	uint32_t count;
	struct queue objects;
};

struct cache {
	struct cache_base base;
	uint32_t capacity, residents;
	struct queue levels;
	struct queue_links *level_link, *link;
	struct level *level;           /* at most one for each object, and one more while an object moves */
	uint32_t *unused, unused_count;
	uint32_t *level_of;            /* by id; QUEUE_NONE: not resident */
};

static void lfu_close(struct cache *c)
{
	free(c->level_link);
	free(c->link);
	free(c->level);
	free(c->unused);
	free(c->level_of);
	free(c);
}

static struct cache *lfu_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));
	uint32_t levels = capacity + 2;

	if (!c)
		return NULL;
	c->capacity = capacity;
	queue_init(&c->levels);
	c->level_link = malloc(levels * sizeof(*c->level_link));
	c->level = malloc(levels * sizeof(*c->level));
	c->unused = malloc(levels * sizeof(*c->unused));
	c->link = malloc(ids * sizeof(*c->link));
	c->level_of = malloc(ids * sizeof(*c->level_of));
	if (!c->level_link || !c->level || !c->unused || !c->link || !c->level_of) {
		lfu_close(c);
		return NULL;
	}
	while (c->unused_count < levels) {
		c->unused[c->unused_count] = c->unused_count;
		c->unused_count++;
	}
	for (uint32_t i = 0; i < ids; i++)
		c->level_of[i] = QUEUE_NONE;
	return c;
}

/* The level of this count, just above the level below (QUEUE_NONE: at the tail). */
static uint32_t level_above(struct cache *c, uint32_t below, uint32_t count)
{
	uint32_t next = below == QUEUE_NONE ? c->levels.tail : c->level_link[below].newer;
	uint32_t new;

	if (next != QUEUE_NONE && c->level[next].count == count)
		return next;
	new = c->unused[--c->unused_count];
	c->level[new].count = count;
	queue_init(&c->level[new].objects);
	c->level_link[new] = (struct queue_links){ .newer = next, .older = below };
	if (next != QUEUE_NONE)
		c->level_link[next].older = new;
	else
		c->levels.head = new;
	if (below != QUEUE_NONE)
		c->level_link[below].newer = new;
	else
		c->levels.tail = new;
	c->levels.count++;
	return new;
}

static void leave(struct cache *c, uint32_t id)
{
	uint32_t level = c->level_of[id];

	queue_remove(&c->level[level].objects, c->link, id);
	if (!c->level[level].objects.count) {
		queue_remove(&c->levels, c->level_link, level);
		c->unused[c->unused_count++] = level;
	}
	c->level_of[id] = QUEUE_NONE;
}

static void enter(struct cache *c, uint32_t id, uint32_t level)
{
	queue_push(&c->level[level].objects, c->link, id);
	c->level_of[id] = level;
}

static bool lfu_access(struct cache *c, uint32_t id)
{
	uint32_t level = c->level_of[id], above;

	if (level == QUEUE_NONE)
		return false;
	above = level_above(c, level, c->level[level].count + 1);
	leave(c, id);
	enter(c, id, above);
	return true;
}

static void lfu_remove(struct cache *c, uint32_t id)
{
	if (c->level_of[id] == QUEUE_NONE)
		return;
	leave(c, id);
	c->residents--;
}

static void lfu_insert(struct cache *c, uint32_t id)
{
	while (c->residents >= c->capacity) {
		uint32_t victim = c->level[c->levels.tail].objects.tail;

		lfu_remove(c, victim);
		c->base.gone(c->base.arg, victim);
	}
	enter(c, id, level_above(c, QUEUE_NONE, 1));
	c->residents++;
}

const struct cache_kind cache_lfu = {
	lfu_open, lfu_close, lfu_access, lfu_insert, lfu_remove,
	2 * sizeof(struct queue_links) + sizeof(struct level) + 4,
};
