/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program of a query that no rule answers. A program of its own, called by hydns_xdp with a tail call: the verifier looks
 * at it apart, and what it does costs a hit nothing. hydns_scratch holds what the stages before have read.
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
