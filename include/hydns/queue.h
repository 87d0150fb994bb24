/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings: what hydnsd, a plugin and the program agree on. A lane is one receive queue of one interface whose packets
 * a resolver takes by AF_XDP sockets, one for each of its threads.
 */
#ifndef HYDNS_QUEUE_H
#define HYDNS_QUEUE_H

#include "hydns/common.h"

#define HYDNS_LANES            256   /* of all resolvers */

/* Key of hydns_lanes. */
struct hydns_lane_key {
	__u32 ifindex;
	__u32 queue;         /* receive queue, from 0 on */
};

/* The socket of a thread has the index HYDNS_RING(number, thread) in hydns_rings. */
struct hydns_lane {
	__u16 number;        /* below HYDNS_LANES */
	__u16 frame_max;     /* octets of the longest frame that a socket takes: the kernel drops longer ones */
	__u8  threads;       /* 1..HYDNS_THREADS_MAX */
	__u8  resolver;
	__u16 reserved;
};
#define HYDNS_RING(lane, thread) ((__u32)(lane) * HYDNS_THREADS_MAX + (thread))

/* Bits of hydns_resolver_page.queue. */
#define HYDNS_QUEUE_CLIENTS    0x1   /* queries without an answer in the kernel go to the rings */

HYDNS_STATIC_ASSERT(sizeof(struct hydns_lane_key) == 8, "no padding in a hash key");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_lane) == 8, "one word");

#endif
