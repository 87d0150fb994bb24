/* SPDX-License-Identifier: GPL-2.0-only */
/* Parking: a query for a question under way waits in a ring buffer until hydnsd replays it (hydns/parking.h). */
#ifndef HYDNS_KERN_PROGRAM_MISS_PARK_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_PARK_BPF_H

#include "hydns-kern/program/miss/under_way.bpf.h"

/* hydnsd reads it with each OVER frame and at least every 50 ms; it is woken once so much of it is filled. */
#define HYDNS_PARKED_WAKEUP    (HYDNS_PARKED_RING / 8)

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HYDNS_PARKED_RING);
} hydns_parked SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_parking);
} hydns_parking SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_parking_count);
} hydns_spills SEC(".maps");

/* Interfaces, by ifindex, on which queries may be parked: those that replayed answers can leave by. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HYDNS_INTERFACES);
	__type(key, __u32);
	__type(value, __u32);
} hydns_park_at SEC(".maps");

/* Queries whose answers the resolver makes anew for each: nobody else waits for them. */
static __always_inline bool hydns_never_shared(const struct hydns_question *q)
{
	const struct hydns_resolver_config *cfg = bpf_map_lookup_elem(&hydns_resolver, &q->resolver);

	return !cfg || (q->variant & HYDNS_VARIANT_NO_RD) || (q->capitals && (cfg->flags & HYDNS_RESOLVER_KEEPS_CASE));
}

/* HYDNS_SPILLS: one more may wait for a question for which so many do. Else the bound that it would exceed. */
static __always_inline __u32 hydns_bound_of(struct hydns_parking *p, __u32 parked, __u64 now)
{
	__u32 waiting = *(const volatile __u32 *)&p->waiting;

	if (now - *(const volatile __u64 *)&p->heartbeat_ns + HYDNS_HEARTBEAT_BEAT_NS >=
	    HYDNS_PARKING_STALE_NS + HYDNS_HEARTBEAT_BEAT_NS)
		return HYDNS_SPILL_HYDNSD;
	if (parked >= p->per_question)
		return HYDNS_SPILL_PER_QUESTION;
	if (waiting >= p->max)
		p->full = 1;
	else if (waiting <= p->resume)
		p->full = 0;
	return *(const volatile __u32 *)&p->full ? HYDNS_SPILL_MAX : HYDNS_SPILLS;
}

static __always_inline void hydns_describe(struct hydns_parked *r, struct xdp_md *ctx, const struct hydns_query *q, __u64 key,
					   __u64 now)
{
	*r = (struct hydns_parked){
		.key = key, .rule_key = q->question.hash, .at_ns = now, .ifindex = ctx->ingress_ifindex,
		.rx_queue = ctx->rx_queue_index, .frame_len = q->packet.frame_len, .dns_off = q->packet.dns_off,
		.resolver = q->question.resolver, .name_len = q->question.name_len, .variant = q->question.variant,
		.ipv6 = q->packet.ipv6,
	};
}

/* HYDNS_SPILLS: the frame is in the ring buffer. The record is made in scratch that only a reply uses. */
static __always_inline __u32 hydns_keep(struct xdp_md *ctx, struct hydns_query *q, __u64 key, __u64 now)
{
	struct hydns_parked *r = (void *)q->reply.group_head;
	__u64 len = q->packet.frame_len, wakeup = BPF_RB_NO_WAKEUP;

	hydns_describe(r, ctx, q, key, now);
	if (!hydns_bounded(&len, HYDNS_PARKED_FRAME) || bpf_xdp_load_bytes(ctx, 0, r + 1, len))
		return HYDNS_SPILL_FRAME;
	if (bpf_ringbuf_query(&hydns_parked, BPF_RB_AVAIL_DATA) > HYDNS_PARKED_WAKEUP)
		wakeup = BPF_RB_FORCE_WAKEUP;
	return bpf_ringbuf_output(&hydns_parked, r, sizeof(*r) + len, wakeup) ? HYDNS_SPILL_ROOM : HYDNS_SPILLS;
}

/* The same, if it may wait for a question for which *parked do. */
static __always_inline __u32 hydns_join(struct xdp_md *ctx, struct hydns_query *q, struct hydns_parking *p, __u32 *parked,
					__u64 key, __u64 now)
{
	__u32 ifindex = ctx->ingress_ifindex, spill;

	if (!bpf_map_lookup_elem(&hydns_park_at, &ifindex))
		return HYDNS_SPILL_INTERFACE;
	spill = hydns_bound_of(p, *(const volatile __u32 *)parked, now);
	if (spill < HYDNS_SPILLS)
		return spill;
	__sync_fetch_and_add(&p->waiting, 1);
	spill = hydns_keep(ctx, q, key, now);
	if (spill == HYDNS_SPILLS)
		__sync_fetch_and_add(parked, 1);
	else
		__sync_fetch_and_add(&p->waiting, -1);
	return spill;
}

/* Whether the query was parked. It was not: it goes on to the resolver as ever. */
static __always_inline bool hydns_park(struct xdp_md *ctx, struct hydns_query *q, __u64 now)
{
	struct hydns_parking *p = bpf_map_lookup_elem(&hydns_parking, &q->question.resolver);
	struct hydns_parking_count *n = bpf_map_lookup_elem(&hydns_spills, &q->question.resolver);
	void *pages = hydns_pages_under_way(&q->question);
	struct hydns_under_way *e;
	__u32 spill;
	__u64 key;

	if (!p || !n || !pages || !*(const volatile __u32 *)&p->max || hydns_never_shared(&q->question))
		return false;
	key = hydns_plugin_key(&q->question, p);
	e = hydns_find_under_way(pages, key, now);
	if (!e)
		return false;
	spill = hydns_join(ctx, q, p, &e->parked, key, now);
	if (spill < HYDNS_SPILLS) {
		++n->spilled[spill];
		return false;
	}
	++n->parked;
	return true;
}

#endif
