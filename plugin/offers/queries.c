/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What a resolver thread calls with every query: counting, and whether an answer should be offered or refreshed. No locks,
 * no allocation, no system call.
 */
#include "plugin/internal.h"

/* As long as nothing has been offered since the store was empty, nothing can be in the table of offers. */
static bool offered_anything(struct hydns_plugin *p)
{
	return atomic_load_explicit(&p->offered_in, memory_order_relaxed) == hydns_store_serial(p);
}

bool hydns_plugin_sample(struct hydns_thread *t, time_t now)
{
	struct hydns_ring *ring = t->ring.ring;

	__atomic_store_n(&ring->queries, ring->queries + 1, __ATOMIC_RELAXED);
	if (hydns_sample_skips(&t->sample, (uint32_t)now))
		return false;
	hydns_sample_take(&t->sample, (uint32_t)now, hydns_mono_coarse_ms());
	return true;
}

uint64_t hydns_plugin_prefetch_known(struct hydns_thread *t, const struct hydns_question *q)
{
	uint64_t key = hydns_question_key(q, t->plugin->seed);

	hydns_offered_prefetch_tag(t->hot.offered, key);
	return key;
}

uint64_t hydns_plugin_prefetch(struct hydns_thread *t, const struct hydns_question *q)
{
	uint64_t key = hydns_question_key(q, t->plugin->seed);

	hydns_sketch_prefetch(t->hot.sketch, key);
	if (offered_anything(t->plugin))
		hydns_offered_prefetch(t->hot.offered, key);
	return key;
}

/* What a question must promise; 0: the store has room. */
static uint32_t threshold(const struct hydns_thread *t)
{
	return __atomic_load_n(&t->ring.ring->threshold, __ATOMIC_RELAXED);
}

bool hydns_plugin_first_sight(struct hydns_thread *t, uint64_t key)
{
	return !threshold(t) && hydns_offered_first_sight(t->hot.offered, key, hydns_store_serial(t->plugin));
}

uint32_t hydns_plugin_sighted(struct hydns_thread *t, uint64_t key, uint64_t now_ms)
{
	struct hydns_plugin *p = t->plugin;

	return hydns_hot_sighted(&t->hot, key, hydns_store_serial(p), p->o.admission,
				 threshold(t), t->sample.weight, now_ms);
}

static bool is_due(struct hydns_plugin *p, uint64_t key, uint32_t sightings, bool fixed, time_t expires,
		   uint64_t now_ms)
{
	return sightings && atomic_load_explicit(&p->ready, memory_order_relaxed) &&
	       !hydns_offered_lately(p->offered, key, hydns_answer_id(p, fixed, expires), hydns_store_serial(p), (uint32_t)now_ms,
				     sightings);
}

bool hydns_plugin_due(struct hydns_thread *t, const struct hydns_question *q, uint32_t sightings, time_t expires,
		       uint64_t now_ms)
{
	return is_due(t->plugin, hydns_question_key(q, t->plugin->seed), sightings, q->fixed, expires, now_ms);
}

bool hydns_plugin_hot(struct hydns_thread *t, uint64_t key, bool fixed, time_t expires, uint64_t now_ms)
{
	return is_due(t->plugin, key, hydns_plugin_sighted(t, key, now_ms), fixed, expires, now_ms);
}

uint64_t hydns_plugin_key(const struct hydns_thread *t, const struct hydns_question *q)
{
	return hydns_question_key(q, t->plugin->seed);
}

void hydns_plugin_not_offered(struct hydns_thread *t, uint64_t key, enum hydns_not_offered_why why, uint32_t value)
{
	hydns_not_offered_record(t->ring.ring, key, why, value, hydns_mono_coarse_ms());
}

bool hydns_plugin_offered(struct hydns_thread *t, uint64_t key, time_t expires, time_t now, struct hydns_stamp begun)
{
	struct hydns_plugin *p = t->plugin;
	uint64_t withdrawn;

	if (!atomic_load_explicit(&p->ready, memory_order_relaxed) || !offered_anything(p))
		return false;
	/* Read after the caller has taken its stamp: a withdrawal that is not seen here makes that stamp too old. */
	withdrawn = atomic_load(&p->withdrawn);
	return begun.generation >= withdrawn && begun.epoch == hydns_pages_epoch(p->pages) &&
	       hydns_offered_stands(p->offered, key, hydns_store_serial(p), (uint32_t)now, withdrawn) &&
	       !hydns_offered_lately(p->offered, key, (uint32_t)expires, hydns_store_serial(p),
				     (uint32_t)hydns_mono_coarse_ms(), 0);
}

bool hydns_plugin_refresh_due(struct hydns_thread *t, const struct hydns_question *q, time_t expires,
			 time_t lifetime, time_t now)
{
	struct hydns_plugin *p = t->plugin;

	return hydns_hot_near_end((uint64_t)expires, (uint64_t)lifetime, (uint64_t)now, p->o.refresh_percent) &&
	       hydns_hot_refresh_due(&t->hot, hydns_question_key(q, p->seed), hydns_store_serial(p), hydns_mono_coarse_ms());
}
