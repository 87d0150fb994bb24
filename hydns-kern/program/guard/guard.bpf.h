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
#include "hydns-kern/program/rule/short.bpf.h"

/* Whether the stage may have something to do for a query that no rule has answered. */
static __always_inline bool hydns_guard_looks(const struct hydns_query *q, __u32 reason)
{
	return reason == HYDNS_R_GUARD_TRUNCATED ||
	       ((HYDNS_MAY_PARK(reason) || reason == HYDNS_R_TYPE_ANY) && *(const volatile __u32 *)&hydns_guard_labels && !q->cpu.guarded);
}

/* RA is the query's RD, as in dnsdist (TCAction), for no answer of the resolver says whether it recurses. */
static __always_inline __u32 hydns_guard_flags(const struct hydns_query *q, enum hydns_reason why)
{
	const struct hydns_dns_header *asked = (const void *)q->question.message;
	__u8 first = HYDNS_FLAGS_QR | (why == HYDNS_R_GUARD_TRUNCATED ? HYDNS_FLAGS_TC : 0);
	__u8 second = (asked->flags[0] & HYDNS_FLAGS_RD ? HYDNS_FLAGS_RA : 0) | (why == HYDNS_R_GUARD_FAILED ? HYDNS_RCODE_SERVFAIL : 0);

	return first | second << 8;
}

/* A query above a limit that can't be replied to is dropped. */
static __always_inline int hydns_guard_end(struct xdp_md *ctx, struct hydns_query *q, enum hydns_reason why)
{
	bool replies = why != HYDNS_R_GUARDED && hydns_short_reply(ctx, q, hydns_guard_flags(q, why));

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
