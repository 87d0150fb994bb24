/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The monitor: how many different clients ask, for how many different names. Registers of distinct keys (distinct.h) by CPU, in the
 * window that hydnsd names. A query that is read twice, because it was parked or its answer is logged, changes nothing the second
 * time.
 *
 * Counted are queries to a service whose checksums are right and whose source may be answered; the names of those that get as far
 * as the look-up of a rule. Letter case makes no other name. A client is an address, of IPv6 too.
 */
#ifndef HYDNS_KERN_PROGRAM_MONITOR_MONITOR_BPF_H
#define HYDNS_KERN_PROGRAM_MONITOR_MONITOR_BPF_H

#include "hydns/monitor.h"
#include "hydns-kern/program/query.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_WINDOWS);
	__type(key, __u32);
	__type(value, struct hydns_window);
} hydns_windows SEC(".maps");

/* The window under way, which hydnsd writes; of all sets of programs that share .bss. */
__u32 hydns_window_now;

/* Outcomes of queries that end before their name is looked up. */
#define HYDNS_BEFORE_NAME(reason) ((1ULL << HYDNS_R_DNS_UNUSUAL | 1ULL << HYDNS_R_QUESTION_UNUSUAL | 1ULL << HYDNS_R_EDNS_UNUSUAL |      \
				    1ULL << HYDNS_R_TOO_LONG | 1ULL << HYDNS_R_RESOLVER_GONE | 1ULL << HYDNS_R_ACL |                    \
				    1ULL << HYDNS_R_UNLOGGED | 1ULL << HYDNS_R_LIMITED | 1ULL << HYDNS_R_LIMIT_REACHED |               \
				    1ULL << HYDNS_R_UNCOUNTED | 1ULL << HYDNS_R_GUARDED | 1ULL << HYDNS_R_GUARD_TRUNCATED) >> (reason) & 1)

static __always_inline struct hydns_window *hydns_window_here(void)
{
	__u32 now = *(const volatile __u32 *)&hydns_window_now;

	return bpf_map_lookup_elem(&hydns_windows, &now);
}

static __always_inline void hydns_meet_client(struct hydns_window *w, const struct hydns_query *q)
{
	const __u64 secret[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };

	hydns_distinct_add(w->clients, hydns_distinct_address((const void *)q->packet.client.addr, secret));
}

/* After hydns_key(). */
static __always_inline void hydns_monitor_query(const struct hydns_query *q)
{
	struct hydns_window *w = hydns_window_here();

	if (!w)
		return;
	hydns_meet_client(w, q);
	hydns_distinct_add(w->names, hydns_distinct_mix(q->question.name_state));
}

/* A query that is not answered, which hydns_monitor_query() may not have seen. */
static __always_inline void hydns_monitor_passed(const struct hydns_query *q, __u32 reason)
{
	struct hydns_window *w = HYDNS_BEFORE_NAME(reason) ? hydns_window_here() : NULL;

	if (w)
		hydns_meet_client(w, q);
}

#endif
