/* SPDX-License-Identifier: GPL-2.0-only */
/* For programs that time another one: a test run repeats over one frame, with what the program has made of it. */
#ifndef HYDNS_KERN_COST_REWRITE_BPF_H
#define HYDNS_KERN_COST_REWRITE_BPF_H

#include "hydns-kern/program/bounded.bpf.h"

/* Puts a frame of 1 to `most` octets in the place of the one that is there. */
static __always_inline bool hydns_rewrite(struct xdp_md *ctx, const __u8 *frame, __u64 len, __u64 most)
{
	int growth;

	if (!hydns_bounded(&len, most))
		return false;
	growth = (int)len - (int)bpf_xdp_get_buff_len(ctx);
	return !bpf_xdp_adjust_tail(ctx, growth) && !bpf_xdp_store_bytes(ctx, 0, (void *)frame, len);
}

#endif
