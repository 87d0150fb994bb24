/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The balances of responses (hydns/rates.h): the resolver's part of what it and the program debit together. */
#include "plugin/page/page.h"

/* Where a key's balance is, or would be. */
struct place {
	const struct hydns_rates *rates;
	struct hydns_rate_bucket *bucket;
	struct hydns_rate *cell;        /* NULL: there is none */
	uint64_t tag;
};

static bool find(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, struct place *out)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);
	struct hydns_budget_bucket *buckets = atomic_load_explicit(&b->bucket, memory_order_acquire);
	const __u64 words[2] = { k->prefix, k->account };
	uint32_t i;
	__u64 hash;

	if (!page || !buckets)
		return false;
	hash = hydns_budget_hash(words, page->budget_seed);
	out->rates = &page->rates;
	out->bucket = (struct hydns_rate_bucket *)(void *)(buckets + HYDNS_BUDGET_BUCKET(hash));
	out->tag = HYDNS_BUDGET_TAG(hash);
	i = hydns_rate_find(out->bucket, out->tag);
	out->cell = i < HYDNS_RATE_CELLS ? &out->bucket->cell[i] : NULL;
	return true;
}

static void set32(__u32 *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void hydns_rates_begin(struct hydns_budgets *b, const struct hydns_rates *r, uint32_t second)
{
	struct hydns_rate_bucket *bucket = (struct hydns_rate_bucket *)(void *)atomic_load(&b->bucket);

	for (size_t i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		set32(&bucket[i].overflowed, second + r->window);
}

/* What the resolver knows alone goes with a new cell. Without one the program begins none either, for as long as that counts. */
static void make(struct place *at, uint32_t second, const struct hydns_rate_own *own)
{
	uint32_t i = hydns_rate_vacant(at->bucket, at->rates, second);
	__u64 as_new = 0;

	if (i < HYDNS_RATE_CELLS && hydns_rate_take(&at->bucket->cell[i], at->tag))
		at->cell = &at->bucket->cell[i];
	if (!at->cell) {
		set32(&at->bucket->overflowed, second + at->rates->window);
		return;
	}
	set32(&at->cell->logged, own->logged);
	__atomic_compare_exchange_n(&at->cell->state, &as_new, own->state, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* A query that the program has debited, and left to the resolver to answer with TC. */
static bool take_slip(struct hydns_rate *cell, uint32_t second)
{
	__u32 was = __atomic_load_n(&cell->slips, __ATOMIC_RELAXED);

	while (hydns_rate_slips(was, second))
		if (__atomic_compare_exchange_n(&cell->slips, &was, was - 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return true;
	return false;
}

static void show(const struct hydns_rate *cell, struct hydns_rate_own *own)
{
	own->state = __atomic_load_n(&cell->state, __ATOMIC_RELAXED);
	own->logged = __atomic_load_n(&cell->logged, __ATOMIC_RELAXED);
}

bool hydns_rates_debit(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, uint32_t second,
		       struct hydns_rate_own *own, enum hydns_rate_verdict *verdict)
{
	const uint32_t kind = HYDNS_RATE_KIND(k->account);
	struct hydns_rate_terms terms;
	struct place at;
	__u64 was, is;
	__u32 v;

	if (!find(b, g, k, &at))
		return false;
	if (!at.cell)
		make(&at, second, own);
	if (!at.cell)
		return false;
	if (take_slip(at.cell, second)) {
		*verdict = HYDNS_RATE_SLIP;
		show(at.cell, own);
		return true;
	}
	terms = hydns_rate_terms_of(at.rates, kind);
	was = __atomic_load_n(&at.cell->state, __ATOMIC_RELAXED);
	do {
		is = hydns_rate_debit(was, kind, &terms, second, &v);
	} while (!__atomic_compare_exchange_n(&at.cell->state, &was, is, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*verdict = (enum hydns_rate_verdict)v;
	show(at.cell, own);
	own->state = is;
	return true;
}

bool hydns_rates_look(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, struct hydns_rate_own *own)
{
	struct place at;

	if (!find(b, g, k, &at) || !at.cell)
		return false;
	show(at.cell, own);
	return own->state != 0;
}

void hydns_rates_logged(struct hydns_budgets *b, struct hydns_pages *g, const struct hydns_rate_key *k, uint32_t second, bool any)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);
	struct place at;

	if (!page || !find(b, g, k, &at))
		return;
	set32(&page->rates.logging, any);
	if (at.cell)
		set32(&at.cell->logged, second);
}
