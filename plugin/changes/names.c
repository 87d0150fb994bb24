/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Which names rules depend on, and which names' data have changed, so that a change in the resolver's cache
 * that concerns no rule, the common case, costs one hash. One place per name hash; names that share a
 * place only cause needless withdrawals and refused offers. A change is never missed:
 *
 *   an offerer   (1) reads changes while its cache entry is locked, (2) raises the place's until_ms,
 *                (3) reads the place's changed; if it is newer than (1), the offer is refused.
 *   a changer    (1) has changed the cache, (2) counts the change, (3) stores its number in the place,
 *                (4) reads until_ms; if that is still to come, the rules must be withdrawn.
 *
 * All accesses are sequentially consistent, so of an offerer's (2)(3) and a changer's (3)(4) at least one
 * sees the other; and a changer whose (2) came before the offerer's (1) changed the cache before the
 * offerer read it.
 *
 * Before the first offer no change is recorded, and changes is 0. An offerer that reads 0 in (1) makes it 1 and gives up,
 * so an offer is made only by one that has read it after that, and then the cache. A changer reads it after it has changed
 * the cache: if it reads 0, the offerer reads the new data.
 */
#include <stdlib.h>
#include "hydns/hash.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/hot.h"

#define PLACES_MIN     (1U << 16)
#define PLACES_MAX     (1U << 22)
#define PER_RULE       4U             /* an answer has a few names */
#define CAPACITY_GUESS (1U << 16)     /* when hydnsd sets the limit */

struct place {
	_Atomic uint64_t changed;        /* number of the last change */
	_Atomic uint64_t until_ms;
};

struct hydns_names {
	__u64 seed[2];
	uint32_t mask;
	_Atomic uint64_t changes __attribute__((aligned(HYDNS_CACHE_LINE))); /* and one; 0: none is recorded */
	struct place place[] __attribute__((aligned(HYDNS_CACHE_LINE)));
};

struct hydns_names *hydns_names_new(uint32_t capacity, const uint64_t seed[2])
{
	uint64_t want = (uint64_t)(capacity ? capacity : CAPACITY_GUESS) * PER_RULE;
	uint32_t n = PLACES_MIN;
	struct hydns_names *t;

	while (n < want && n < PLACES_MAX)
		n *= 2;
	t = hydns_table_new(sizeof(*t) + n * sizeof(t->place[0]));
	if (!t)
		return NULL;
	t->seed[0] = seed[0];
	t->seed[1] = seed[1];
	t->mask = n - 1;
	return t;
}

void hydns_names_free(struct hydns_names *t)
{
	free(t);
}

uint64_t hydns_names_changes(const struct hydns_names *t)
{
	return atomic_load(&t->changes);
}

void hydns_names_watch(struct hydns_names *t)
{
	uint64_t nobody = 0;

	atomic_compare_exchange_strong(&t->changes, &nobody, 1);
}

static struct place *place_of(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what)
{
	return &t->place[hydns_key_hash(name, (__u8)len, what, 0, 0, t->seed) & t->mask];
}

static void raise(_Atomic uint64_t *word, uint64_t value)
{
	uint64_t old = atomic_load(word);

	while (old < value && !atomic_compare_exchange_weak(word, &old, value))
		;
}

bool hydns_names_offer(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what,
		       uint64_t until_ms, uint64_t changes)
{
	struct place *s;

	if (!changes) {
		hydns_names_watch(t);
		return false;
	}
	s = place_of(t, name, len, what);
	raise(&s->until_ms, until_ms);
	/* raise() may have stored nothing: then a plain load above stands for step 2, and orders as well. */
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&s->changed) <= changes;
}

bool hydns_names_change(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what,
			uint64_t now_ms)
{
	struct place *s;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load(&t->changes))
		return false;
	s = place_of(t, name, len, what);
	raise(&s->changed, atomic_fetch_add(&t->changes, 1) + 1);
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load(&s->until_ms) > now_ms;
}
