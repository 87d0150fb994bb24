/* SPDX-License-Identifier: GPL-2.0-only */
/* What hydnsd replays (hydns/parking.h), and by which link the answers of a call leave. */
#ifndef HYDNS_KERN_PROGRAM_MISS_REPLAYS_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_REPLAYS_BPF_H

#include "hydns-kern/program/query.bpf.h"
#include "hydns/parking.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_replays);
} hydns_replays SEC(".maps");

/* True: the answer to this replayed frame would leave by another link than those before it. The bulks of several links say
 * nothing of the frames' order (sent.bpf.h), so it has to come in again, by a later call. */
static __always_inline bool hydns_by_another_link(__u32 ifindex)
{
	__u32 zero = 0;
	struct hydns_replays *r = bpf_map_lookup_elem(&hydns_replays, &zero);

	if (!r)
		return false;
	if (!r->link)
		r->link = ifindex;
	return r->link != ifindex;
}

#endif
