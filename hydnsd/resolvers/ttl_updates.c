/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/resolvers/ttl_updates.h"

#include <string.h>

void hydnsd_ttl_updates_put(struct hydnsd_ttl_updates *r, const struct hydns_changed *c, uint64_t now_ms)
{
	struct hydnsd_ttl_update *n = &r->wait[(r->first + r->count++) % HYDNSD_TTL_UPDATES];

	/* rounded, so that several are due together and share a scan */
	n->due_ms = (now_ms / HYDNSD_TTL_UPDATE_WAIT_MS + 2) * HYDNSD_TTL_UPDATE_WAIT_MS;
	n->generation = c->generation;
	n->end_ns = c->end_ns;
	n->rrtype = c->ttl_of;
	n->shared = c->shared;
	n->section = c->section;
	n->name_len = c->name_len;
	memcpy(n->name, c->data, c->name_len);
}

const struct hydnsd_ttl_update *hydnsd_ttl_updates_take(struct hydnsd_ttl_updates *r, uint64_t now_ms)
{
	struct hydnsd_ttl_update *n = &r->wait[r->first];

	if (!r->count || n->due_ms > now_ms)
		return NULL;
	r->first = (r->first + 1) % HYDNSD_TTL_UPDATES;
	r->count--;
	return n;
}

int hydnsd_ttl_updates_next(const struct hydnsd_ttl_updates *r, uint64_t now_ms)
{
	uint64_t due = r->wait[r->first].due_ms;

	if (!r->count)
		return -1;
	return due > now_ms ? (int)(due - now_ms) : 0;
}
