/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Names that versions of zones are changing. From the moment before their rules are withdrawn until the new data are served an answer
 * may still be looked up in the former data, so none is offered that depends on one of these names:
 *
 *   a version   (1) marks its names, (2) reads what was offered, advances the generation, withdraws (subtrees.c), (3) is served,
 *               (4) advances the generation again, (5) takes its marks back.
 *   an offerer  (1) takes its stamp, (2) counts its offer, (3) looks for marks, (4) reads the generation of the last withdrawal.
 *
 * All accesses are sequentially consistent. An offerer that finds no mark has looked before the version's (1), so its offer is among
 * what (2) finds, and its stamp older than that withdrawal; or after (5), so it sees the generation of (4), and its stamp is older
 * than that, or its answer is from the new data.
 *
 * Where a zone gets other data, the names in which these differ from the former ones are found while versions of the former ones may be
 * served. So it marks all of the zone: what such a version withdraws is not offered again before the other data are served.
 *
 * The marks are those of the whole process, whichever of its plugins may offer. Names share them: that refuses an offer too many.
 */
#include <stdatomic.h>
#include "hydns/hash.h"
#include "plugin/internal.h"

#define PLACES (1U << 14)

enum where { AT, BELOW };

static _Atomic uint32_t marks[2][PLACES];
static _Atomic uint32_t versions;        /* under way */

static _Atomic uint32_t *place_of(enum where where, const uint8_t *name, size_t len)
{
	static const __u64 seed[2];      /* who chooses names so that they share a mark has the offers refused that depend on his */

	return &marks[where][hydns_key_hash(name, (__u8)len, 0, 0, 0, seed) & (PLACES - 1)];
}

/* more: 1, or 0 minus 1. */
static void mark(enum hydns_scope scope, const uint8_t *name, size_t len, uint32_t more)
{
	atomic_fetch_add(place_of(AT, name, len), more);
	if (scope == HYDNS_SCOPE_SUBTREE)
		atomic_fetch_add(place_of(BELOW, name, len), more);
}

static void mark_all(const struct hydns_zone_version *v, uint32_t more)
{
	static const uint8_t root[1];
	size_t len;
	const uint8_t *entries = hydns_zone_version_entries(v, &len);

	if (v->whole || v->exchanged) {
		mark(HYDNS_SCOPE_SUBTREE, v->origin_len ? v->origin : root, v->origin_len ? v->origin_len : sizeof(root), more);
		return;
	}
	for (size_t at = 0; at < len; ) {
		size_t name_len = hydns_name_length(entries + at + 1, HYDNS_NAME_MAX);

		mark(entries[at], entries + at + 1, name_len, more);
		at += 1 + name_len;
	}
}

void hydns_zone_version_mark(const struct hydns_zone_version *v)
{
	atomic_fetch_add(&versions, 1);
	mark_all(v, 1);
}

void hydns_zone_version_unmark(const struct hydns_zone_version *v)
{
	mark_all(v, 0U - 1);
	atomic_fetch_sub(&versions, 1);
}

void hydns_zone_marks_forget(void)
{
	for (size_t i = 0; i < PLACES; i++) {
		atomic_store(&marks[AT][i], 0);
		atomic_store(&marks[BELOW][i], 0);
	}
	atomic_store(&versions, 0);
}

bool hydns_name_is_changing(const uint8_t *name, size_t len)
{
	if (!atomic_load(&versions))
		return false;
	if (atomic_load(place_of(AT, name, len)))
		return true;
	for (size_t at = 1U + name[0]; at < len; at += 1U + name[at])
		if (atomic_load(place_of(BELOW, name + at, len - at)))
			return true;
	return false;
}
