/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Times several programs in turns, within one test run (BPF_PROG_TEST_RUN with repeat): to begin and to end one takes the kernel tens
 * of milliseconds and stops all processors for a moment. Batch number n is of the frame n % HYDNS_AGAIN_FRAMES, with the programs one
 * after the other.
 */
#include "hydns-kern/cost/again.h"
#include "hydns-kern/cost/rewrite.bpf.h"

struct hydns_again_frame hydns_again_frame[HYDNS_AGAIN_FRAMES];
__u64 hydns_again_ns[HYDNS_AGAIN_BATCHES];     /* of each batch */
__u64 hydns_again_since;                       /* when the batch under way began */
__u32 hydns_again_run;                         /* of this test run; set to 0 before it */
__u32 hydns_again_batches;                     /* to run; one more run ends the last of them */
__u32 hydns_again_programs;                    /* under test */
__u32 hydns_again_first;                       /* the one that begins */

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, HYDNS_AGAIN_NEXT);
	__type(key, __u32);
	__type(value, __u32);
} hydns_again_next SEC(".maps");

static __always_inline void batch_ends(__u32 batch)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 former = batch - 1;

	if (former < HYDNS_AGAIN_BATCHES)
		hydns_again_ns[former] = now - hydns_again_since;
	hydns_again_since = now;
}

/* The same program type as the programs under test, so that this can call them. */
SEC("xdp.frags")
int hydns_again(struct xdp_md *ctx)
{
	__u32 run = hydns_again_run++, batch = run / HYDNS_AGAIN_RUNS;
	const struct hydns_again_frame *f = &hydns_again_frame[batch % HYDNS_AGAIN_FRAMES];

	if (run % HYDNS_AGAIN_RUNS == 0)
		batch_ends(batch);
	if (batch >= hydns_again_batches)
		return XDP_PASS;
	if (hydns_again_programs && hydns_rewrite(ctx, f->octets, f->len, HYDNS_AGAIN_FRAME))
		bpf_tail_call(ctx, &hydns_again_next, (batch / HYDNS_AGAIN_FRAMES + hydns_again_first) % hydns_again_programs);
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
