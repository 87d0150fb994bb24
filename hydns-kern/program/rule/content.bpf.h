/* SPDX-License-Identifier: GPL-2.0-only */
/* What is between the header and the OPT: question, answer, TTLs. */
#ifndef HYDNS_KERN_PROGRAM_RULE_CONTENT_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_CONTENT_BPF_H

#include "hydns-kern/program/rule/layout.bpf.h"

/* Longest answer that is copied word by word: some addresses, an alias, most negative answers. */
#define HYDNS_ANSWER_SHORT     128

/* Writes question and answer, which are contiguous in the slot, at once; then restores the letter case of the query's name. */
static __always_inline int hydns_store_data(struct xdp_md *ctx, struct hydns_query *q,
					    const struct hydns_rule *rule, const struct hydns_layout *layout)
{
	__u32 question = q->packet.dns_off + HYDNS_DNS_HEADER;
	__u64 len = layout->data_len, name_len = q->question.name_len;

	if (!hydns_bounded(&len, HYDNS_SLOT_MOST - HYDNS_RULE_DATA) || !hydns_bounded(&name_len, HYDNS_NAME_MAX))
		return -1;
	if (bpf_xdp_store_bytes(ctx, question, (void *)rule->data, len))
		return -1;
	return bpf_xdp_store_bytes(ctx, question, q->question.message + HYDNS_DNS_HEADER, name_len);
}

/* Copies eight octets from offset `from` of a slot to offset `to` of the frame. */
static __always_inline bool hydns_copy_word(struct xdp_md *ctx, const struct hydns_rule *rule, __u64 from,
					    __u64 to)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	HYDNS_OPAQUE(from);
	HYDNS_OPAQUE(to);
	if (from > HYDNS_SLOT_MOST - 8 || to > HYDNS_OFF_MASK)
		return false;
	data += to;
	HYDNS_OPAQUE(data);
	if (data + 8 > end)
		return false;
	*(__u64 *)data = *(const __u64 *)((const void *)rule + from);
	return true;
}

/* Copies a short answer of at least a word after the query's question, word by word, because a helper takes longer. The last
 * word ends where the answer ends, and may overlap the one before. */
static __always_inline int hydns_copy_answer(struct xdp_md *ctx, const struct hydns_rule *rule, __u64 to)
{
	__u64 from = HYDNS_RULE_DATA + (__u64)rule->name_len + 4, len = rule->answer_len;

	for (__u64 i = 0; i < HYDNS_ANSWER_SHORT; i += 8) {
		__u64 at = i + 8 <= len ? i : len - 8;

		if (!hydns_copy_word(ctx, rule, from + at, to + at))
			return -1;
		if (i + 8 >= len)
			break;
	}
	return 0;
}

static __always_inline int hydns_write_data(struct xdp_md *ctx, struct hydns_query *q,
					    const struct hydns_rule *rule, const struct hydns_layout *layout)
{
	if (layout->question_stands && rule->answer_len >= 8 && rule->answer_len <= HYDNS_ANSWER_SHORT)
		return hydns_copy_answer(ctx, rule, layout->answer_off);
	return hydns_store_data(ctx, q, rule, layout);
}

/* Counts the TTLs in the frame down, to 0 at least, and adds answer and TTLs to the message's sum. Without branches that go on: the
 * verifier would look at all later TTLs again for each of them. */
static __always_inline int hydns_write_ttls(struct xdp_md *ctx, const struct hydns_rule *rule,
					    struct hydns_layout *layout)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 sum = rule->answer_sum;

	for (__u32 i = 0; i < HYDNS_TTLS_MAX; i++) {
		__be32 *p, ttl;
		__s64 left;
		__u64 pos;
		__u32 off;

		if (i >= rule->ttl_count)
			break;
		if (!hydns_ttl_offset(rule, layout, i, &off))
			return -1;
		pos = (layout->answer_off + off) & HYDNS_OFF_MASK;
		HYDNS_OPAQUE(pos);
		if (pos > HYDNS_OFF_MASK)
			return -1;
		p = data + pos;
		HYDNS_OPAQUE(p);
		if ((void *)(p + 1) > end)
			return -1;
		left = (__s64)bpf_ntohl(*p) - (__s64)layout->seconds;
		HYDNS_OPAQUE(left);
		ttl = bpf_htonl((__u32)(left & ~(left >> 63)));
		*p = ttl;
		sum += (__u64)ttl << (off & 1 ? 8 : 0);
	}
	layout->sum += hydns_sum_at(sum, layout->answer_off);
	return 0;
}

#endif
