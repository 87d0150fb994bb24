/* SPDX-License-Identifier: BSD-3-Clause */
/* Packet rings of a loop, for queue.c and queue_upstream.c. */
#ifndef HYDNS_BIND_QUEUE_H
#define HYDNS_BIND_QUEUE_H

#include <isc/netmgr.h>
#include <isc/sockaddr.h>
#include "plugin/queue/lanes.h"
#include "plugin/queue/upstream.h"

struct hydns_loop {
	struct hydns_lane_thread *lanes;
	struct hydns_upstream_thread *upstream;   /* NULL: named's own queries take sockets */
};

/* --- queue_upstream.c: the network manager's methods for named's own queries, while the loop has upstream --------- */
bool hydns_query_connect(struct hydns_loop *loop, const isc_sockaddr_t *local, const isc_sockaddr_t *peer, void *way);
in_port_t hydns_query_send(struct hydns_loop *loop, const void *way, const isc_region_t *payload, void *owner);
void hydns_query_end(struct hydns_loop *loop, in_port_t port, void *owner);
void *hydns_query_owner(struct hydns_loop *loop, const isc_nm_datagram_t *datagram);

#endif
