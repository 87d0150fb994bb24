/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * W-TinyLFU: an LRU window of 1 % before a main SLRU (a fifth on probation, the rest protected). An object evicted from the
 * window enters the main part only when a sketch has counted it more often than the main part's victim.
 * G. Einziger, R. Friedman, B. Manes, "TinyLFU: a highly efficient cache admission policy", ACM ToS 13(4), 2017.
 * The sketch: count-min of 4-bit counters, four rows, each of the least power of two that is at least four times capacity (as
 * in Caffeine, 16 counters for each object); and a doorkeeper (Bloom filter, three bits a key). After ten times capacity
 * accesses it halves the counters and empties the doorkeeper.
 */
#include <string.h>
#include "hydns-sim/cache.h"
#include "hydns-sim/queue.h"

#define WINDOW_PERCENT    1
#define PROTECTED_PERCENT 80
#define SAMPLE_FACTOR     10
#define ROWS              4
#define ROW_FACTOR        4            /* counters of a row an object */
#define COUNTER_MAX       15
#define DOOR_FACTOR       4            /* bits of the doorkeeper a counter of a row */
#define DOOR_BITS         3

enum where { NOWHERE, WINDOW, PROBATION, PROTECTED };

struct cache {
	struct cache_base base;
	uint32_t capacity, window_size, protected_size;
	struct queues in;
	uint8_t *counter[ROWS];        /* a byte each here; the memory stated counts half of one */
	uint8_t *door;
	uint32_t mask;
	uint64_t seen, sample;
};

static void wtinylfu_close(struct cache *c)
{
	for (int row = 0; row < ROWS; row++)
		free(c->counter[row]);
	free(c->door);
	queues_free(&c->in);
	free(c);
}

static bool allocate(struct cache *c, uint32_t ids)
{
	bool good = true;

	for (int row = 0; row < ROWS; row++) {
		c->counter[row] = calloc((size_t)c->mask + 1, 1);
		good = good && c->counter[row];
	}
	c->door = calloc(((size_t)c->mask + 1) * DOOR_FACTOR / 8, 1);
	return queues_init(&c->in, ids) && good && c->door;
}

static struct cache *wtinylfu_open(uint32_t capacity, uint32_t ids)
{
	struct cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->capacity = capacity;
	c->window_size = (uint32_t)((uint64_t)capacity * WINDOW_PERCENT / 100);
	if (!c->window_size)
		c->window_size = 1;
	c->protected_size = (uint32_t)((uint64_t)(capacity - c->window_size) * PROTECTED_PERCENT / 100);
	c->sample = (uint64_t)capacity * SAMPLE_FACTOR;
	for (c->mask = 15; c->mask < ROW_FACTOR * (uint64_t)capacity - 1; c->mask = c->mask * 2 + 1)
		;
	if (allocate(c, ids))
		return c;
	wtinylfu_close(c);
	return NULL;
}

/* -- the sketch ---------------------------------------------------------------------------------------- */
static uint64_t mix(uint64_t x, uint64_t salt)
{
	x = (x + salt + 1) * 0x9e3779b97f4a7c15ULL;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static bool door_has(const struct cache *c, uint32_t id)
{
	uint64_t mask = ((uint64_t)c->mask + 1) * DOOR_FACTOR - 1;

	for (uint64_t i = 0; i < DOOR_BITS; i++) {
		uint64_t bit = mix(id, ROWS + i) & mask;

		if (!(c->door[bit / 8] & 1U << bit % 8))
			return false;
	}
	return true;
}

static void door_add(struct cache *c, uint32_t id)
{
	uint64_t mask = ((uint64_t)c->mask + 1) * DOOR_FACTOR - 1;

	for (uint64_t i = 0; i < DOOR_BITS; i++) {
		uint64_t bit = mix(id, ROWS + i) & mask;

		c->door[bit / 8] |= (uint8_t)(1U << bit % 8);
	}
}

static unsigned estimate(const struct cache *c, uint32_t id)
{
	unsigned least = COUNTER_MAX;

	for (uint64_t row = 0; row < ROWS; row++) {
		unsigned n = c->counter[row][mix(id, row) & c->mask];

		if (n < least)
			least = n;
	}
	return least + door_has(c, id);
}

static void halve(struct cache *c)
{
	for (int row = 0; row < ROWS; row++)
		for (size_t i = 0; i <= c->mask; i++)
			c->counter[row][i] /= 2;
	memset(c->door, 0, ((size_t)c->mask + 1) * DOOR_FACTOR / 8);
	c->seen /= 2;
}

static void count(struct cache *c, uint32_t id)
{
	if (!door_has(c, id)) {
		door_add(c, id);
	} else {
		for (uint64_t row = 0; row < ROWS; row++) {
			uint8_t *n = &c->counter[row][mix(id, row) & c->mask];

			if (*n < COUNTER_MAX)
				++*n;
		}
	}
	if (++c->seen >= c->sample)
		halve(c);
}

/* -- the queues ---------------------------------------------------------------------------------------- */
static bool wtinylfu_access(struct cache *c, uint32_t id)
{
	enum where where = c->in.where[id];

	count(c, id);
	if (where == NOWHERE)
		return false;
	queues_leave(&c->in, id);
	queues_enter(&c->in, id, where == WINDOW ? WINDOW : PROTECTED);
	if (c->in.queue[PROTECTED].count > c->protected_size && c->in.queue[PROTECTED].tail != id) {
		uint32_t demoted = c->in.queue[PROTECTED].tail;

		queues_leave(&c->in, demoted);
		queues_enter(&c->in, demoted, PROBATION);
	}
	return true;
}

static void wtinylfu_remove(struct cache *c, uint32_t id)
{
	if (c->in.where[id] != NOWHERE)
		queues_leave(&c->in, id);
}

static void lose(struct cache *c, uint32_t id)
{
	queues_leave(&c->in, id);
	c->base.gone(c->base.arg, id);
}

static void wtinylfu_insert(struct cache *c, uint32_t id)
{
	uint32_t main_size = c->capacity - c->window_size;

	queues_enter(&c->in, id, WINDOW);
	while (c->in.queue[WINDOW].count > c->window_size) {
		uint32_t candidate = c->in.queue[WINDOW].tail, victim;

		if (c->in.queue[PROBATION].count + c->in.queue[PROTECTED].count < main_size) {
			queues_leave(&c->in, candidate);
			queues_enter(&c->in, candidate, PROBATION);
			continue;
		}
		victim = c->in.queue[PROBATION].count ? c->in.queue[PROBATION].tail : c->in.queue[PROTECTED].tail;
		if (victim == QUEUE_NONE || estimate(c, candidate) <= estimate(c, victim)) {
			lose(c, candidate);
			continue;
		}
		lose(c, victim);
		queues_leave(&c->in, candidate);
		queues_enter(&c->in, candidate, PROBATION);
	}
}

const struct cache_kind cache_wtinylfu = {
	wtinylfu_open, wtinylfu_close, wtinylfu_access, wtinylfu_insert, wtinylfu_remove,
	sizeof(struct queue_links) + 1 + ROW_FACTOR * (ROWS / 2 + DOOR_FACTOR / 8),
};
