/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Budgets: how often each client has asked a resolver that limits its clients (HYDNS_RESOLVER_LIMITS), in the last two seconds with
 * queries of its. The program and the resolver count in the same cells, so a client has one budget, whoever answers. A query is counted
 * once: by the program when it comes, or by the resolver if the program has not. The resolver learns from passed[] which of its
 * queries are counted already.
 *
 * The windows are those of Unbound's ip-ratelimit (services/cache/infra.c): whole seconds of the wall clock.
 *
 * Memory is fixed: buckets of four cells, after KRU of Knot DNS. A new client takes a free cell, else one
 * whose seconds are over, else that of who has asked least; never that of a client at its limit. Then it has no cell, and the
 * resolver alone counts it. Tags and places come from a secret, so nobody can choose who shares a bucket.
 */
#ifndef HYDNS_BUDGETS_H
#define HYDNS_BUDGETS_H

#include "hydns/common.h"

#ifndef HYDNS_INLINE
#define HYDNS_INLINE static inline __attribute__((always_inline))
#endif

#define HYDNS_BUDGET_BUCKETS   65536 /* power of two */
#define HYDNS_BUDGET_CELLS     4
#define HYDNS_BUDGET_SEEDS     4
/* Unbound's RATE_WINDOW: with backoff, seconds that are no older count as the present one. */
#define HYDNS_BUDGET_WINDOW    2

struct hydns_budget {
	__u64 tag;           /* of the client's address; 0: free. By compare-and-swap */
	__u64 used[2];       /* second of the wall clock << 32 | queries in it; 0: none. By atomic operations */
	__u32 passed[2];     /* of those, queries that are on their way to the resolver: HYDNS_BUDGET_*. By atomic operations */
};
struct hydns_budget_bucket {
	struct hydns_budget cell[HYDNS_BUDGET_CELLS];
};
/* Units of passed[]: a query within the limit, or one that the program lets through above it; the query that crosses it. */
#define HYDNS_BUDGET_ALLOWED   1U
#define HYDNS_BUDGET_CROSSED   (1U << 24)

/* What a resolver's configuration allows; on the resolver page. */
struct hydns_limits {
	__u32 queries;       /* a second from one address; 0: no limit */
	__u32 with_cookie;   /* the same of queries with a valid server cookie; 0: no limit */
	__u32 slip;          /* above the limit one in so many is let through, by chance, unless it has such a cookie; 0: none */
	__u32 backoff;       /* not 0: a client that has crossed the limit must stay below it for HYDNS_BUDGET_WINDOW */
};

/*
 * Hash of a client's address: 16 octets as two words in memory order, IPv4-mapped. Multilinear hashing (Carter and Wegman, "Universal
 * classes of hash functions", 1979; Lemire and Kaser, "Strongly universal string hashing is fast", 2014): whatever two addresses somebody
 * chooses who does not know the seed, its upper half is the same with a probability of 2^-32, and all of it of 2^-33 at most. Nobody sees
 * it, so that is enough, and a fifth of the time of SipHash.
 */
HYDNS_INLINE __u64 hydns_budget_hash(const __u64 addr[2], const __u64 seed[HYDNS_BUDGET_SEEDS])
{
	return seed[0] * (__u32)addr[0] + seed[1] * (addr[0] >> 32) + seed[2] * (__u32)addr[1] + seed[3] * (addr[1] >> 32);
}

#define HYDNS_BUDGET_BUCKET(hash) ((__u32)((hash) >> 32) & (HYDNS_BUDGET_BUCKETS - 1))
#define HYDNS_BUDGET_TAG(hash)    ((hash) | 1)

HYDNS_INLINE __u32 hydns_budget_second(__u64 used)
{
	return (__u32)(used >> 32);
}

/* The queries that a word counts against the limit in this second. */
HYDNS_INLINE __u32 hydns_budget_counts(__u64 used, __u32 second, __u32 backoff)
{
	__s32 age = (__s32)(second - hydns_budget_second(used));

	return (backoff ? age <= HYDNS_BUDGET_WINDOW : age == 0) ? (__u32)used : 0;
}

/* The queries that count against the limit in this second. */
HYDNS_INLINE __u32 hydns_budget_spent(const struct hydns_budget *b, __u32 second, __u32 backoff)
{
	__u32 x = hydns_budget_counts(HYDNS_READ_ONCE(b->used[0]), second, backoff);
	__u32 y = hydns_budget_counts(HYDNS_READ_ONCE(b->used[1]), second, backoff);

	return x > y ? x : y;
}

#define HYDNS_BUDGET_IS(i) (HYDNS_READ_ONCE(b[i].tag) == tag)
/* The client's cell; NULL: it has none. */
HYDNS_INLINE struct hydns_budget *hydns_budget_find(struct hydns_budget_bucket *bucket, __u64 tag)
{
	struct hydns_budget *b = bucket->cell;

	return HYDNS_BUDGET_IS(0) ? &b[0] : HYDNS_BUDGET_IS(1) ? &b[1] : HYDNS_BUDGET_IS(2) ? &b[2] : HYDNS_BUDGET_IS(3) ? &b[3] : (void *)0;
}

/* Its number; HYDNS_BUDGET_CELLS: it has none. */
HYDNS_INLINE __u32 hydns_budget_number(struct hydns_budget_bucket *bucket, __u64 tag)
{
	struct hydns_budget *b = bucket->cell;

	return HYDNS_BUDGET_IS(0) ? 0 : HYDNS_BUDGET_IS(1) ? 1 : HYDNS_BUDGET_IS(2) ? 2 : HYDNS_BUDGET_IS(3) ? 3 : HYDNS_BUDGET_CELLS;
}
#undef HYDNS_BUDGET_IS

/* How much a cell is needed: 0: it is free, or its seconds are over. */
HYDNS_INLINE __u32 hydns_budget_need(const struct hydns_budget *b, __u32 second)
{
	return HYDNS_READ_ONCE(b->tag) ? hydns_budget_spent(b, second, 1) : 0;
}

/* Gives the client a cell. limit: the least that a client may be limited to. NULL: there is none for it now. */
HYDNS_INLINE struct hydns_budget *hydns_budget_new(struct hydns_budget_bucket *bucket, __u64 tag, __u32 second, __u32 limit)
{
	/* where the look begins is chance: of cells that are needed as little, not always the same one makes way */
	__u32 first = tag >> 8, least, need;
	struct hydns_budget *b = &bucket->cell[first % HYDNS_BUDGET_CELLS];
	__u64 was;

#define HYDNS_BUDGET_TRY(i) \
	do { \
		struct hydns_budget *other = &bucket->cell[(first + (i)) % HYDNS_BUDGET_CELLS]; \
		need = hydns_budget_need(other, second); \
		if (need < least) { \
			least = need; \
			b = other; \
		} \
	} while (0)
	least = hydns_budget_need(b, second);
	HYDNS_BUDGET_TRY(1);
	HYDNS_BUDGET_TRY(2);
	HYDNS_BUDGET_TRY(3);
#undef HYDNS_BUDGET_TRY
	if (least && least >= limit)
		return (void *)0;
	was = HYDNS_READ_ONCE(b->tag);
	/* first, so that nobody is judged by what another has spent */
	HYDNS_WRITE_ONCE(b->used[0], 0);
	HYDNS_WRITE_ONCE(b->used[1], 0);
	HYDNS_WRITE_ONCE(b->passed[0], 0);
	HYDNS_WRITE_ONCE(b->passed[1], 0);
	return __sync_val_compare_and_swap(&b->tag, was, tag) == was ? b : (void *)0;
}

/* Which of the two seconds of a cell is this one, or makes way for it: the older. */
HYDNS_INLINE __u32 hydns_budget_slot(const struct hydns_budget *b, __u32 second)
{
	__u32 x = hydns_budget_second(HYDNS_READ_ONCE(b->used[0])), y = hydns_budget_second(HYDNS_READ_ONCE(b->used[1]));

	return x == second ? 0 : y == second ? 1 : y < x;
}

/* One word of a cell: begins its second if it has not begun. */
HYDNS_INLINE __u32 hydns_budget_add_to(__u64 *used, __u32 *passed, __u32 second)
{
	__u64 was = HYDNS_READ_ONCE(*used);

	if (hydns_budget_second(was) != second && __sync_val_compare_and_swap(used, was, (__u64)second << 32) == was)
		HYDNS_WRITE_ONCE(*passed, 0);
	return (__u32)__sync_fetch_and_add(used, 1) + 1;
}

/* Counts a query; returns how many the second has with it. */
HYDNS_INLINE __u32 hydns_budget_add(struct hydns_budget *b, __u32 second)
{
	return hydns_budget_slot(b, second) ? hydns_budget_add_to(&b->used[1], &b->passed[1], second) :
					      hydns_budget_add_to(&b->used[0], &b->passed[0], second);
}

/* A counted query is on its way to the resolver. unit: HYDNS_BUDGET_ALLOWED or _CROSSED. */
HYDNS_INLINE void hydns_budget_pass(struct hydns_budget *b, __u32 second, __u32 unit)
{
	if (hydns_budget_slot(b, second))
		__sync_fetch_and_add(&b->passed[1], unit);
	else
		__sync_fetch_and_add(&b->passed[0], unit);
}

HYDNS_STATIC_ASSERT(sizeof(struct hydns_budget) == 32 && sizeof(struct hydns_budget_bucket) == 128, "two cache lines");
HYDNS_STATIC_ASSERT((HYDNS_BUDGET_BUCKETS & (HYDNS_BUDGET_BUCKETS - 1)) == 0, "a mask finds the bucket");

#endif
