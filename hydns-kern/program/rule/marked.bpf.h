/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * While hydnsd is away nobody takes rules out of the index. Their resolver marks on its page the names whose data change
 * meanwhile, and a rule that depends on one of them is passed. Not on the way of an ordinary hit: the epoch, which each
 * compares, says when to look.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_TOUCHED_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_TOUCHED_BPF_H

#include "hydns-kern/program/rule/lookup.bpf.h"

/* A rule's owner names, four places a word. */
struct hydns_places {
	__u64 places[HYDNS_RULE_PLACES_MAX / 4];
};

/* Whether a name is marked. Not static, so that the verifier looks at it once, and goes on after it in one state. */
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
		return (struct hydns_places){ { ~0ULL, ~0ULL } }; /* no places: as if all were marked */
	return *(const struct hydns_places *)((const void *)rule + at);
}

/* Whether a rule counts though its epoch is not what the page says. The marks are read after the epoch, which said that
 * there are any. */
static __always_inline bool hydns_unmarked(struct hydns_query *q, const struct hydns_resolver_page *page,
					    const struct hydns_rule *rule, __u32 epoch)
{
	struct hydns_places o;

	if ((rule->epoch ^ epoch) != HYDNS_EPOCH_MARKED)
		return false;
	hydns_barrier(&q->question.hash);
	o = hydns_rule_places(rule);
	return !hydns_any_marked(page, o.places[0], o.places[1], rule->place_count);
}

#endif
