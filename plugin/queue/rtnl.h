/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * One question to the kernel by rtnetlink, and its answer, without waiting: the kernel answers within send(2).
 */
#ifndef PLUGIN_QUEUE_RTNL_H
#define PLUGIN_QUEUE_RTNL_H

#include <stdbool.h>
#include "hydns/netlink.h"

#define HYDNS_RTNL_REQUEST 256   /* octets: more than any request here has */
#define HYDNS_RTNL_ANSWER  4096  /* octets of an answer; one that is longer counts as none */

/* For one thread at a time. */
struct hydns_rtnl {
	int fd;                  /* -1: closed */
	uint32_t seq;
	char answer[HYDNS_RTNL_ANSWER] __attribute__((aligned(NLMSG_ALIGNTO)));
};

struct hydns_rtnl_request {
	struct nlmsghdr head;
	char rest[HYDNS_RTNL_REQUEST - sizeof(struct nlmsghdr)];
};

/* 0 or a negative errno. */
int hydns_rtnl_open(struct hydns_rtnl *r);
void hydns_rtnl_close(struct hydns_rtnl *r);

/* Begins a request of this type (RTM_*), with a body of len octets. */
void hydns_rtnl_begin(struct hydns_rtnl_request *q, uint16_t type, const void *body, size_t len);
void hydns_rtnl_add(struct hydns_rtnl_request *q, uint16_t type, const void *data, size_t len);
/* The same for an IP address: 4 octets, or 16. */
void hydns_rtnl_add_address(struct hydns_rtnl_request *q, uint16_t type, const uint8_t address[16]);

/*
 * Sends the request. 0: *answer is a message of the type want with least octets of payload or more, valid until the next
 * request. HYDNS_RTNL_REFUSED: the kernel has refused. HYDNS_RTNL_LOST: it was not asked, or its answer was lost.
 */
#define HYDNS_RTNL_REFUSED 1
#define HYDNS_RTNL_LOST    2
int hydns_rtnl_ask(struct hydns_rtnl *r, struct hydns_rtnl_request *q, uint16_t want, size_t least,
		   const struct nlmsghdr **answer);

/* -- addresses: 16 octets in network order, those of IPv4 as ::ffff:a.b.c.d -------------------------------- */
#define HYDNS_MAPPED 12          /* octets before those of IPv4 */
bool hydns_address_is_ipv4(const uint8_t address[16]);
/* Sets *address from the octets of an attribute of this family. */
void hydns_address_set(uint8_t address[16], int family, const void *octets);
/* How many octets an address of this family has. */
static inline size_t hydns_address_len(int family)
{
	return family == AF_INET ? 4 : 16;
}

#endif
