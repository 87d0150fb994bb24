/* SPDX-License-Identifier: GPL-2.0-only */
/* The maps of forwarding (hydns/forwarding.h), and its random numbers. */
#ifndef HYDNS_KERN_PROGRAM_FORWARD_MAPS_BPF_H
#define HYDNS_KERN_PROGRAM_FORWARD_MAPS_BPF_H

#include "hydns-kern/program/query.bpf.h"
#include "hydns/forwarding.h"
#include "hydns/hash.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_forwarding);
} hydns_forward SEC(".maps");

/* Two lists of each resolver: one is written while the other counts. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, HYDNS_RESOLVERS * HYDNS_FORWARD_ZONES * 2);
	__type(key, struct hydns_forward_zone_key);
	__type(value, struct hydns_forward_zone);
} hydns_fwd_zones SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HYDNS_FORWARD_OPEN);
	__type(key, struct hydns_forward_question);
	__type(value, struct hydns_forward_open);
} hydns_fwd_open SEC(".maps");

/* By port. A request is written after its port's word, and before it leaves. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HYDNS_PORTS);
	__type(key, __u32);
	__type(value, struct hydns_forward_request);
} hydns_fwd_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HYDNS_FORWARD_ANSWERS);
} hydns_answered SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_forward_count);
} hydns_fwd_count SEC(".maps");

/*
 * 64 bits that nobody can guess who does not know the secret: SipHash of a number that this CPU uses once. The kernel's own
 * generator for programs is no such source, because its state can be computed from what it has given.
 */
static __always_inline __u64 hydns_random(struct hydns_cpu *cpu, __u64 now)
{
	/* Copied while it is volatile: clang takes what is only const for the zeros of the object file. */
	const __u64 seed[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	struct hydns_sip s;

	hydns_sip_begin(&s, seed);
	hydns_sip_word(&s, ~0ULL);     /* no name's hash begins so: 0xff is no label's length */
	hydns_sip_word(&s, ++cpu->draws);
	hydns_sip_word(&s, (__u64)bpf_get_smp_processor_id() << 32 | bpf_get_prandom_u32());
	hydns_sip_word(&s, now);
	return hydns_sip_end(&s);
}

#endif
