/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The zones that offered answers came from, for dnstap messages, which name them: a set of hashes that any thread adds to without a lock.
 * A zone is added before the first answer from it can be given, so the longest one in which a name is, is its own. When there is no room
 * the messages have no zone.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "hydns/hash.h"
#include "plugin/dnstap/dnstap.h"

#define PLACES 65536
#define PROBES 32
#define TYPE_DS 43

struct hydns_tap_zones {
	_Atomic uint64_t hash[PLACES];
};

struct hydns_tap_zones *hydns_tap_zones_new(void)
{
	return calloc(1, sizeof(struct hydns_tap_zones));
}

void hydns_tap_zones_free(struct hydns_tap_zones *z)
{
	free(z);
}

/* Not 0, which is an empty place. */
static uint64_t hash_of(const uint8_t *name, size_t len)
{
	static const __u64 seed[2] = { 0x6879646e73, 0x7a6f6e6573 };

	return hydns_place_hash(name, (uint8_t)len, seed) | 1;
}

static bool knows(const struct hydns_tap_zones *z, const uint8_t *name, size_t len)
{
	uint64_t hash = hash_of(name, len), at = 1;

	for (unsigned i = 0; i < PROBES && at; i++) {
		at = atomic_load_explicit(&z->hash[((hash >> 1) + i) & (PLACES - 1)], memory_order_relaxed);
		if (at == hash)
			return true;
	}
	return false;
}

void hydns_tap_zones_add(struct hydns_tap_zones *z, const uint8_t *name, size_t len)
{
	uint64_t hash = hash_of(name, len);

	for (unsigned i = 0; i < PROBES; i++) {
		_Atomic uint64_t *place = &z->hash[((hash >> 1) + i) & (PLACES - 1)];
		uint64_t is = 0;

		if (atomic_compare_exchange_strong(place, &is, hash) || is == hash)
			return;
	}
}

void hydns_tap_zones_forget(struct hydns_tap_zones *z)
{
	for (size_t i = 0; i < PLACES; i++)
		atomic_store_explicit(&z->hash[i], 0, memory_order_relaxed);
}

size_t hydns_tap_zones_find(const struct hydns_tap_zones *z, const uint8_t *name, size_t len, uint16_t qtype)
{
	size_t at = 0;

	/* A DS record is in the zone above, if the server has that. */
	if (qtype == TYPE_DS && name[0])
		at = (size_t)name[0] + 1;
	for (; at < len; at += (size_t)name[at] + 1)
		if (knows(z, name + at, len - at))
			return at;
	return qtype == TYPE_DS && knows(z, name, len) ? 0 : SIZE_MAX;
}
