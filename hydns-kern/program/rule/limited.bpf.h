/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The resolver's limit of queries by client (budgets.h). The program counts a query when it comes, whoever answers it, and decides
 * as Unbound's ip-ratelimit does: within the limit it goes on; the one that crosses the limit passes, because the resolver logs it and
 * drops it; those after it are dropped here, but for one in limits.slip.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_LIMITED_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_LIMITED_BPF_H

#include "hydns-kern/program/dns/cookie.bpf.h"
#include "hydns-kern/program/packet/route.bpf.h"

struct hydns_budget_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HYDNS_BUDGET_BUCKETS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct hydns_budget_bucket));
};
/* By resolver. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__array(values, struct hydns_budget_map);
} hydns_budgets SEC(".maps");

/* The wall clock's second, as each CPU caches it for a tick: a division costs as much as all else that is done for a limit. */
static __always_inline __u32 hydns_second(struct hydns_cpu *cpu, const struct hydns_resolver_page *page)
{
	__s64 ahead = *(const volatile __s64 *)&page->wall_ns;

	if (hydns_fixed_now_ns)
		return (hydns_fixed_now_ns + ahead) / HYDNS_NS_PER_S;
	if (cpu->second_tick != cpu->tick) {
		cpu->second = (cpu->tick_ns + ahead) / HYDNS_NS_PER_S;
		cpu->second_tick = cpu->tick;
	}
	return cpu->second;
}

/* The bucket of the query's client, and its tag; NULL: the resolver has no budgets. */
static __always_inline struct hydns_budget_bucket *hydns_bucket_of(const struct hydns_query *q,
								   const struct hydns_resolver_page *page, __u64 *tag)
{
	__u32 resolver = q->question.resolver, i;
	__u64 hash = hydns_budget_hash((const void *)q->packet.client.addr, page->budget_seed);
	void *map = bpf_map_lookup_elem(&hydns_budgets, &resolver);

	if (!map)
		return NULL;
	i = HYDNS_BUDGET_BUCKET(hash);
	*tag = HYDNS_BUDGET_TAG(hash);
	return bpf_map_lookup_elem(map, &i);
}

/* The limit of this query; 0: there is none. */
static __always_inline __u32 hydns_limit_of(const struct hydns_query *q, const struct hydns_resolver_page *page)
{
	return *(const volatile __u32 *)(q->reply.cookie_state >= HYDNS_COOKIE_VALID ? &page->limits.with_cookie :
										       &page->limits.queries);
}

/* Its cookie, which may be valid, can't be judged here: the resolver counts it. */
static __always_inline bool hydns_cookie_unjudged(const struct hydns_query *q)
{
	return q->question.cookie_len && !q->reply.cookie_state;
}

static __always_inline enum hydns_reason hydns_limit_drop(struct hydns_query *q)
{
	__u32 resolver = q->question.resolver;   /* on the stack: Linux 6.1 takes no key from an argument's memory */
	struct hydns_resolver_count *n = bpf_map_lookup_elem(&hydns_answers, &resolver);

	q->cpu.counted = 0;
	if (n) {
		n->limited++;
		n->limited_ipv6 += q->packet.ipv6;
		n->limited_edns += q->question.edns;
		hydns_count_cookie(q, n);
	}
	return HYDNS_R_LIMITED;
}

/* Decides on a query. count: its number in its client's cell in this second; 0: it is not counted yet, and is so here. logs: the resolver
 * logs also what it drops. */
static __always_inline enum hydns_reason hydns_limit_judge(struct hydns_query *q, const struct hydns_resolver_page *page,
							   struct hydns_budget *cell, __u32 second, bool logs, __u32 count)
{
	__u32 limit = hydns_limit_of(q, page), slip = *(const volatile __u32 *)&page->limits.slip;
	__u32 spent = count ? 0 : hydns_budget_spent(cell, second, *(const volatile __u32 *)&page->limits.backoff);

	if (logs && limit && spent >= limit)
		return HYDNS_R_LIMIT_REACHED;
	if (!count)
		count = hydns_budget_add(cell, second);
	q->cpu.counted = 1;
	if (!limit || (spent <= limit && count <= limit))
		return HYDNS_R_ANSWERED;
	if (spent <= limit && count == limit + 1) {
		q->cpu.counted = 0;
		hydns_budget_pass(cell, second, HYDNS_BUDGET_CROSSED);
		return HYDNS_R_LIMIT_REACHED;
	}
	if (slip && q->reply.cookie_state < HYDNS_COOKIE_VALID && bpf_get_prandom_u32() % slip == 0)
		return HYDNS_R_ANSWERED;
	return hydns_limit_drop(q);
}

/* What a dry run says, which counts nothing. */
static __always_inline enum hydns_reason hydns_limit_foresee(const struct hydns_query *q, const struct hydns_resolver_page *page,
							     const struct hydns_budget *cell, __u32 second)
{
	__u32 limit = hydns_limit_of(q, page);

	return limit && cell && hydns_budget_spent(cell, second, *(const volatile __u32 *)&page->limits.backoff) >= limit ?
	       HYDNS_R_LIMITED : HYDNS_R_ANSWERED;
}

/*
 * Counts the most frequent query without a call, which would cost as much as all else here: its client has a cell, in which this second
 * has begun, and in neither of the cell's seconds has it come to its limit. Returns the query's number in the second; 0: it is another.
 */
static __always_inline __u32 hydns_limit_count(struct hydns_query *q, const struct hydns_resolver_page *page, __u32 limit)
{
	__u32 second = hydns_second(&q->cpu, page);
	struct hydns_budget_bucket *b;
	__u64 tag = 0, x, y, i;

	if (q->cpu.replaying || !*(const volatile __u32 *)&page->limits.queries || hydns_cookie_unjudged(q))
		return 0;
	b = hydns_bucket_of(q, page, &tag);
	if (!b)
		return 0;
	i = hydns_budget_number(b, tag);
	HYDNS_OPAQUE(i);         /* to the verifier one number, not five */
	if (i >= HYDNS_BUDGET_CELLS)
		return 0;
	x = *(const volatile __u64 *)&b->cell[i].used[0];
	y = *(const volatile __u64 *)&b->cell[i].used[1];
	if ((__u32)x >= limit || (__u32)y >= limit)
		return 0;
	if (hydns_budget_second(x) == second)
		return (__u32)__sync_fetch_and_add(&b->cell[i].used[0], 1) + 1;
	return hydns_budget_second(y) == second ? (__u32)__sync_fetch_and_add(&b->cell[i].used[1], 1) + 1 : 0;
}

/* HYDNS_R_ANSWERED: the query goes on, counted or not. Its cookie has been judged. A parked query was counted when it came, and no
 * answer to a link-local client can be logged. count: as hydns_limit_count() has said. */
__noinline int hydns_limit(struct hydns_query *q, const struct hydns_resolver_page *page, __u32 logs, __u32 dry, __u32 count)
{
	struct hydns_budget_bucket *b;
	struct hydns_budget *cell;
	__u32 second, least;
	__u64 tag = 0;

	if (!q || !page)
		return HYDNS_R_NO_ENTRY;
	q->cpu.counted = q->cpu.replaying != 0;
	least = *(const volatile __u32 *)&page->limits.queries;
	if (q->cpu.replaying || !least || hydns_cookie_unjudged(q) || (logs && hydns_route_link_local(&q->packet)))
		return HYDNS_R_ANSWERED;
	second = hydns_second(&q->cpu, page);
	b = hydns_bucket_of(q, page, &tag);
	if (!b)
		return HYDNS_R_UNCOUNTED;
	cell = hydns_budget_find(b, tag);
	if (dry)
		return hydns_limit_foresee(q, page, cell, second);
	if (!cell)
		cell = hydns_budget_new(b, tag, second, least);
	return cell ? hydns_limit_judge(q, page, cell, second, logs, count) : HYDNS_R_UNCOUNTED;
}

/* What becomes of a query, with a reason that the verifier knows. quick: without a call where that may be. */
static __always_inline enum hydns_reason hydns_within_limit(struct hydns_query *q, const struct hydns_resolver_page *page, bool logs,
							    bool dry, bool quick)
{
	__u32 limit = hydns_limit_of(q, page), count = quick ? hydns_limit_count(q, page, limit) : 0;
	int r;

	if (count && count <= limit) {
		q->cpu.counted = 1;
		return HYDNS_R_ANSWERED;
	}
	r = hydns_limit(q, page, logs, dry, count);
	HYDNS_RETURN_IF(r, HYDNS_R_LIMITED);
	HYDNS_RETURN_IF(r, HYDNS_R_LIMIT_REACHED);
	HYDNS_RETURN_IF(r, HYDNS_R_ANSWERED);
	return HYDNS_R_UNCOUNTED;
}

/* The page of the query's resolver, found again. */
static __always_inline struct hydns_resolver_page *hydns_page_of(const struct hydns_query *q)
{
	__u32 zero = 0, resolver = q->question.resolver;   /* on the stack, as above */
	void *pages = bpf_map_lookup_elem(&hydns_pages, &resolver);

	return pages ? bpf_map_lookup_elem(pages, &zero) : NULL;
}

/* A query goes to the resolver, which must not count it again if it is counted. After an outcome of HYDNS_LOOKED_UP: else q->cpu.counted
 * is of another query. */
__noinline int hydns_limit_pass(struct hydns_query *q)
{
	const struct hydns_resolver_page *page;
	struct hydns_budget_bucket *b;
	struct hydns_budget *cell;
	__u64 tag = 0;

	if (!q || !q->cpu.counted)
		return 0;
	q->cpu.counted = 0;
	page = hydns_page_of(q);
	b = page ? hydns_bucket_of(q, page, &tag) : NULL;
	cell = b ? hydns_budget_find(b, tag) : NULL;
	if (cell)
		hydns_budget_pass(cell, hydns_second(&q->cpu, page), HYDNS_BUDGET_ALLOWED);
	return 0;
}

#endif
