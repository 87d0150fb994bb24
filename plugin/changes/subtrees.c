/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Below which names something was offered since they were last withdrawn, so that a change of a zone without rules, the
 * common case, need not wait for hydnsd. One place per name hash; names that share a place only cause needless
 * withdrawals. A necessary withdrawal is never skipped:
 *
 *   an offerer     (1) takes its stamp, (2) counts its offer in the places of its names and of all their
 *                  ancestors, (3) reads the generation of the last withdrawal; newer than (1): it does not offer.
 *   a withdrawer   (1) reads the place's offers, (2) advances that generation, (3) reads offers again; if they
 *                  equal withdrawn, there is nothing to do. Otherwise it withdraws, and then stores as withdrawn
 *                  what it read in (1).
 *
 * All accesses are sequentially consistent, so of an offerer's (2)(3) and a withdrawer's (2)(3) at least one sees
 * the other; and what was counted by a withdrawer's (1) has an older stamp than its generation, so it is gone.
 */
#include <stdlib.h>
#include "hydns/hash.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/hot.h"

#define PLACES (1U << 16)

struct place {
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

static struct place *place_of(struct hydns_subtrees *t, const uint8_t *name, size_t len)
{
	return &t->place[hydns_key_hash(name, (__u8)len, 0, 0, 0, t->seed) & (PLACES - 1)];
}

void hydns_subtrees_offer(struct hydns_subtrees *t, const uint8_t *name, size_t len)
{
	for (size_t at = 0; at < len; at += 1U + name[at])
		atomic_fetch_add(&place_of(t, name + at, len - at)->offers, 1);
}

uint64_t hydns_subtrees_offers(struct hydns_subtrees *t, const uint8_t *name, size_t len)
{
	return atomic_load(&place_of(t, name, len)->offers);
}

bool hydns_subtrees_is_withdrawn(struct hydns_subtrees *t, const uint8_t *name, size_t len)
{
	struct place *s = place_of(t, name, len);

	return atomic_load(&s->offers) == atomic_load(&s->withdrawn);
}

void hydns_subtrees_withdrawn(struct hydns_subtrees *t, const uint8_t *name, size_t len, uint64_t offers)
{
	_Atomic uint64_t *withdrawn = &place_of(t, name, len)->withdrawn;
	uint64_t old = atomic_load(withdrawn);

	while (old < offers && !atomic_compare_exchange_weak(withdrawn, &old, offers))
		;
}
