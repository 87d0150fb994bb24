/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Logged answers (logged.h). A program of its own answers for resolvers that log: hydns_xdp tail-calls it, so a hit of another
 * resolver has no instruction for it. Room is looked for before the frame changes, the record is made when the reply stands.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_LOGGED_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_LOGGED_BPF_H

#include "hydns/logged.h"
#include "hydns-kern/program/packet/route.bpf.h"
#include "hydns-kern/program/query.bpf.h"

#define HYDNS_LOGGED_PADDING   16      /* octets that may be written behind the last one */

struct hydns_log_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HYDNS_LOG_RING);
};
/* By resolver. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__array(values, struct hydns_log_ring);
} hydns_log_rings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_log_count);
} hydns_logs SEC(".maps");

/* The record in work. */
struct hydns_log_draft {
	__u32 wanted;        /* this answer is logged */
	__u32 reserved;
	struct hydns_logged head;
	__u8  octets[HYDNS_QUERY_MAX + HYDNS_LOGGED_REPLY + 1 + HYDNS_LOGGED_PADDING];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_log_draft);
} hydns_log_draft SEC(".maps");

/* Whether this answer is one of those that are logged: the first, and then one in N. */
static __always_inline bool hydns_log_turn(struct hydns_log_count *n, const struct hydns_resolver_config *cfg)
{
	if ((cfg->flags & HYDNS_RESOLVER_LOGS_ALL) || cfg->log_one_in < 2)
		return true;
	if (n->turn++ % cfg->log_one_in == 0)
		return true;
	++n->skipped;
	return false;
}

/* A dry run's question: whether the answer to this query would be logged, if there is room. */
static __always_inline bool hydns_can_log(const struct hydns_query *q)
{
	return bpf_map_lookup_elem(&hydns_log_rings, &q->question.resolver) && !hydns_route_link_local(&q->packet);
}

/*
 * The last check before the frame changes: HYDNS_R_ANSWERED, or why the query passes. A global function, as all here: the verifier
 * checks it once. A query that finds room leaves as much for each other CPU, so nobody can take it meanwhile.
 */
__noinline int hydns_log_begin(struct xdp_md *ctx, struct hydns_query *q)
{
	struct hydns_log_draft *d;
	struct hydns_resolver_config *cfg;
	struct hydns_log_count *n;
	__u32 zero = 0, resolver;        /* on the stack: Linux 6.1 takes no key from an argument's memory */
	__u64 len, off;
	void *ring;

	if (!q)
		return HYDNS_R_NO_ENTRY;
	resolver = q->question.resolver;
	d = bpf_map_lookup_elem(&hydns_log_draft, &zero);
	cfg = bpf_map_lookup_elem(&hydns_resolver, &resolver);
	n = bpf_map_lookup_elem(&hydns_logs, &resolver);
	ring = bpf_map_lookup_elem(&hydns_log_rings, &resolver);
	if (!d || !cfg || !n)
		return HYDNS_R_NO_ENTRY;
	if (!ring || hydns_route_link_local(&q->packet))     /* a line names such a client's interface */
		return HYDNS_R_UNLOGGED;
	if ((cfg->flags & HYDNS_RESOLVER_LOGS_ALL) &&
	    bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) + (__u64)HYDNS_LOGGED_MOST * (hydns_geometry.cpus + 1) >
		    bpf_ringbuf_query(ring, BPF_RB_RING_SIZE))
		return HYDNS_R_LOG_FULL;
	d->wanted = hydns_log_turn(n, cfg);
	if (!d->wanted)
		return HYDNS_R_ANSWERED;
	len = q->packet.message_len;
	off = q->packet.dns_off;
	if (!hydns_bounded(&len, HYDNS_QUERY_MAX) || bpf_xdp_load_bytes(ctx, off, d->octets, len))
		return HYDNS_R_FRAME_CUT;
	d->head.query_len = len;
	return HYDNS_R_ANSWERED;
}

/* hydns_log_begin() as one of few constants, as hydns_within_limit(). */
static __always_inline enum hydns_reason hydns_log_prepare(struct xdp_md *ctx, struct hydns_query *q)
{
	int r = hydns_log_begin(ctx, q);

	if (r == HYDNS_R_UNLOGGED) {
		HYDNS_OPAQUE(r);
		return HYDNS_R_UNLOGGED;
	}
	if (r == HYDNS_R_LOG_FULL) {
		HYDNS_OPAQUE(r);
		return HYDNS_R_LOG_FULL;
	}
	if (r == HYDNS_R_FRAME_CUT) {
		HYDNS_OPAQUE(r);
		return HYDNS_R_FRAME_CUT;
	}
	if (r != HYDNS_R_ANSWERED) {
		HYDNS_OPAQUE(r);
		return HYDNS_R_NO_ENTRY;
	}
	return HYDNS_R_ANSWERED;
}

static __always_inline void hydns_log_head(struct hydns_logged *h, const struct hydns_query *q, __u32 reply_len)
{
	h->at_ns = bpf_ktime_get_ns();
	__builtin_memcpy(h->client, q->packet.client.addr, 16);
	__builtin_memcpy(h->service, q->packet.service.addr, 16);
	h->client_port = q->packet.sport;
	h->service_port = q->packet.service.port;
	h->reply_len = reply_len;
	h->ipv6 = q->packet.ipv6;
}

/* The reply stands in the frame. */
__noinline int hydns_log_end(struct xdp_md *ctx, struct hydns_query *q, __u32 reply_len)
{
	__u64 len = reply_len, at, wakeup = BPF_RB_NO_WAKEUP;
	struct hydns_log_draft *d;
	struct hydns_log_count *n;
	__u32 zero = 0, resolver;
	void *ring;

	if (!q)
		return 0;
	resolver = q->question.resolver;
	d = bpf_map_lookup_elem(&hydns_log_draft, &zero);
	n = bpf_map_lookup_elem(&hydns_logs, &resolver);
	ring = bpf_map_lookup_elem(&hydns_log_rings, &resolver);
	if (!d || !n || !d->wanted)
		return 0;
	at = d->head.query_len;
	HYDNS_OPAQUE(at);
	if (!ring || at > HYDNS_QUERY_MAX || !hydns_bounded(&len, HYDNS_LOGGED_REPLY) ||
	    bpf_xdp_load_bytes(ctx, q->packet.dns_off, d->octets + at, len)) {
		++n->lost;
		return 0;
	}
	hydns_log_head(&d->head, q, len);
	/* The reader looks often; it is woken only when much has come meanwhile. */
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) > bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 4)
		wakeup = BPF_RB_FORCE_WAKEUP;
	len += sizeof(d->head) + d->head.query_len;
	if (!hydns_bounded(&len, sizeof(d->head) + HYDNS_QUERY_MAX + HYDNS_LOGGED_REPLY) ||
	    bpf_ringbuf_output(ring, &d->head, len, wakeup))
		++n->lost;
	else
		++n->logged;
	return 0;
}

#endif
