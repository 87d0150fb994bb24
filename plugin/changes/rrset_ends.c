/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * How far the ends of RRsets have moved since rules were made with them. When the same data are stored again, they mostly
 * end within the same second or the next, as when the validator stores what the iterator did; that needs no TTL update. But
 * a zone's SOA comes with every negative answer, and its end may move by a second each time. So the table holds the
 * earliest end that a rule can have, and moves count from there.
 *
 * One place per RRset, by hash. A place may hold another RRset's end, or one that does not fit what the cache held until
 * now (two threads have stored the RRset at once). Then the steps before are unknown, and any move is reported. So
 * forgetting costs a needless withdrawal, and never a TTL that is more than a second off.
 */
#include <stdlib.h>
#include "hydns/hash.h"
#include "plugin/changes/changes.h"
#include "plugin/offers/hot.h"

#define PLACES (1U << 16)
#define SLACK  1                /* second; TTLs in replies may differ by that */

struct hydns_rrset_ends {
	__u64 seed[2];
	/* upper half of the RRset's hash << 32 | its earliest end; 0: not in use */
	_Atomic uint64_t place[PLACES] __attribute__((aligned(HYDNS_CACHE_LINE)));
};

struct hydns_rrset_ends *hydns_rrset_ends_new(const uint64_t seed[2])
{
	struct hydns_rrset_ends *t = hydns_table_new(sizeof(*t));

	if (!t)
		return NULL;
	t->seed[0] = seed[0];
	t->seed[1] = seed[1];
	return t;
}

void hydns_rrset_ends_free(struct hydns_rrset_ends *t)
{
	free(t);
}

/* Seconds from one end to another, whatever the century. */
static int32_t apart(uint32_t from, uint32_t to)
{
	return (int32_t)(to - from);
}

enum hydns_end_move hydns_rrset_ends_move(struct hydns_rrset_ends *t, const uint8_t *name, size_t len, uint16_t rrtype,
				 enum hydns_section section, uint32_t was, uint32_t is)
{
	uint64_t hash = hydns_key_hash(name, (__u8)len, rrtype, (__u8)section, 0, t->seed), upper = hash >> 32 << 32;
	_Atomic uint64_t *place = &t->place[hash & (PLACES - 1)];
	uint64_t held = atomic_load(place);
	uint32_t earliest = held ? (uint32_t)held : was;
	bool known = !held || (held >> 32 << 32 == upper && apart(earliest, was) >= 0 &&
			       apart(earliest, was) <= SLACK);
	int32_t moved = apart(known ? earliest : was, is);

	if (known && moved >= 0 && moved <= SLACK) {
		atomic_store(place, upper | earliest);
		return HYDNS_END_LITTLE;
	}
	atomic_store(place, upper | is);
	return moved < 0 ? HYDNS_END_EARLIER : moved > 0 ? HYDNS_END_LATER : HYDNS_END_LITTLE;
}
