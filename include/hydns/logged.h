/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Logged answers: what the program says of the answers of a resolver that logs its clients' messages (HYDNS_RESOLVER_LOGS). It puts a
 * record into the resolver's log ring, a BPF ring buffer that hydnsd makes and the plugin reads, which writes what the resolver
 * would have written. Without a log ring the program answers nothing for such a resolver.
 */
#ifndef HYDNS_LOGGED_H
#define HYDNS_LOGGED_H

#include "hydns/resolver.h"

/* Octets of a log ring: what a resolver may ask for (a power of two), and what it gets if it says nothing. */
#define HYDNS_LOG_RING_LEAST   (1U << 16)
#define HYDNS_LOG_RING_MOST    (1U << 30)
#define HYDNS_LOG_RING         (1U << 24)

/* Octets of a reply, as a mask that the verifier understands: more than any of the program's. */
#define HYDNS_LOGGED_REPLY     2047
/* Octets of the longest record, with the kernel's header. Room for one on each CPU is kept, so that a query which has found room is
 * logged. */
#define HYDNS_LOGGED_MOST      (8 + 64 + HYDNS_QUERY_MAX + HYDNS_LOGGED_REPLY + 1)

/* A record. The query follows, query_len octets, and then the reply, reply_len octets: DNS messages. */
struct hydns_logged {
	__u64 at_ns;         /* monotonic */
	__u8  client[16];    /* network order, IPv4-mapped, as ... */
	__u8  service[16];   /* ... the address that was asked */
	__u16 client_port;   /* network order */
	__u16 service_port;  /* network order */
	__u16 query_len;
	__u16 reply_len;
	__u8  ipv6;
	__u8  reserved[15];
};

/* Per CPU and resolver: map hydns_logs. Of the answers to queries that were to be logged or not: */
struct hydns_log_count {
	__u64 logged;        /* they are in the ring */
	__u64 skipped;       /* they are not among the one in N */
	__u64 lost;          /* the ring was full */
	__u64 turn;          /* answers since the last of the one in N */
};

/* Of the plugin's thread that reads the log ring, for the operator: in the ring to hydnsd (ring.h). */
struct hydns_tap_level {
	__u64 written;               /* answers that were written */
	__u64 own;                   /* messages of the resolver's own answers that the thread has taken, too */
	__u64 failures;              /* connections that were lost, or could not be made */
	__u32 connected;             /* not 0: there is one now, or none is needed */
	__u32 reserved;
};

HYDNS_STATIC_ASSERT(sizeof(struct hydns_logged) == 64, "no padding in a record");

#endif
