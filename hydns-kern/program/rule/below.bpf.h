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

/* Hash of the part of the question's name that begins with octet at. */
static __always_inline struct hydns_names_hash hydns_names_hash_at(const struct hydns_query *q, __u32 at,
								   const struct hydns_names_head *head)
{
	const __u32 len = q->question.name_len - at;
	struct hydns_sip sip;

	hydns_sip_begin(&sip, head->seed);
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= len)
			break;
		hydns_sip_word(&sip, hydns_suffix_word(&q->question, at, i, len));
	}
	return hydns_names_hash_end(&sip, len);
}

/* What the set says of the part of the question's name that begins with octet at. A global function: the verifier checks it once. */
__noinline int hydns_names_find(struct hydns_query *q, __u32 at)
{
	const struct hydns_names_head *head;
	const struct hydns_names_bucket *b;
	struct hydns_names_hash h;
	__u32 key = 0;
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
	h = hydns_names_hash_at(q, at, head);
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

/* With a length: the template is that of a type which the name has no data of; or that of a probe, for a name whose first label that
 * is not there begins with the octet in the bits from 16 on. */
#define HYDNS_BELOW_NODATA 0x100U
#define HYDNS_BELOW_PROBE  0x200U
#define HYDNS_BELOW_CHILD(child) ((child) << 16)

/* Octets of the end of the question's name where its template stands, and how; 0: there is none, or the data exist. at: where the name
 * that was found begins, and before that the label before it. */
static __always_inline __u32 hydns_below_found(const struct hydns_query *q, int found, __u32 before, __u32 at)
{
	const bool proofs = (q->question.variant & HYDNS_VARIANT_DO) && (found & HYDNS_NAMES_SIGNED);

	if (!HYDNS_NAMES_LENGTH(found) || (!at && !hydns_names_lacks(found, bpf_ntohs(q->question.qtype))))
		return 0;
	if (!at)
		return HYDNS_BELOW_NODATA | (proofs ? q->question.name_len : HYDNS_NAMES_LENGTH(found));
	return proofs ? HYDNS_BELOW_PROBE | HYDNS_BELOW_CHILD(before) | (q->question.name_len - at) : HYDNS_NAMES_LENGTH(found);
}

/* The same of the first part of the name that is in the set. Global, too: or the caller would have a state for each label. */
__noinline __u32 hydns_below_length(struct hydns_query *q)
{
	__u32 at = 0, before = 0;

	if (!q)
		return 0;
	for (int i = 0; i < HYDNS_BELOW_LABELS; i++) {
		int found = hydns_names_find(q, at);
		__u32 label;

		if (found >= 0)
			return hydns_below_found(q, found, before, at);
		if (at >= HYDNS_NAME_MAX)
			return 0;
		label = ((const __u8 *)q->question.name)[at];
		if (!label)
			return 0;
		before = at;
		at += 1 + label;
	}
	return 0;
}

/* -- probes --------------------------------------------------------------------------------------------------- */
static __always_inline void *hydns_names_of(const struct hydns_query *q)
{
	__u32 key = q->question.resolver;

	return bpf_map_lookup_elem(&hydns_names, &key);
}

/* The leaf, if it begins with the key or before it. */
static __always_inline const struct hydns_leaf *hydns_leaf_before(void *map, __u32 mask, __u32 leaf, const struct hydns_child *key)
{
	__u32 element = hydns_leaf_element(mask, leaf);
	const struct hydns_leaf *l = bpf_map_lookup_elem(map, &element);

	return l && !hydns_child_is_behind(&l->child[0], key) ? l : NULL;
}

enum hydns_child_found { HYDNS_CHILD_UNKNOWN, HYDNS_CHILD_FOUND, HYDNS_CHILD_NONE };

/* Finds the last child of the key's parent that is the key or comes before it, of q->search. UNKNOWN: the table is not as it should be.
 * Global: what stands there is any number to the verifier, so that it follows one way for each step. */
__noinline int hydns_child_find(struct hydns_query *q)
{
	const struct hydns_names_head *head;
	const struct hydns_leaf *l;
	struct hydns_search *s;
	__u32 zero = 0, mask;
	__u64 parent;
	void *map;

	if (!q)
		return HYDNS_CHILD_UNKNOWN;
	s = &q->search;
	map = hydns_names_of(q);
	head = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	if (!head)
		return HYDNS_CHILD_UNKNOWN;
	mask = head->mask;
	parent = s->key.parent;
	for (int i = 0; i < HYDNS_LEAVES_STEPS && s->low < s->high; i++) {
		__u32 middle = (s->low + s->high) / 2;

		if (hydns_leaf_before(map, mask, middle, &s->key))
			s->low = middle + 1;
		else
			s->high = middle;
	}
	if (s->low < s->high)
		return HYDNS_CHILD_UNKNOWN;    /* more leaves than there may be */
	if (!s->low)
		return HYDNS_CHILD_NONE;
	l = hydns_leaf_before(map, mask, s->low - 1, &s->key);
	if (!l)
		return HYDNS_CHILD_UNKNOWN;
	if (!hydns_child_is_behind(&l->child[2], &s->key))
		s->key = l->child[2];
	else if (!hydns_child_is_behind(&l->child[1], &s->key))
		s->key = l->child[1];
	else
		s->key = l->child[0];
	return s->key.parent == parent ? HYDNS_CHILD_FOUND : HYDNS_CHILD_NONE;
}

/* Stores a word of the template's name, at any octet of it. */
static __always_inline void hydns_below_store(struct hydns_query *q, __u32 at, __u64 word)
{
	__u64 to = at;

	_Static_assert(sizeof(q->below) >= HYDNS_NAME_MAX + 1 + 8, "room for a word at each octet of a name");
	HYDNS_OPAQUE(to);
	to &= HYDNS_NAME_MAX;
	*(__u64 *)((void *)q->below + to) = word;
}

/* Writes a probe's name to q->below: behind the child that was found, or without one the first name below the last length octets of the
 * question's. Returns its length; 0: it is too long, or not all of the child's label is known. Global, as the functions above. */
__noinline __u32 hydns_probe_write(struct hydns_query *q, __u32 length, __u32 found)
{
	__u32 label = 1, len, from;

	if (!q || length >= q->question.name_len)
		return 0;
	if (found == HYDNS_CHILD_FOUND)
		label += hydns_child_len(&q->search.key);
	HYDNS_OPAQUE(label);
	len = 1 + label + length;
	from = q->question.name_len - length;
	if (len > HYDNS_NAME_MAX || label > HYDNS_CHILD_LONG)
		return 0;
	q->below[0] = label;
	for (__u32 i = 0; i < HYDNS_CHILD_WORDS && found == HYDNS_CHILD_FOUND; i++)
		hydns_below_store(q, 1 + 8 * i, __builtin_bswap64(q->search.key.label[i]));
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= length)
			break;
		hydns_below_store(q, label + 1 + 8 * i, hydns_suffix_word(&q->question, from, i, length));
	}
	hydns_below_store(q, len, 0);
	((__u8 *)q->below)[label & HYDNS_NAME_MAX] = 0;
	return len;
}

/* The tag of the name that is the last length octets of the question's. Global, too. */
__noinline __u64 hydns_names_tag(struct hydns_query *q, __u32 length)
{
	const struct hydns_names_head *head;
	__u32 zero = 0;
	void *map;

	if (!q || length > q->question.name_len)
		return 0;
	map = hydns_names_of(q);
	head = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	return head ? hydns_names_hash_at(q, q->question.name_len - length, head).tag : 0;
}

/* Writes the name of the probe to q->below, of a query of which hydns_below_length() has said where it stands. Returns its length; 0:
 * nobody knows. *table: the table's number before it was searched. Global, too. */
__noinline __u32 hydns_probe_name(struct hydns_query *q, __u32 where, __u32 *table)
{
	const __u32 length = where & 0xff;
	const struct hydns_names_head *head;
	__u32 zero = 0, child, label, found;
	void *map;

	if (!q || !table)
		return 0;
	map = hydns_names_of(q);
	head = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	if (!head)
		return 0;
	*table = *(const volatile __u32 *)&head->table;
	if (*table & 1)
		return 0;
	hydns_barrier(q->below);
	q->search.low = 0;
	q->search.high = *(const volatile __u32 *)&head->leaves;
	q->search.key.parent = hydns_names_tag(q, length);
	child = where >> 16 & HYDNS_NAME_MAX;
	label = ((const __u8 *)q->question.name)[child];
	for (__u32 i = 0; i < HYDNS_CHILD_WORDS; i++)
		q->search.key.label[i] = hydns_child_word(hydns_suffix_word(&q->question, child + 1, i, HYDNS_NAME_MAX), i, label);
	found = hydns_child_find(q);
	return found == HYDNS_CHILD_UNKNOWN ? 0 : hydns_probe_write(q, length, found);
}

/* Hash of the key of a template whose name, of len octets, stands in q->below. Global, too. */
__noinline __u64 hydns_probe_hash(struct hydns_query *q, __u32 len)
{
	const __u64 seed[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	struct hydns_sip sip;

	if (!q || len > HYDNS_NAME_MAX)
		return 0;
	hydns_sip_begin(&sip, seed);
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= len)
			break;
		hydns_sip_word(&sip, q->below[i]);
	}
	hydns_sip_word(&sip, hydns_key_tail(len, bpf_htons(HYDNS_BELOW_TYPE), q->question.variant, q->question.resolver));
	return hydns_sip_end(&sip);
}

/* Whether the table is what it was when it was searched: what was found in it then still counts for a rule that was found after that. */
static __always_inline bool hydns_table_stands(struct hydns_query *q, __u32 table)
{
	const struct hydns_names_head *head;
	__u32 zero = 0;
	void *map = hydns_names_of(q);

	hydns_barrier(&q->below[HYDNS_NAME_WORDS]);
	head = map ? bpf_map_lookup_elem(map, &zero) : NULL;
	return head && *(const volatile __u32 *)&head->table == table;
}

/* -- the template's rule ---------------------------------------------------------------------------------------- */

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

/* The key of a template that stands at the end of the question's name. False: there is none. */
static __always_inline bool hydns_below_key(struct hydns_query *q, __u32 where, struct hydns_key *key)
{
	struct hydns_below_at t = { .length = where & 0xff, .label = !(where & HYDNS_BELOW_NODATA) };

	t.qtype = t.label ? bpf_htons(HYDNS_BELOW_TYPE) : bpf_htons(HYDNS_NODATA_TYPE);
	if (!t.length || t.length > HYDNS_NAME_MAX - t.label * HYDNS_BELOW_LABEL_LEN)
		return false;
	HYDNS_OPAQUE(t.label);         /* or all that follows would be checked for both */
	HYDNS_OPAQUE(t.qtype);
	key->len = t.length + t.label * HYDNS_BELOW_LABEL_LEN;
	key->qtype = t.qtype;
	key->hash = hydns_below_hash(q, &t);
	return true;
}

/* The handle of the rule that may be the query's template; 0: there is none. Global: or the caller would have a state for each length
 * of a name. */
__noinline __u32 hydns_below_handle(struct hydns_query *q)
{
	const struct hydns_rule *rule;
	__u32 where, handle, table = 0;
	struct hydns_key key;

	if (!q)
		return 0;
	key = (struct hydns_key){ .name = q->below, .resolver = q->question.resolver, .variant = q->question.variant };
	where = hydns_below_length(q);
	if (!(where & HYDNS_BELOW_PROBE)) {
		if (!hydns_below_key(q, where, &key))
			return 0;
	} else {
		key.qtype = bpf_htons(HYDNS_BELOW_TYPE);
		key.len = hydns_probe_name(q, where, &table);
		if (!key.len)
			return 0;
		key.hash = hydns_probe_hash(q, key.len);
	}
	if (hydns_find_key(&key, &rule, &handle) || !(rule->flags & HYDNS_RULE_TEMPLATE))
		return 0;
	return !(where & HYDNS_BELOW_PROBE) || hydns_table_stands(q, table) ? handle : 0;
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
