/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Changes of the resolver's data, and TTL updates, as CHANGED frames. */
#include <arpa/inet.h>
#include <string.h>
#include "plugin/internal.h"

static bool put_changed(struct hydns_thread *t, const struct hydns_changed *what, const uint8_t *name)
{
	uint32_t size = (offsetof(struct hydns_changed, data) + what->name_len + 7U) & ~7U;
	struct hydns_changed *f = hydns_producer_reserve(&t->ring, size, 0);

	if (!f)
		return false;
	memset(f, 0, size);
	*f = *what;
	f->frame = (struct hydns_frame){ .len = size, .type = HYDNS_FRAME_CHANGED };
	memcpy(f->data, name, what->name_len);
	if (!what->ttl_of)
		atomic_store(&t->changed_head, t->ring.head + size);
	hydns_thread_commit(t, size);
	return true;
}

/* Suspends the rules of the name while hydnsd is away, and until it has caught up. */
static void mark_while_away(struct hydns_plugin *p, const uint8_t *name, size_t len)
{
	if (!atomic_load(&p->ready) || hydns_pages_suspended(p->pages))
		hydns_plugin_mark(p, name, len);
}

void hydns_plugin_changed(struct hydns_thread *t, const uint8_t *name, size_t name_len)
{
	struct hydns_plugin *p = t->plugin;
	struct hydns_changed what = { .name_len = (uint8_t)name_len };
	uint8_t lower[HYDNS_NAME_MAX];

	if (name_len == 0 || hydns_name_length(name, name_len) != name_len) {
		hydns_pages_advance_generation(p->pages);
		hydns_plugin_kill_rules(p);
		return;
	}
	hydns_name_lower(lower, name, name_len);
	if (!hydns_names_change(p->names, lower, name_len, HYDNS_NAMES_ALL, hydns_mono_coarse_ms()))
		return;
	what.generation = hydns_pages_advance_generation(p->pages);
	if (hydns_plugin_dead(p))
		return;
	/* Without hydnsd, frame and rules wait for the next one. When the link thread loses hydnsd, it first clears ready,
	 * then looks for CHANGED frames in the rings: either it sees ours, or we see that ready is cleared. */
	if (!put_changed(t, &what, lower))
		hydns_plugin_kill_rules(p);
	else
		mark_while_away(p, lower, name_len);
}

/* The monotonic time of a wall-clock second; 0: it is before the host's start. */
static uint64_t mono_of(time_t second)
{
	struct hydns_moment now = hydns_moment();
	int64_t at = (int64_t)(now.mono_ns - now.real_ns) + (int64_t)second * (int64_t)HYDNS_NS_PER_S;

	return at > 0 ? (uint64_t)at : 0;
}

/* Rules with the RRset end no later than before, so if the ring is full they only send lower TTLs for a moment. Without
 * hydnsd that would last for seconds: then they are suspended, and half of the ring is left to changes of data. */
static void put_ttl_update(struct hydns_thread *t, const uint8_t *lower, size_t len, uint16_t rrtype,
			 enum hydns_section section, time_t is)
{
	struct hydns_plugin *p = t->plugin;
	struct hydns_changed what = {
		.name_len = (uint8_t)len, .ttl_of = htons(rrtype), .section = (uint8_t)section, .end_ns = mono_of(is),
	};
	uint64_t now = hydns_mono_coarse_ms();

	/* both changes, because an offer under way checks both */
	what.shared = hydns_names_change(p->names, lower, len, rrtype, now);
	if (!hydns_names_change(p->names, lower, len, HYDNS_NAMES_ALL, now))
		return;
	what.generation = hydns_pages_advance_generation(p->pages);
	if (atomic_load(&p->ready) || (!hydns_plugin_dead(p) && hydns_producer_roomy(&t->ring)))
		put_changed(t, &what, lower);
	mark_while_away(p, lower, len);
}

void hydns_plugin_ttl_update(struct hydns_thread *t, const uint8_t *name, size_t name_len, uint16_t rrtype,
			   enum hydns_section section, time_t was, time_t is)
{
	uint8_t lower[HYDNS_NAME_MAX];

	if (name_len == 0 || hydns_name_length(name, name_len) != name_len)
		return;
	hydns_name_lower(lower, name, name_len);
	switch (hydns_rrset_ends_move(t->plugin->ends, lower, name_len, rrtype, section, (uint32_t)was, (uint32_t)is)) {
	case HYDNS_END_LITTLE:
		return;
	case HYDNS_END_LATER:
		put_ttl_update(t, lower, name_len, rrtype, section, is);
		return;
	case HYDNS_END_EARLIER:
		hydns_plugin_changed(t, lower, name_len);
		return;
	}
}
