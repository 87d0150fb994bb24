/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether clients wait for the query's question already: the plugin's words behind the resolver page (hydns/resolver.h). */
#ifndef HYDNS_KERN_PROGRAM_MISS_UNDER_WAY_BPF_H
#define HYDNS_KERN_PROGRAM_MISS_UNDER_WAY_BPF_H

#include "hydns-kern/program/query.bpf.h"
#include "hydns/hash.h"
#include "hydns/parking.h"

/* The question's key with the plugin's seed, as of resolver 0: the store's seed is none of the plugin's business. */
static __always_inline __u64 hydns_plugin_key(const struct hydns_question *q, const struct hydns_parking *p)
{
	const __u64 seed[2] = { p->seed[0], p->seed[1] };
	__u32 len = q->name_len;
	struct hydns_sip s;

	hydns_sip_begin(&s, seed);
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= len)
			break;
		hydns_sip_word(&s, q->name[i]);
	}
	hydns_sip_word(&s, hydns_key_tail(len, q->qtype, q->variant, 0));
	return hydns_sip_end(&s);
}

/* The resolver page, if any question is under way; else NULL. */
static __always_inline void *hydns_pages_under_way(const struct hydns_question *q)
{
	void *pages = bpf_map_lookup_elem(&hydns_pages, &q->resolver);
	const struct hydns_resolver_page *page;
	__u32 zero = 0;

	if (!pages)
		return NULL;
	page = bpf_map_lookup_elem(pages, &zero);
	return page && *(const volatile __u32 *)&page->under_way ? pages : NULL;
}

/* The entry of the question with this key, unless its word is too old; NULL: there is none. */
static __always_inline struct hydns_under_way *hydns_find_under_way(void *pages, __u64 key, __u64 now)
{
	__u32 bucket = HYDNS_UNDER_WAY_BUCKET(key), element = 1 + bucket / HYDNS_PAGE_BUCKETS;
	struct hydns_under_way_bucket *b = bpf_map_lookup_elem(pages, &element);
	__u32 now_ms = now / HYDNS_NS_PER_MS;

	if (!b)
		return NULL;
	b += bucket % HYDNS_PAGE_BUCKETS;
#pragma unroll
	for (int i = 0; i < HYDNS_UNDER_WAY_ENTRIES; i++) {
		__u64 word = *(const volatile __u64 *)&b->entry[i].word;

		if (word && (word ^ key) >> 32 == 0 && now_ms - (__u32)word < HYDNS_UNDER_WAY_MS)
			return &b->entry[i];
	}
	return NULL;
}

#endif
