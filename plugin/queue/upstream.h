/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Queries to upstream by packet rings: the way there (ways.h), a port (ports.h) and a lane (lanes.h) together. Whatever is
 * missing leaves the query to a socket.
 *
 * When answers do not come (a path that is asymmetric, a paused or detached program, a firewall in between), queries take
 * sockets for a while. Then a few queries try again, one after the other, since a server may be dead: an answer to one of
 * them ends the suspension, else the next one is twice as long.
 */
#ifndef PLUGIN_QUEUE_UPSTREAM_H
#define PLUGIN_QUEUE_UPSTREAM_H

#include "hydns/detours.h"
#include "plugin/queue/lanes.h"
#include "plugin/queue/ports.h"
#include "plugin/queue/ways.h"

#define HYDNS_UPSTREAM_QUERY_MAX 512   /* octets: a longer query takes a socket, which may fragment it */

struct hydns_upstream;                 /* of one resolver */
struct hydns_upstream_thread;          /* its part for one resolver thread */

/* NULL on lack of memory. lanes and ways stay the caller's and must outlive it. */
struct hydns_upstream *hydns_upstream_new(struct hydns_lanes *lanes, struct hydns_ways *ways, uint32_t threads);
/* No thread may use it any more. */
void hydns_upstream_free(struct hydns_upstream *u);
struct hydns_upstream_thread *hydns_upstream_thread(struct hydns_upstream *u, uint32_t i);
/* For the link thread, which gives them what hydnsd says. */
struct hydns_ports *hydns_upstream_ports(struct hydns_upstream *u);
/* Takes over two UDP sockets for each thread (IPv4's, IPv6's): what comes to the host's stack instead of a ring comes there.
 * Link thread only; replaces former ones. 0 or -errno. */
int hydns_upstream_use_strays(struct hydns_upstream *u, const int *fd);

/* --- resolver threads, each with its own part ---------------------------------------------------------- */
struct hydns_upstream_query {
	struct hydns_route_question to;
	const uint8_t *payload;
	size_t len;
	uint8_t dscp;
	void *owner;                   /* not NULL: what the answer belongs to */
	hydns_random_below *random;
	void *random_arg;
};
/*
 * Sends a query from a random port of the reserved range. Returns that port, in host order; the caller must end it. 0: the
 * query takes a socket, and the reason is counted. now_ms: monotonic, may be some milliseconds late.
 */
uint16_t hydns_upstream_send(struct hydns_upstream_thread *t, const struct hydns_upstream_query *q, uint64_t now_ms);
/*
 * The same in two steps, for a resolver that has to know first whether there is a way; between them, some milliseconds at most.
 * _send_by() does not look at q->to.
 */
bool hydns_upstream_find(struct hydns_upstream_thread *t, const struct hydns_route_question *to, uint64_t now_ms,
			 struct hydns_way *way);
uint16_t hydns_upstream_send_by(struct hydns_upstream_thread *t, const struct hydns_way *way,
				const struct hydns_upstream_query *q, uint64_t now_ms);
/* The query from this port has been answered or given up. */
void hydns_upstream_end(struct hydns_upstream_thread *t, uint16_t port, uint64_t now_ms);
/* Whether a query of this owner left from the port and has not ended. */
bool hydns_upstream_is(const struct hydns_upstream_thread *t, uint16_t port, const void *owner);
/* Whose answer a datagram is that has come by a ring (way->device HYDNS_ANY_DEVICE: by the sockets); NULL: nobody's. */
void *hydns_upstream_owner(struct hydns_upstream_thread *t, const struct hydns_datagram *d, const struct hydns_way *way);
/*
 * Reads a bounded number of answers that have come by the sockets instead; calls take with each that somebody waits for, with
 * its owner. To be called after hydns_lanes_receive(), which has read so many frames: if there were some, mostly they had
 * woken the thread, and the sockets are left for another turn.
 *
 * fail (NULL: such errors are dropped) is called with the path of each query that the network says cannot be delivered, and
 * the errno for that: as many as can be searched for in a little time.
 */
#define HYDNS_UPSTREAM_STRAYS 32       /* calls at most */
typedef void hydns_upstream_take(void *arg, void *owner, const struct hydns_datagram *d);
typedef void hydns_upstream_fail(void *arg, const struct hydns_path *path, int error);
void hydns_upstream_read_strays(struct hydns_upstream_thread *t, unsigned frames, uint64_t now_ms, hydns_upstream_take *take,
				hydns_upstream_fail *fail, void *arg);
/* Ends all queries of the thread. */
void hydns_upstream_end_all(struct hydns_upstream_thread *t);

#endif
