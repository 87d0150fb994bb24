/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stands before libbpf's header of the same name where the program is compiled for userspace. What the
 * parser calls becomes a function of stages.c; every other helper stays what libbpf makes of it, a small
 * number taken for an address: the first call ends the run.
 */
#ifndef HYDNS_USERSPACE_BPF_HELPERS_H
#define HYDNS_USERSPACE_BPF_HELPERS_H

#include <linux/bpf.h>

/* The kernel's has addresses of 32 bits, which the verifier replaces by real ones. */
struct hydns_userspace_frame {
	unsigned long data, data_end;
	__u32 ingress_ifindex;
};
#define xdp_md hydns_userspace_frame

#define bpf_map_lookup_elem     libbpf_map_lookup_elem
#define bpf_ktime_get_coarse_ns libbpf_ktime_get_coarse_ns
#define bpf_jiffies64           libbpf_jiffies64
#include_next <bpf/bpf_helpers.h>
#undef bpf_map_lookup_elem
#undef bpf_ktime_get_coarse_ns
#undef bpf_jiffies64

static void *bpf_map_lookup_elem(void *map, const void *key);
static __u64 bpf_ktime_get_coarse_ns(void);
static __u64 bpf_jiffies64(void);

#endif
