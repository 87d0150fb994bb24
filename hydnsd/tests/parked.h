/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Records of parked queries, as the program makes them. For cmocka tests. */
#ifndef HYDNSD_TESTS_PARKED_H
#define HYDNSD_TESTS_PARKED_H

#include <stdbool.h>
#include <stdint.h>
#include "hydns/parking.h"

#define PARKED_KEY(n) ((uint64_t)(n) << 32 | (n) % 16) /* questions share buckets of the page */

struct parked_query {
	struct hydns_parked record;
	uint8_t octet[HYDNS_PARKED_FRAME];
};

/* A query over IPv4 or IPv6 for the address of a name ("www.example.") that came at this time; the checksum is whole. */
struct parked_query parked_query(const char *name, uint64_t key, uint64_t at_ns, bool ipv6);
/* What a driver leaves in the checksum of an unfinished datagram: the sum of the pseudo-header. addresses: n octets. */
uint16_t parked_pseudo_sum(const uint8_t *addresses, unsigned n, unsigned udp_len);

#endif
