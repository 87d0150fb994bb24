/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include <sys/eventfd.h>
#include "plugin/internal.h"

void hydns_thread_commit(struct hydns_thread *t, uint32_t len)
{
	/* Fails only when the counter is full, and then hydnsd is awake. */
	if (hydns_producer_commit(&t->ring, len) && eventfd_write(t->plugin->doorbell, 1))
		return;
}
