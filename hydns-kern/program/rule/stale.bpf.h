/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stale answers of a resolver that has crashed (doc/coherence.md). hydnsd grants them by a lease in the resolver's configuration, and
 * renews it. They end with the first query for which a process listens again: that query, and all later ones, are its own.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_STALE_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_STALE_BPF_H

#include "hydns-kern/program/query.bpf.h"

/* The kernel's socket table, as for a packet that goes up the stack. A call that the verifier checks once. */
__noinline int hydns_listener(struct xdp_md *ctx, const struct hydns_query *q)
{
	struct bpf_sock_tuple t = {};
	struct bpf_sock *sk;

	if (!ctx || !q)
		return 1;
	if (q->packet.ipv6) {
		__builtin_memcpy(t.ipv6.saddr, q->packet.client.addr, 16);
		__builtin_memcpy(t.ipv6.daddr, q->packet.service.addr, 16);
		t.ipv6.sport = q->packet.sport;
		t.ipv6.dport = q->packet.service.port;
		sk = bpf_sk_lookup_udp(ctx, &t, sizeof(t.ipv6), BPF_F_CURRENT_NETNS, 0);
	} else {
		__builtin_memcpy(&t.ipv4.saddr, q->packet.client.addr + 12, 4);
		__builtin_memcpy(&t.ipv4.daddr, q->packet.service.addr + 12, 4);
		t.ipv4.sport = q->packet.sport;
		t.ipv4.dport = q->packet.service.port;
		sk = bpf_sk_lookup_udp(ctx, &t, sizeof(t.ipv4), BPF_F_CURRENT_NETNS, 0);
	}
	if (!sk)
		return 0;
	bpf_sk_release(sk);
	return 1;
}

/* Whether rules of this resolver, which does not live, may answer the query. Ends the lease when somebody listens. */
static __always_inline bool hydns_stale_allowed(struct xdp_md *ctx, const struct hydns_query *q, struct hydns_resolver_config *cfg,
						__u64 now, bool dry)
{
	if (now >= *(volatile __u64 *)&cfg->stale_until_ns || cfg->flags & HYDNS_RESOLVER_ACCOUNTS)
		return false;
	if (!hydns_listener(ctx, q))
		return true;
	if (!dry)
		*(volatile __u64 *)&cfg->stale_until_ns = 0;
	return false;
}

#endif
