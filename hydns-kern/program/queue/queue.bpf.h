/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Packets for a resolver's rings: a query that no rule answers goes to the AF_XDP socket of one of the resolver's threads
 * instead of its UDP socket. Whatever is missing (ring, gate, lane, room) leaves the ordinary way.
 */
#ifndef HYDNS_KERN_PROGRAM_QUEUE_QUEUE_BPF_H
#define HYDNS_KERN_PROGRAM_QUEUE_QUEUE_BPF_H

#include "hydns-kern/program/query.bpf.h"
#include "hydns/hash.h"
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

/* Outcomes after the resolver and the client have been admitted: the query is the resolver's to answer. */
#define HYDNS_TO_RING(reason) \
	((1ULL << HYDNS_R_MISS | 1ULL << HYDNS_R_EPOCH | 1ULL << HYDNS_R_EXPIRED | 1ULL << HYDNS_R_REFRESH | \
	  1ULL << HYDNS_R_TOO_BIG | 1ULL << HYDNS_R_NO_ROOM | 1ULL << HYDNS_R_NO_ROUTE | 1ULL << HYDNS_R_COOKIE | \
	  1ULL << HYDNS_R_LETTER_CASE) >> (reason) & 1)

/* By the client's address and port, as the kernel chooses among sockets of one address (SO_REUSEPORT): a repeated query
 * finds the thread that is at work on it. */
static __always_inline __u32 hydns_thread_of(const struct hydns_packet *p, __u32 threads)
{
	const __u64 *client = (const void *)p->client.addr;
	struct hydns_sip s;

	hydns_sip_begin(&s, (const __u64 *)hydns_geometry.seed);
	hydns_sip_word(&s, client[0]);
	hydns_sip_word(&s, client[1]);
	hydns_sip_word(&s, p->sport);
	return (__u32)((hydns_sip_end(&s) >> 32) * threads >> 32);
}

/* XDP_REDIRECT to a ring, or XDP_PASS. */
static __noinline int hydns_to_ring(struct xdp_md *ctx)
{
	struct hydns_lane_key key = { .ifindex = ctx->ingress_ifindex, .queue = ctx->rx_queue_index };
	const struct hydns_lane *lane = bpf_map_lookup_elem(&hydns_lanes, &key);
	__u32 zero = 0;
	const struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	const struct hydns_resolver_page *page;
	struct hydns_resolver_count *count;
	__u32 resolver;
	void *page_map;

	if (!lane || !q || lane->resolver != q->question.resolver || q->packet.frame_len > lane->frame_max)
		return XDP_PASS;
	resolver = lane->resolver;
	page_map = bpf_map_lookup_elem(&hydns_pages, &resolver);
	if (!page_map || !bpf_map_lookup_elem(&hydns_gates, &resolver))
		return XDP_PASS;
	page = bpf_map_lookup_elem(page_map, &zero);
	if (!page || !(*(const volatile __u32 *)&page->queue & HYDNS_QUEUE_CLIENTS) ||
	    bpf_redirect_map(&hydns_rings, HYDNS_RING(lane->number, hydns_thread_of(&q->packet, lane->threads)), XDP_PASS) !=
	    XDP_REDIRECT)
		return XDP_PASS;
	count = bpf_map_lookup_elem(&hydns_answers, &resolver);
	if (count)
		count->queued++;
	return XDP_REDIRECT;
}

#endif
