/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The guard's rules for suffixes of names: hydnsd makes them when a resolver finds that what it asks for names below one fails or is
 * slow, or when an operator says so. They are for queries that no rule answers, and are looked at only while there are some.
 */
#ifndef HYDNS_KERN_PROGRAM_GUARD_SUFFIXES_BPF_H
#define HYDNS_KERN_PROGRAM_GUARD_SUFFIXES_BPF_H

#include "hydns-kern/program/guard/clients.bpf.h"
#include "hydns-kern/program/rule/lookup.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HYDNS_GUARD_RULES);
	__type(key, __u64);
	__type(value, struct hydns_guard_rule);
} hydns_gd_rules SEC(".maps");

/* By bit: there are rules for suffixes of so many labels. hydnsd writes it. */
__u32 hydns_guard_labels;

/* Results of the functions below, which the verifier checks once each. */
enum hydns_guard_found {
	HYDNS_GUARD_NONE,        /* no rule */
	HYDNS_GUARD_WITHIN,
	HYDNS_GUARD_OVER,        /* and enum hydns_guard_action more */
};

/* Octet number at of the name. */
static __always_inline __u32 hydns_guard_octet(const struct hydns_question *q, __u32 at)
{
	return ((const __u8 *)q->name)[at & HYDNS_NAME_MAX];
}

/* As hydns_key_hash() of the suffix that begins at this octet, with the resolver alone. */
static __always_inline __u64 hydns_guard_key(const struct hydns_question *q, __u32 at, __u32 len)
{
	const __u64 seed[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	struct hydns_sip sip;

	hydns_sip_begin(&sip, seed);
	for (__u32 i = 0; i < HYDNS_GUARD_SUFFIX_MOST; i += 8) {
		const __u64 *from = (const void *)((const __u8 *)q->name + at + i);

		if (i >= len)
			break;
		hydns_sip_word(&sip, *from & hydns_name_mask(len - i));
	}
	hydns_sip_word(&sip, hydns_key_tail(len, 0, 0, q->resolver));
	return hydns_sip_end(&sip);
}

/* enum hydns_guard_found for the suffix that begins at this octet. */
__noinline int hydns_guard_suffix_at(struct hydns_query *q, __u32 at)
{
	struct hydns_guard_rule *rule;
	struct hydns_guard_count *n;
	__u32 len, action;
	__u64 key;

	if (!q || at > HYDNS_NAME_MAX)
		return HYDNS_GUARD_NONE;
	len = q->question.name_len - at;
	if (len > HYDNS_GUARD_SUFFIX_MOST)
		return HYDNS_GUARD_NONE;
	key = hydns_guard_key(&q->question, at, len);
	rule = bpf_map_lookup_elem(&hydns_gd_rules, &key);
	n = hydns_guard_counts(q);
	if (!rule || !n || *(const volatile __u64 *)&rule->until_ns <= hydns_now(&q->cpu))
		return HYDNS_GUARD_NONE;
	if (hydns_budget_add(&rule->spent, hydns_guard_second(&q->cpu)) <= rule->queries) {
		__sync_fetch_and_add(&rule->within, 1);
		n->suffix_within++;
		return HYDNS_GUARD_WITHIN;
	}
	__sync_fetch_and_add(&rule->over, 1);
	n->suffix_over++;
	action = rule->action;
	return HYDNS_GUARD_OVER + (action <= HYDNS_GUARD_FAIL ? action : HYDNS_GUARD_DROP);
}

/* Labels of the name, without the root. */
__noinline __u32 hydns_guard_count_labels(struct hydns_query *q)
{
	__u32 at = 0, labels = 0;

	for (; q && labels < HYDNS_LABELS_MAX; labels++) {
		__u32 len = hydns_guard_octet(&q->question, at);

		if (!len)
			break;
		at += 1 + len;
	}
	return labels;
}

/* The same for the query's longest suffix that has a rule. */
__noinline int hydns_guard_suffix(struct hydns_query *q)
{
	__u32 with_rules = *(const volatile __u32 *)&hydns_guard_labels, left, at = 0, len;
	int found;

	if (!q)
		return HYDNS_GUARD_NONE;
	left = hydns_guard_count_labels(q);
	for (__u32 i = 0; i < HYDNS_LABELS_MAX; i++) {
		len = hydns_guard_octet(&q->question, at);
		if (!len || !left)
			break;
		found = left <= HYDNS_GUARD_LABELS_MOST && (with_rules >> (left & 31) & 1) ?
			hydns_guard_suffix_at(q, at) : HYDNS_GUARD_NONE;
		if (found)
			return found;
		at += 1 + len;
		left--;
	}
	return HYDNS_GUARD_NONE;
}

/* HYDNS_R_ANSWERED: the query goes on. */
static __always_inline enum hydns_reason hydns_guard_judge_suffix(struct hydns_query *q)
{
	int found = hydns_guard_suffix(q);

	if (found < HYDNS_GUARD_OVER || hydns_guard.mode != HYDNS_GUARD_ENFORCE)
		return HYDNS_R_ANSWERED;
	switch (found - HYDNS_GUARD_OVER) {
	case HYDNS_GUARD_TRUNCATE:
		return HYDNS_R_GUARD_TRUNCATED;
	case HYDNS_GUARD_FAIL:
		return HYDNS_R_GUARD_FAILED;
	default:
		return HYDNS_R_GUARDED;
	}
}

#endif
