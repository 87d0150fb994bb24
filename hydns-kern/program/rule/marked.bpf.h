/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Suspended rules. While hydnsd is away, nobody removes rules from the index. The resolver marks on its page the names whose
 * data change meanwhile, and queries for a rule that depends on one of them pass. An ordinary hit does not read the marks:
 * the page's epoch, which every hit compares, has a flag while there are any.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_MARKED_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_MARKED_BPF_H

#include "hydns-kern/program/rule/lookup.bpf.h"

/* The places of a rule's dependencies, four to a word. */
struct hydns_places {
	__u64 places[HYDNS_RULE_PLACES_MAX / 4];
};

/* Whether one of count places is marked; first and second hold them as in struct hydns_places. A global function: the
 * verifier checks it once, and goes on in one state after a call. */
__noinline int hydns_any_marked(const struct hydns_resolver_page *page, __u64 first, __u64 second, __u32 count)
{
	_Static_assert(HYDNS_RULE_PLACES_MAX == 8, "two words of places");

	if (!page || !count)
		return 1;
	for (__u32 i = 0; i < HYDNS_RULE_PLACES_MAX; i++) {
		__u64 place = (i < 4 ? first >> 16 * i : second >> 16 * (i - 4)) & 0xffff, word = place / 64;

		if (i >= count)
			break;
		HYDNS_OPAQUE(word);
		if (word >= HYDNS_MARK_WORDS ||
		    (((const volatile __u64 *)page->marks)[word] >> place % 64 & 1))
			return 1;
	}
	return 0;
}

static __always_inline struct hydns_places hydns_rule_places(const struct hydns_rule *rule)
{
	__u64 at = HYDNS_RULE_ROTATIONS(rule->name_len, rule->answer_len, (__u64)rule->ttl_count) +
		   HYDNS_ROTATION_LEN * (__u64)rule->rotation_count;
	HYDNS_OPAQUE(at);
	if (at > HYDNS_SLOT_MOST - sizeof(struct hydns_places))
		return (struct hydns_places){ { ~0ULL, ~0ULL } }; /* out of range: counts as marked */
	return *(const struct hydns_places *)((const void *)rule + at);
}

/* Whether a rule counts although its epoch differs from the page's: only by the flag for marks, and none of its places is
 * marked. The barrier makes the program read the marks after the epoch. */
static __always_inline bool hydns_unmarked(struct hydns_query *q, const struct hydns_resolver_page *page,
					    const struct hydns_rule *rule, __u32 epoch)
{
	struct hydns_places p;

	if ((rule->epoch ^ epoch) != HYDNS_EPOCH_MARKED)
		return false;
	hydns_barrier(&q->question.hash);
	p = hydns_rule_places(rule);
	return !hydns_any_marked(page, p.places[0], p.places[1], rule->place_count);
}

#endif
