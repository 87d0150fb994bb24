/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Replies to clients by packet rings: back where their queries came from, or where the host's routes lead. */
#include <string.h>
#include "plugin/queue/lanes_internal.h"
#include "plugin/queue/ways.h"

void hydns_lanes_route(struct hydns_lanes *l, struct hydns_ways *w)
{
	atomic_store(&l->reply_ways, w);
}

static bool detour(struct hydns_lane_thread *t, enum hydns_detour why)
{
	t->counts->detour[why]++;
	return false;
}

/* The way of a reply from the address that was asked, as the kernel would route it. The client's port is no part of the
 * question: each query has another one, so no way would be found again. */
static bool route(struct hydns_lane_thread *t, struct hydns_ways *ways, const struct hydns_path *asked, size_t len, uint64_t now_ms,
		  struct hydns_way *way)
{
	const int family = asked->ipv6 ? AF_INET6 : AF_INET;
	struct hydns_route_question q = { 0 };
	enum hydns_way_result found;
	struct hydns_way_out out;
	uint8_t source[16];

	hydns_address_set(q.remote, family, asked->remote);
	hydns_address_set(source, family, asked->local);
	q.source = source;
	found = hydns_way_find(ways, t->index, &q, now_ms, &out);
	if (found != HYDNS_WAY_FOUND)
		return detour(t, hydns_way_detour(found));
	if (hydns_frame_len(&out.path, len, out.mtu) == 0)
		return detour(t, HYDNS_DETOUR_TOO_LONG);
	if (!hydns_lanes_sender(t, out.ifindex, way))
		return detour(t, HYDNS_DETOUR_OTHER_DEVICE);
	way->path = out.path;
	way->path.remote_port = asked->remote_port;
	way->path.local_port = asked->local_port;
	return true;
}

/* Of a reply that has left. */
static void count_time(struct hydns_lane_thread *t, const struct hydns_way *way)
{
	const uint32_t took = hydns_lanes_now_us() - way->came_us;

	t->counts->took[hydns_wait_bucket(took)]++;
	t->counts->took_us += took;
}

bool hydns_lanes_reply(struct hydns_lane_thread *t, const struct hydns_way *way, uint8_t dscp, const uint8_t *payload, size_t len,
		       uint64_t now_ms)
{
	struct hydns_ways *ways = atomic_load_explicit(&t->all->reply_ways, memory_order_acquire);
	struct hydns_way out;
	bool sent;

	if (!ways || way->lane == 0)
		sent = hydns_lanes_send(t, way, dscp, payload, len);
	else
		sent = route(t, ways, &way->path, len, now_ms, &out) && hydns_lanes_send(t, &out, dscp, payload, len);
	if (sent)
		count_time(t, way);
	return sent;
}
