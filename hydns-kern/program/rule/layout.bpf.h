/* SPDX-License-Identifier: GPL-2.0-only */
/* The reply that is being made of a rule: what its parts need of each other. */
#ifndef HYDNS_KERN_PROGRAM_RULE_LAYOUT_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_LAYOUT_BPF_H

#include "hydns-kern/program/rule/lookup.bpf.h"

/* Bound of any offset into the reply's frame, as a mask that the verifier understands. */
#define HYDNS_OFF_MASK         0x0fff

struct hydns_layout {
	__u64 data_len;      /* question and answer */
	__u64 sum;           /* of the DNS message, added up while it is written */
	__u64 seconds;       /* to subtract from each TTL */
	__u32 dns_len;
	__u32 answer_off;    /* from the frame's start */
	__u32 ttls;          /* where the TTLs' offsets begin in the slot */
	bool question_stands; /* the query's question is already where the reply's belongs */
};

/* Offset of TTL number i in the answer; false if the rule is malformed. */
static __always_inline bool hydns_ttl_offset(const struct hydns_rule *rule, const struct hydns_layout *layout, __u32 i, __u32 *off)
{
	__u64 at = layout->ttls + 2 * (__u64)i;

	HYDNS_OPAQUE(at);
	if (at > HYDNS_SLOT_MOST - 2)
		return false;
	*off = *(const __u16 *)((const void *)rule + at);
	return true;
}

/* Where in its slot the pointers of a template begin. */
static __always_inline __u64 hydns_pointers_at(const struct hydns_rule *rule)
{
	return HYDNS_RULE_ROTATIONS((__u64)rule->name_len, rule->answer_len, rule->ttl_count) + HYDNS_ROTATION_LEN * rule->rotation_count +
	       2 * (__u64)rule->place_count + HYDNS_ACCOUNT_LEN(rule->flags);
}

#endif
