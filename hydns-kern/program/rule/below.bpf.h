/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names and types that do not exist, of preloaded zones, and names below their delegations. The name, or its closest encloser, is found
 * in the set of the resolver's names (names.h): it says whose template answers.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_BELOW_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_BELOW_BPF_H

#include "hydns-kern/program/rule/answer.bpf.h"
#include "hydns-kern/program/rule/hashed.bpf.h"
#include "hydns-kern/program/rule/marked.bpf.h"
#include "hydns-kern/program/rule/names.bpf.h"

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

/* That of the query's template: no query has it, so that none is answered from the template as if that were its own rule. */
static __always_inline __u8 hydns_below_variant(const struct hydns_query *q)
{
	return q->question.variant | HYDNS_VARIANT_TEMPLATE;
}

/* Where a template stands: at the last length octets of the question's name, behind a label of its own or not. */
struct hydns_below_at {
	__u32 length;
	__u32 label;                   /* 0 or 1 */
	__be16 qtype;
};

/* With a length: the template is that of a type which the name has no data of; or that of a probe, for a name whose first label that
 * is not there begins with the octet in the bits from 16 on. Of a probe that is found by a hash also which of the head's nsec3, and the
 * length of the zone's origin. */
#define HYDNS_BELOW_NODATA 0x100U
#define HYDNS_BELOW_PROBE  0x200U
#define HYDNS_BELOW_HASHED(number) ((number) << 10)
#define HYDNS_BELOW_HASHING(where) ((where) >> 10 & 7)
#define HYDNS_BELOW_CHILD(child)   ((child) << 16)
#define HYDNS_BELOW_ORIGIN(length) ((__u32)(length) << 24)

/* The same of a name that is denied with its proof. Where that is found by a hash, a name that may be the owner name of an NSEC3 record
 * passes: such an answer may show it, and names that it shows are compressed otherwise. */
static __always_inline __u32 hydns_below_probe(const struct hydns_query *q, int found, __u32 before, __u32 length)
{
	const __u32 number = HYDNS_NAMES_HASHING(found), origin = HYDNS_NAMES_LENGTH(found);

	if (number && length == origin && ((const __u8 *)q->question.name)[before & HYDNS_NAME_MAX] == HYDNS_HASHED_LABEL)
		return 0;
	return HYDNS_BELOW_PROBE | HYDNS_BELOW_HASHED(number) | HYDNS_BELOW_CHILD(before) | HYDNS_BELOW_ORIGIN(origin) | length;
}

/* The same of the DS of a delegation. */
static __always_inline __u32 hydns_below_no_ds(const struct hydns_query *q, int found)
{
	const __u32 length = hydns_names_denies_ds(found, q->question.variant & HYDNS_VARIANT_DO);

	return length ? HYDNS_BELOW_NODATA | length : 0;
}

/* Octets of the end of the question's name where its template stands, and how; 0: there is none, or the data exist. at: where the name
 * that was found begins, and before that the label before it. */
static __always_inline __u32 hydns_below_found(const struct hydns_query *q, int found, __u32 before, __u32 at)
{
	const bool proofs = (q->question.variant & HYDNS_VARIANT_DO) && (found & HYDNS_NAMES_SIGNED);

	if (!HYDNS_NAMES_LENGTH(found))
		return 0;
	if (!at && hydns_names_refers(found, bpf_ntohs(q->question.qtype)))
		return HYDNS_NAMES_LENGTH(found);
	if (!at && q->question.qtype == bpf_htons(HYDNS_TYPE_DS))
		return hydns_below_no_ds(q, found);
	if (!at && !hydns_names_lacks(found, bpf_ntohs(q->question.qtype)))
		return 0;
	if (!at)
		return HYDNS_BELOW_NODATA | (proofs ? q->question.name_len : HYDNS_NAMES_LENGTH(found));
	if (!proofs)
		return HYDNS_NAMES_LENGTH(found);
	return hydns_names_is_unproved(found) ? q->question.name_len - at : hydns_below_probe(q, found, before, q->question.name_len - at);
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
/* Stores a word of the template's name, at any octet of it. */
static __always_inline void hydns_below_store(struct hydns_query *q, __u32 at, __u64 word)
{
	__u64 to = at;

	_Static_assert(sizeof(q->below) >= HYDNS_NAME_MAX + 1 + 8, "room for a word at each octet of a name");
	HYDNS_OPAQUE(to);
	to &= HYDNS_NAME_MAX;
	*(__u64 *)((void *)q->below + to) = word;
}

/* Writes the last length octets of the question's name to q->below, from octet at on: what follows the first labels of a probe's name.
 * Returns the length of this. */
static __always_inline __u32 hydns_below_suffix(struct hydns_query *q, __u32 at, __u32 length)
{
	const __u32 from = q->question.name_len - length;

	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= length)
			break;
		hydns_below_store(q, at + 8 * i, hydns_suffix_word(&q->question, from, i, length));
	}
	hydns_below_store(q, at + length, 0);
	return at + length;
}

/* Writes a probe's name to q->below: behind the child that was found, or without one the first name below the last length octets of the
 * question's. Returns its length; 0: it is too long, or not all of the child's label is known. Global, as the functions above. */
__noinline __u32 hydns_probe_write(struct hydns_query *q, __u32 length, __u32 found)
{
	__u32 label = 1, len;

	if (!q || length >= q->question.name_len)
		return 0;
	if (found == HYDNS_CHILD_FOUND)
		label += hydns_child_len(&q->search.key);
	HYDNS_OPAQUE(label);
	if (1 + label + length > HYDNS_NAME_MAX || label > HYDNS_CHILD_LONG)
		return 0;
	q->below[0] = label;
	for (__u32 i = 0; i < HYDNS_CHILD_WORDS && found == HYDNS_CHILD_FOUND; i++)
		hydns_below_store(q, 1 + 8 * i, __builtin_bswap64(q->search.key.label[i]));
	len = hydns_below_suffix(q, 1 + label, length);
	((__u8 *)q->below)[label & HYDNS_NAME_MAX] = 0;
	return len;
}

/* The same of the template's name that is made of the hash that was found; without one the hash before the chain's first is the greatest
 * of all, and 0 stands for it. */
__noinline __u32 hydns_hashed_write(struct hydns_query *q, __u32 length, __u32 found)
{
	_Static_assert(HYDNS_HASHED_LEN + 8 < sizeof(q->below), "room");
	if (!q || length >= q->question.name_len || length > HYDNS_NAME_MAX - HYDNS_HASHED_LEN)
		return 0;
	if (!hydns_hash_found(q, found == HYDNS_CHILD_FOUND))
		return 0;
	q->below[0] = HYDNS_HASHED_LABEL;
#pragma clang loop unroll(disable)
	for (int i = 0; i < HYDNS_HASHED_LABEL / 8; i++)
		hydns_below_store(q, 1 + 8 * i, hydns_base32hex(hydns_hash_bits(q->hashing.sha.h, i)));
	__builtin_memcpy((void *)q->below + 1 + HYDNS_HASHED_LABEL, HYDNS_HASHED_MARK, 1 + HYDNS_HASHED_LABEL);
	return hydns_below_suffix(q, HYDNS_HASHED_LEN, length);
}

/* What is looked for: the first label of the question's name that is not there, below the name that is; or the hash of the name that
 * begins with it, which is there already, in the zone's chain. */
static __always_inline void hydns_probe_key(struct hydns_query *q, __u32 where)
{
	const __u32 child = where >> 16 & HYDNS_NAME_MAX;
	__u32 label;

	if (HYDNS_BELOW_HASHING(where)) {
		q->search.key.parent = HYDNS_CHAIN_OF(hydns_names_tag(q, where >> 24));
		return;
	}
	q->search.key.parent = hydns_names_tag(q, where & 0xff);
	label = ((const __u8 *)q->question.name)[child];
	for (__u32 i = 0; i < HYDNS_CHILD_WORDS; i++)
		q->search.key.label[i] = hydns_child_word(hydns_suffix_word(&q->question, child + 1, i, HYDNS_NAME_MAX), i, label);
}

/* Writes the name of the probe to q->below, of a query of which hydns_below_length() has said where it stands. Returns its length; 0:
 * nobody knows. *table: the table's number before it was searched. Global, too. */
__noinline __u32 hydns_probe_name(struct hydns_query *q, __u32 where, __u32 *table)
{
	const __u32 length = where & 0xff;
	const struct hydns_names_head *head;
	__u32 zero = 0, found;
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
	hydns_probe_key(q, where);
	found = hydns_child_find(q);
	if (found == HYDNS_CHILD_UNKNOWN)
		return 0;
	return HYDNS_BELOW_HASHING(where) ? hydns_hashed_write(q, length, found) : hydns_probe_write(q, length, found);
}

/* Hash of the key of a template of this type, network order, whose name, of len octets, stands in q->below. Global, too. */
__noinline __u64 hydns_probe_hash(struct hydns_query *q, __u32 len, __u32 qtype)
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
	hydns_sip_word(&sip, hydns_key_tail(len, qtype, hydns_below_variant(q), q->question.resolver));
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
	hydns_sip_word(&sip, hydns_key_tail(length + label * HYDNS_BELOW_LABEL_LEN, t->qtype, hydns_below_variant(q),
					    q->question.resolver));
	return hydns_sip_end(&sip);
}

/* Type of a template that stands at the end of the question's name: a proof about DS has its own (hydns_names_denies_ds()). */
static __always_inline __be16 hydns_below_qtype(const struct hydns_query *q, __u32 where)
{
	if (!(where & HYDNS_BELOW_NODATA))
		return bpf_htons(HYDNS_BELOW_TYPE);
	if (q->question.qtype == bpf_htons(HYDNS_TYPE_DS) && (where & 0xff) == q->question.name_len)
		return q->question.qtype;
	return bpf_htons(HYDNS_NODATA_TYPE);
}

/* The key of a template that stands at the end of the question's name. False: there is none. */
static __always_inline bool hydns_below_key(struct hydns_query *q, __u32 where, struct hydns_key *key)
{
	struct hydns_below_at t = { .length = where & 0xff, .label = !(where & HYDNS_BELOW_NODATA), .qtype = hydns_below_qtype(q, where) };

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
	key = (struct hydns_key){ .name = q->below, .resolver = q->question.resolver, .variant = hydns_below_variant(q) };
	where = hydns_below_length(q);
	if (!(where & HYDNS_BELOW_PROBE)) {
		if (!hydns_below_key(q, where, &key))
			return 0;
	} else {
		if (HYDNS_BELOW_HASHING(where) && hydns_hash_name(q, where >> 16 & HYDNS_NAME_MAX, HYDNS_BELOW_HASHING(where)))
			return 0;
		key.qtype = HYDNS_BELOW_HASHING(where) ? bpf_htons(HYDNS_HASHED_TYPE) : bpf_htons(HYDNS_BELOW_TYPE);
		key.len = hydns_probe_name(q, where, &table);
		if (!key.len)
			return 0;
		key.hash = hydns_probe_hash(q, key.len, key.qtype);
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
	if (!hydns_soa_read(q, (void *)rule))
		return HYDNS_R_MISS;
	return hydns_answer(ctx, q, cfg, rule, now, dry, logs, true);
}

#endif
