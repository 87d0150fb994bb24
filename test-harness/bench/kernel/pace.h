/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the load generator in the kernel (pace.bpf.c) and the program that steers it share. */
#ifndef TEST_HARNESS_BENCH_KERNEL_PACE_H
#define TEST_HARNESS_BENCH_KERNEL_PACE_H

#include <linux/types.h>

#define PACE_FRAME_MAX   512
#define PACE_LABEL       8        /* octets of the label in which names differ */
#define PACE_BLOCK       16       /* numbers in one element of pace_sequence */
#define PACE_WARM        4096     /* replies before the clock starts; one PACE_TICK when few queries are sent */
#define PACE_TICK        1024     /* replies between two looks at the clock */

/* A query whose label is still to be filled in; its UDP checksum counts the label as zeros. */
struct pace_template {
	__u32 len;
	__u16 label_at;           /* offset of the label's first octet in the frame */
	__u16 check_at;           /* of the UDP checksum */
	__u16 check;              /* as it stands in the template, memory order */
	__u16 reserved;
	__u8  frame[PACE_FRAME_MAX];
};

/* Replies as they arrive at the client's end. */
struct pace_tally {
	__u64 replies;            /* frames from the server's UDP port, */
	__u64 answers;            /* those with QR set and an answer section or an error that is final */
	__u64 first_ns;           /* when the reply came with which the clock starts */
	__u64 last_ns;            /* when the last multiple of PACE_TICK came, */
	__u64 last;               /* and which one that was */
};

/* The label of name number n: eight letters a..p, four bits each. */
static inline __attribute__((always_inline)) __u64 pace_label(__u32 n)
{
	__u64 x = n;

	x = (x | x << 16) & 0x0000ffff0000ffffULL;
	x = (x | x << 8) & 0x00ff00ff00ff00ffULL;
	x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fULL;
	return x + 0x6161616161616161ULL;
}

#endif
