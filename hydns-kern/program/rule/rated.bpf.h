/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The resolver's limit of responses by client (rates.h). When all else allows the answer the program debits the client's balance, as
 * BIND's rate-limit does, and drops what is above the limit, or answers with TC as BIND would. What BIND is to log passes, and what is
 * due for a reply that the program can't make.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_RATED_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_RATED_BPF_H

#include "hydns-kern/program/rule/limited.bpf.h"
#include "hydns-kern/program/rule/lookup.bpf.h"

/* The rule's account; 0: its responses are not counted. */
static __always_inline __u64 hydns_account_of(const struct hydns_slot_octets *slot)
{
	const struct hydns_rule *rule = (const void *)slot;
	__u64 at = HYDNS_RULE_ROTATIONS((__u64)rule->name_len, rule->answer_len, rule->ttl_count) +
		   HYDNS_ROTATION_LEN * rule->rotation_count + 2 * (__u64)rule->place_count;
	const __u32 *word;

	HYDNS_OPAQUE(at);
	if (!(rule->flags & HYDNS_RULE_COUNTED) || at > HYDNS_RULE_ACCOUNT_AT_MOST)
		return 0;
	word = (const void *)(slot->octet + at);
	return word[0] | (__u64)word[1] << 32;
}

static __always_inline struct hydns_rate_key hydns_rate_key_of(const struct hydns_packet *p, const struct hydns_rates *r, __u64 account)
{
	const __u64 *addr = (const void *)p->client.addr;
	__u32 bits = HYDNS_READ_ONCE(r->ipv4_prefix);

	if (!p->ipv6)
		return (struct hydns_rate_key){ addr[1] >> 32 & bpf_htonl(bits ? ~0U << ((32 - bits) & 31) : 0), account };
	bits = HYDNS_READ_ONCE(r->ipv6_prefix);
	return (struct hydns_rate_key){ addr[0] & bpf_cpu_to_be64(bits ? ~0ULL << ((64 - bits) & 63) : 0), account | HYDNS_RATE_IPV6 };
}

/* The bucket and the cell that a balance has. NULL: none, or the balance has none. */
static __always_inline struct hydns_rate_bucket *hydns_rate_bucket_at(__u32 resolver, __u32 i)
{
	void *map = bpf_map_lookup_elem(&hydns_budgets, &resolver);

	return map ? bpf_map_lookup_elem(map, &i) : NULL;
}

static __always_inline struct hydns_rate *hydns_rate_cell(struct hydns_rate_bucket *bucket, __u64 i)
{
	HYDNS_OPAQUE(i);         /* to the verifier one number, not five */
	return bucket && i < HYDNS_RATE_CELLS ? &bucket->cell[i] : NULL;
}

static __always_inline struct hydns_rate *hydns_balance_cell(const struct hydns_query *q, const struct hydns_balance *b)
{
	return hydns_rate_cell(hydns_rate_bucket_at(q->question.resolver, b->bucket), b->cell);
}

/* The cell of this tag, a new one if need be. dry: none is begun. */
static __always_inline __u32 hydns_rate_place(struct hydns_rate_bucket *bucket, __u64 tag, const struct hydns_rates *r, __u32 now, bool dry)
{
	__u32 i = hydns_rate_find(bucket, tag);
	struct hydns_rate *cell;

	if (i < HYDNS_RATE_CELLS || dry || (__s32)(now - HYDNS_READ_ONCE(bucket->overflowed)) <= 0)
		return i;
	i = hydns_rate_vacant(bucket, r, now);
	cell = hydns_rate_cell(bucket, i);
	return cell && hydns_rate_take(cell, tag) ? i : HYDNS_RATE_CELLS;
}

/*
 * Finds a balance, begins it if need be, and says what a response would make of it. 0: there is none in the kernel. dry: none is begun,
 * and a client without one has its limit before it. Global, as all here: the verifier checks it once.
 */
__noinline int hydns_balance_find(struct hydns_query *q, const struct hydns_resolver_page *page, __u64 account, __u32 dry, __u32 together)
{
	struct hydns_rate_terms terms;
	struct hydns_rate_bucket *bucket;
	struct hydns_rate_key key;
	struct hydns_balance *b;
	struct hydns_rate *cell;
	__u64 hash;
	__u32 now;

	if (!q || !page)
		return 0;
	b = together ? &q->all : &q->own;
	b->kind = HYDNS_RATE_KIND(account);
	b->verdict = HYDNS_RATE_OK;
	b->cell = HYDNS_RATE_CELLS;
	terms = hydns_rate_terms_of(&page->rates, b->kind);
	if (!terms.rate)
		return 1;
	key = hydns_rate_key_of(&q->packet, &page->rates, account);
	hash = hydns_budget_hash((const __u64 *)&key, page->budget_seed);
	now = hydns_second(&q->cpu, page);
	b->bucket = HYDNS_BUDGET_BUCKET(hash);
	bucket = hydns_rate_bucket_at(q->question.resolver, b->bucket);
	if (!bucket)
		return 0;
	b->cell = hydns_rate_place(bucket, HYDNS_BUDGET_TAG(hash), &page->rates, now, dry);
	cell = hydns_rate_cell(bucket, b->cell);
	if (!cell)
		return dry != 0;
	b->state = HYDNS_READ_ONCE(cell->state);
	b->next = hydns_rate_debit(b->state, b->kind, &terms, now, &b->verdict);
	return 1;
}

/* Not 0: nobody has changed it meanwhile, or there is no limit. */
__noinline int hydns_balance_debit(struct hydns_query *q, __u32 together)
{
	struct hydns_balance *b;
	struct hydns_rate *cell;

	if (!q)
		return 0;
	b = together ? &q->all : &q->own;
	cell = hydns_balance_cell(q, b);
	return !cell || __sync_val_compare_and_swap(&cell->state, b->state, b->next) == b->state;
}

/* Whether BIND is to see a query above this limit, since it has not logged the client lately. */
static __always_inline bool hydns_rate_unlogged(const struct hydns_query *q, const struct hydns_balance *b, __u32 now)
{
	const struct hydns_rate *cell = hydns_balance_cell(q, b);
	__u32 logged = cell ? HYDNS_READ_ONCE(cell->logged) : 0;

	return !logged || (__s32)(now - logged) >= HYDNS_RATE_LOG_AGAIN;
}

/* True for one query a second while BIND's log has clients above their limits: with it BIND looks whose limit has ended. */
static __always_inline bool hydns_rate_look_due(struct hydns_resolver_page *page, __u32 now)
{
	__u32 passed = HYDNS_READ_ONCE(page->rates.passed);

	return HYDNS_READ_ONCE(page->rates.logging) && passed != now &&
	       __sync_val_compare_and_swap(&page->rates.passed, passed, now) == passed;
}

/* The next query of the client that BIND gets is answered with TC, and not debited again. */
static __always_inline bool hydns_rate_slip(const struct hydns_query *q, __u32 now)
{
	struct hydns_rate *cell = hydns_balance_cell(q, &q->own);
	__u32 was, others;

	/* BIND takes marks off meanwhile: an addition can't fail for that, and the first mark of a second is tried again */
	for (__u32 i = 0; cell && i < HYDNS_RATE_TRIES; i++) {
		was = HYDNS_READ_ONCE(cell->slips);
		others = hydns_rate_slips(was, now);
		if (others >= 0xffff)
			return false;
		if (was >> 16 == (__u16)now) {
			__sync_fetch_and_add(&cell->slips, 1);
			return true;
		}
		if (__sync_val_compare_and_swap(&cell->slips, was, now << 16 | (others + 1)) == was)
			return true;
	}
	return false;
}

/*
 * The header flags of BIND's reply with TC (query_checkrrl()). 0: it is left to BIND, which tells a client with a cookie BADCOOKIE,
 * calls its referrals authoritative there, and has no TC for a failure. Whoever asks for AD gets it: BIND clears it only for records.
 */
static __always_inline __u32 hydns_slip_flags(const struct hydns_query *q, const struct hydns_rule *rule, __u32 kind)
{
	__u32 flags = (rule->reply_flags & ~(HYDNS_FLAGS_RCODE << 8)) | HYDNS_FLAGS_TC;

	if (q->question.cookie_len || kind == HYDNS_RATE_ERROR || kind == HYDNS_RATE_REFERRAL || (rule->flags & HYDNS_RULE_ERRORS))
		return 0;
	if (kind == HYDNS_RATE_NXDOMAIN)
		flags |= HYDNS_RCODE_NXDOMAIN << 8;
	return q->question.ad || (q->question.variant & HYDNS_VARIANT_DO) ? flags | HYDNS_FLAGS_AD << 8 : flags;
}

static __always_inline enum hydns_reason hydns_rate_decide(struct hydns_query *q, struct hydns_resolver_page *page,
							   const struct hydns_rule *rule, __u32 dry)
{
	__u32 now = hydns_second(&q->cpu, page), flags = HYDNS_READ_ONCE(page->rates.flags), all = q->all.verdict, own = q->own.verdict;
	bool above = (all | own) && !(flags & HYDNS_RATES_LOG_ONLY);
	bool slips = above && !all && own == HYDNS_RATE_SLIP;

	if ((all | own) && ((flags & HYDNS_RATES_LOG_DROPS) || hydns_rate_unlogged(q, all ? &q->all : &q->own, now)))
		return HYDNS_R_LIMIT_REACHED;
	if (dry)
		return above ? HYDNS_R_LIMITED : HYDNS_R_ANSWERED;
	if (hydns_rate_look_due(page, now))
		return HYDNS_R_LIMIT_LOG;
	if (!hydns_balance_debit(q, false))
		return HYDNS_R_UNCOUNTED;
	if (slips)
		q->reply.slip_flags = hydns_slip_flags(q, rule, q->own.kind);
	if (slips && !q->reply.slip_flags)     /* BIND debits the other balance */
		return hydns_rate_slip(q, now) ? HYDNS_R_LIMIT_SLIP : hydns_limit_drop(q);
	for (__u32 i = 0; i < HYDNS_RATE_TRIES && q->all.cell < HYDNS_RATE_CELLS && !hydns_balance_debit(q, true); i++)
		hydns_balance_find(q, page, HYDNS_RATE_ACCOUNT(HYDNS_RATE_ALL, 0, 0, 0), false, true);
	if (slips)
		return HYDNS_R_LIMIT_TRUNCATED;
	return above ? hydns_limit_drop(q) : HYDNS_R_ANSWERED;
}

/* BIND does not count responses to clients with a valid cookie, but for failures. */
static __always_inline bool hydns_is_rated(const struct hydns_query *q, __u64 account)
{
	return q->question.action != HYDNS_ACL_ALLOW_EXEMPT &&
	       (q->reply.cookie_state < HYDNS_COOKIE_VALID || HYDNS_RATE_KIND(account) == HYDNS_RATE_ERROR);
}

/* HYDNS_R_ANSWERED: the response is sent, counted or not. */
__noinline int hydns_rate(struct hydns_query *q, struct hydns_slot_octets *slot, __u32 dry)
{
	__u64 account = slot ? hydns_account_of(slot) : 0;
	struct hydns_resolver_page *page;

	if (!q || !account || !hydns_is_rated(q, account))
		return HYDNS_R_ANSWERED;
	page = hydns_page_of(q);
	if (!page || !hydns_balance_find(q, page, account, dry, false))
		return HYDNS_R_UNCOUNTED;
	q->all.verdict = HYDNS_RATE_OK;
	q->all.cell = HYDNS_RATE_CELLS;
	if (HYDNS_READ_ONCE(page->rates.most[HYDNS_RATE_ALL]) &&
	    !hydns_balance_find(q, page, HYDNS_RATE_ACCOUNT(HYDNS_RATE_ALL, 0, 0, 0), dry, true))
		return HYDNS_R_UNCOUNTED;
	return hydns_rate_decide(q, page, (const void *)slot, dry);
}

/* One balance is given back what was just debited. */
static __always_inline void hydns_balance_credit(const struct hydns_query *q, const struct hydns_balance *b)
{
	struct hydns_rate *cell = hydns_balance_cell(q, b);

	if (cell)
		__sync_fetch_and_add(&cell->state, HYDNS_RATE_ONE);
}

/* The answer finds no room in the frame after all: the query goes to BIND, which debits it. */
__noinline int hydns_rate_return(struct hydns_query *q, struct hydns_slot_octets *slot)
{
	__u64 account = slot ? hydns_account_of(slot) : 0;

	if (q && account && hydns_is_rated(q, account)) {
		hydns_balance_credit(q, &q->own);
		hydns_balance_credit(q, &q->all);
	}
	return 0;
}

#endif
