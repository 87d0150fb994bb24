/* SPDX-License-Identifier: GPL-2.0-only */
/* Gives the program under test the same frame again and again (BPF_PROG_TEST_RUN with repeat). */
#include "hydns-kern/cost/again.h"
#include "hydns-kern/cost/rewrite.bpf.h"

struct hydns_again_frame hydns_again_frame;

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} hydns_again_next SEC(".maps");

/* The same program type as the program under test, so that this can call it. */
SEC("xdp.frags")
int hydns_again(struct xdp_md *ctx)
{
	if (hydns_rewrite(ctx, hydns_again_frame.octets, hydns_again_frame.len, HYDNS_AGAIN_FRAME))
		bpf_tail_call(ctx, &hydns_again_next, 0);
	return XDP_ABORTED;
}

/* What remains of a run without the program under test. */
SEC("xdp.frags")
int hydns_again_nothing(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
