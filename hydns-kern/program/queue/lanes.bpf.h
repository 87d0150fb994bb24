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

/* The lane that the packet came by, if the resolver takes packets of this part (HYDNS_QUEUE_*) from it and the frame is not
 * too long for its sockets; else NULL. */
static __always_inline const struct hydns_lane *hydns_lane_of(const struct xdp_md *ctx, const struct hydns_packet *p,
							      __u32 resolver, __u32 part)
{
	struct hydns_lane_key key = { .ifindex = ctx->ingress_ifindex, .queue = ctx->rx_queue_index };
	const struct hydns_lane *lane = bpf_map_lookup_elem(&hydns_lanes, &key);
	const struct hydns_resolver_page *page;
	__u32 zero = 0;
	void *page_map;

	if (!lane || lane->resolver != resolver || p->frame_len > lane->frame_max)
		return NULL;
	page_map = bpf_map_lookup_elem(&hydns_pages, &resolver);
	if (!page_map || !bpf_map_lookup_elem(&hydns_gates, &resolver))
		return NULL;
	page = bpf_map_lookup_elem(page_map, &zero);
	return page && *(const volatile __u32 *)&page->queue & part ? lane : NULL;
}

/* XDP_REDIRECT to the thread's socket, counted in *n; XDP_PASS if it has none. */
static __always_inline int hydns_redirect(const struct hydns_lane *lane, __u32 thread, __u64 *n)
{
	int action = bpf_redirect_map(&hydns_rings, HYDNS_RING(lane->number, thread), XDP_PASS);

	*n += action == XDP_REDIRECT;
	return action;
}

#endif
