/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* hydnsd has refused this resolver: it may be of another version, and is then replaced, or the resolver is. */
#include <poll.h>
#include <sys/eventfd.h>
#include "plugin/link/thread.h"

/* A hydnsd of another version keeps the connection, and says nothing: its end is when another hydnsd may be there. */
static void await_end(struct hydns_link *l)
{
	eventfd_t ignored;
	int error = 0;

	while (!error && !atomic_load(&l->p->stopping)) {
		hydns_link_await(l, POLLIN, true, UINT64_MAX);
		(void)eventfd_read(l->p->requests.wake, &ignored);      /* fails only when nobody has written */
		error = hydns_link_read_unasked(l);
	}
}

void hydns_link_take_refusal(struct hydns_link *l)
{
	const bool other_version = l->in.head.abi != 0;

	hydns_link_log_state(l, HYDNS_LOG_ERROR, "hydnsd refused this resolver, which answers every query itself: %s",
			     hydns_link_refusal(l));
	hydns_link_give_lanes_up(l);
	if (other_version)
		await_end(l);
}
