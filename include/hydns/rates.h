/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Rates: how many responses of one kind each client has had from a resolver that limits these (HYDNS_RESOLVER_RATES): BIND's rate-limit
 * (lib/dns/rrl.c). The program and the resolver debit the same balances, so a client has one, whoever answers. Its arithmetic is that
 * of debit_rrl_entry(): whole seconds of the wall clock, each of which earns the rate, never more than that in all.
 *
 * Memory is that of budgets: buckets of cells. A new balance takes a free cell, else one that says no more than a new one would;
 * never another's, so a crowd of clients lifts nobody's limit. Without a cell the resolver alone counts, in a table of its own, and the
 * bucket says until when: meanwhile the program begins no balance there.
 */
#ifndef HYDNS_RATES_H
#define HYDNS_RATES_H

#include "hydns/budgets.h"

/* Kinds of responses, numbered as BIND's; each has its limit. KIND_ALL: all kinds together. */
enum hydns_rate_kind {
	HYDNS_RATE_UNCOUNTED,
	HYDNS_RATE_ANSWER,
	HYDNS_RATE_REFERRAL,
	HYDNS_RATE_NODATA,
	HYDNS_RATE_NXDOMAIN,
	HYDNS_RATE_ERROR,
	HYDNS_RATE_ALL,
};
#define HYDNS_RATE_KINDS       8     /* power of two: the program masks what it reads */
#define HYDNS_RATE_MOST        1000  /* BIND's largest rate, ... */
#define HYDNS_RATE_WINDOW_MOST 3600  /* ... window, */
#define HYDNS_RATE_SLIP_MOST   10    /* ... and slip */

/*
 * What a response is counted by, but for the client: of the rule. Class, and the kind, behind which a bit is left for the family; the
 * type and the name where the kind has one. 0: it is not counted.
 */
#define HYDNS_RATE_ACCOUNT(kind, class, type, name) \
	((__u64)(name) | (__u64)((__u32)(type) << 16 | ((class) & 0xffU) << 8 | (__u32)(kind) << 1) << 32)
#define HYDNS_RATE_KIND(account) ((__u32)((account) >> 33) & (HYDNS_RATE_KINDS - 1))
#define HYDNS_RATE_IPV6        (1ULL << 32)

/* What a balance is found by: as hydns_budget_hash() takes it. */
struct hydns_rate_key {
	__u64 prefix;       /* memory order: an IPv4 network; or the first 64 bits of an IPv6 one, and HYDNS_RATE_IPV6 in account */
	__u64 account;
};

struct hydns_rate {
	__u64 tag;          /* of the key; 0: free. By compare-and-swap */
	__u64 state;        /* HYDNS_RATE_STATE(); 0: as new. By compare-and-swap */
	__u32 logged;       /* wall-clock second in which the resolver has logged that the client is above the limit; 0: it has not */
	__u32 slips;        /* second << 16 | queries on their way to the resolver, already debited, that it is to answer with TC */
};
#define HYDNS_RATE_CELLS       5
struct hydns_rate_bucket {
	__u32 overflowed;   /* wall-clock second until which the resolver may count a client of this bucket alone */
	__u32 reserved;
	struct hydns_rate cell[HYDNS_RATE_CELLS];
};

/* What a resolver's configuration allows; on the resolver page. */
struct hydns_rates {
	__u16 most[HYDNS_RATE_KINDS];  /* a second, by kind; 0: any number */
	__u16 window;       /* seconds for which a client pays for too many queries */
	__u8  slip;         /* above the limit one in so many is answered with TC; 0: none */
	__u8  flags;        /* HYDNS_RATES_* */
	__u8  ipv4_prefix;  /* bits of an address that make a client: up to 32 */
	__u8  ipv6_prefix;  /* up to 64 */
	__u16 reserved;
	__u32 logging;      /* not 0: the resolver's log has clients above the limit, so it must see a query each second; ... */
	__u32 passed;       /* ... the second in which it got one. By compare-and-swap, by the program */
};
#define HYDNS_RATES_LOG_ONLY   0x01  /* what is above the limit is answered all the same */
#define HYDNS_RATES_LOG_DROPS  0x02  /* the resolver logs each query above the limit */

/* --- a balance -------------------------------------------------------------------------------------------- */
enum hydns_rate_verdict { HYDNS_RATE_OK, HYDNS_RATE_DROP, HYDNS_RATE_SLIP };

/* Time, and packed: a bit that tells it from "as new", the kind, the balance and how many were dropped since one slipped. */
#define HYDNS_RATE_ZERO        (1 << 22)  /* stands for a balance of 0: HYDNS_RATE_MOST * HYDNS_RATE_WINDOW_MOST is less */
#define HYDNS_RATE_STATE(second, kind, balance, slipped) \
	((__u64)(second) << 32 | 0x80000000U | (__u32)(kind) << 27 | (__u32)((balance) + HYDNS_RATE_ZERO) << 4 | (__u32)(slipped))
#define HYDNS_RATE_ONE         (1U << 4)  /* of a balance, in a state */
#define HYDNS_RATE_STATE_KIND(s)    ((__u32)(s) >> 27 & (HYDNS_RATE_KINDS - 1))
#define HYDNS_RATE_STATE_BALANCE(s) ((__s32)((__u32)(s) >> 4 & 0x7fffff) - HYDNS_RATE_ZERO)
#define HYDNS_RATE_STATE_SLIPPED(s) ((__u32)(s) & 0xf)
#define HYDNS_RATE_STATE_SECOND(s)  ((__u32)((s) >> 32))

/* BIND's DNS_RRL_MAX_TIME_TRAVEL: a clock that is set back by more than this begins anew; and its DNS_RRL_FOREVER. */
#define HYDNS_RATE_TIME_TRAVEL 5
#define HYDNS_RATE_FOREVER     4096
/* After so many seconds BIND logs a client that is still above its limit again, ... */
#define HYDNS_RATE_LOG_AGAIN   1800
/* ... and so long it must be below it before BIND logs that. */
#define HYDNS_RATE_LOG_STOPS   60
#define HYDNS_RATE_TRIES       4

/* Terms of one kind. */
struct hydns_rate_terms {
	__s32 rate, window;
	__u32 slip;
};

HYDNS_INLINE __s32 hydns_rate_age(__u64 state, __u32 now)
{
	__s32 age = (__s32)(now - HYDNS_RATE_STATE_SECOND(state));

	if (!state || age < -HYDNS_RATE_TIME_TRAVEL || age > HYDNS_RATE_FOREVER)
		return HYDNS_RATE_FOREVER;
	return age < 0 ? 0 : age;
}

/* The state with one more response. A time in the near past counts as none, and does not earn twice what was earned. */
HYDNS_INLINE __u64 hydns_rate_debit(__u64 state, __u32 kind, const struct hydns_rate_terms *t, __u32 now, __u32 *verdict)
{
	__s32 age = hydns_rate_age(state, now), balance = HYDNS_RATE_STATE_BALANCE(state);
	__u32 slipped = HYDNS_RATE_STATE_SLIPPED(state), second = age ? now : HYDNS_RATE_STATE_SECOND(state);

	if (age > 0) {
		balance = age > t->window ? t->rate + 1 : balance + t->rate * age;
		if (balance > t->rate) {
			balance = t->rate;
			slipped = 0;
		}
	}
	balance--;
	*verdict = HYDNS_RATE_OK;
	if (balance < 0) {
		if (balance < -t->window * t->rate)
			balance = -t->window * t->rate;
		*verdict = t->slip && !slipped ? HYDNS_RATE_SLIP : HYDNS_RATE_DROP;
		if (t->slip)
			slipped = slipped + 1 >= t->slip ? 0 : slipped + 1;
	}
	return HYDNS_RATE_STATE(second, kind, balance, slipped);
}

HYDNS_INLINE struct hydns_rate_terms hydns_rate_terms_of(const struct hydns_rates *r, __u32 kind)
{
	return (struct hydns_rate_terms){
		.rate = HYDNS_READ_ONCE(r->most[kind & (HYDNS_RATE_KINDS - 1)]), .window = HYDNS_READ_ONCE(r->window),
		.slip = kind == HYDNS_RATE_ALL ? 0 : HYDNS_READ_ONCE(r->slip),
	};
}

/* --- cells ------------------------------------------------------------------------------------------------ */
/* The number of this tag's cell; HYDNS_RATE_CELLS: there is none. */
HYDNS_INLINE __u32 hydns_rate_find(const struct hydns_rate_bucket *bucket, __u64 tag)
{
#define HYDNS_RATE_IS(i) (HYDNS_READ_ONCE(bucket->cell[i].tag) == tag)
	return HYDNS_RATE_IS(0) ? 0 : HYDNS_RATE_IS(1) ? 1 : HYDNS_RATE_IS(2) ? 2 : HYDNS_RATE_IS(3) ? 3 : HYDNS_RATE_IS(4) ? 4 :
	       HYDNS_RATE_CELLS;
#undef HYDNS_RATE_IS
}

/* Whether the cell says no more than a new one would. The resolver needs a logged client's until it has logged its end. */
HYDNS_INLINE int hydns_rate_idle(const struct hydns_rate *c, const struct hydns_rates *r, __u32 now)
{
	__u64 state = HYDNS_READ_ONCE(c->state);
	struct hydns_rate_terms t = hydns_rate_terms_of(r, HYDNS_RATE_STATE_KIND(state));
	__s32 age = hydns_rate_age(state, now);

	if (HYDNS_READ_ONCE(c->logged) && age <= HYDNS_RATE_LOG_STOPS)
		return 0;
	return age > t.window || (!HYDNS_READ_ONCE(c->logged) && HYDNS_RATE_STATE_BALANCE(state) + t.rate * age > t.rate);
}

/* The number of a cell that a new key may have; HYDNS_RATE_CELLS: there is none for now. */
HYDNS_INLINE __u32 hydns_rate_vacant(const struct hydns_rate_bucket *bucket, const struct hydns_rates *r, __u32 now)
{
#define HYDNS_RATE_MAY(i) (!HYDNS_READ_ONCE(bucket->cell[i].tag) || hydns_rate_idle(&bucket->cell[i], r, now))
	return HYDNS_RATE_MAY(0) ? 0 : HYDNS_RATE_MAY(1) ? 1 : HYDNS_RATE_MAY(2) ? 2 : HYDNS_RATE_MAY(3) ? 3 : HYDNS_RATE_MAY(4) ? 4 :
	       HYDNS_RATE_CELLS;
#undef HYDNS_RATE_MAY
}

/* Gives such a cell to the key. 0: another was faster. */
HYDNS_INLINE int hydns_rate_take(struct hydns_rate *c, __u64 tag)
{
	__u64 was = HYDNS_READ_ONCE(c->tag), state = HYDNS_READ_ONCE(c->state);

	/* first, so that nobody is judged by what another has had; debited meanwhile, it is not idle any more */
	if (state && __sync_val_compare_and_swap(&c->state, state, 0) != state)
		return 0;
	HYDNS_WRITE_ONCE(c->logged, 0);
	HYDNS_WRITE_ONCE(c->slips, 0);
	return __sync_val_compare_and_swap(&c->tag, was, tag) == was;
}

/* Units of slips that still count in this second. */
HYDNS_INLINE __u32 hydns_rate_slips(__u32 slips, __u32 now)
{
	return (__u16)((__u16)now - (slips >> 16)) <= 1 ? slips & 0xffff : 0;
}

HYDNS_STATIC_ASSERT(sizeof(struct hydns_rate_bucket) == sizeof(struct hydns_budget_bucket), "a map holds either");
HYDNS_STATIC_ASSERT(sizeof(struct hydns_rates) == 32, "no padding on a page");
HYDNS_STATIC_ASSERT(HYDNS_RATE_MOST * HYDNS_RATE_WINDOW_MOST < HYDNS_RATE_ZERO, "a balance fits");

#endif
