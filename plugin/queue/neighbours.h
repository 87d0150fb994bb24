/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The Ethernet addresses of next hops in use, as the kernel's neighbour tables have them. Resolver threads read without a
 * lock; the link thread writes. Neighbours that are no next hop (the clients of a large LAN) take no place here.
 *
 * A frame that leaves by a packet ring does not tell the kernel that a neighbour is used, and so the kernel never asks
 * whether it is still there. Hence one datagram a second to a doubtful next hop takes a socket: then the kernel asks
 * (STALE, DELAY, PROBE: RFC 4861 section 7.3.2) and its notice says what came of it.
 */
#ifndef PLUGIN_QUEUE_NEIGHBOURS_H
#define PLUGIN_QUEUE_NEIGHBOURS_H

#include "plugin/queue/rtnl.h"

#define HYDNS_NEIGHBOURS           1024
#define HYDNS_NEIGHBOUR_REFRESH_MS 1000   /* between two datagrams that take a socket */
#define HYDNS_NEIGHBOUR_KEPT_MS    10000  /* one that was used keeps its place for so long */

struct hydns_neighbours;

/* NULL on lack of memory. seed: secret, of places in the table. */
struct hydns_neighbours *hydns_neighbours_new(const uint64_t seed[2]);
void hydns_neighbours_free(struct hydns_neighbours *n);

/* --- resolver threads; now_ms: monotonic, may be late -------------------------------------------------- */
/* Where a neighbour is, and which of those that were there. */
struct hydns_neighbour_place {
	uint32_t number;
	uint16_t place;
};
/* Finds a neighbour by interface and IP address (rtnl.h), or makes a place for it, whose Ethernet address is known when the
 * link thread has asked. False: all places are in use, or the link thread is writing just now. */
bool hydns_neighbours_place(struct hydns_neighbours *n, uint32_t ifindex, const uint8_t address[16], uint32_t now_ms,
			    struct hydns_neighbour_place *p);

enum hydns_neighbour_result {
	HYDNS_NEIGHBOUR_USABLE,
	HYDNS_NEIGHBOUR_REFRESH,         /* usable, but this datagram is the one that takes a socket */
	HYDNS_NEIGHBOUR_UNKNOWN,         /* the kernel has no Ethernet address for it, or was not asked yet */
	HYDNS_NEIGHBOUR_REPLACED,        /* by another one: hydns_neighbours_place() */
};
/* ethernet: 6 octets, set if usable. */
enum hydns_neighbour_result hydns_neighbour_read(struct hydns_neighbours *n, struct hydns_neighbour_place p, uint32_t now_ms,
						 uint8_t *ethernet);

/* --- the link thread ------------------------------------------------------------------------------------ */
/* RTM_NEWNEIGH or RTM_DELNEIGH. */
void hydns_neighbours_take(struct hydns_neighbours *n, const struct nlmsghdr *h);
/* Notices were lost: all are unknown until the kernel was asked. */
void hydns_neighbours_forget(struct hydns_neighbours *n);
/* Asks the kernel for those that are new, or forgotten. */
void hydns_neighbours_ask(struct hydns_neighbours *n, struct hydns_rtnl *r);

#endif
