/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Replays: hydnsd runs hydns_xdp over live carriers, because a program that is attached can be run over many frames at
 * once without waiting for a grace period. Here a carrier becomes a parked frame, which then comes in as any packet does.
 */
#ifndef HYDNS_KERN_PROGRAM_MISS_REPLAY_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_REPLAY_BPF_H

#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/miss/replays.bpf.h"

/* Outcomes of packets that were not read as IP. */
#define HYDNS_MAY_BE_CARRIER(reason) ((1ULL << HYDNS_R_NOT_IP | 1ULL << HYDNS_R_PAUSED | 1ULL << HYDNS_R_EMPTY) >> (reason) & 1)

/* A replayed frame that no rule has answered goes to the resolver's socket: rings have one producer, the driver, and it is
 * not parked again. One that was (hydns_by_another_link()) comes in once more. */
static __always_inline int hydns_replayed(struct xdp_md *ctx, enum hydns_reason reason)
{
	__u32 zero = 0;
	struct hydns_replays *r = bpf_map_lookup_elem(&hydns_replays, &zero);

	if (r && reason == HYDNS_R_PARKED) {
		r->frame[(r->next - 1) & HYDNS_REPLAYS].passed = HYDNS_REPLAY_LATER;
	} else if (r) {
		__sync_fetch_and_add(&r->passed, 1);
		r->frame[(r->next - 1) & HYDNS_REPLAYS].passed = HYDNS_REPLAY_PASSED;
	}
	hydns_count(ctx, reason);
	return hydns_action(reason);
}

/* A replayed frame was forwarded, or is parked once more. */
static __always_inline void hydns_replay_forwarded(void)
{
	__u32 zero = 0;
	struct hydns_replays *r = bpf_map_lookup_elem(&hydns_replays, &zero);

	if (r)
		r->frame[(r->next - 1) & HYDNS_REPLAYS].passed = HYDNS_REPLAY_FORWARDED;
}

/* As if there were no stage. */
static __always_inline int hydns_end(struct xdp_md *ctx, const struct hydns_query *q, enum hydns_reason reason)
{
	if (q->cpu.replaying)
		return hydns_replayed(ctx, reason);
	hydns_count(ctx, reason);
	return hydns_action(reason);
}

static __always_inline bool hydns_is_carrier(struct xdp_md *ctx, const struct hydns_replays *r)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct ethhdr *eth = data;
	const __u64 *secret = (const void *)(eth + 1);

	return (void *)(secret + 2) <= end && eth->h_proto == bpf_htons(HYDNS_CARRIER_TYPE) && secret[0] == r->secret[0] &&
	       secret[1] == r->secret[1];
}

/* Makes the frame of a carrier this one. */
static __always_inline bool hydns_unfold(struct xdp_md *ctx, const struct hydns_replay_frame *f)
{
	__u64 len = f->len;

	return hydns_bounded(&len, HYDNS_PARKED_FRAME) && !bpf_xdp_adjust_tail(ctx, (int)len - HYDNS_CARRIER_LEN) &&
	       !bpf_xdp_store_bytes(ctx, 0, (void *)f->octets, len);
}

/* For packets that hydns_xdp has not read as IP, nearly all of which are no carriers: they end as they would have. */
SEC("xdp.frags")
int hydns_replay(struct xdp_md *ctx)
{
	__u32 zero = 0, reason, i;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_replays *r = bpf_map_lookup_elem(&hydns_replays, &zero);

	if (!q || !r)
		return XDP_PASS;
	reason = q->cpu.reason;
	if (!hydns_is_carrier(ctx, r))
		return hydns_end(ctx, q, reason);
	r->on_cpu = bpf_get_smp_processor_id() + 1;
	i = __sync_fetch_and_add(&r->next, 1);
	q->cpu.replaying = i < *(const volatile __u32 *)&r->count;
	if (!q->cpu.replaying)
		return XDP_DROP;
	q->cpu.tried = r->frame[i & HYDNS_REPLAYS].tried;
	q->cpu.asked_ns = r->frame[i & HYDNS_REPLAYS].at_ns;
	if (!hydns_unfold(ctx, &r->frame[i & HYDNS_REPLAYS])) {
		hydns_count(ctx, HYDNS_R_ABORTED);
		return XDP_DROP;
	}
	bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_ENTRY);
	return hydns_replayed(ctx, HYDNS_R_NO_ENTRY);
}

#endif
