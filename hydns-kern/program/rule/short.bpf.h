/* SPDX-License-Identifier: GPL-2.0-only */
/* Replies without records, to clients above a limit: the question, and with EDNS an OPT record. */
#ifndef HYDNS_KERN_PROGRAM_RULE_SHORT_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_SHORT_BPF_H

#include "hydns-kern/program/rule/answer.bpf.h"

/* The query's question stands where the reply's belongs, unless the frame's start was moved. */
static __always_inline int hydns_short_question(struct xdp_md *ctx, struct hydns_query *q, const struct hydns_layout *layout)
{
	__u64 len = layout->data_len;

	if (layout->question_stands)
		return 0;
	if (!hydns_bounded(&len, HYDNS_NAME_MAX + 4))
		return -1;
	return bpf_xdp_store_bytes(ctx, q->packet.dns_off + HYDNS_DNS_HEADER, q->question.message + HYDNS_DNS_HEADER, len);
}

/*
 * Makes the query a reply without records, with the resolver's cookie if the client sent one. flags: as reply_flags of a rule. Returns
 * the message's octets; 0: it can't be sent, and the frame may have changed. hydns_key() has summed the name.
 */
static __always_inline __u32 hydns_short_reply(struct xdp_md *ctx, struct hydns_query *q, __u32 flags)
{
	const struct hydns_rule none = { .reply_flags = flags };
	const struct hydns_resolver_config *cfg;
	struct hydns_layout layout = {};
	__u32 resolver = q->question.resolver;

	cfg = bpf_map_lookup_elem(&hydns_resolver, &resolver);
	layout.data_len = (__u64)q->question.name_len + 4;
	layout.dns_len = HYDNS_DNS_HEADER + layout.data_len + hydns_opt_len(q);
	layout.answer_off = q->packet.dns_off + HYDNS_DNS_HEADER + layout.data_len;
	if (!cfg || hydns_route(ctx, q, q->packet.dns_off - q->packet.l3_off + layout.dns_len) || hydns_resize(ctx, q, &layout))
		return 0;
	layout.sum = q->question.name_sum + hydns_sum_at((__u64)q->question.qtype + bpf_htons(HYDNS_CLASS_IN), q->question.name_len);
	if (hydns_short_question(ctx, q, &layout) || hydns_write_opt(ctx, q, cfg, &none, &layout) ||
	    hydns_write_headers(ctx, q, &none, &layout))
		return 0;
	return layout.dns_len;
}

#endif
