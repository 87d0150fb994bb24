/* SPDX-License-Identifier: GPL-2.0-only */
/* RRsets whose records take turns in coming first. */
#ifndef HYDNS_KERN_PROGRAM_RULE_ROTATE_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_ROTATE_BPF_H

#include "hydns-kern/program/rule/layout.bpf.h"

/* The same of a block that is being moved. */
static __noinline __u64 hydns_block_sum(const __u8 *block, __u32 len)
{
	return hydns_sum_octets(block, len, HYDNS_SLOT_MOST);
}

/* Checksum delta when a block with this sum moves from offset `from` by an odd distance. */
static __always_inline __u64 hydns_move_delta(__u64 sum, __u64 from)
{
	return (__u16)~hydns_fold(hydns_sum_at(sum, from)) + hydns_fold(hydns_sum_at(sum, from + 1));
}

/*
 * Swaps the head octets at pos with the tail octets that follow them. Returns the delta of the message's checksum, or -1. A
 * global function: the verifier checks it once and not on each path to it, which would exceed its limit.
 */
__noinline __s64 hydns_swap_blocks(struct xdp_md *ctx, struct hydns_reply *reply, __u32 pos, __u64 head, __u64 tail)
{
	__s64 sum = 0;

	if (!reply || !hydns_bounded(&head, HYDNS_SLOT_MOST) || !hydns_bounded(&tail, HYDNS_SLOT_MOST))
		return -1;
	if (bpf_xdp_load_bytes(ctx, pos, reply->group_head, head) ||
	    bpf_xdp_load_bytes(ctx, pos + head, reply->group_tail, tail) ||
	    bpf_xdp_store_bytes(ctx, pos, reply->group_tail, tail) ||
	    bpf_xdp_store_bytes(ctx, pos + tail, reply->group_head, head))
		return -1;
	*(__u64 *)(reply->group_head + head) = 0;
	*(__u64 *)(reply->group_tail + tail) = 0;
	if (tail & 1)
		sum += hydns_move_delta(hydns_block_sum(reply->group_head, head), pos);
	if (head & 1)
		sum += hydns_move_delta(hydns_block_sum(reply->group_tail, tail), pos + head);
	return sum;
}

/* RRset number i of those that rotate; empty if the rule is malformed. */
static __always_inline struct hydns_rotation hydns_rotation_at(const struct hydns_rule *rule,
							      const struct hydns_layout *layout, __u32 i)
{
	__u64 at = layout->ttls + 2 * (__u64)rule->ttl_count + HYDNS_ROTATION_LEN * i;

	HYDNS_OPAQUE(at);
	if (at > HYDNS_SLOT_MOST - HYDNS_ROTATION_LEN)
		return (struct hydns_rotation){ 0 };
	return *(const struct hydns_rotation *)((const void *)rule + at);
}

/* Offset of record number i in this RRset. */
static __always_inline __u32 hydns_record_start(const struct hydns_rule *rule, const struct hydns_layout *layout,
						const struct hydns_rotation *g, __u32 i)
{
	__u32 first = g->first, start = 0, off = 0;

	i += first;
	if (i >= HYDNS_TTLS_MAX)
		return 0;
	hydns_ttl_offset(rule, layout, i, &off);
	hydns_ttl_offset(rule, layout, first, &start);
	return off - start;
}

/* Rotates the octets from start in the answer: the tail octets come first, then the head octets. */
static __always_inline int hydns_rotate(struct xdp_md *ctx, struct hydns_query *q, struct hydns_layout *layout,
					__u32 start, __u32 head, __u32 tail)
{
	__s64 sum;

	if (!head || !tail)
		return 0;
	sum = hydns_swap_blocks(ctx, &q->reply, layout->answer_off + start, head, tail);
	if (sum < 0)
		return -1;
	layout->sum += sum;
	return 0;
}

/* Shuffles an RRset whose record number first has been rotated to its start: rotates the records that follow. Each time that
 * every record has been first, they rotate by one more, so that all pairs are first and second equally often. */
static __always_inline int hydns_shuffle(struct xdp_md *ctx, struct hydns_query *q, const struct hydns_rule *rule,
					 struct hydns_layout *layout, const struct hydns_rotation *g, __u32 count,
					 __u32 first)
{
	__u32 second = (first + 1 + q->reply.rotation / count % (count - 1)) % count;
	__u32 begin = hydns_record_start(rule, layout, g, first), at = hydns_record_start(rule, layout, g, second);
	__u32 end = first + 1 < count ? hydns_record_start(rule, layout, g, first + 1) : g->len;
	/* skip: length of the first record; now_at: where the second one is after the rotation */
	__u32 skip = end - begin, now_at = second > first ? at - begin : g->len - begin + at;

	if (now_at <= skip || now_at >= g->len)
		return 0;
	return hydns_rotate(ctx, q, layout, g->start + skip, now_at - skip, g->len - now_at);
}

/* Runs after hydns_write_ttls(), which needs the TTLs at the rule's offsets: here they move with their records. */
static __always_inline int hydns_rotate_all(struct xdp_md *ctx, struct hydns_query *q,
					    const struct hydns_rule *rule, struct hydns_layout *layout, bool shuffles)
{
#pragma unroll
	for (int i = 0; i < HYDNS_ROTATIONS_MAX; i++) {
		const struct hydns_rotation g = hydns_rotation_at(rule, layout, i);
		__u32 count = g.last - g.first + 1, first, head;

		if (i >= rule->rotation_count || g.last <= g.first || g.start + g.len > rule->answer_len)
			continue;
		first = q->reply.rotation % count;
		head = hydns_record_start(rule, layout, &g, first);
		if (head >= g.len)
			continue;
		if (hydns_rotate(ctx, q, layout, g.start, head, g.len - head))
			return -1;
		if (shuffles && count > 2 && hydns_shuffle(ctx, q, rule, layout, &g, count, first))
			return -1;
	}
	return 0;
}

#endif
