/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The zones that a plugin has named, and their upstream servers, as the messages bring them. Without I/O. */
#ifndef HYDNSD_FORWARDING_ZONES_H
#define HYDNSD_FORWARDING_ZONES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns/forwarding.h"

#define HYDNSD_ZONE_PLACES (2 * HYDNS_FORWARD_ZONES)   /* power of two */

struct hydnsd_zones {
	uint32_t number;
	uint32_t max_ttl, max_negative_ttl;
	uint16_t flags;                     /* HYDNS_FORWARDS_ADDS and the like */
	uint32_t servers, count, forwarded; /* forwarded: zones that have upstreams */
	struct hydns_forward_server server[HYDNS_FORWARD_UPSTREAMS];
	struct hydns_forward_name zone[HYDNS_FORWARD_ZONES];
	uint16_t place[HYDNSD_ZONE_PLACES]; /* by the hash of its name, a zone's number plus 1 */
};

/* Adds what a FORWARDS message brings (len octets). *z: what the messages before have brought, NULL at first; freed and made anew by the
 * first message of a list. NULL: it was added, and the list is complete if it says so. Else what is wrong with it. */
const char *hydnsd_zones_add(struct hydnsd_zones **z, const void *message, size_t len);
/* The zone with the most labels that the name (lower case) is in; -1: none. */
int hydnsd_zones_find(const struct hydnsd_zones *z, const uint8_t *name, uint8_t len);

#endif
