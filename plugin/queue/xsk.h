/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * AF_XDP sockets of one receive queue, set up (Linux Documentation/networking/af_xdp.rst). hydnsd makes the sockets, which
 * needs CAP_NET_RAW; what is done here needs no right. libxdp's own set-up is not used: in 1.3.1 it opens every socket
 * itself. Its ring functions (xdp/xsk.h) are.
 */
#ifndef PLUGIN_QUEUE_XSK_H
#define PLUGIN_QUEUE_XSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <xdp/xsk.h>

#define HYDNS_FRAME_ROOM   2048U   /* octets of a frame's place in the pool; the kernel keeps 256 before what it receives */
#define HYDNS_FRAME_MOST   (HYDNS_FRAME_ROOM - 256)

/* A ring's memory, shared with the kernel. */
struct hydns_mapping {
	void *at;                  /* NULL: not mapped */
	size_t len;
};

/* The frames of a queue, and the rings by which they come from the kernel and go to it. */
struct hydns_pool {
	uint8_t *area;
	size_t area_len;
	struct xsk_ring_prod fill;
	struct xsk_ring_cons completion;
	struct hydns_mapping fill_map, completion_map;
};

/* One thread's socket. */
struct hydns_xsk {
	int fd;                    /* -1: closed */
	struct xsk_ring_cons rx;
	struct xsk_ring_prod tx;
	struct hydns_mapping rx_map, tx_map;
};

/* Ring entries of each socket, powers of 2, and how many sockets share the pool. */
struct hydns_pool_size {
	unsigned receive, send, sockets;
};

struct hydns_queue_id {
	unsigned ifindex, queue;
	bool zero_copy;            /* else the kernel copies each frame, which every driver can */
};

/*
 * Sets up the first socket of a queue, with a pool that has a place of HYDNS_FRAME_ROOM octets for every ring entry of
 * every socket: first those to receive into, then those to send from. Takes fd over, also on failure. Returns 0 or -errno:
 * -EBUSY when another process has the queue (or one that has just died: for some 200 ms), -ENOBUFS when RLIMIT_MEMLOCK does
 * not allow the pool.
 */
int hydns_pool_open(struct hydns_pool *p, struct hydns_xsk *first, int fd, const struct hydns_queue_id *id,
		    const struct hydns_pool_size *size);

/* Adds another socket of the same queue, which shares the pool. Takes fd over, also on failure. Returns 0 or -errno. */
int hydns_xsk_join(struct hydns_xsk *r, int fd, const struct hydns_xsk *first, const struct hydns_queue_id *id,
		    const struct hydns_pool_size *size);

/* Frames in a ring: the kernel may be putting some in, or taking some out. */
uint32_t hydns_xsk_unread(const struct hydns_xsk *r);
/* Frames that have been taken out of the receive ring since the socket was made, modulo 2^32. */
uint32_t hydns_xsk_taken(const struct hydns_xsk *r);
uint32_t hydns_xsk_unsent(const struct hydns_xsk *r);
uint32_t hydns_pool_unused(const struct hydns_pool *p);
/* Frames that the kernel has dropped since the socket was made: none was free, or the ring was full. */
uint64_t hydns_xsk_dropped(const struct hydns_xsk *r);

/* Unmaps and closes. Rings first: the pool's memory is in use until the last of its sockets is closed. */
void hydns_xsk_close(struct hydns_xsk *r);
void hydns_pool_close(struct hydns_pool *p);

#endif
