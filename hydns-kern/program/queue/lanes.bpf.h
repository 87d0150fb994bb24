/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The lanes of the resolvers: AF_XDP sockets that take packets in place of UDP sockets. Whatever is missing (socket, gate,
 * lane, room) leaves the packet to the stack.
 */
#ifndef HYDNS_KERN_PROGRAM_QUEUE_LANES_BPF_H
#define HYDNS_KERN_PROGRAM_QUEUE_LANES_BPF_H

#include "hydns-kern/program/query.bpf.h"
#include "hydns/queue.h"

/* An entry goes when the socket's last descriptor is closed. */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, HYDNS_LANES * HYDNS_THREADS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} hydns_rings SEC(".maps");

/*
 * One socket of each resolver that is never bound. A bound socket takes some 10 ms to close, one after the other when a
 * process ends; this one goes at once, and with it all redirections to the resolver.
 */
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, __u32);
} hydns_gates SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HYDNS_LANES);
	__type(key, struct hydns_lane_key);
	__type(value, struct hydns_lane);
} hydns_lanes SEC(".maps");

/* Apart from hydns_answers, whose entries have the size of a cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_queue_count);
} hydns_queued SEC(".maps");

/* A ring that the packet may go to. */
struct hydns_target {
	const struct hydns_lane *lane;
	void *pages;         /* its resolver's page, and what is behind it */
};

/* The lane that the packet came by, if the resolver takes packets of this part (HYDNS_QUEUE_*) from it and the frame is not
 * too long for its sockets. */
static __always_inline bool hydns_lane_of(const struct xdp_md *ctx, const struct hydns_packet *p, __u32 resolver, __u32 part,
					  struct hydns_target *out)
{
	struct hydns_lane_key key = { .ifindex = ctx->ingress_ifindex, .queue = ctx->rx_queue_index };
	const struct hydns_resolver_page *page;
	__u32 zero = 0;

	out->lane = bpf_map_lookup_elem(&hydns_lanes, &key);
	if (!out->lane || out->lane->resolver != resolver || p->frame_len > out->lane->frame_max)
		return false;
	out->pages = bpf_map_lookup_elem(&hydns_pages, &resolver);
	if (!out->pages || !bpf_map_lookup_elem(&hydns_gates, &resolver))
		return false;
	page = bpf_map_lookup_elem(out->pages, &zero);
	return page && *(const volatile __u32 *)&page->queue & part;
}

static __always_inline struct hydns_backlog *hydns_backlog_of(const struct hydns_target *to, __u32 thread)
{
	__u32 element = HYDNS_PAGE_BACKLOGS + to->lane->place;
	struct hydns_backlog *of_threads = bpf_map_lookup_elem(to->pages, &element);

	return of_threads ? of_threads + thread % HYDNS_THREADS_MAX : NULL;
}

static __always_inline bool hydns_has_room(const volatile struct hydns_backlog *b)
{
	return (__s32)(b->given - b->taken - b->dropped) < (__s32)b->room;
}

/* XDP_REDIRECT to the thread's socket, counted in *given; XDP_PASS if it has none, or if its ring is full, counted in *full. */
static __always_inline int hydns_redirect(const struct hydns_target *to, __u32 thread, __u64 *given, __u64 *full)
{
	struct hydns_backlog *backlog = hydns_backlog_of(to, thread);
	int action;

	if (!backlog || !hydns_has_room(backlog)) {
		*full += 1;
		return XDP_PASS;
	}
	action = bpf_redirect_map(&hydns_rings, HYDNS_RING(to->lane->number, thread), XDP_PASS);
	if (action == XDP_REDIRECT) {
		*given += 1;
		__sync_fetch_and_add(&backlog->given, 1);
	}
	return action;
}

#endif
