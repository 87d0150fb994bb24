/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which answers the kernel should hold.
 *
 * Worth. A slot is worth the hits that it will still serve: rate x life, where life is what remains of
 * the rule, but no more than the horizon. A rule so busy that it will be renewed before it expires
 * (RENEWAL_HITS expected in what remains) is worth rate x horizon: otherwise a hot name with a short
 * TTL would be evicted at each end of its life, for the sake of a cold one with a long TTL.
 *
 * Rate. Hits per second, r := (M r + hits) / (M + dt), the mean of the past weighed with a memory of
 * M (the backward Euler form of the exponentially weighted average; with a Gamma prior, the posterior
 * mean of a Poisson rate). It needs no exp(), has no special case at dt = 0, and adds up whoever saw
 * the queries: sightings of the plugin give the first estimate, the kernel's hits go on from there.
 *
 * Order. Doubly linked lists of rules of nearly equal worth (eight lists an octave, so within 12.5 %),
 * with a bitmap of the lists in use: hits() moves a rule in O(1), the victim is the first of the lowest
 * list. Worth only falls between two hits() of a rule, so lists are as fresh as the caller's reading of
 * the counters. Expiry: an indexed binary heap, touched only by insert and remove.
 *
 * Memory: 28 octets an id and 4 for its place in the heap, 32 MB for 1 M ids; allocated once.
 */
#include "policy.h"

#include <stdlib.h>
#include <string.h>

#define NONE             UINT32_MAX
#define MEMORY_MS        60000U         /* M above: long enough to tell 1/s from 2/s, short beside a TTL */
#define RENEWAL_HITS     2.0f
#define VICTIM_SCAN      4096           /* most ids shown to accept(), so that no call stalls */
#define EXPIRE_MAX       ((1ULL << 48) - 1)

#define LISTS_OCTAVE_BITS 3             /* eight lists an octave: the mantissa's first three bits */
#define LISTS_SHIFT      (23 - LISTS_OCTAVE_BITS)
#define LISTS_LOWEST     ((127 - 16) << LISTS_OCTAVE_BITS)      /* worth 2^-16 and less: list 0 */
#define LISTS            (48 << LISTS_OCTAVE_BITS)              /* up to 2^32 */
#define LISTS_WORDS      (LISTS / 64)
_Static_assert(LISTS % 64 == 0, "the bitmap has whole words");

/* Packed: without it the compiler rounds the 28 octets up to 32. */
struct entry {
	uint64_t expire_ms : 48;
	uint64_t list : 15;
	uint64_t live : 1;
	float rate;            /* hits per second at last_ms */
	uint32_t last_ms;      /* low 32 bits of the caller's clock */
	uint32_t heap_at;
	uint32_t next, prev;   /* in its list */
} __attribute__((packed, aligned(4)));
_Static_assert(sizeof(struct entry) == 28, "octets an id, stated above");

struct hydns_policy {
	struct hydns_policy_options options;
	uint32_t ids;
	uint32_t count;
	struct entry *entry;
	uint32_t *heap;
	uint32_t first[LISTS], last[LISTS];
	uint64_t in_use[LISTS_WORDS];
};

struct hydns_policy *hydns_policy_new(const struct hydns_policy_options *o, uint32_t ids)
{
	struct hydns_policy *p;

	if (!ids || ids == NONE)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->options = *o;
	p->ids = ids;
	p->entry = calloc(ids, sizeof(*p->entry));
	p->heap = calloc(ids, sizeof(*p->heap));
	if (!p->entry || !p->heap) {
		hydns_policy_free(p);
		return NULL;
	}
	memset(p->first, 0xff, sizeof(p->first));
	memset(p->last, 0xff, sizeof(p->last));
	return p;
}

void hydns_policy_free(struct hydns_policy *p)
{
	if (!p)
		return;
	free(p->entry);
	free(p->heap);
	free(p);
}

void hydns_policy_set_min_hits(struct hydns_policy *p, uint32_t min_hits)
{
	p->options.min_hits = min_hits;
}

size_t hydns_policy_bytes(const struct hydns_policy *p)
{
	return sizeof(*p) + (size_t)p->ids * (sizeof(*p->entry) + sizeof(*p->heap));
}

static bool is_live(const struct hydns_policy *p, uint32_t id)
{
	return id < p->ids && p->entry[id].live;
}

/* -- worth ------------------------------------------------------------------------------------------ */
static float rate_of(uint32_t count, uint32_t window_ms)
{
	return window_ms ? (float)count * 1000.0f / (float)window_ms : 0.0f;
}

static uint64_t within_horizon(const struct hydns_policy *p, uint64_t life_ms)
{
	return p->options.horizon_ms && life_ms > p->options.horizon_ms ? p->options.horizon_ms : life_ms;
}

static float expected_hits(const struct hydns_policy *p, float rate, uint64_t life_ms)
{
	return rate * (float)within_horizon(p, life_ms) / 1000.0f;
}

static float worth(const struct hydns_policy *p, float rate, uint64_t life_ms)
{
	float hits = expected_hits(p, rate, life_ms);

	if (p->options.horizon_ms && hits >= RENEWAL_HITS)
		return rate * (float)p->options.horizon_ms / 1000.0f;
	return hits;
}

/* A clock that stepped back counts as one that stood still. */
static uint32_t elapsed_ms(const struct entry *e, uint64_t now_ms)
{
	uint32_t gone = (uint32_t)now_ms - e->last_ms;

	return gone > INT32_MAX ? 0 : gone;
}

static float rate_after(const struct entry *e, uint32_t hits, uint64_t now_ms)
{
	const float memory = (float)MEMORY_MS / 1000.0f;

	return (memory * e->rate + (float)hits) / (memory + (float)elapsed_ms(e, now_ms) / 1000.0f);
}

static float worth_now(const struct hydns_policy *p, uint32_t id, uint64_t now_ms)
{
	const struct entry *e = &p->entry[id];
	uint64_t life_ms = e->expire_ms > now_ms ? e->expire_ms - now_ms : 0;

	return worth(p, rate_after(e, 0, now_ms), life_ms);
}

/* -- lists by worth ------------------------------------------------------------------------------------ */
/* The float's own exponent and first mantissa bits are its logarithm in eighths of an octave. */
static uint32_t list_for(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	bits >>= LISTS_SHIFT;
	if (bits <= LISTS_LOWEST)
		return 0;
	bits -= LISTS_LOWEST;
	return bits < LISTS ? bits : LISTS - 1;
}

static void list_append(struct hydns_policy *p, uint32_t id, uint32_t list)
{
	struct entry *e = &p->entry[id];

	e->list = list;
	e->next = NONE;
	e->prev = p->last[list];
	if (e->prev == NONE)
		p->first[list] = id;
	else
		p->entry[e->prev].next = id;
	p->last[list] = id;
	p->in_use[list / 64] |= 1ULL << list % 64;
}

static void list_unlink(struct hydns_policy *p, uint32_t id)
{
	struct entry *e = &p->entry[id];
	uint32_t list = e->list;

	if (e->prev == NONE)
		p->first[list] = e->next;
	else
		p->entry[e->prev].next = e->next;
	if (e->next == NONE)
		p->last[list] = e->prev;
	else
		p->entry[e->next].prev = e->prev;
	if (p->first[list] == NONE)
		p->in_use[list / 64] &= ~(1ULL << list % 64);
}

/* The lowest list in use at or above this one, or LISTS. */
static uint32_t list_from(const struct hydns_policy *p, uint32_t list)
{
	for (uint32_t word = list / 64; word < LISTS_WORDS; word++) {
		uint64_t bits = p->in_use[word];

		if (word == list / 64)
			bits &= ~0ULL << list % 64;
		if (bits)
			return word * 64 + (uint32_t)__builtin_ctzll(bits);
	}
	return LISTS;
}

/* -- heap by expiry --------------------------------------------------------------------------------------- */
static void heap_put(struct hydns_policy *p, uint32_t at, uint32_t id)
{
	p->heap[at] = id;
	p->entry[id].heap_at = at;
}

static uint64_t heap_key(const struct hydns_policy *p, uint32_t at)
{
	return p->entry[p->heap[at]].expire_ms;
}

static void heap_up(struct hydns_policy *p, uint32_t at, uint32_t id)
{
	while (at) {
		uint32_t parent = (at - 1) / 2;

		if (heap_key(p, parent) <= p->entry[id].expire_ms)
			break;
		heap_put(p, at, p->heap[parent]);
		at = parent;
	}
	heap_put(p, at, id);
}

static void heap_down(struct hydns_policy *p, uint32_t at, uint32_t id)
{
	for (;;) {
		uint64_t child = 2 * (uint64_t)at + 1;

		if (child >= p->count)
			break;
		if (child + 1 < p->count && heap_key(p, (uint32_t)child + 1) < heap_key(p, (uint32_t)child))
			child++;
		if (heap_key(p, (uint32_t)child) >= p->entry[id].expire_ms)
			break;
		heap_put(p, at, p->heap[child]);
		at = (uint32_t)child;
	}
	heap_put(p, at, id);
}

/* p->count has already been lowered: the last one takes the gap. */
static void heap_delete(struct hydns_policy *p, uint32_t at)
{
	uint32_t moved = p->heap[p->count];

	if (at == p->count)
		return;
	if (at && p->entry[moved].expire_ms < heap_key(p, (at - 1) / 2))
		heap_up(p, at, moved);
	else
		heap_down(p, at, moved);
}

/* -- the interface ------------------------------------------------------------------------------------------ */
void hydns_policy_remove(struct hydns_policy *p, uint32_t id)
{
	if (!is_live(p, id))
		return;
	list_unlink(p, id);
	p->entry[id].live = 0;
	p->count--;
	heap_delete(p, p->entry[id].heap_at);
}

void hydns_policy_insert(struct hydns_policy *p, uint32_t id, uint32_t from_id, uint32_t count,
			 uint32_t window_ms, uint64_t expire_ms, uint64_t now_ms)
{
	float rate = rate_of(count, window_ms);
	struct entry *e;

	if (id >= p->ids)
		return;
	if (is_live(p, from_id)) {
		float known = rate_after(&p->entry[from_id], 0, now_ms);

		/* Under a rule the plugin sees few queries, so its count alone would be far too low. */
		if (known > rate)
			rate = known;
	}
	hydns_policy_remove(p, id);
	e = &p->entry[id];
	e->expire_ms = expire_ms > EXPIRE_MAX ? EXPIRE_MAX : expire_ms;
	e->live = 1;
	e->rate = rate;
	e->last_ms = (uint32_t)now_ms;
	list_append(p, id, list_for(worth_now(p, id, now_ms)));
	heap_up(p, p->count++, id);
}

void hydns_policy_hits(struct hydns_policy *p, uint32_t id, uint32_t hits, uint64_t now_ms)
{
	struct entry *e;
	uint32_t list;

	if (!is_live(p, id))
		return;
	e = &p->entry[id];
	e->rate = rate_after(e, hits, now_ms);
	e->last_ms = (uint32_t)now_ms;
	list = list_for(worth_now(p, id, now_ms));
	if (list == e->list)
		return;
	list_unlink(p, id);
	list_append(p, id, list);
}

uint32_t hydns_policy_expired(struct hydns_policy *p, uint64_t now_ms)
{
	return p->count && heap_key(p, 0) <= now_ms ? p->heap[0] : NONE;
}

struct choice {
	bool (*accept)(uint32_t id, void *arg);
	void *arg;
	uint32_t left;         /* ids that may still be shown to accept() */
};

static bool accepted(struct choice *c, uint32_t id)
{
	if (!c->left)
		return false;
	c->left--;
	return !c->accept || c->accept(id, c->arg);
}

/* Expired ids are a top part of the heap; its depth, and so the recursion's, is at most 32. */
static uint32_t expired_below(struct hydns_policy *p, uint64_t at, uint64_t now_ms, struct choice *c)
{
	uint32_t id;

	if (at >= p->count || heap_key(p, (uint32_t)at) > now_ms || !c->left)
		return NONE;
	if (accepted(c, p->heap[at]))
		return p->heap[at];
	id = expired_below(p, 2 * at + 1, now_ms, c);
	return id != NONE ? id : expired_below(p, 2 * at + 2, now_ms, c);
}

uint32_t hydns_policy_victim(struct hydns_policy *p, uint64_t now_ms,
			     bool (*accept)(uint32_t id, void *arg), void *arg)
{
	struct choice c = { accept, arg, VICTIM_SCAN };
	uint32_t id = expired_below(p, 0, now_ms, &c);

	if (id != NONE)
		return id;
	for (uint32_t list = list_from(p, 0); list < LISTS && c.left; list = list_from(p, list + 1))
		for (id = p->first[list]; id != NONE && c.left; id = p->entry[id].next)
			if (accepted(&c, id))
				return id;
	return NONE;
}

enum hydns_verdict hydns_policy_offer(struct hydns_policy *p, uint32_t count, uint32_t window_ms,
				      uint32_t life_ms, uint64_t now_ms, uint32_t *victim)
{
	float rate = rate_of(count, window_ms);
	uint32_t id;

	if (!life_ms || expected_hits(p, rate, life_ms) < (float)p->options.min_hits)
		return HYDNS_REJECT_COLD;
	if (p->count < p->options.capacity && p->count < p->ids)
		return HYDNS_ADMIT;
	if (!p->options.capacity)
		return HYDNS_REJECT_FULL;
	id = hydns_policy_victim(p, now_ms, NULL, NULL);
	if (p->entry[id].expire_ms > now_ms &&
	    worth(p, rate, life_ms) <=
	    worth_now(p, id, now_ms) * (1.0f + (float)p->options.hysteresis / 100.0f))
		return HYDNS_REJECT_FULL;
	*victim = id;
	return HYDNS_ADMIT_EVICT;
}

uint64_t hydns_policy_rate(const struct hydns_policy *p, uint32_t id)
{
	return is_live(p, id) ? (uint64_t)(p->entry[id].rate * 1000.0f + 0.5f) : 0;
}

uint32_t hydns_policy_refresh_at(uint32_t life_ms, uint32_t percent, uint32_t min_window_ms, uint64_t salt)
{
	uint64_t half = life_ms / 2, window, least;

	if (!percent)
		return life_ms;
	window = (uint64_t)life_ms * percent / 100;
	if (window < min_window_ms)
		window = min_window_ms;
	if (window > half)
		window = half;
	/* Spread over the first quarter of the window, but never so late that it falls below the least. */
	least = window - window / 4;
	if (least < min_window_ms)
		least = min_window_ms < window ? min_window_ms : window;
	salt = (salt ^ salt >> 32) * 0x9e3779b97f4a7c15ULL >> 32;
	return life_ms - (uint32_t)(window - salt % (window - least + 1));
}
