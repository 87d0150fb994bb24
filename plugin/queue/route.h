/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the kernel's routes say of a destination, asked of it at once: RTM_GETROUTE takes no lock that others hold for long
 * (about a microsecond). It decides as for a socket of the calling user without a mark: policy rules by source, user and
 * destination port count, and of several next hops it chooses one.
 */
#ifndef PLUGIN_QUEUE_ROUTE_H
#define PLUGIN_QUEUE_ROUTE_H

#include "plugin/queue/rtnl.h"

#define HYDNS_ETHERNET   6       /* octets of an address */
#define HYDNS_MTU_LEAST  576     /* octets that each IPv4 host takes (RFC 791); a way that carries less is not used */

/* Addresses as in rtnl.h. */
struct hydns_route_question {
	uint8_t remote[16];
	const uint8_t *source;   /* NULL: the kernel chooses */
	uint16_t port;           /* of the remote, in host order */
};

struct hydns_route {
	uint32_t ifindex;
	uint16_t mtu;            /* octets of the longest IP packet on this path; 65535: what the interface sends */
	uint8_t source[16];
	uint8_t next_hop[16];    /* the gateway, or the remote itself; of IPv6 for a remote of IPv4, too (RFC 8950) */
};

enum hydns_route_result {
	HYDNS_ROUTE_FOUND,
	HYDNS_ROUTE_NONE,        /* none that a plain Ethernet frame could take: see hydns_way_find() */
	HYDNS_ROUTE_UNKNOWN,     /* the kernel could not be asked */
};
enum hydns_route_result hydns_route_ask(struct hydns_rtnl *r, const struct hydns_route_question *q, struct hydns_route *route);

struct hydns_interface {
	uint32_t ifindex;
	uint16_t mtu;            /* octets of the longest IP packet; 0: it is no Ethernet interface, or has no link */
	uint8_t own[HYDNS_ETHERNET];     /* its Ethernet address */
};
/*
 * Reads an interface (another microsecond), by ioctl(2) on any socket: RTM_GETLINK would wait for the lock of all changes of
 * the network.
 */
void hydns_interface_read(struct hydns_interface *i, uint32_t ifindex, int fd);

#endif
