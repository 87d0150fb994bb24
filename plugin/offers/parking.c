/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What a resolver thread says of questions that several clients wait for, so that the others may be parked (hydns/parking.h). */
#include "plugin/internal.h"
#include "hydns/parking.h"

#define TIMES 4     /* of what the resolver lets wait, ... */
#define LEAST 16384 /* ... but at least this much */

uint32_t hydns_plugin_pending_auto(uint64_t limit)
{
	uint64_t most = limit * TIMES;

	return most < LEAST ? LEAST : most > HYDNS_PENDING_MOST ? HYDNS_PENDING_MOST : (uint32_t)most;
}

bool hydns_plugin_under_way(struct hydns_thread *t, uint64_t key)
{
	struct hydns_plugin *p = t->plugin;

	return __atomic_load_n(&p->o.park_ms, __ATOMIC_RELAXED) && p->o.pending_max && atomic_load_explicit(&p->ready, memory_order_relaxed) &&
	       !atomic_load_explicit(&p->closed, memory_order_relaxed) &&
	       hydns_pages_under_way(p->pages, key, (uint32_t)hydns_mono_coarse_ms());
}

uint32_t hydns_plugin_parked_sighted(struct hydns_thread *t, uint64_t key, uint64_t now_ms)
{
	uint32_t parked = hydns_pages_parked(t->plugin->pages, key);

	return parked ? hydns_sketch_weigh(t->hot.sketch, key, parked, now_ms) : 0;
}

/* The frame first: when the word has gone, hydnsd finds the offer before it in the ring. If the ring is full, hydnsd sees that the
 * word has gone. */
void hydns_plugin_over(struct hydns_thread *t, uint64_t key)
{
	struct hydns_over *f;

	if (!hydns_pages_is_under_way(t->plugin->pages, key))
		return;
	f = hydns_producer_reserve(&t->ring, sizeof(*f), HYDNS_RING_FOR_CHANGES);
	if (f) {
		*f = (struct hydns_over){ .frame = { .len = sizeof(*f), .type = HYDNS_FRAME_OVER }, .key = key };
		hydns_thread_commit(t, sizeof(*f));
	}
	hydns_pages_over(t->plugin->pages, key);
}

void hydns_plugin_nobody_waits(struct hydns_plugin *p)
{
	hydns_pages_all_over(p->pages);
}
