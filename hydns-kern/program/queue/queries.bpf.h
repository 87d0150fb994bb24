/* SPDX-License-Identifier: GPL-2.0-only */
/* A query that no rule answers goes to the ring of one of its resolver's threads, instead of the resolver's UDP socket. */
#ifndef HYDNS_KERN_PROGRAM_QUEUE_QUERIES_BPF_H
#define HYDNS_KERN_PROGRAM_QUEUE_QUERIES_BPF_H

#include "hydns-kern/program/queue/lanes.bpf.h"
#include "hydns/hash.h"

/* Outcomes after the resolver and the client have been admitted: the query is the resolver's to answer. */
#define HYDNS_QUERY_TO_RING(reason) \
	((HYDNS_LOOKED_UP | 1ULL << HYDNS_R_UNLOGGED | 1ULL << HYDNS_R_LIMIT_REACHED | 1ULL << HYDNS_R_UNCOUNTED | \
	  1ULL << HYDNS_R_LIMIT_SLIP | 1ULL << HYDNS_R_LIMIT_LOG) >> (reason) & 1)

/* By the client's address and port, as the kernel chooses among sockets of one address (SO_REUSEPORT): a repeated query
 * finds the thread that is at work on it. */
static __always_inline __u32 hydns_thread_of(const struct hydns_packet *p, __u32 threads)
{
	/* Copied while it is volatile: clang takes what is only const for the zeros of the object file. */
	const __u64 seed[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	const __u64 *client = (const void *)p->client.addr;
	struct hydns_sip s;

	hydns_sip_begin(&s, seed);
	hydns_sip_word(&s, client[0]);
	hydns_sip_word(&s, client[1]);
	hydns_sip_word(&s, p->sport);
	return (__u32)((hydns_sip_end(&s) >> 32) * threads >> 32);
}

/* XDP_REDIRECT to a ring, or XDP_PASS. */
static __noinline int hydns_query_to_ring(struct xdp_md *ctx)
{
	__u32 zero = 0, resolver;
	const struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_target to;
	struct hydns_queue_count *n;

	if (!q)
		return XDP_PASS;
	resolver = q->question.resolver;
	n = bpf_map_lookup_elem(&hydns_queued, &resolver);
	if (!n || !hydns_lane_of(ctx, &q->packet, resolver, HYDNS_QUEUE_CLIENTS, &to))
		return XDP_PASS;
	return hydns_redirect(&to, hydns_thread_of(&q->packet, to.lane->threads), &n->queries, &n->full);
}

#endif
