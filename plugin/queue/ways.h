/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Ways to remote addresses, for datagrams that leave by a packet ring: interface, source, Ethernet addresses, MTU, as the
 * kernel would choose them for a socket. Asked of the kernel by rtnetlink, which needs no right, and kept until something
 * changes. All descriptors are opened by hydns_ways_new(), all memory is taken there, and nothing waits.
 *
 * Not seen: firewalls, traffic control and IPsec policies for what leaves; policy rules by mark, source port or type of
 * service; an ICMP redirect for at most HYDNS_WAY_LIFE_MS.
 */
#ifndef PLUGIN_QUEUE_WAYS_H
#define PLUGIN_QUEUE_WAYS_H

#include "hydns/detours.h"
#include "plugin/queue/frame.h"
#include "plugin/queue/route.h"

#define HYDNS_WAYS         4096    /* kept of each thread: 64 octets each */
#define HYDNS_WAY_LIFE_MS  10000   /* then the kernel is asked again: of several routers that it heard of it may choose another
				    * one without a notice */

struct hydns_ways;                 /* of one resolver */

/* threads: those that ask; seed: secret, of places in tables. NULL on lack of memory or descriptors, or without rtnetlink. */
struct hydns_ways *hydns_ways_new(uint32_t threads, const uint64_t seed[2]);
/* No thread may use them any more. */
void hydns_ways_free(struct hydns_ways *w);

/* --- the link thread ------------------------------------------------------------------------------------ */
/* Readable when the host's network has changed. Stays the ways' own. */
int hydns_ways_fd(const struct hydns_ways *w);
/*
 * Reads what has changed, and asks for the Ethernet addresses of new next hops. To be called when the descriptor is readable,
 * and at least at each beat: until then datagrams to a new next hop take sockets. A question for an Ethernet address may wait
 * for a change of the network that is under way (the kernel's RTNL lock).
 */
void hydns_ways_follow(struct hydns_ways *w);

/* --- resolver threads ------------------------------------------------------------------------------------- */
enum hydns_way_result {
	HYDNS_WAY_FOUND,
	/* No route, or none that a plain Ethernet frame could take: blackhole, the host itself, a group address, a tunnel, an
	 * interface that is no Ethernet or has no link, a source that is not the host's, an MTU below 576 octets. Or the kernel
	 * could not be asked. */
	HYDNS_WAY_NO_WAY,
	HYDNS_WAY_NO_NEIGHBOUR,      /* the next hop's Ethernet address is not known, or not yet */
	HYDNS_WAY_REFRESH_NEIGHBOUR, /* it is, but this datagram must take a socket: neighbours.h */
};

struct hydns_way_out {
	uint32_t ifindex;
	uint16_t mtu;                /* octets of the longest IP packet */
	struct hydns_path path;      /* all but local_port */
};

/*
 * Finds the way of a datagram to q->remote. thread: below those of hydns_ways_new(), for one caller at a time. now_ms:
 * monotonic, may be some milliseconds late. *out is written only when a way was found; else the datagram takes a socket.
 */
enum hydns_way_result hydns_way_find(struct hydns_ways *w, uint32_t thread, const struct hydns_route_question *q,
				     uint64_t now_ms, struct hydns_way_out *out);
/* Why a datagram takes a socket for which no way was found. */
enum hydns_detour hydns_way_detour(enum hydns_way_result why);

#endif
