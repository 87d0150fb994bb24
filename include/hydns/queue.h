/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings: what hydnsd, a plugin and the program agree on. A lane is one receive queue of one interface whose packets
 * a resolver takes by AF_XDP sockets, one for each of its threads.
 */
#ifndef HYDNS_QUEUE_H
#define HYDNS_QUEUE_H

#include "hydns/common.h"

#define HYDNS_LANES            256   /* of all resolvers */
#define HYDNS_LANES_MOST       64    /* of one resolver: bits of a word */
#define HYDNS_QUEUE_DEVICES    16    /* interfaces with lanes */
#define HYDNS_QUEUE_QUEUES     16    /* lanes of one interface at most */

/* UDP payload size that a query to upstream may say at most: what every path carries in one packet, for rings take no fragments. */
#define HYDNS_UPSTREAM_EDNS_MAX 1232

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
	__u8  device;        /* below HYDNS_QUEUE_DEVICES: the interface's number in port words */
	__u8  place;         /* below HYDNS_LANES_MOST, another for each lane of the resolver: of its backlogs (resolver.h) */
};
#define HYDNS_RING(lane, thread) ((__u32)(lane) * HYDNS_THREADS_MAX + (thread))

/* Parts that a plugin asks for and hydnsd gives; bits of hydns_resolver_page.queue, too. */
#define HYDNS_QUEUE_CLIENTS    0x1   /* queries without an answer in the kernel go to the rings */
#define HYDNS_QUEUE_UPSTREAM   0x2   /* so do answers to the resolver's own queries that left by them */
#define HYDNS_QUEUE_ROUTED     0x4   /* in a plan alone: replies to clients go by the routing tables (reply-path: fib) */

/* --- ports of queries to upstream ------------------------------------------------------------------- */
/*
 * The map hydns_ports has a word for each UDP port of this host, which says whose answer comes there: HYDNS_PORT_WORD().
 * 0: nobody's. A resolver thread claims a free word by a compare-and-swap before it sends a query from that port, and
 * clears it (store-release) when the query has ended. Ports of both families and all resolvers share the words.
 */
#define HYDNS_PORTS            65536U
/* thread: below HYDNS_THREADS_MAX; resolver: below HYDNS_RESOLVERS; device: struct hydns_lane. Never 0, since a tag is not. */
#define HYDNS_PORT_WORD(thread, resolver, device, tag) \
	((__u64)(thread) | (__u64)(resolver) << 6 | (__u64)(device) << 10 | (__u64)(tag) << 16)
#define HYDNS_PORT_THREAD(word)   ((__u32)(word) & 63)
#define HYDNS_PORT_RESOLVER(word) ((__u32)(word) >> 6 & 15)
#define HYDNS_PORT_DEVICE(word)   ((__u32)(word) >> 10 & 63)
#define HYDNS_PORT_TAG(word)      ((word) >> 16)

/* The ports that upstream queries leave from, as one word: the first, and in the upper half how many there are. 0: none. */
#define HYDNS_PORT_RANGE(first, ports)      ((__u32)(first) | (__u32)(ports) << 16)
#define HYDNS_PORT_IN_RANGE(port, range)    ((__u32)(port) - ((range) & 0xffff) < (range) >> 16)

/* Index of a thread's socket in hydns_strays, which take what comes to the stack instead of a ring. */
#define HYDNS_STRAY(resolver, thread, ipv6) (((__u32)(resolver) * HYDNS_THREADS_MAX + (thread)) * 2 + ((ipv6) ? 1 : 0))

/* Packets that the program has given to a resolver's rings, per CPU: map hydns_queued. */
struct hydns_queue_count {
	__u64 queries;
	__u64 answers;       /* of upstream servers */
	__u64 full;          /* either, left to the stack because the ring was full */
};

/* --- messages --------------------------------------------------------------------------------------- */
/* HYDNS_MSG_QUEUE: the plugin wants rings. */
struct hydns_queue_request {
	__u32 parts;         /* HYDNS_QUEUE_* */
	__u32 reserved;
};
/* An interface whose receive queues may become lanes. */
struct hydns_queue_device {
	__u32 ifindex;
	__u32 mtu;           /* octets of the longest IP packet that it sends */
	__u16 rx_queues;     /* lanes have the numbers 0 to rx_queues - 1 */
	__u16 tx_queues;     /* a socket of a queue with no smaller number sends nothing */
	__u16 device;        /* its number in port words */
	__u16 flags;         /* HYDNS_QUEUE_DEVICE_* */
	__u8  hops[2];       /* that the host's packets begin with: TTL of IPv4, hop limit of IPv6 */
	__u16 reserved;
};
#define HYDNS_QUEUE_DEVICE_NATIVE     0x1  /* the driver runs the program; else the kernel does, and a resolver with more
					    * than one thread gets no lane */
#define HYDNS_QUEUE_DEVICE_UNFINISHED 0x2  /* frames may have checksums that the sender's kernel has left to a card */
/*
 * HYDNS_MSG_PLAN, the reply to QUEUE, and unasked (seq 0, no descriptors) whenever the interfaces have changed: what hydnsd
 * gives; hydnsd may have closed lanes, and the plugin opens all again. Without parts: hydnsd stops, and nothing is left.
 * Descriptors of the reply: the resolver's gate, an AF_XDP socket that is never bound; then the map hydns_ports, if UPSTREAM is
 * among the parts.
 */
struct hydns_queue_plan {
	__u64 seed[2];       /* of the tags of IPv6 addresses, hydns_remote_tag() */
	__u16 first_port;    /* of the range that upstream queries leave from, ... */
	__u16 ports;         /* ... and how many it has; 0 without UPSTREAM */
	__u32 parts;         /* of QUEUE's */
	__u32 count;
	__u32 resolver;      /* its number in port words */
	struct hydns_queue_device device[HYDNS_QUEUE_DEVICES];
};
/*
 * HYDNS_MSG_LANE: struct hydns_lane_key. The reply is HYDNS_MSG_SOCKETS: struct hydns_lane_number, and as descriptors an
 * AF_XDP socket for each thread, which the program knows already. Refused when another resolver has the lane.
 */
struct hydns_lane_number {
	__u32 number;
	__u32 reserved;
};
/* HYDNS_MSG_OPEN: the sockets of a lane are bound; when it is acknowledged the program redirects to them. A process whose
 * earlier registration had the lane open may send it, too, with as many threads, while it has the sockets. */
struct hydns_lane_open {
	__u32 number;
	__u16 frame_max;     /* as in struct hydns_lane */
	__u16 place;         /* the same */
};
/* HYDNS_MSG_CLOSE: struct hydns_lane_number. When it is acknowledged, nothing is redirected to the lane any more. */
/*
 * HYDNS_MSG_STRAYS: no payload. The reply HYDNS_MSG_STRAY_SOCKETS has none either; its descriptors are, for each
 * thread, a UDP socket of IPv4 and one of IPv6: what comes to the stack from a remote that a port word names is theirs.
 */

HYDNS_STATIC_ASSERT(sizeof(struct hydns_lane_key) == 8, "no padding in a hash key");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_lane) == 8, "one word");
HYDNS_STATIC_ASSERT(HYDNS_THREADS_MAX <= 64 && HYDNS_RESOLVERS <= 16 && HYDNS_QUEUE_DEVICES <= 64, "a port word has room");

#endif
