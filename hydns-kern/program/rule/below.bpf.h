/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names and types that do not exist, of preloaded zones, and names below their delegations. The name, or its closest encloser, is found
 * in the set of the resolver's names (names.h): it says whose template answers.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_BELOW_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_BELOW_BPF_H

#include "hydns-kern/program/rule/answer.bpf.h"
#include "hydns-kern/program/rule/marked.bpf.h"
#include "hydns/names.h"

/* Labels between a name and its closest encloser, at most, and one more; names further below pass. */
#define HYDNS_BELOW_LABELS 12
/* Of an offset into a name, as a mask that the verifier understands. */
#define HYDNS_SUFFIX_BOUND 0x1ff

/* By resolver. Sets are of different sizes. */
struct hydns_names_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE | BPF_F_INNER_MAP);
	__uint(max_entries, 1 + HYDNS_NAMES_BUCKETS_LEAST);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct hydns_names_bucket));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__array(values, struct hydns_names_map);
} hydns_names SEC(".maps");

/* Answers from templates by type of question, which a template's hits do not tell. By resolver. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_type_counts);
} hydns_below_types SEC(".maps");

static __always_inline void hydns_count_below(const struct hydns_query *q)
{
	struct hydns_type_counts *n = bpf_map_lookup_elem(&hydns_below_types, &q->question.resolver);
	__u32 type = bpf_ntohs(q->question.qtype);

	if (type > HYDNS_COUNT_TYPES - 1)
		type = HYDNS_COUNT_TYPES - 1;
	if (n)
		n->type[type]++;
}

/* Of a name in the set: HYDNS_NAMES_SAID(), 0 where nothing is to be said; and of any name of a resolver without a set. */
#define HYDNS_NAMES_ABSENT (-1)

static __always_inline int hydns_names_in(const struct hydns_names_bucket *b, const struct hydns_names_hash *h)
{
#pragma unroll
	for (int i = 0; i < HYDNS_NAMES_ENTRIES; i++) {
		__u64 what;

		if (*(const volatile __u64 *)&b->entry[i].tag != h->tag)
			continue;
		what = *(const volatile __u64 *)&b->entry[i].what;
		if (HYDNS_NAMES_CHECK(what) == h->check)
			return HYDNS_NAMES_SAID(what);
	}
	return HYDNS_NAMES_ABSENT;
}

/* Word i of the part of the question's name, of len octets, that begins with octet at. The bound, which no name reaches, is for the
 * verifier: up to it there is what follows the name in hydns_scratch. */
static __always_inline __u64 hydns_suffix_word(const struct hydns_question *q, __u32 at, __u32 i, __u32 len)
{
	__u64 from = at + 8 * (__u64)i;

	_Static_assert(sizeof(*q) - __builtin_offsetof(struct hydns_question, name) >= HYDNS_SUFFIX_BOUND + 8, "room behind a name");
	HYDNS_OPAQUE(from);
	from &= HYDNS_SUFFIX_BOUND;
	return *(const __u64 *)((const void *)q->name + from) & hydns_name_mask(len - i * 8);
}

/* What the set says of the part of the question's name that begins with octet at. A global function: the verifier checks it once. */
__noinline int hydns_names_find(struct hydns_query *q, __u32 at)
{
	const struct hydns_names_head *head;
	const struct hydns_names_bucket *b;
	struct hydns_names_hash h;
	struct hydns_sip sip;
	__u32 key = 0, len;
	void *map;

	if (!q || at >= q->question.name_len)
		return 0;
	key = q->question.resolver;
	map = bpf_map_lookup_elem(&hydns_names, &key);
	if (!map)
		return 0;
	key = 0;
	head = bpf_map_lookup_elem(map, &key);
	if (!head || !*(const volatile __u32 *)&head->open)
		return 0;
	len = q->question.name_len - at;
	hydns_sip_begin(&sip, head->seed);
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= len)
			break;
		hydns_sip_word(&sip, hydns_suffix_word(&q->question, at, i, len));
	}
	h = hydns_names_hash_end(&sip, len);
	for (int second = 0; second < 2; second++) {
		int found;

		key = hydns_names_bucket(h.tag, head->mask, second);
		b = bpf_map_lookup_elem(map, &key);
		if (!b)
			return 0;
		found = hydns_names_in(b, &h);
		if (found >= 0)
			return found;
	}
	return HYDNS_NAMES_ABSENT;
}

/* Where a template stands: at the last length octets of the question's name, behind a label of its own or not. */
struct hydns_below_at {
	__u32 length;
	__u32 label;                   /* 0 or 1 */
	__be16 qtype;
};

/* With a length: the template is that of a type which the name has no data of. */
#define HYDNS_BELOW_NODATA 0x100U

/* Octets of the end of the question's name where its template stands, and HYDNS_BELOW_NODATA; 0: there is none, or the data exist.
 * Global, too: or the caller would have a state for each label. */
__noinline __u32 hydns_below_length(struct hydns_query *q)
{
	__u32 at = 0;

	if (!q)
		return 0;
	for (int i = 0; i < HYDNS_BELOW_LABELS; i++) {
		int found = hydns_names_find(q, at);
		__u32 label;

		if (found >= 0 && i)
			return HYDNS_NAMES_LENGTH(found);
		if (found >= 0)
			return hydns_names_lacks(found, bpf_ntohs(q->question.qtype)) && HYDNS_NAMES_LENGTH(found) ?
				HYDNS_NAMES_LENGTH(found) | HYDNS_BELOW_NODATA : 0;
		if (at >= HYDNS_NAME_MAX)
			return 0;
		label = ((const __u8 *)q->question.name)[at];
		if (!label)
			return 0;
		at += 1 + label;
	}
	return 0;
}

/* Writes the name of the template to q->below, and returns the hash of its key. Global, as the function above. */
__noinline __u64 hydns_below_hash(struct hydns_query *q, struct hydns_below_at *t)
{
	const __u64 seed[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	struct hydns_sip sip;
	__u32 at, length;
	__u64 label;

	if (!q || !t)
		return 0;
	length = t->length;
	label = t->label;
	HYDNS_OPAQUE(label);
	if (label > 1 || length > q->question.name_len)
		return 0;
	at = q->question.name_len - length;
	hydns_sip_begin(&sip, seed);
	q->below[0] = HYDNS_BELOW_WORD;
	if (label)
		hydns_sip_word(&sip, HYDNS_BELOW_WORD);
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		__u64 word;

		if (i * 8 >= length)
			break;
		word = hydns_suffix_word(&q->question, at, i, length);
		q->below[label + i] = word;
		hydns_sip_word(&sip, word);
	}
	hydns_sip_word(&sip, hydns_key_tail(length + label * HYDNS_BELOW_LABEL_LEN, t->qtype, q->question.variant, q->question.resolver));
	return hydns_sip_end(&sip);
}

/* The handle of the rule that may be the query's template; 0: there is none. Global: or the caller would have a state for each length
 * of a name. */
__noinline __u32 hydns_below_handle(struct hydns_query *q)
{
	const struct hydns_rule *rule;
	struct hydns_below_at t = { 0 };
	struct hydns_key key;
	__u32 where, handle;

	if (!q)
		return 0;
	where = hydns_below_length(q);
	t.length = where & ~HYDNS_BELOW_NODATA;
	t.label = !(where & HYDNS_BELOW_NODATA);
	t.qtype = t.label ? bpf_htons(HYDNS_BELOW_TYPE) : bpf_htons(HYDNS_NODATA_TYPE);
	if (!t.length || t.length > HYDNS_NAME_MAX - HYDNS_BELOW_LABEL_LEN)
		return 0;
	HYDNS_OPAQUE(t.label);         /* or all that follows would be checked for both */
	HYDNS_OPAQUE(t.qtype);
	key = (struct hydns_key){
		.name = q->below, .len = t.length + t.label * HYDNS_BELOW_LABEL_LEN, .resolver = q->question.resolver,
		.qtype = t.qtype, .variant = q->question.variant, .hash = hydns_below_hash(q, &t),
	};
	return hydns_find_key(&key, &rule, &handle) || !(rule->flags & HYDNS_RULE_TEMPLATE) ? 0 : handle;
}

/* Answers a query that no rule of its own answers, as hydns_decide() does from a rule; MISS: it can't. logs: see hydns_answer(). */
static __always_inline enum hydns_reason hydns_decide_below(struct xdp_md *ctx, struct hydns_query *q, __u64 now, bool dry, bool logs)
{
	const struct hydns_resolver_config *cfg = bpf_map_lookup_elem(&hydns_resolver, &q->question.resolver);
	void *page_map = bpf_map_lookup_elem(&hydns_pages, &q->question.resolver);
	const struct hydns_resolver_page *page;
	const struct hydns_rule *rule;
	__u32 zero = 0, epoch, handle;

	/* BIND answers that there is no SOA with a TTL of 0 (zero-no-soa-ttl) */
	handle = page_map && cfg && q->question.qtype != bpf_htons(HYDNS_TYPE_SOA) ? hydns_below_handle(q) : 0;
	rule = handle ? hydns_slot(handle) : NULL;
	if (!rule)
		return HYDNS_R_MISS;
	page = bpf_map_lookup_elem(page_map, &zero);
	if (!page || (q->question.capitals && (cfg->flags & HYDNS_RESOLVER_KEEPS_CASE)) || hydns_cookie(q, page, cfg->flags))
		return HYDNS_R_MISS;
	epoch = *(const volatile __u32 *)&page->epoch;
	if (rule->epoch != epoch && !hydns_unmarked(q, page, rule, epoch))
		return HYDNS_R_MISS;
	return hydns_answer(ctx, q, cfg, rule, now, dry, logs, true);
}

#endif
