/* SPDX-License-Identifier: GPL-2.0-only */
/* The same of a template (hydns/names.h): the answer comes behind a question of another length. */
#ifndef HYDNS_KERN_PROGRAM_RULE_TEMPLATE_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_TEMPLATE_BPF_H

#include "hydns-kern/program/rule/layout.bpf.h"
#include "hydns/names.h"

/* The query's own question, and the template's answer behind it. */
static __always_inline int hydns_store_below(struct xdp_md *ctx, struct hydns_query *q, const struct hydns_rule *rule,
					     const struct hydns_layout *layout)
{
	__u64 from = HYDNS_RULE_DATA + (__u64)rule->name_len + 4, len = rule->answer_len, question = (__u64)q->question.name_len + 4;

	HYDNS_OPAQUE(from);
	if (from > HYDNS_RULE_DATA + HYDNS_QUESTION_MAX || !hydns_bounded(&len, HYDNS_BELOW_ANSWER_MOST) ||
	    !hydns_bounded(&question, HYDNS_QUESTION_MAX))
		return -1;
	if (!layout->question_stands &&
	    bpf_xdp_store_bytes(ctx, q->packet.dns_off + HYDNS_DNS_HEADER, q->question.message + HYDNS_DNS_HEADER, question))
		return -1;
	return bpf_xdp_store_bytes(ctx, layout->answer_off, (void *)rule + from, len);
}

/*
 * Moves the compression pointers of a template's answer, which begins at answer_off in the frame, on by delta, modulo 2^16. Returns
 * what that adds to the answer's sum, or -1: the rule is malformed. A global function, as hydns_swap_blocks().
 */
__noinline __s64 hydns_move_pointers(struct xdp_md *ctx, struct hydns_slot_octets *slot, __u32 answer_off, __u32 delta)
{
	const struct hydns_rule *rule = (const void *)slot;
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	const struct hydns_pointers *pointers;
	__u64 at, sum = 0;

	if (!slot)
		return -1;
	at = hydns_pointers_at(rule);
	HYDNS_OPAQUE(at);
	if (at > HYDNS_POINTERS_AT_MOST)
		return -1;
	pointers = (const void *)(slot->octet + at);
	for (__u32 i = 0; i < HYDNS_POINTERS_MOST; i++) {
		__u16 *p, old, moved;
		__u64 pos;

		if (i >= HYDNS_POINTERS_COUNT(pointers->count))
			break;
		pos = (answer_off + pointers->at[i]) & HYDNS_OFF_MASK;
		HYDNS_OPAQUE(pos);
		if (pos > HYDNS_OFF_MASK)
			return -1;
		p = data + pos;
		HYDNS_OPAQUE(p);
		if ((void *)(p + 1) > end)
			return -1;
		old = *p;
		moved = bpf_htons(bpf_ntohs(old) + delta);
		*p = moved;
		sum += ((__u64)moved + (__u16)~old) << (pointers->at[i] & 1 ? 8 : 0);
	}
	return sum;
}

/* The rest of a template's answer: its pointers. */
static __always_inline int hydns_write_pointers(struct xdp_md *ctx, const struct hydns_query *q, const struct hydns_rule *rule,
						struct hydns_layout *layout)
{
	__s64 sum = hydns_move_pointers(ctx, (void *)rule, layout->answer_off, (__u32)q->question.name_len - rule->name_len);

	if (sum < 0)
		return -1;
	layout->sum += hydns_sum_at(sum, layout->answer_off);
	return 0;
}

#endif
