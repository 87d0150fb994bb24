/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Popularity sketch: count-min (G. Cormode, S. Muthukrishnan, "An improved data stream summary: the
 * count-min sketch and its applications", J. Algorithms 55(1), 2005) with conservative update (C. Estan,
 * G. Varghese, "New directions in traffic measurement and accounting", SIGCOMM 2002), a doorkeeper
 * against one-time names and ageing by halving (G. Einziger, R. Friedman, B. Manes, "TinyLFU: a highly
 * efficient cache admission policy", ACM ToS 13(4), 2017).
 *
 * Blocked: everything of a key is in one block of 64 octets, so counting costs one cache miss:
 *   4 octets   the epoch (number of halvings) to which the block has been halved
 *   4 octets   doorkeeper: a Bloom filter of 32 bits, two per key, emptied at every halving
 *  56 octets   4 rows of 14 saturating 8-bit counters; a key has one counter in each row
 * A block catches up with halvings when it is next accessed, so nothing ever walks over the table. A halving comes after a
 * half-life, and earlier when there were COUNTED_A_BLOCK times as many sightings as blocks. So the sketch remembers as long
 * as it can distinguish names, at any rate of queries; hydns_sketch_window_ms() says how long that is.
 *
 * Error. With N sightings of other keys in a block since they were last halved away, a row errs by N/14
 * on average, and P(the estimate errs by more than e*N/14) <= e^-4 = 1.8 % (four independent rows,
 * Markov); conservative update and the doorkeeper only lower it. N is Poisson, with a mean below twice
 * COUNTED_A_BLOCK, for many rare keys; a very hot key raises only the 4 of 56 counters that it has in its
 * own block, so that a neighbour in the block is misjudged by it only when all four rows coincide
 * (14^-4 = 0.003 %). The estimate is never below the number of sightings since the last halving until
 * it saturates at 256.
 *
 * Memory: 64 octets a block, blocks = the least power of two >= width / 14. Nothing is allocated after
 * hydns_sketch_new().
 */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#define ROWS           4
#define ROW_COUNTERS   14
#define COUNTER_MAX    UINT8_MAX
#define BLOCK_BYTES    64
#define BLOCKS_MAX     (1U << 26)      /* 4 GiB: more is a mistake */
/* Counts are halved after so many sightings a block, however little time has passed: beyond that the error hides the
 * differences between names. */
#define COUNTED_A_BLOCK 16
/* After this many halvings a counter is zero. */
#define HALVINGS_MAX   8

struct block {
	uint32_t epoch;
	uint32_t door;
	uint8_t counter[ROWS][ROW_COUNTERS];
};
_Static_assert(sizeof(struct block) == BLOCK_BYTES, "a block is one cache line");

struct hydns_sketch {
	struct block *blocks;
	uint32_t mask;
	uint32_t half_life_ms;
	uint64_t seed[2];
	uint64_t last_ms;
	uint64_t aged_ms;      /* time gone since the last halving ... */
	uint64_t before_ms;    /* ... and the weight of the time before it, halved with the counters */
	uint32_t counted;      /* sightings that went into counters, since the last halving */
	uint32_t epoch;
	bool started;
};

/* Where a key's counters and doorkeeper bits are. */
struct place {
	uint32_t block;
	uint32_t door;
	uint8_t column[ROWS];
};

static uint32_t blocks_for(uint32_t width)
{
	uint64_t blocks = 1;

	while (blocks * ROW_COUNTERS < width)
		blocks *= 2;
	return blocks > BLOCKS_MAX ? 0 : (uint32_t)blocks;
}

struct hydns_sketch *hydns_sketch_new(uint32_t width, uint32_t half_life_ms, const uint64_t seed[2])
{
	uint32_t blocks = blocks_for(width);
	struct hydns_sketch *s;

	if (!blocks || !half_life_ms)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->blocks = hydns_table_new((size_t)blocks * BLOCK_BYTES);
	if (!s->blocks) {
		free(s);
		return NULL;
	}
	s->mask = blocks - 1;
	s->half_life_ms = half_life_ms;
	s->seed[0] = seed[0];
	s->seed[1] = seed[1];
	return s;
}

void hydns_sketch_free(struct hydns_sketch *s)
{
	if (!s)
		return;
	free(s->blocks);
	free(s);
}

size_t hydns_sketch_bytes(const struct hydns_sketch *s)
{
	return sizeof(*s) + ((size_t)s->mask + 1) * BLOCK_BYTES;
}

/* Both halves of the 128-bit product: every bit of a and b reaches every bit of the result's middle. */
static uint64_t multiply_fold(uint64_t a, uint64_t b)
{
	__uint128_t product = (__uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Keyed by the secret seed, so that no client can choose names that share a block. */
static struct place find(const struct hydns_sketch *s, uint64_t key)
{
	uint64_t first = multiply_fold(key ^ s->seed[0], 0x9e3779b97f4a7c15ULL ^ s->seed[1]);
	uint64_t h = multiply_fold(first ^ s->seed[1], 0xd6e8feb86659fd93ULL ^ key);
	struct place p;

	p.block = (uint32_t)first & s->mask;
	for (int row = 0; row < ROWS; row++)
		p.column[row] = (uint8_t)(((h >> (8 * row) & 0xff) * ROW_COUNTERS) >> 8);
	p.door = 1U << (h >> 32 & 31) | 1U << (h >> 37 & 31);
	return p;
}

/* One halving: by time, or because the blocks are full enough. */
static void age(struct hydns_sketch *s)
{
	uint64_t gone = s->aged_ms < s->half_life_ms ? s->aged_ms : s->half_life_ms;

	s->before_ms = (s->before_ms + gone) / 2;
	s->aged_ms -= gone;
	s->counted = 0;
	s->epoch++;
}

/*
 * Advances the epoch. Only time that goes forward counts, so a clock that steps back ages nothing, and does not stop ageing
 * until it has caught up; a jump ahead ages all counts to 0.
 */
static void advance(struct hydns_sketch *s, uint64_t now_ms)
{
	uint64_t halvings;

	if (!s->started || now_ms < s->last_ms) {
		s->started = true;
		s->last_ms = now_ms;
		return;
	}
	if (now_ms - s->last_ms > UINT64_MAX - s->aged_ms)
		s->aged_ms = UINT64_MAX;
	else
		s->aged_ms += now_ms - s->last_ms;
	s->last_ms = now_ms;
	if (s->counted >= (s->mask + 1) * COUNTED_A_BLOCK)
		age(s);
	for (halvings = 0; s->aged_ms >= s->half_life_ms && halvings < HALVINGS_MAX; halvings++)
		age(s);
	s->aged_ms %= s->half_life_ms; /* all counts are 0 */
}

static unsigned missed_halvings(const struct hydns_sketch *s, const struct block *b)
{
	uint32_t missed = s->epoch - b->epoch;

	return missed > HALVINGS_MAX ? HALVINGS_MAX : missed;
}

static void halve(struct block *b, unsigned times)
{
	for (int row = 0; row < ROWS; row++)
		for (int column = 0; column < ROW_COUNTERS; column++)
			b->counter[row][column] = (uint8_t)(b->counter[row][column] >> times);
	b->door = 0;
}

static uint32_t least(const struct block *b, const struct place *p)
{
	uint32_t min = COUNTER_MAX;

	for (int row = 0; row < ROWS; row++)
		if (b->counter[row][p->column[row]] < min)
			min = b->counter[row][p->column[row]];
	return min;
}

uint32_t hydns_sketch_count(struct hydns_sketch *s, uint64_t key, uint64_t now_ms)
{
	return hydns_sketch_weigh(s, key, 1, now_ms);
}

uint32_t hydns_sketch_weigh(struct hydns_sketch *s, uint64_t key, uint32_t times, uint64_t now_ms)
{
	struct place p = find(s, key);
	struct block *b = &s->blocks[p.block];
	uint32_t count;

	advance(s, now_ms);
	if (b->epoch != s->epoch) {
		halve(b, missed_halvings(s, b));
		b->epoch = s->epoch;
	}
	count = least(b, &p);
	if ((b->door & p.door) != p.door) {
		b->door |= p.door;      /* the first sighting goes to the doorkeeper only */
		return count + 1;
	}
	s->counted += times;
	if (count == COUNTER_MAX)
		return count + 1;
	count = times < COUNTER_MAX - count ? count + times : COUNTER_MAX;
	for (int row = 0; row < ROWS; row++)
		if (b->counter[row][p.column[row]] < count)
			b->counter[row][p.column[row]] = (uint8_t)count;
	return count + 1;
}

void hydns_sketch_prefetch(const struct hydns_sketch *s, uint64_t key)
{
	__builtin_prefetch(&s->blocks[find(s, key).block], 1);
}

uint32_t hydns_sketch_estimate(const struct hydns_sketch *s, uint64_t key)
{
	struct place p = find(s, key);
	const struct block *b = &s->blocks[p.block];
	unsigned missed = missed_halvings(s, b);

	if (missed)
		return least(b, &p) >> missed;
	return least(b, &p) + ((b->door & p.door) == p.door);
}

uint32_t hydns_sketch_window_ms(const struct hydns_sketch *s)
{
	uint64_t window = s->before_ms + s->aged_ms;

	if (!window)
		return 1;
	return window > UINT32_MAX ? UINT32_MAX : (uint32_t)window;
}
