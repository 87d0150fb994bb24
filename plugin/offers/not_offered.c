/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Why answers were not offered, by question, where hydnsd can read it (hydns/ring.h). One writer, no lock: the key is
 * cleared before the rest changes and written after it, so a reader that sees the same key before and after has read what
 * belongs to it.
 */
#include "plugin/offers/offers.h"

void hydns_not_offered_record(struct hydns_ring *ring, uint64_t key, enum hydns_not_offered_why why, uint32_t value,
			      uint64_t now_ms)
{
	struct hydns_not_offered *table = (struct hydns_not_offered *)((uint8_t *)ring + HYDNS_RING_DATA + HYDNS_RING_BYTES);
	struct hydns_not_offered *k = &table[HYDNS_NOT_OFFERED_PLACE(key)];

	__atomic_store_n(&k->key, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	__atomic_store_n(&k->at_ms, (uint32_t)now_ms, __ATOMIC_RELAXED);
	__atomic_store_n(&k->what, HYDNS_NOT_OFFERED_WHAT(why, value), __ATOMIC_RELAXED);
	__atomic_store_n(&k->key, key, __ATOMIC_RELEASE);
}
