/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include <sys/eventfd.h>
#include "plugin/internal.h"

/* The commit before had a full fence: either the link thread, about to rest, finds BUSY, or this thread finds RESTING. */
static void end_rest(struct hydns_plugin *p)
{
	if (atomic_load_explicit(&p->rest, memory_order_relaxed) != HYDNS_REST_BUSY &&
	    atomic_exchange(&p->rest, HYDNS_REST_BUSY) == HYDNS_REST_RESTING)
		hydns_requests_wake(&p->requests);
}

void hydns_thread_commit(struct hydns_thread *t, uint32_t len)
{
	const bool ring = hydns_producer_commit(&t->ring, len);

	end_rest(t->plugin);
	/* Fails only when the counter is full, after 2^64 frames: hydnsd does not read it. */
	if (ring && eventfd_write(t->plugin->doorbell, 1))
		return;
}
