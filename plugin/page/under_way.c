/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Questions under way, in the buckets behind the resolver page (hydns/resolver.h). Threads write and clear words by
 * compare-and-swap, without a lock. Two that write a word for one key at once may write two: both are cleared with it.
 */
#include "plugin/page/page.h"

static struct hydns_under_way *bucket_of(struct hydns_resolver_page *page, uint64_t key)
{
	struct hydns_under_way_bucket *buckets = (struct hydns_under_way_bucket *)(page + 1);

	return buckets[HYDNS_UNDER_WAY_BUCKET(key)].entry;
}

static __u64 word_of(const struct hydns_under_way *e)
{
	return __atomic_load_n(&e->word, __ATOMIC_RELAXED);
}

static bool names(__u64 word, uint64_t key)
{
	return word && (word ^ key) >> 32 == 0;
}

static bool is_of(const struct hydns_under_way *e, uint64_t key)
{
	return names(word_of(e), key);
}

static bool has(const struct hydns_under_way *e, uint64_t key)
{
	for (unsigned i = 0; i < HYDNS_UNDER_WAY_ENTRIES; i++)
		if (is_of(&e[i], key))
			return true;
	return false;
}

static bool claim(struct hydns_under_way *e, uint64_t word)
{
	__u64 free = 0;

	/* What a late program still adds to the count of the question before makes this one's bound come sooner. */
	if (__atomic_load_n(&e->word, __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&e->parked, 0, __ATOMIC_RELAXED);
	return __atomic_compare_exchange_n(&e->word, &free, word, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

bool hydns_pages_under_way(struct hydns_pages *g, uint64_t key, uint32_t ms)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);
	struct hydns_under_way *e;

	if (!page)
		return false;
	e = bucket_of(page, key);
	if (has(e, key))
		return true;
	for (unsigned i = 0; i < HYDNS_UNDER_WAY_ENTRIES; i++)
		if (claim(&e[i], HYDNS_UNDER_WAY_WORD(key, ms))) {
			__atomic_fetch_add(&page->under_way, 1, __ATOMIC_RELEASE);
			return true;
		}
	return false;
}

uint32_t hydns_pages_parked(struct hydns_pages *g, uint64_t key)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);
	const struct hydns_under_way *e = page ? bucket_of(page, key) : NULL;
	uint32_t parked = 0;

	for (unsigned i = 0; e && i < HYDNS_UNDER_WAY_ENTRIES; i++)
		if (is_of(&e[i], key))
			parked += __atomic_load_n(&e[i].parked, __ATOMIC_RELAXED);
	return parked;
}

static void clear(struct hydns_resolver_page *page, struct hydns_under_way *e, __u64 word)
{
	if (__atomic_compare_exchange_n(&e->word, &word, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		__atomic_fetch_sub(&page->under_way, 1, __ATOMIC_RELEASE);
}

void hydns_pages_over(struct hydns_pages *g, uint64_t key)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);
	struct hydns_under_way *e = page ? bucket_of(page, key) : NULL;

	for (unsigned i = 0; e && i < HYDNS_UNDER_WAY_ENTRIES; i++) {
		__u64 word = word_of(&e[i]);

		if (names(word, key))
			clear(page, &e[i], word);
	}
}

void hydns_pages_all_over(struct hydns_pages *g)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);

	for (uint64_t bucket = 0; page && bucket < HYDNS_UNDER_WAY_BUCKETS; bucket++)
		for (unsigned i = 0; i < HYDNS_UNDER_WAY_ENTRIES; i++) {
			struct hydns_under_way *e = &bucket_of(page, bucket)[i];
			__u64 word = word_of(e);

			if (word)
				clear(page, e, word);
		}
}

bool hydns_pages_is_under_way(struct hydns_pages *g, uint64_t key)
{
	struct hydns_resolver_page *page = hydns_pages_shared(g);

	return page && has(bucket_of(page, key), key);
}
