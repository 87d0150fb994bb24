/* SPDX-License-Identifier: GPL-2.0-only */
/* Which upstream server's answers a port of this host waits for, and of which resolver thread the query was. */
#ifndef HYDNS_KERN_PROGRAM_QUEUE_PORTS_BPF_H
#define HYDNS_KERN_PROGRAM_QUEUE_PORTS_BPF_H

#include "hydns-kern/program/maps.bpf.h"
#include "hydns/hash.h"
#include "hydns/queue.h"

/* HYDNS_PORT_RANGE() of upstream queries, written by hydnsd. Here and not in a map: it is compared with the port of every
 * UDP packet that is for no service. Each loaded set of programs has its own; hydns_meta keeps it for the next hydnsd. */
__u32 hydns_upstream;

/* HYDNS_PORT_WORD() by port, written by the resolvers' threads. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HYDNS_PORTS);
	__type(key, __u32);
	__type(value, __u64);
} hydns_ports SEC(".maps");

static __always_inline bool hydns_is_upstream(__u32 port)
{
	__u32 range = *(const volatile __u32 *)&hydns_upstream;

	return HYDNS_PORT_IN_RANGE(port, range);
}

/* The port's word if it is claimed for a query to this remote; else 0. port in host order, the remote as for
 * hydns_remote_tag(). A thread may give the word away at any time: it checks what it receives. */
static __always_inline __u64 hydns_claimed(__u32 port, const __u64 remote[2], __u16 remote_port)
{
	/* Copied while it is volatile: clang takes what is only const for the zeros of the object file. */
	const __u64 seed[2] = { hydns_geometry.tag_seed[0], hydns_geometry.tag_seed[1] };
	const __u64 *at = bpf_map_lookup_elem(&hydns_ports, &port);
	__u64 word = at ? *(const volatile __u64 *)at : 0;

	if (!word || HYDNS_PORT_TAG(word) != hydns_remote_tag(remote, remote_port, seed))
		return 0;
	return word;
}

#endif
