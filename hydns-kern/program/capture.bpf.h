/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures. While somebody captures, the program tail-calls another build of itself, which hydnsctl has loaded over the same
 * maps and which alone copies frames (HYDNS_WATCHING).
 */
#ifndef HYDNS_KERN_PROGRAM_CAPTURE_BPF_H
#define HYDNS_KERN_PROGRAM_CAPTURE_BPF_H

#ifdef HYDNS_WATCHING
#include "hydns-kern/capture/watch.bpf.h"
#else
#include "hydns-kern/program/maps.bpf.h"

/* hydnsctl's program, which it alone holds: the kernel empties the map when hydnsctl ends, however it does. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} hydns_capture SEC(".maps");

/* A packet comes in, and is captured if somebody captures. Returns whether the kill switch is on. */
static __always_inline bool hydns_enters(struct xdp_md *ctx, struct hydns_switch *s)
{
	/* all of it that a packet pays for while nothing is switched on */
	if (!*(const volatile __u64 *)s)
		return false;
	if (hydns_may_capture && *(const volatile __u32 *)&s->capturing) {
		bpf_tail_call(ctx, &hydns_capture, 0);
		*(volatile __u32 *)&s->capturing = 0;  /* whoever captured has gone without a word */
	}
	return *(const volatile __u32 *)&s->paused;
}

static __always_inline void hydns_watch_end(struct xdp_md *ctx, __u32 reason)
{
	(void)ctx, (void)reason;
}

#endif
#endif
