/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guard's stage, behind a tail call: it says TC to a client that is above its limit, and looks for the rule of a suffix where no
 * rule has answered. hydns_scratch holds what the stages before it have read.
 */
#ifndef HYDNS_KERN_PROGRAM_GUARD_GUARD_BPF_H
#define HYDNS_KERN_PROGRAM_GUARD_GUARD_BPF_H

#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/guard/suffixes.bpf.h"
#include "hydns-kern/program/miss/miss.bpf.h"
#include "hydns-kern/program/rule/answer.bpf.h"

#define HYDNS_FLAGS_QR         0x80 /* in the first octet of the flags */
#define HYDNS_FLAGS_TC         0x02
#define HYDNS_FLAGS_RA         0x80 /* in the second */
#define HYDNS_RCODE_SERVFAIL   2

/* Whether the stage may have something to do for a query that no rule has answered. */
static __always_inline bool hydns_guard_looks(const struct hydns_query *q, __u32 reason)
{
	return reason == HYDNS_R_GUARD_TRUNCATED ||
	       (HYDNS_MAY_PARK(reason) && *(const volatile __u32 *)&hydns_guard_labels && !q->cpu.guarded);
}

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
 * Makes the query a reply without records: the question, and with EDNS an OPT record, with the resolver's cookie if the client sent
 * one. RA is the query's RD, as in dnsdist (TCAction), for no answer of the resolver says whether it recurses. False: the frame is as
 * it was, or it can't be sent.
 */
static __always_inline bool hydns_short_reply(struct xdp_md *ctx, struct hydns_query *q, enum hydns_reason why)
{
	const struct hydns_dns_header *asked = (const void *)q->question.message;
	__u8 first = HYDNS_FLAGS_QR | (why == HYDNS_R_GUARD_TRUNCATED ? HYDNS_FLAGS_TC : 0);
	__u8 second = (asked->flags[0] & HYDNS_FLAGS_RD ? HYDNS_FLAGS_RA : 0) | (why == HYDNS_R_GUARD_FAILED ? HYDNS_RCODE_SERVFAIL : 0);
	const struct hydns_rule none = { .reply_flags = first | second << 8 };
	const struct hydns_resolver_config *cfg;
	struct hydns_layout layout = {};
	__u32 resolver = q->question.resolver;

	cfg = bpf_map_lookup_elem(&hydns_resolver, &resolver);
	layout.data_len = (__u64)q->question.name_len + 4;
	layout.dns_len = HYDNS_DNS_HEADER + layout.data_len + hydns_opt_len(q);
	layout.answer_off = q->packet.dns_off + HYDNS_DNS_HEADER + layout.data_len;
	if (!cfg || hydns_route(ctx, q, q->packet.dns_off - q->packet.l3_off + layout.dns_len) || hydns_resize(ctx, q, &layout))
		return false;
	layout.sum = q->question.name_sum + hydns_sum_at((__u64)q->question.qtype + bpf_htons(HYDNS_CLASS_IN), q->question.name_len);
	return !hydns_short_question(ctx, q, &layout) && !hydns_write_opt(ctx, q, cfg, &none, &layout) &&
	       !hydns_write_headers(ctx, q, &none, &layout);
}

/* A query above a limit that can't be replied to is dropped. */
static __always_inline int hydns_guard_end(struct xdp_md *ctx, struct hydns_query *q, enum hydns_reason why)
{
	bool replies = why != HYDNS_R_GUARDED && hydns_short_reply(ctx, q, why);

	hydns_count(ctx, replies ? why : HYDNS_R_GUARDED);
	return replies ? hydns_send(&q->reply) : XDP_DROP;
}

SEC("xdp.frags")
int hydns_guarded(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	enum hydns_reason why = HYDNS_R_GUARD_TRUNCATED;

	if (!q)
		return XDP_PASS;
	if (q->cpu.reason == HYDNS_R_GUARD_TRUNCATED)
		hydns_key(&q->question);       /* which also sums the name */
	else
		why = hydns_guard_judge_suffix(q);
	if (why)
		return hydns_guard_end(ctx, q, why);
	q->cpu.guarded = 1;
	bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_LEFT);
	hydns_count(ctx, q->cpu.reason);       /* hydnsd has just ended */
	return hydns_action(q->cpu.reason);
}

#endif
