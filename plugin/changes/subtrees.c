/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * At and below which names something was offered since they were last withdrawn, so that a change of data without rules,
 * the common case, need not wait for hydnsd. Two places per name hash, one for what depends on the name and one for what
 * depends on a name below it. A place that names share is never recorded as withdrawn, which causes needless withdrawals. A
 * necessary one is never skipped:
 *
 *   an offerer     (1) takes its stamp, (2) counts its offer in the places of its names and of all their
 *                  ancestors, (3) reads the generation of the last withdrawal; newer than (1): it does not offer.
 *   a withdrawer   (1) reads the place's offers, (2) advances that generation, (3) reads offers again; if they
 *                  equal withdrawn, there is nothing to do. Otherwise it withdraws, and then stores as withdrawn
 *                  what it read in (1).
 *
 * All accesses are sequentially consistent, so of an offerer's (2)(3) and a withdrawer's (2)(3) at least one sees
 * the other; and what was counted by a withdrawer's (1) has an older stamp than its generation, so it is gone. An offerer
 * names itself in the place before it counts there, so what a withdrawer counted is of its own name if it finds that there
 * after the withdrawal.
 */
#include <stdlib.h>
#include "hydns/hash.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/hot.h"

#define PLACES (1U << 16)

enum where { AT, BELOW };

#define SHARED UINT64_MAX

struct place {
	_Atomic uint64_t name;           /* hash of the one that was counted here; 0: none; SHARED: several */
	_Atomic uint64_t offers;
	_Atomic uint64_t withdrawn;      /* of these offers: up to this number */
};

struct hydns_subtrees {
	__u64 seed[2];
	struct place place[PLACES] __attribute__((aligned(HYDNS_CACHE_LINE)));
};

struct hydns_subtrees *hydns_subtrees_new(const uint64_t seed[2])
{
	struct hydns_subtrees *t = hydns_table_new(sizeof(*t));

	if (!t)
		return NULL;
	t->seed[0] = seed[0];
	t->seed[1] = seed[1];
	return t;
}

void hydns_subtrees_free(struct hydns_subtrees *t)
{
	free(t);
}

/* Neither 0 nor SHARED. */
static uint64_t hash_of(const struct hydns_subtrees *t, enum where where, const uint8_t *name, size_t len)
{
	uint64_t hash = hydns_key_hash(name, (__u8)len, where, 0, 0, t->seed);

	return hash == 0 || hash == SHARED ? 1 : hash;
}

static struct place *place_of(struct hydns_subtrees *t, uint64_t hash)
{
	return &t->place[hash & (PLACES - 1)];
}

static void count_offer(struct hydns_subtrees *t, uint64_t hash)
{
	struct place *s = place_of(t, hash);
	uint64_t was = 0;

	if (!atomic_compare_exchange_strong(&s->name, &was, hash) && was != hash)
		atomic_store(&s->name, SHARED);
	atomic_fetch_add(&s->offers, 1);
}

void hydns_subtrees_offer(struct hydns_subtrees *t, const uint8_t *name, size_t len)
{
	enum where where = AT;

	for (size_t at = 0; at < len; at += 1U + name[at], where = BELOW)
		count_offer(t, hash_of(t, where, name + at, len - at));
}

struct hydns_subtree_offers hydns_subtrees_offers(struct hydns_subtrees *t, const uint8_t *name, size_t len)
{
	return (struct hydns_subtree_offers){
		.at = atomic_load(&place_of(t, hash_of(t, AT, name, len))->offers),
		.below = atomic_load(&place_of(t, hash_of(t, BELOW, name, len))->offers),
	};
}

/* Nothing is left that depends on the name, in this way. */
static bool is_withdrawn(struct hydns_subtrees *t, enum where where, const uint8_t *name, size_t len)
{
	struct place *s = place_of(t, hash_of(t, where, name, len));

	return atomic_load(&s->offers) == atomic_load(&s->withdrawn);
}

enum hydns_scope hydns_subtrees_left(struct hydns_subtrees *t, enum hydns_scope scope, const uint8_t *name, size_t len)
{
	if (scope == HYDNS_SCOPE_SUBTREE && !is_withdrawn(t, BELOW, name, len))
		return HYDNS_SCOPE_SUBTREE;
	return is_withdrawn(t, AT, name, len) ? HYDNS_SCOPE_NONE : HYDNS_SCOPE_NAME;
}

static void set_withdrawn(struct hydns_subtrees *t, enum where where, const uint8_t *name, size_t len, uint64_t offers)
{
	uint64_t hash = hash_of(t, where, name, len), old;
	struct place *s = place_of(t, hash);

	if (atomic_load(&s->name) != hash)
		return;
	old = atomic_load(&s->withdrawn);
	while (old < offers && !atomic_compare_exchange_weak(&s->withdrawn, &old, offers))
		;
}

void hydns_subtrees_withdrawn(struct hydns_subtrees *t, enum hydns_scope scope, const uint8_t *name, size_t len,
			      struct hydns_subtree_offers offers)
{
	set_withdrawn(t, AT, name, len, offers.at);
	if (scope == HYDNS_SCOPE_SUBTREE)
		set_withdrawn(t, BELOW, name, len, offers.below);
}
