/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Combines several tables of prefixes into one. The value of an address in it is what judge() makes of its values in the
 * tables, each by the longest prefix. A prefix with the value of the prefix around it is left out. Time: O(n log n) for n
 * prefixes in all tables.
 */
#ifndef HYDNSD_NETDEV_PREFIXES_H
#define HYDNSD_NETDEV_PREFIXES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define HYDNSD_PREFIX_TABLES   24
#define HYDNSD_PREFIX_BITS     128
#define HYDNSD_PREFIX_BITS_V4  96      /* of ::ffff:0:0/96: IPv4 addresses are mapped */

struct hydnsd_prefix {
	uint8_t addr[16];              /* network order, IPv4-mapped */
	uint8_t bits;
	uint8_t table;
	uint8_t value;                 /* 0: as where the table has no prefix */
	uint32_t order;                /* of equal prefixes in a table the last one counts */
};

typedef uint8_t (*hydnsd_prefixes_judge)(const uint8_t value[HYDNSD_PREFIX_TABLES], const void *arg);

/* Sorts `in' and clears its address bits beyond each prefix; writes the result to `out', sorted. judge() must return 0 for all
 * zeros. Returns the number of prefixes; -E2BIG: more than room. */
int hydnsd_prefixes_combine(struct hydnsd_prefix *in, uint32_t n, hydnsd_prefixes_judge judge, const void *arg,
			    struct hydnsd_prefix *out, uint32_t room);

/* Value of the longest prefix that holds the address; 0: none does. */
uint8_t hydnsd_prefixes_find(const struct hydnsd_prefix *list, uint32_t n, const uint8_t addr[16]);

/* Whether an address is an IPv4 one, mapped (RFC 4291 section 2.5.5.2), wherever it is aligned. */
static inline bool hydnsd_is_mapped(const uint8_t addr[16])
{
	static const uint8_t head[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(addr, head, sizeof(head)) == 0;
}

#endif
