/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which replayed answers a link has taken. A driver takes as many frames of a bulk as it has room for and the kernel frees the
 * rest, without a word to whoever made them. At this tracepoint both numbers can be seen.
 */
#ifndef HYDNS_KERN_PROGRAM_MISS_SENT_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_SENT_BPF_H

#include "hydns-kern/program/miss/replay.bpf.h"

/* xdp_devmap_xmit: from_dev, to_dev, sent, drops, err. A replay leaves its CPU no time for anything else before its last bulk. */
SEC("raw_tp/xdp_devmap_xmit")
int hydns_sent(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 zero = 0, n;
	struct hydns_replays *r = bpf_map_lookup_elem(&hydns_replays, &zero);

	if (!r || r->on_cpu != bpf_get_smp_processor_id() + 1)
		return 0;
	n = r->bulks;
	if (n >= HYDNS_REPLAYS + 1)
		return 0;
	r->bulk[n & HYDNS_REPLAYS].sent = ctx->args[2];
	r->bulk[n & HYDNS_REPLAYS].dropped = ctx->args[3];
	r->bulks = n + 1;
	return 0;
}

#endif
