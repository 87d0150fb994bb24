/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hides libbpf's header of the same name when the program is compiled for userspace. The helpers that the parser calls become
 * functions of stages.c. All others stay what libbpf declares, a small number as a function's address: a call crashes.
 */
#ifndef HYDNS_USERSPACE_BPF_HELPERS_H
#define HYDNS_USERSPACE_BPF_HELPERS_H

#include <linux/bpf.h>

/* struct xdp_md with real addresses; the kernel's has 32 bits, which the verifier rewrites. */
struct hydns_userspace_frame {
	unsigned long data, data_end;
	__u32 ingress_ifindex, rx_queue_index;
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
