/* SPDX-License-Identifier: GPL-2.0-only */
/* How the program ends: it counts the packet under a reason and returns that reason's XDP action. */
#ifndef HYDNS_KERN_PROGRAM_COUNT_BPF_H
#define HYDNS_KERN_PROGRAM_COUNT_BPF_H

#include "hydns-kern/program/capture.bpf.h"
#include "hydns-kern/program/maps.bpf.h"

/* Once for each packet, when the program has made of the frame what it will. */
static __always_inline void hydns_count(struct xdp_md *ctx, __u32 reason)
{
	__u64 *n = bpf_map_lookup_elem(&hydns_stats, &reason);

	if (n)
		++*n;
	hydns_watch_end(ctx, reason);
}

/* The XDP action of a reason. */
static __always_inline int hydns_action(enum hydns_reason reason)
{
	switch (reason) {
#define HYDNS_REASON(name, action, of, text) case HYDNS_R_##name: return XDP_##action;
#include "hydns/reasons.def"
#undef HYDNS_REASON
	default:
		return XDP_PASS;
	}
}

#endif
