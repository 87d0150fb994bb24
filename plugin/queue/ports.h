/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Ports of queries to upstream that leave by packet rings, with no socket bound to them. The words that all resolvers of
 * this host share (hydns/queue.h) say whose a port is; a table of each thread says what for. An answer counts when it comes
 * from the address and port that the query went to, to the address and port that it came from, on the same interface.
 */
#ifndef PLUGIN_QUEUE_PORTS_H
#define PLUGIN_QUEUE_PORTS_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/ports.h"
#include "hydns/queue.h"
#include "plugin/queue/frame.h"

#define HYDNS_PORT_TRIES 8           /* ports that are drawn for one query at most */

struct hydns_ports;                  /* of one resolver */
struct hydns_port_thread;            /* its part for one resolver thread */

/* NULL on lack of memory. */
struct hydns_ports *hydns_ports_new(uint32_t threads);
/* No thread may use them any more. */
void hydns_ports_free(struct hydns_ports *p);
struct hydns_port_thread *hydns_ports_thread(struct hydns_ports *p, uint32_t i);

/* The ports that the host reserves now: their longest run. count 0: none, or too few, or a chroot hides which. */
struct hydns_port_run hydns_ports_reserved(void);

/* What hydnsd gives: the range, this resolver's number, the seed of tags. */
struct hydns_port_range {
	uint64_t seed[2];
	uint16_t first, count;
	uint32_t resolver;
};
/*
 * From now on ports are claimed from this range, in the map hydns_ports that fd refers to (borrowed); ports that were claimed
 * before stay claimed where they are. The former map goes on if range is the same. One thread only. 0 or -errno.
 */
int hydns_ports_use(struct hydns_ports *p, int fd, const struct hydns_port_range *range);
/* From now on no port can be claimed. */
void hydns_ports_pause(struct hydns_ports *p);
/* Ports of the range that are never claimed; avoid(arg, port) says which. While no thread claims. */
void hydns_ports_avoid(struct hydns_ports *p, bool (*avoid)(void *arg, uint16_t port), void *arg);

/* --- resolver threads, each with its own part ---------------------------------------------------------- */
/* Whether ports can be claimed now. */
bool hydns_ports_any(const struct hydns_port_thread *t);
/* A number below n, each as likely as the others; it must not be foreseeable. */
typedef uint32_t hydns_random_below(void *arg, uint32_t n);
/*
 * Claims a port for a query to path->remote and path->remote_port from path->local by the interface that has this number in
 * port words. owner, not NULL, is what its answer belongs to. Returns the port in host order, which the caller writes to
 * path->local_port; 0: none was free in HYDNS_PORT_TRIES draws, or none can be claimed now.
 */
uint16_t hydns_port_claim(struct hydns_port_thread *t, const struct hydns_path *path, uint8_t device, void *owner,
			  hydns_random_below *random, void *arg);
/* The first two octets of the query from this port, for hydns_port_find(). */
void hydns_port_set_id(struct hydns_port_thread *t, uint16_t port, const uint8_t id[2]);
/* Notes that the query from this port has an answer. */
void hydns_port_set_answered(struct hydns_port_thread *t, uint16_t port);
bool hydns_port_is_answered(const struct hydns_port_thread *t, uint16_t port);
/* The port may be claimed again, by anybody. */
void hydns_port_release(struct hydns_port_thread *t, uint16_t port);
/* Whose answer a datagram is that has come by this interface (HYDNS_ANY_DEVICE: by some, through the host's own network
 * stack, which judges sources); NULL: nobody's. */
#define HYDNS_ANY_DEVICE 255
void *hydns_port_owner(const struct hydns_port_thread *t, const struct hydns_path *path, uint8_t device);
/* Whether the port is claimed for this owner. */
bool hydns_port_is(const struct hydns_port_thread *t, uint16_t port, const void *owner);
/*
 * The query with this id that went to path->remote and path->remote_port: false, there is none. Fills in the rest of *path.
 * It looks at all ports that are claimed, which may take 0.1 ms.
 */
bool hydns_port_find(const struct hydns_port_thread *t, struct hydns_path *path, const uint8_t id[2]);
/* Releases all ports of the thread. */
void hydns_port_release_all(struct hydns_port_thread *t);
/* How many are claimed. */
uint32_t hydns_ports_claimed(const struct hydns_port_thread *t);

#endif
