/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYDNS_KERN_PROGRAM_CLOCK_BPF_H
#define HYDNS_KERN_PROGRAM_CLOCK_BPF_H

#include "hydns-kern/program/query.bpf.h"

/*
 * Monotonic nanoseconds at the last tick. The coarse clock advances once a tick, but reading it is a call, whereas jiffies
 * are a load; so each CPU caches the time of the current tick. While the kernel is just advancing both, the program may
 * cache the former tick's time for the new one.
 */
static __always_inline __u64 hydns_now(struct hydns_cpu *cpu)
{
	__u64 tick = bpf_jiffies64();

	if (hydns_fixed_now_ns)
		return hydns_fixed_now_ns;
	if (cpu->tick != tick) {
		cpu->tick_ns = bpf_ktime_get_coarse_ns();
		cpu->tick = tick;
	}
	return *(volatile __u64 *)&cpu->tick_ns;
}

#endif
