/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the generator of good queries beside a flood (beside.bpf.c) and the program that steers it share. */
#ifndef TEST_HARNESS_BENCH_KERNEL_BESIDE_H
#define TEST_HARNESS_BENCH_KERNEL_BESIDE_H

#include <linux/types.h>
#include "test-harness/bench/kernel/pace.h"

#define BESIDE_TEMPLATES 256
#define BESIDE_GOOD_MAX  65536U   /* good queries of a run: their number is their id */

/* A frame whose fields are still to be filled in: label and id are zeros in it, and its checksums are right for that. An offset
 * of 0: it has no such field, or it stays. */
struct beside_template {
	__u32 len;
	__u16 label_at;           /* an odd offset of the UDP datagram */
	__u16 id_at;              /* an even one */
	__u16 source_at;          /* of the last four octets of the source address */
	__u16 ip_check_at;
	__u16 udp_check_at;
	__u16 ip_check;           /* these as they stand in the template, memory order */
	__u16 udp_check;
	__u16 reserved;
	__u32 source;             /* the same, host order: the first of */
	__u32 sources;            /* so many, */
	__u32 stride;             /* so far from one to the next */
	__u8  frame[PACE_FRAME_MAX + PACE_LABEL];   /* room for a field at any offset below PACE_FRAME_MAX */
};

/* How the two kinds of queries come. */
struct beside_stream {
	__u64 gap_ns;             /* from one query to the next; 0: none */
	__u64 due_ns;
	__u32 first;              /* of its templates, */
	__u32 templates;          /* and how many */
	__u32 names;              /* first number of its names that are asked once */
	__u32 hot;                /* names number 0 to hot - 1 are asked again and again, */
	__u32 new_every;          /* but by every so many queries; 0: by none; 1: by all, so that no name is asked again */
	__u32 sent;
};
enum { BESIDE_GOOD, BESIDE_FLOOD, BESIDE_STREAMS };

/* One good query. */
struct beside_good {
	__u64 sent_ns;
	__u64 replied_ns;         /* 0: not yet */
	__u8  answered;           /* NOERROR with an answer, not truncated */
	__u8  hops;               /* of the reply: tells who sent it */
	__u16 reserved[3];
};

/* While it counts. */
struct beside_tally {
	__u64 flood_sent;
	__u64 flood_replies, flood_octets;
	__u64 flood_truncated;
	__u64 flood_by_kernel;    /* replies with the kernel's hop limit */
};

#endif
