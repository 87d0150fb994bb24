/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Source validation. XDP runs before routing, so the program cannot ask routing tables and rp_filter about a query's source.
 * Instead hydnsd merges what they say into the access lists, in which the program looks up every client: where the host's stack
 * would drop a query, or a reply to it, the query is passed. A hit costs no more than without.
 */
#ifndef HYDNSD_NETDEV_SOURCES_H
#define HYDNSD_NETDEV_SOURCES_H

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/netdev/rpfilter.h"

/* Changes the access lists in the kernel to what routes say now. True: one could not be changed; call again later. */
typedef bool hydnsd_sources_changed(struct hydnsd *d);

/* Reads routes, policy rules and rp_filter, and follows them: calls changed, in here too, when they judge some source otherwise
 * than before. 0, or a negative errno and a line in why. */
int hydnsd_sources_start(struct hydnsd *d, hydnsd_sources_changed *changed, char *why, size_t room);
void hydnsd_sources_stop(struct hydnsd *d);
/* After options were read again: interfaces. */
void hydnsd_sources_update(struct hydnsd *d);
/* Every HYDNSD_HOUSEKEEPING_MS. */
void hydnsd_sources_tick(struct hydnsd *d);

/*
 * Makes the access list that the program gets: HYDNS_ACL_PASS also where a source is refused. out has room for
 * HYDNS_ACL_ENTRIES. Returns their number, or a negative errno. *flags: HYDNS_RESOLVER_ALLOWS_*; where everybody is
 * allowed and every source has a good route, the program looks up only clients that may be the host itself (hydns/own.h).
 */
int hydnsd_sources_apply(struct hydnsd *d, const struct hydns_acl_entry *acl, uint32_t n, struct hydns_acl_entry *out,
			 __u16 *flags);

/* Whether the whole prefix is loopback, multicast or reserved, so that the program passes all its queries, by
 * hydns_admit_source(). addr: IPv4-mapped, network order. */
bool hydnsd_sources_never(const uint8_t addr[16], unsigned bits);

/* NULL: for this source the access list alone decides; else why its queries are passed. */
const char *hydnsd_sources_refuse(const struct hydnsd *d, const uint8_t addr[16]);

struct hydnsd_sources_state {
	const char *family;            /* IPv4, IPv6 */
	const char *rp_filter;         /* off, loose or strict: the strictest that counts; "" for IPv6 */
	uint32_t routes, prefixes;     /* read; made of them */
	const char *note, *mend;       /* why more is passed than the stack drops, and what helps; "": nothing */
};
/* The n-th address family; false: there is none. */
enum { HYDNSD_IPV4, HYDNSD_IPV6, HYDNSD_FAMILIES };
bool hydnsd_sources_get(const struct hydnsd *d, uint32_t n, struct hydnsd_sources_state *out);
/* True: every query of the family is passed; then *out has a note. */
bool hydnsd_sources_none(const struct hydnsd *d, uint32_t n, struct hydnsd_sources_state *out);

#endif
