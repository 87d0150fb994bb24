/* SPDX-License-Identifier: GPL-2.0-only */
/* A reply with TC to a client above the limit of responses, as the resolver would send it: hydns_rate() has chosen its flags. */
#ifndef HYDNS_KERN_PROGRAM_RULE_SLIP_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_SLIP_BPF_H

#include "hydns-kern/program/rule/short.bpf.h"

static __always_inline void hydns_count_slip(const struct hydns_query *q, __u32 dns_len)
{
	__u32 resolver = q->question.resolver, flags = q->reply.slip_flags;
	struct hydns_resolver_count *n = bpf_map_lookup_elem(&hydns_answers, &resolver);

	if (!n)
		return;
	n->slipped++;
	n->slipped_ipv6 += q->packet.ipv6;
	n->slipped_edns += q->question.edns;
	n->slipped_aa += !!(flags & HYDNS_FLAGS_AA);
	n->slipped_nxdomain += !!(flags & HYDNS_FLAGS_RCODE << 8);
	n->ad += q->question.ad;
	n->octets += dns_len;
}

/* LIMIT_TRUNCATED: the frame is the reply. LIMITED: it could not be made, and the query is dropped. */
static __always_inline enum hydns_reason hydns_slip(struct xdp_md *ctx, struct hydns_query *q)
{
	const struct hydns_resolver_config *cfg;
	__u32 resolver = q->question.resolver, len;

	len = hydns_short_reply(ctx, q, q->reply.slip_flags);
	if (!len)
		return hydns_limit_drop(q);
	hydns_count_slip(q, len);
	cfg = bpf_map_lookup_elem(&hydns_resolver, &resolver);
	if (cfg && (cfg->flags & HYDNS_RESOLVER_LOGS))
		hydns_log_end(ctx, q, len);
	return HYDNS_R_LIMIT_TRUNCATED;
}

#endif
