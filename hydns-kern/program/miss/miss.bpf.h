/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program for a query that no rule answers. hydns_xdp tail-calls it, so the verifier checks it separately and a hit does
 * not pay for it. hydns_scratch holds what the stages before it have read.
 */
#ifndef HYDNS_KERN_PROGRAM_MISS_MISS_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_MISS_BPF_H

#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/clock.bpf.h"
#include "hydns-kern/program/forward/forward.bpf.h"
#include "hydns-kern/program/miss/park.bpf.h"
#include "hydns-kern/program/rule/limited.bpf.h"
#include "hydns-kern/program/queue/queries.bpf.h"

/* Outcomes after which the resolver will make, or is making, the answer that all who ask can have. */
#define HYDNS_MAY_PARK(reason) ((1ULL << HYDNS_R_MISS | 1ULL << HYDNS_R_EPOCH | 1ULL << HYDNS_R_EXPIRED) >> (reason) & 1)

SEC("xdp.frags")
int hydns_miss(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (!q)
		return XDP_PASS;
	if (hydns_park(ctx, q, hydns_now(&q->cpu))) {
		hydns_count(ctx, HYDNS_R_PARKED);
		return hydns_action(HYDNS_R_PARKED);
	}
	if (hydns_forward_stage && hydns_forward_number(&q->question))
		bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_FORWARD);
	hydns_limit_pass(q);
	hydns_count(ctx, q->cpu.reason);
	return hydns_queue ? hydns_query_to_ring(ctx) : XDP_PASS;
}

#endif
