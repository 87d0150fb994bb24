/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The heartbeat, and what the thread does at each: checks the clocks and the CHANGED frames that hydnsd leaves in the rings, and
 * shows what is in the packet rings. */
#include "plugin/link/thread.h"
#include "plugin/log.h"

#define CLOCK_STEP_NS (500 * 1000000LL)

/* TTLs count wall-clock seconds, rules monotonic ones: when the wall clock is set, every rule's end is wrong. */
static void check_clocks(struct hydns_link *l)
{
	struct hydns_moment now = hydns_moment();
	int64_t offset = (int64_t)(now.real_ns - now.mono_ns);
	int64_t moved = offset - l->clock_offset;

	if (l->clock_known && moved < CLOCK_STEP_NS && moved > -CLOCK_STEP_NS)
		return;
	l->clock_offset = offset;
	if (!l->clock_known) {
		l->clock_known = true;
		return;
	}
	hydns_pages_advance_generation(l->p->pages);
	hydns_plugin_kill_rules(l->p);
	hydns_log(l->p, HYDNS_LOG_WARNING, "the wall clock was set by %lld ms: all kernel answers withdrawn",
		  (long long)(moved / 1000000));
}

void hydns_link_show_clocks(struct hydns_link *l)
{
	struct hydns_moment now = hydns_moment();

	hydns_pages_set_clocks(l->p->pages, (int64_t)(now.real_ns - now.mono_ns), hydns_tai_offset());
}

/* For the operator. Each look is a system call for each packet ring. */
static void show_levels(struct hydns_link *l, uint64_t mono)
{
	if (!l->p->lanes || mono - l->levels_ns < HYDNS_NS_PER_S)
		return;
	l->levels_ns = mono;
	for (uint32_t i = 0; i < l->p->o.threads; i++)
		hydns_lanes_levels(l->p->lanes, i, l->p->thread[i].ring.ring->lane);
}

/* Nothing has been put into a ring for a while, nothing waits for hydnsd, and hydnsd is there. */
static bool may_rest(struct hydns_link *l, uint64_t mono, bool waits)
{
	enum hydns_rest was = atomic_exchange(&l->p->rest, HYDNS_REST_QUIET), quiet = HYDNS_REST_QUIET;

	if (was == HYDNS_REST_BUSY || waits || !atomic_load(&l->p->ready))
		l->busy_ns = mono;
	return mono - l->busy_ns >= HYDNS_HEARTBEAT_QUIET_NS &&
	       atomic_compare_exchange_strong(&l->p->rest, &quiet, HYDNS_REST_RESTING);
}

static uint64_t next_beat(const struct hydns_link *l)
{
	return l->beat_ns + (l->resting ? HYDNS_HEARTBEAT_REST_NS : HYDNS_HEARTBEAT_BEAT_NS);
}

uint64_t hydns_link_beat(struct hydns_link *l, bool rest)
{
	uint64_t mono = hydns_mono_ns();
	bool waits = false;

	if (!rest || atomic_load(&l->p->rest) == HYDNS_REST_BUSY)
		l->resting = false;
	if (mono < next_beat(l))
		return next_beat(l);
	l->beat_ns = mono;
	check_clocks(l);
	hydns_link_show_clocks(l);
	hydns_pages_beat(l->p->pages, mono);
	if (hydns_link_uses_ways(l))
		hydns_ways_follow(l->p->ways);
	show_levels(l, mono);
	if (atomic_load_explicit(&l->p->ready, memory_order_relaxed))
		waits = hydns_link_check_unread(l);
	l->resting = rest && may_rest(l, mono, waits);
	return next_beat(l);
}
