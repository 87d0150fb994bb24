/* SPDX-License-Identifier: GPL-2.0-only */
/* The set of a resolver's names and the table of children behind it (names.h), as the program reads them. */
#ifndef HYDNS_KERN_PROGRAM_RULE_NAMES_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_NAMES_BPF_H

#include "hydns-kern/program/rule/lookup.bpf.h"
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

/* -- the table of children ------------------------------------------------------------------------------------------ */
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

#endif
