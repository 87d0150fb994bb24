/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/renewals.h"

#include <string.h>

void hydnsd_renewals_put(struct hydnsd_renewals *r, const struct hydns_changed *c, uint64_t now_ms)
{
	struct hydnsd_renewal *n = &r->wait[(r->first + r->count++) % HYDNSD_RENEWALS];

	/* several due together share a pass */
	n->due_ms = (now_ms / HYDNSD_SETTLE_MS + 2) * HYDNSD_SETTLE_MS;
	n->generation = c->generation;
	n->end_ns = c->end_ns;
	n->rrtype = c->renewed;
	n->shared = c->shared;
	n->shown = c->shown;
	n->name_len = c->name_len;
	memcpy(n->name, c->data, c->name_len);
}

const struct hydnsd_renewal *hydnsd_renewals_take(struct hydnsd_renewals *r, uint64_t now_ms)
{
	struct hydnsd_renewal *n = &r->wait[r->first];

	if (!r->count || n->due_ms > now_ms)
		return NULL;
	r->first = (r->first + 1) % HYDNSD_RENEWALS;
	r->count--;
	return n;
}

int hydnsd_renewals_next(const struct hydnsd_renewals *r, uint64_t now_ms)
{
	uint64_t due = r->wait[r->first].due_ms;

	if (!r->count)
		return -1;
	return due > now_ms ? (int)(due - now_ms) : 0;
}
