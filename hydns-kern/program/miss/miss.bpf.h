/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program for a query without a rule. hydns_xdp tail-calls it, so the verifier checks it separately and a hit does not
 * pay for it. hydns_scratch holds what the stages before it have read.
 */
#ifndef HYDNS_KERN_PROGRAM_MISS_MISS_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_MISS_BPF_H

#include "hydns-kern/program/count.bpf.h"

SEC("xdp.frags")
int hydns_miss(struct xdp_md *ctx)
{
	(void)ctx;
	hydns_count(HYDNS_R_MISS);
	return hydns_action(HYDNS_R_MISS);
}

#endif
