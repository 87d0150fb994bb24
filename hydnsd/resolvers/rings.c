/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/rings.h"

#include "hydnsd/daemon/clock.h"
#include "hydnsd/resolvers/session_internal.h"

int hydnsd_rings_open(struct hydnsd_session *s, const int *fd, uint32_t count, char *why, size_t room)
{
	for (uint32_t i = 0; i < count; i++) {
		int rc = hydnsd_ring_open(&s->ring[i], fd[i], &s->begun, why, room);

		if (rc) {
			hydnsd_rings_close(s);
			return rc;
		}
		s->rings = i + 1;
	}
	return 0;
}

void hydnsd_rings_close(struct hydnsd_session *s)
{
	for (uint32_t i = 0; i < s->rings; i++)
		hydnsd_ring_close(&s->ring[i]);
	s->rings = 0;
}

/* -- when to poll them ----------------------------------------------------------------------------------- */
void hydnsd_rings_need_wakeup(struct hydnsd_session *s, enum hydns_ring_wakeup need)
{
	for (uint32_t i = 0; i < s->rings; i++)
		__atomic_store_n(&s->ring[i].shared->need_wakeup, need, __ATOMIC_RELAXED);
	s->asleep = need == HYDNS_WAKEUP_ALL;
	/* Afterwards either the plugin sees need_wakeup, or hydnsd sees its frame. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

bool hydnsd_rings_any_ready(const struct hydnsd_session *s)
{
	for (uint32_t i = 0; i < s->rings; i++)
		if (__atomic_load_n(&s->ring[i].shared->head, __ATOMIC_ACQUIRE) != s->ring[i].tail)
			return true;
	return false;
}

void hydnsd_rings_poll_soon(struct hydnsd_session *s)
{
	hydnsd_rings_need_wakeup(s, HYDNS_WAKEUP_NONE);
	s->busy_ms = s->changed_ms = hydnsd_now_ms();
}

void hydnsd_rings_heads(const struct hydnsd_session *s, uint32_t *head)
{
	for (uint32_t i = 0; i < s->rings; i++)
		head[i] = __atomic_load_n(&s->ring[i].shared->head, __ATOMIC_ACQUIRE);
}

bool hydnsd_rings_taken(const struct hydnsd_session *s, const uint32_t *head)
{
	for (uint32_t i = 0; i < s->rings; i++)
		if ((int32_t)(s->ring[i].tail - head[i]) < 0)
			return false;
	return true;
}

void hydnsd_rings_wake(struct hydnsd_session *s)
{
	hydnsd_rings_need_wakeup(s, HYDNS_WAKEUP_NONE);
	s->busy_ms = hydnsd_now_ms();
}

void hydnsd_rings_set_threshold(struct hydnsd_session *s)
{
	uint32_t threshold = hydnsd_rules_threshold(s->daemon->rules);

	for (uint32_t i = 0; i < s->rings; i++)
		if (__atomic_load_n(&s->ring[i].shared->threshold, __ATOMIC_RELAXED) != threshold)
			__atomic_store_n(&s->ring[i].shared->threshold, threshold, __ATOMIC_RELAXED);
}

/* -- what the plugin has written for operators --------------------------------------------------------------- */
void hydnsd_rings_count(const struct hydnsd_session *s, struct hydnsd_ring_counts *out)
{
	*out = (struct hydnsd_ring_counts){ 0 };
	for (uint32_t i = 0; i < s->rings; i++)
		hydnsd_ring_count(&s->ring[i], out);
}

void hydnsd_rings_level(const struct hydnsd_session *s, uint32_t lane, struct hydns_lane_level *out)
{
	*out = (struct hydns_lane_level){ 0 };
	for (uint32_t i = 0; i < s->rings; i++)
		hydnsd_ring_level(&s->ring[i], lane, out);
}

bool hydnsd_rings_not_offered(const struct hydnsd_session *s, uint64_t key, struct hydns_not_offered *out)
{
	uint32_t now = (uint32_t)hydnsd_now_ms();
	bool found = false;

	for (uint32_t i = 0; i < s->rings; i++) {
		struct hydns_not_offered k;

		if (!hydnsd_ring_not_offered(&s->ring[i], key, &k) || (found && now - k.at_ms >= now - out->at_ms))
			continue;
		*out = k;
		found = true;
	}
	return found;
}
