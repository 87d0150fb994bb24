/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guard's limit of queries by client network (hydns/guard.h), over all resolvers: a query that the resolver admits is counted,
 * whoever answers it, and so is one that the program can't read. What is above the limit ends here, or, while the guard only counts,
 * goes on.
 */
#ifndef HYDNS_KERN_PROGRAM_GUARD_CLIENTS_BPF_H
#define HYDNS_KERN_PROGRAM_GUARD_CLIENTS_BPF_H

#include "hydns-kern/program/clock.bpf.h"
#include "hydns-kern/program/dns/cookie.bpf.h"
#include "hydns-kern/program/rule/admit.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HYDNS_GUARD_BUCKETS);
	__type(key, __u32);
	__type(value, struct hydns_guard_bucket);
} hydns_gd_cells SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_guard_count);
} hydns_gd_counts SEC(".maps");

/* The second of the monotonic clock, which each CPU caches for a tick. hydns_now() has been called for the query. */
static __always_inline __u32 hydns_guard_second(struct hydns_cpu *cpu)
{
	if (hydns_fixed_now_ns)
		return hydns_fixed_now_ns / HYDNS_NS_PER_S;
	if (cpu->guard_tick != cpu->tick) {
		cpu->guard_second = cpu->tick_ns / HYDNS_NS_PER_S;
		cpu->guard_tick = cpu->tick;
	}
	return cpu->guard_second;
}

static __always_inline struct hydns_guard_count *hydns_guard_counts(const struct hydns_query *q)
{
	__u32 resolver = q->question.resolver;

	return bpf_map_lookup_elem(&hydns_gd_counts, &resolver);
}

static __always_inline struct hydns_guard_bucket *hydns_guard_bucket_of(const struct hydns_query *q, __u64 network[2], __u64 *tag)
{
	const __u64 seed[HYDNS_BUDGET_SEEDS] = { hydns_guard.seed[0], hydns_guard.seed[1], hydns_guard.seed[2], hydns_guard.seed[3] };
	const __u64 *client = (const void *)q->packet.client.addr;
	__u64 hash;
	__u32 i;

	network[0] = client[0] & (q->packet.ipv6 ? hydns_guard.mask[1][0] : hydns_guard.mask[0][0]);
	network[1] = client[1] & (q->packet.ipv6 ? hydns_guard.mask[1][1] : hydns_guard.mask[0][1]);
	hash = hydns_budget_hash(network, seed);
	*tag = HYDNS_BUDGET_TAG(hash);
	i = HYDNS_BUDGET_BUCKET(hash) & (HYDNS_GUARD_BUCKETS - 1);
	return bpf_map_lookup_elem(&hydns_gd_cells, &i);
}

/* The network's cell, or a new one; NULL: there is none for it now. */
static __always_inline struct hydns_budget *hydns_guard_cell(struct hydns_guard_bucket *b, const __u64 network[2], __u64 tag, __u32 second)
{
	struct hydns_budget *cell = hydns_budget_find(&b->budgets, tag);
	__u32 i;

	if (cell)
		return cell;
	cell = hydns_budget_new(&b->budgets, tag, second, hydns_guard.queries);
	if (!cell)
		return NULL;
	i = cell - b->budgets.cell;
	if (i < HYDNS_BUDGET_CELLS) {
		b->network[i][0] = network[0];
		b->network[i][1] = network[1];
	}
	return cell;
}

/* What becomes of a query above the limit. */
static __always_inline int hydns_guard_over(struct hydns_guard_count *n, bool dry)
{
	__u32 slip = hydns_guard.slip;

	if (!dry)
		n->clients_over++;
	if (hydns_guard.mode != HYDNS_GUARD_ENFORCE)
		return HYDNS_R_ANSWERED;
	if (hydns_guard.action == HYDNS_GUARD_TRUNCATE || (!dry && slip && bpf_get_prandom_u32() % slip == 0))
		return HYDNS_R_GUARD_TRUNCATED;
	return HYDNS_R_GUARDED;
}

/* HYDNS_R_ANSWERED: the query goes on. Its cookie has been judged. */
__noinline int hydns_guard_client(struct hydns_query *q, __u32 dry)
{
	__u64 network[2], tag = 0;
	struct hydns_guard_bucket *b;
	struct hydns_guard_count *n;
	struct hydns_budget *cell;
	__u32 second;

	if (!q)
		return HYDNS_R_ANSWERED;
	n = hydns_guard_counts(q);
	b = hydns_guard_bucket_of(q, network, &tag);
	if (!n || !b)
		return HYDNS_R_ANSWERED;
	if (hydns_guard.exempt && q->question.cookie_len && q->reply.cookie_state >= HYDNS_COOKIE_VALID) {
		n->clients_exempt += !dry;
		return HYDNS_R_ANSWERED;
	}
	second = hydns_guard_second(&q->cpu);
	if (dry) {
		cell = hydns_budget_find(&b->budgets, tag);
		return cell && hydns_budget_spent(cell, second, 0) >= hydns_guard.queries ? hydns_guard_over(n, true) : HYDNS_R_ANSWERED;
	}
	cell = hydns_guard_cell(b, network, tag, second);
	if (!cell) {
		n->clients_uncounted++;
		return HYDNS_R_ANSWERED;
	}
	return hydns_budget_add(cell, second) > hydns_guard.queries ? hydns_guard_over(n, false) : HYDNS_R_ANSWERED;
}

/* The same with a reason that the verifier knows. A parked query was counted when it came. */
static __always_inline enum hydns_reason hydns_guard_admits(struct hydns_query *q, const struct hydns_resolver_page *page, __u16 flags,
							    bool dry)
{
	int r;

	q->cpu.guarded = q->cpu.replaying;
	if (!(flags & HYDNS_RESOLVER_LIMITS))
		hydns_cookie_state(q, page, flags);
	if (!hydns_guard.queries || q->cpu.replaying)
		return HYDNS_R_ANSWERED;
	r = hydns_guard_client(q, dry);
	HYDNS_RETURN_IF(r, HYDNS_R_GUARDED);
	HYDNS_RETURN_IF(r, HYDNS_R_ANSWERED);
	return HYDNS_R_GUARD_TRUNCATED;
}

/* Outcomes, a bit each, of queries that a service got and that the program can't read. */
#define HYDNS_UNREAD (1ULL << HYDNS_R_DNS_UNUSUAL | 1ULL << HYDNS_R_QUESTION_UNUSUAL | 1ULL << HYDNS_R_EDNS_UNUSUAL | \
		      1ULL << HYDNS_R_TOO_LONG)

/* Whether a query that can't be read may hold a valid cookie: it has an OPT record, or is too long to be looked into. */
static __always_inline bool hydns_may_hold_cookie(const struct hydns_query *q)
{
	const struct hydns_dns_header *h = (const void *)q->question.message;

	return q->packet.message_len >= HYDNS_QUERY_MIN && (q->packet.message_len > HYDNS_QUERY_MAX || h->arcount);
}

/*
 * Not 0: the query in work, which can't be read, is above its network's limit, and ends. None is truncated, because that takes its
 * question. The query is found again: Linux 6.1 takes no key from an argument's memory.
 */
__noinline int hydns_guard_strange(__u32 dry)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	const struct hydns_resolver_config *cfg;

	if (!q || !hydns_guard.queries || q->cpu.replaying || (hydns_guard.exempt && hydns_may_hold_cookie(q)))
		return 0;
	cfg = bpf_map_lookup_elem(&hydns_resolver, &q->question.resolver);
	if (!cfg || hydns_admit_client(q, cfg))
		return 0;
	q->question.cookie_len = 0;
	return hydns_guard_client(q, dry) != HYDNS_R_ANSWERED;
}

/* The outcome of a query that has ended with this one. */
static __always_inline enum hydns_reason hydns_guard_unread(enum hydns_reason reason, bool dry)
{
	return (HYDNS_UNREAD >> reason & 1) && hydns_guard_strange(dry) ? HYDNS_R_GUARDED : reason;
}

#endif
