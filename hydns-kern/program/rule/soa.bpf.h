/* SPDX-License-Identifier: GPL-2.0-only */
/* The present SOA of a template's zone (hydns/soa.h): read before the frame changes, and written into the answer's gap. */
#ifndef HYDNS_KERN_PROGRAM_RULE_SOA_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_SOA_BPF_H

#include "hydns-kern/program/rule/layout.bpf.h"
#include "hydns-kern/program/rule/names.bpf.h"

/* Copies the gap of a template to q->gap. False: the rule is malformed. */
static __always_inline bool hydns_gap_read(struct hydns_query *q, const struct hydns_slot_octets *slot)
{
	const struct hydns_rule *rule = (const void *)slot;
	const struct hydns_pointers *pointers;
	__u64 at = hydns_pointers_at(rule), count;

	q->gap = (struct hydns_gap){};
	HYDNS_OPAQUE(at);
	if (at > HYDNS_POINTERS_AT_MOST)
		return false;
	pointers = (const void *)(slot->octet + at);
	if (!(pointers->count & HYDNS_POINTERS_GAP))
		return true;
	count = HYDNS_POINTERS_COUNT((__u64)pointers->count);
	HYDNS_OPAQUE(count);
	if (count > HYDNS_POINTERS_MOST)
		return false;
	q->gap = *(const struct hydns_gap *)&pointers->at[count];
	return true;
}

/* Copies one element of the present SOA to q->soa. */
static __always_inline bool hydns_soa_copy(struct hydns_query *q, void *map, __u32 element, __u32 part)
{
	const __u64 *from;
	__u64 *to = (__u64 *)&q->soa + part * (HYDNS_SOA_ELEMENT / 8);

	element += part;
	from = bpf_map_lookup_elem(map, &element);
	if (!from)
		return false;
#pragma unroll
	for (int i = 0; i < HYDNS_SOA_ELEMENT / 8; i++)
		to[i] = HYDNS_READ_ONCE(from[i]);
	return true;
}

/*
 * Whether the query may be answered from the template: it has no gap, or the present SOA that belongs there now stands in q->soa. That
 * template and SOA are of one version, the grace period sees to that comes between an odd number and the next even one. Global: the
 * verifier checks it once.
 */
__noinline int hydns_soa_read(struct hydns_query *q, struct hydns_slot_octets *slot)
{
	const struct hydns_soa_now *now;
	__u32 element, number;
	__u64 id;
	void *map;

	if (!q || !slot || !hydns_gap_read(q, slot))
		return 0;
	id = (__u64)q->gap.id[3] << 48 | (__u64)q->gap.id[2] << 32 | (__u32)q->gap.id[1] << 16 | q->gap.id[0];
	if (!id)
		return 1;
	element = (__u32)q->gap.element[1] << 16 | q->gap.element[0];
	map = hydns_names_of(q);
	now = map ? bpf_map_lookup_elem(map, &element) : NULL;
	if (!now)
		return 0;
	number = HYDNS_READ_ONCE(now->number);
	if (number & 1)
		return 0;
	hydns_barrier(&q->below[HYDNS_NAME_WORDS]);
	if (!hydns_soa_copy(q, map, element, 0))
		return 0;
	if (q->gap.signature_len > HYDNS_SOA_FIRST && !(hydns_soa_copy(q, map, element, 1) && hydns_soa_copy(q, map, element, 2)))
		return 0;
	hydns_barrier(&q->below[HYDNS_NAME_WORDS]);
	return HYDNS_READ_ONCE(now->number) == number && q->soa.id == id &&
	       (!q->gap.signature_len || q->soa.signature_len == q->gap.signature_len);
}

/* Fills the gap of the answer that begins at answer_off in the frame. Returns what that adds to the message's sum, or -1: the rule is
 * malformed. Global, too. */
__noinline __s64 hydns_soa_fill(struct xdp_md *ctx, struct hydns_query *q, __u32 answer_off)
{
	__u64 len;
	__s64 sum;

	if (!q)
		return -1;
	if (!(q->gap.id[0] | q->gap.id[1] | q->gap.id[2] | q->gap.id[3]))
		return 0;
	if (bpf_xdp_store_bytes(ctx, answer_off + q->gap.numbers, q->soa.numbers, HYDNS_SOA_NUMBERS))
		return -1;
	sum = hydns_sum_at(q->soa.numbers_sum, answer_off + q->gap.numbers);
	len = q->gap.signature_len;
	if (!len)
		return sum;
	if (!hydns_bounded(&len, HYDNS_SIGNATURE_MOST) ||
	    bpf_xdp_store_bytes(ctx, answer_off + q->gap.fixed, q->soa.fixed, HYDNS_RRSIG_FIXED) ||
	    bpf_xdp_store_bytes(ctx, answer_off + q->gap.signature, q->soa.signature, len))
		return -1;
	sum += hydns_sum_at(q->soa.fixed_sum, answer_off + q->gap.fixed);
	return sum + hydns_sum_at(q->soa.signature_sum, answer_off + q->gap.signature);
}

/* The rest of a template's answer, which hydns_soa_read() has looked at: its gap. */
static __always_inline int hydns_write_gap(struct xdp_md *ctx, struct hydns_query *q, struct hydns_layout *layout)
{
	__s64 sum = hydns_soa_fill(ctx, q, layout->answer_off);

	if (sum < 0)
		return -1;
	layout->sum += sum;
	return 0;
}

#endif
