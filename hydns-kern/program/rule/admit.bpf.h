/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stages 2 and 4. Stage 2, before the message is read: is the destination a resolver's service, and can the source be
 * answered? Stage 4, after it: is this resolver ready, and does its access list allow this client?
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_ADMIT_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_ADMIT_BPF_H

#include "hydns-kern/program/dns/message.bpf.h"

#define HYDNS_PORT_DNS         53

static __always_inline bool hydns_same_service(const struct hydns_service_key *a, const struct hydns_service_key *b)
{
	const __u64 *x = (const void *)a->addr, *y = (const void *)b->addr;

	return x[0] == y[0] && x[1] == y[1] && a->port == b->port;
}

/* Caches the last service of each family, because most queries have the same destination as the one before, and a look-up
 * is three calls. It reads the serial before the table, so that a cached service is never older than its serial. */
static __always_inline enum hydns_reason hydns_admit_service(struct hydns_query *q)
{
	struct hydns_known_service *known = q->packet.ipv6 ? &q->cpu.known[1] : &q->cpu.known[0];
	const struct hydns_service *s;
	const __u64 *serial;
	__u32 zero = 0;
	__u64 current;

	serial = bpf_map_lookup_elem(&hydns_svcserial, &zero);
	if (!serial)
		return HYDNS_R_NO_ENTRY;
	current = ~*(const volatile __u64 *)serial;
	if (known->serial != current || !hydns_same_service(&known->key, &q->packet.service)) {
		hydns_barrier(&known->serial);
		s = bpf_map_lookup_elem(&hydns_services, &q->packet.service);
		if (!s || s->resolver >= HYDNS_RESOLVERS)
			return HYDNS_R_NOT_SERVICE;
		known->key = q->packet.service;
		known->resolver = s->resolver;
		known->serial = current;
	}
	q->question.resolver = known->resolver;
	return 0;
}

/* 0/8, 127/8 and 224/3 (RFC 6890, RFC 5771): "this network", loopback, multicast, reserved, broadcast. */
static __always_inline bool hydns_source_bad4(const __u8 *a)
{
	return a[0] == 0 || a[0] == 127 || a[0] >= 224;
}

/* ff00::/8 (multicast), and ::/64, which holds no unicast address of a link, but ::, ::1 and ::ffff:0:0/96. The last would
 * match the ACL's entries for IPv4. */
static __always_inline bool hydns_source_bad6(const __u8 *a)
{
	const __u64 *w = (const void *)a;

	return a[0] == 0xff || w[0] == 0;
}

/* Two servers that answer each other, or a server that answers itself, would never stop; so source port 53 and the service's
 * own address pass. A reply to port 0 reaches nobody. */
static __always_inline enum hydns_reason hydns_admit_source(const struct hydns_packet *p)
{
	const __u64 *src = (const void *)p->client.addr, *dst = (const void *)p->service.addr;

	if (!p->sport || p->sport == bpf_htons(HYDNS_PORT_DNS))
		return HYDNS_R_BAD_SOURCE;
	if (src[0] == dst[0] && src[1] == dst[1])
		return HYDNS_R_BAD_SOURCE;
	if (p->ipv6 ? hydns_source_bad6(p->client.addr) : hydns_source_bad4(p->client.addr + 12))
		return HYDNS_R_BAD_SOURCE;
	return 0;
}

/* The heartbeat may be ahead of the coarse clock, but not by more than the interval of heartbeats. */
static __always_inline bool hydns_resolver_lives(const struct hydns_resolver_page *page, __u64 now)
{
	__u64 beat = *(const volatile __u64 *)&page->heartbeat_ns;

	return beat && now + HYDNS_HEARTBEAT_BEAT_NS - beat < HYDNS_HEARTBEAT_STALE_NS + HYDNS_HEARTBEAT_BEAT_NS;
}

/* False: the address is certainly not the host's own (own.h). */
static __always_inline bool hydns_maybe_own(const __u8 addr[16])
{
	const __u64 *w = (const void *)addr;
	__u32 bit = hydns_own_bit(w[0], w[1]);

	return *(const volatile __u64 *)&hydns_own[bit / 64] >> bit % 64 & 1;
}

/* Where the access list allows the whole family, its only other entries are the host's own addresses, from which the stack
 * accepts no packet on an interface. Then all clients but these skip the look-up. */
static __always_inline enum hydns_reason hydns_admit_client(struct hydns_query *q,
							    const struct hydns_resolver_config *cfg)
{
	__u32 i = q->question.resolver * 2 + (cfg->acl_half & 1);
	const __u32 *action;
	void *acl;

	q->question.action = HYDNS_ACL_ALLOW;
	if ((cfg->flags & (q->packet.ipv6 ? HYDNS_RESOLVER_ALLOWS_IPV6 : HYDNS_RESOLVER_ALLOWS_IPV4)) &&
	    !hydns_maybe_own(q->packet.client.addr))
		return 0;
	acl = bpf_map_lookup_elem(&hydns_acls, &i);
	if (!acl)
		return HYDNS_R_ACL;
	action = bpf_map_lookup_elem(acl, &q->packet.client);
	if (!action || *action - HYDNS_ACL_ALLOW > HYDNS_ACL_ALLOW_EXEMPT - HYDNS_ACL_ALLOW)
		return HYDNS_R_ACL;
	q->question.action = *action;
	return 0;
}

#endif
