/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Several tables of prefixes made into one: of each address the result is what judge() says of the values that the
 * tables have for it, each by its longest prefix. Holds no prefix whose value is that of the prefix around it. Time
 * O(n log n), with n the prefixes of all tables; no table is searched.
 */
#ifndef HYDNSD_NETDEV_PREFIXES_H
#define HYDNSD_NETDEV_PREFIXES_H

#include <stdint.h>

#define HYDNSD_PREFIX_TABLES   24
#define HYDNSD_PREFIX_BITS     128
#define HYDNSD_PREFIX_BITS_V4  96      /* of the prefix that IPv4 addresses have here: ::ffff:0:0/96 */

struct hydnsd_prefix {
	uint8_t addr[16];              /* network order, IPv4-mapped */
	uint8_t bits;
	uint8_t table;
	uint8_t value;                 /* 0 is what a table says where it has no prefix */
	uint32_t order;                /* of equal prefixes of a table the last counts */
};

typedef uint8_t (*hydnsd_prefixes_judge)(const uint8_t value[HYDNSD_PREFIX_TABLES], const void *arg);

/*
 * Sorts `in`, clears octets behind a prefix's bits, and writes what comes out, in order. judge() must say 0 of all
 * zeros. Returns how many there are; -E2BIG: more than room.
 */
int hydnsd_prefixes_combine(struct hydnsd_prefix *in, uint32_t n, hydnsd_prefixes_judge judge, const void *arg,
			    struct hydnsd_prefix *out, uint32_t room);

/* Value of the longest prefix that holds the address; 0: none does. */
uint8_t hydnsd_prefixes_find(const struct hydnsd_prefix *list, uint32_t n, const uint8_t addr[16]);

#endif
