/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which answers have been offered: a table of question keys, two places per key, no locks. An entry's words are atomic one
 * by one, not together. This table only saves work, so a race or a collision costs one needless offer or a delay of at most
 * WAIT_MAX_MS, never a wrong answer.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "plugin/offers/hot.h"

#define ENTRIES_MIN   (1U << 16)
#define ENTRIES_MAX   (1U << 21)
#define PER_RULE      2U
/* If a question still comes here after its answer was offered, the program passes it for other reasons: repeat the offer
 * less and less often. */
#define WAIT_MIN_MS   200U
#define WAIT_MAX_MS   1600U
/* But when it has become hotter, repeat it soon: hydnsd may have rejected it as too cold. */
#define HOTTER(count) ((count) + (count) / 2)
#define WAIT_HOTTER_MS 20U

struct entry {
	_Atomic uint64_t id;             /* fingerprint << 32 | expires; 0: empty */
	_Atomic uint32_t store_serial;
	_Atomic uint32_t offered_ms;
	_Atomic uint32_t wait_ms;        /* 0: not offered yet */
	_Atomic uint32_t refreshed_ms;
	_Atomic uint32_t count;          /* sightings offered; 0: not offloadable */
	_Atomic uint32_t generation;     /* low half, of the answer's stamp */
};

#define SEEN 2U

/*
 * 8 bits of a key, for what is known of most questions: that there is no entry. So one access, which is easily prefetched,
 * spares a look at the entries, which are 16 times as large. A question whose tag was overwritten counts as never seen.
 */
struct tags {
	_Atomic uint8_t entry[2];        /* of the two places; 0: empty */
	_Atomic uint8_t seen[SEEN];      /* questions that needed a resolution, and nothing else is known of them; 0: none */
};
_Static_assert(sizeof(struct tags) == 4, "the tags of a key are in one cache line");

/* The two places of a key share a cache line. */
struct hydns_offered {
	uint32_t mask;
	struct tags *tags;               /* behind the entries: one for two of them */
	struct entry entry[] __attribute__((aligned(HYDNS_CACHE_LINE)));
};

struct hydns_offered *hydns_offered_new(uint32_t capacity)
{
	uint64_t want = (uint64_t)(capacity ? capacity : HYDNS_HOT_CAPACITY) * PER_RULE;
	uint32_t n = ENTRIES_MIN;
	struct hydns_offered *t;
	size_t size;

	while (n < want && n < ENTRIES_MAX)
		n *= 2;
	size = sizeof(*t) + n * sizeof(t->entry[0]) + n / 2 * sizeof(t->tags[0]);
	t = hydns_table_new(size);
	if (!t)
		return NULL;
	t->mask = n - 1;
	t->tags = (struct tags *)&t->entry[n];
	return t;
}

void hydns_offered_free(struct hydns_offered *t)
{
	free(t);
}

size_t hydns_offered_bytes(const struct hydns_offered *t)
{
	return sizeof(*t) + ((size_t)t->mask + 1) * sizeof(t->entry[0]) + ((size_t)t->mask + 1) / 2 * sizeof(t->tags[0]);
}

static uint32_t get(_Atomic uint32_t *w)
{
	return atomic_load_explicit(w, memory_order_relaxed);
}

static void set(_Atomic uint32_t *w, uint32_t value)
{
	atomic_store_explicit(w, value, memory_order_relaxed);
}

static uint64_t id_of(uint64_t key, uint32_t expires)
{
	return (key & 0xffffffff00000000ULL) | expires;
}

/* The places come from the key's lower half. */
static uint8_t tag_of(uint64_t key)
{
	uint8_t tag = (uint8_t)(key >> 56);

	return tag ? tag : 1;
}

static struct tags *tags_of(const struct hydns_offered *t, uint64_t key)
{
	return &t->tags[((uint32_t)key & t->mask) / 2];
}

static bool is_tagged(_Atomic uint8_t *tag, uint64_t key)
{
	return atomic_load_explicit(tag, memory_order_relaxed) == tag_of(key);
}

void hydns_offered_prefetch_tag(const struct hydns_offered *t, uint64_t key)
{
	__builtin_prefetch(tags_of(t, key));
}

void hydns_offered_prefetch(const struct hydns_offered *t, uint64_t key)
{
	hydns_offered_prefetch_tag(t, key);
	__builtin_prefetch(&t->entry[(uint32_t)key & t->mask]);
}

static struct entry *find(struct hydns_offered *t, uint64_t key, uint32_t store_serial)
{
	for (uint32_t way = 0; way < 2; way++) {
		uint32_t place = ((uint32_t)key & t->mask) ^ way;
		struct entry *e = &t->entry[place];
		uint64_t id;

		if (!is_tagged(&tags_of(t, key)->entry[place & 1], key))
			continue;
		id = atomic_load_explicit(&e->id, memory_order_acquire);
		if (id && (id ^ key) >> 32 == 0 && get(&e->store_serial) == store_serial)
			return e;
	}
	return NULL;
}

/* The place of the two whose entry was offered longer ago, or under another store serial. */
static struct entry *oldest(struct hydns_offered *t, uint64_t key, uint32_t store_serial, uint32_t now_ms)
{
	struct entry *a = &t->entry[(uint32_t)key & t->mask];
	struct entry *b = &t->entry[((uint32_t)key & t->mask) ^ 1];

	if (get(&a->store_serial) != store_serial || get(&a->wait_ms) == 0)
		return a;
	if (get(&b->store_serial) != store_serial || get(&b->wait_ms) == 0)
		return b;
	return now_ms - get(&a->offered_ms) >= now_ms - get(&b->offered_ms) ? a : b;
}

bool hydns_offered_lately(struct hydns_offered *t, uint64_t key, uint32_t expires, uint32_t store_serial,
			  uint32_t now_ms, uint32_t count)
{
	struct entry *e = find(t, key, store_serial);
	uint32_t gone, offered;

	if (!e || atomic_load_explicit(&e->id, memory_order_relaxed) != id_of(key, expires))
		return false;
	gone = now_ms - get(&e->offered_ms);
	offered = get(&e->count);
	if (offered && count > HOTTER(offered))
		return gone < WAIT_HOTTER_MS;
	return gone < get(&e->wait_ms);
}

void hydns_offered_record(struct hydns_offered *t, uint64_t key, uint32_t expires, uint32_t store_serial,
			uint32_t now_ms, uint64_t generation, uint32_t count)
{
	struct entry *e = find(t, key, store_serial);
	uint64_t id = id_of(key, expires);
	uint32_t wait = WAIT_MIN_MS;

	if (!e) {
		e = oldest(t, key, store_serial, now_ms);
		set(&e->refreshed_ms, 0);
	} else if (atomic_load_explicit(&e->id, memory_order_relaxed) == id) {
		wait = get(&e->wait_ms);
		if (now_ms - get(&e->offered_ms) >= wait)
			wait *= 2;
		if (wait > WAIT_MAX_MS)
			wait = WAIT_MAX_MS;
	}
	set(&e->count, count);
	set(&e->generation, (uint32_t)generation);
	set(&e->offered_ms, now_ms);
	set(&e->wait_ms, wait);
	set(&e->store_serial, store_serial);
	atomic_store_explicit(&e->id, id, memory_order_release);
	atomic_store_explicit(&tags_of(t, key)->entry[(e - t->entry) & 1], tag_of(key), memory_order_relaxed);
}

bool hydns_offered_first_sight(struct hydns_offered *t, uint64_t key, uint32_t store_serial)
{
	_Atomic uint8_t *seen = &tags_of(t, key)->seen[(key >> 32 & 0xffff) % SEEN];

	if (is_tagged(seen, key) || hydns_offered_before(t, key, store_serial))
		return false;
	atomic_store_explicit(seen, tag_of(key), memory_order_relaxed);
	return true;
}

bool hydns_offered_before(struct hydns_offered *t, uint64_t key, uint32_t store_serial)
{
	struct entry *e = find(t, key, store_serial);

	return e && get(&e->count);
}

/* Serial number arithmetic (RFC 1982) of the low halves of generations: an entry does not live long enough for them to
 * wrap. */
static bool not_before(uint32_t a, uint32_t b)
{
	return a - b <= UINT32_MAX / 2;
}

bool hydns_offered_stands(struct hydns_offered *t, uint64_t key, uint32_t store_serial, uint32_t now,
			  uint64_t withdrawn)
{
	struct entry *e = find(t, key, store_serial);

	return e && get(&e->count) && not_before(get(&e->generation), (uint32_t)withdrawn) &&
	       (uint32_t)atomic_load_explicit(&e->id, memory_order_relaxed) > now;
}

bool hydns_offered_claim_refresh(struct hydns_offered *t, uint64_t key, uint32_t store_serial, uint32_t now_ms,
				 uint32_t rearm_ms)
{
	struct entry *e = find(t, key, store_serial);
	uint32_t last;

	if (!e || !get(&e->count))
		return false;
	last = get(&e->refreshed_ms);
	if (last && now_ms - last < rearm_ms)
		return false;
	/* 0 means never: a claim in that millisecond is recorded as one in the next. */
	return atomic_compare_exchange_strong(&e->refreshed_ms, &last, now_ms ? now_ms : 1);
}
