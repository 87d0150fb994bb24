/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Source validation. XDP is before the routing tables, so what they and rp_filter say of a query's source is put into
 * the tables that the program looks every client up in: those of the resolvers' access lists. Where the host's stack
 * would drop a query, or a reply to it, the query is passed. A hit costs nothing more.
 */
#ifndef HYDNSD_NETDEV_SOURCES_H
#define HYDNSD_NETDEV_SOURCES_H

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/netdev/rpfilter.h"

/* Changes the access lists in the kernel to what routes judge now. True: one could not be changed, and it is to be tried
 * again. */
typedef bool hydnsd_sources_changed(struct hydnsd *d);

/* Learns routes, policy rules and rp_filter, and follows them: changed is called, in here too, when they judge otherwise
 * than before. */
int hydnsd_sources_start(struct hydnsd *d, hydnsd_sources_changed *changed, char *why, size_t room);
void hydnsd_sources_stop(struct hydnsd *d);
/* The options have been read again: interfaces. */
void hydnsd_sources_update(struct hydnsd *d);
/* Every HYDNSD_HOUSEKEEPING_MS. */
void hydnsd_sources_tick(struct hydnsd *d);

/*
 * An access list as the program is to have it: HYDNS_ACL_PASS also where a source is refused. out has room for
 * HYDNS_ACL_ENTRIES. Returns how many there are, or a negative errno. *flags: HYDNS_RESOLVER_ALLOWS_*; where everybody is
 * allowed and all routes are good, no client is looked up but those that may be the host itself (hydns/own.h).
 */
int hydnsd_sources_apply(struct hydnsd *d, const struct hydns_acl_entry *acl, uint32_t n, struct hydns_acl_entry *out,
			 __u16 *flags);

/* Whether the program answers no query from any address of this prefix, as hydns_admit_source() does: loopback, multicast and
 * reserved ones. addr: IPv4-mapped, network order. */
bool hydnsd_sources_never(const uint8_t addr[16], unsigned bits);

/* NULL: queries with this source are answered as the access list says; else why they are passed. */
const char *hydnsd_sources_refuse(const struct hydnsd *d, const uint8_t addr[16]);

struct hydnsd_sources_state {
	const char *family;            /* IPv4, IPv6 */
	const char *rp_filter;         /* off, loose or strict: what counts; "" for IPv6 */
	uint32_t routes, prefixes;     /* read; made of them */
	const char *note, *mend;       /* why more is passed than the stack drops, and what helps; "": nothing */
};
/* The n-th address family; false: there is none. */
enum { HYDNSD_IPV4, HYDNSD_IPV6, HYDNSD_FAMILIES };
bool hydnsd_sources_get(const struct hydnsd *d, uint32_t n, struct hydnsd_sources_state *out);
/* True when no query of the family is answered in the kernel, whoever sends it; then *out has a note in any case. */
bool hydnsd_sources_none(const struct hydnsd *d, uint32_t n, struct hydnsd_sources_state *out);

#endif
