/* SPDX-License-Identifier: GPL-2.0-only */
/* The OPT record, with a cookie and extended errors. */
#ifndef HYDNS_KERN_PROGRAM_RULE_OPTIONS_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_OPTIONS_BPF_H

#include "hydns-kern/program/rule/layout.bpf.h"
#include "hydns-kern/program/dns/cookie.bpf.h"

/* The COOKIE option at the frame's end. */
static __always_inline int hydns_write_cookie(struct xdp_md *ctx, struct hydns_query *q, __u64 pos,
					      struct hydns_layout *layout)
{
	_Static_assert(HYDNS_COOKIE_OPTION_LEN == 28, "seven words");
	layout->sum += hydns_sum_at(hydns_sum_words(q->reply.option_head, 7), pos);
	return bpf_xdp_store_bytes(ctx, pos, q->reply.option_head, HYDNS_COOKIE_OPTION_LEN);
}

/* A rule's extended errors; NULL: it is malformed. */
static __always_inline const struct hydns_errors *hydns_errors_of(const struct hydns_slot_octets *slot)
{
	const struct hydns_rule *rule = (const void *)slot;
	__u64 at = HYDNS_RULE_ROTATIONS((__u64)rule->name_len, rule->answer_len, rule->ttl_count) +
		   HYDNS_ROTATION_LEN * rule->rotation_count + 2 * (__u64)rule->place_count + HYDNS_ACCOUNT_LEN(rule->flags);

	HYDNS_OPAQUE(at);
	return at <= HYDNS_ERRORS_AT_MOST ? (const void *)(slot->octet + at) : NULL;
}

/* Octets of the extended errors of a rule that has them; more than fit into a reply if it is malformed. A global function, as
 * hydns_swap_blocks(). */
__noinline __u32 hydns_errors_len(struct hydns_slot_octets *slot)
{
	const struct hydns_errors *errors = slot ? hydns_errors_of(slot) : NULL;

	return errors && errors->len <= HYDNS_ERRORS_MOST ? errors->len : HYDNS_OFF_MASK;
}

/* Writes them at pos, the frame's end: they come behind the cookie. Returns their sum there, or -1. Global, too. */
__noinline __s64 hydns_write_errors(struct xdp_md *ctx, struct hydns_slot_octets *slot, __u32 pos)
{
	const struct hydns_errors *errors = slot ? hydns_errors_of(slot) : NULL;
	__u64 len = errors ? errors->len : 0;

	if (!errors || !hydns_bounded(&len, HYDNS_ERRORS_MOST) || bpf_xdp_store_bytes(ctx, pos, (void *)errors->options, len))
		return -1;
	return hydns_sum_at(errors->sum, pos);
}

/* The options in the OPT record, from pos on. */
static __always_inline int hydns_write_options(struct xdp_md *ctx, struct hydns_query *q, const struct hydns_rule *rule,
					       __u64 pos, struct hydns_layout *layout)
{
	__s64 sum;

	if (q->reply.cookie_state && hydns_write_cookie(ctx, q, pos, layout))
		return -1;
	if (!(rule->flags & HYDNS_RULE_ERRORS))
		return 0;
	sum = hydns_write_errors(ctx, (void *)rule, pos + (q->reply.cookie_state ? HYDNS_COOKIE_OPTION_LEN : 0));
	if (sum < 0)
		return -1;
	layout->sum += sum;
	return 0;
}

/* The OPT record after the answer, when the query had one (RFC 6891 section 7). */
static __always_inline int hydns_write_opt(struct xdp_md *ctx, struct hydns_query *q,
					   const struct hydns_resolver_config *cfg, const struct hydns_rule *rule,
					   struct hydns_layout *layout)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 pos = (layout->answer_off + rule->answer_len) & HYDNS_OFF_MASK, sum;
	__u16 flags = q->question.variant & HYDNS_VARIANT_DO ? bpf_htons(HYDNS_EDNS_DO) : 0;
	__u16 rdlen = bpf_htons(layout->dns_len - HYDNS_DNS_HEADER - layout->data_len - HYDNS_OPT_LEN);
	struct hydns_opt *opt;

	if (!q->question.edns)
		return 0;
	HYDNS_OPAQUE(pos);
	if (pos > HYDNS_OFF_MASK)
		return -1;
	opt = data + pos;
	HYDNS_OPAQUE(opt);
	if ((void *)(opt + 1) > end)
		return -1;
	*opt = (struct hydns_opt){
		.type = bpf_htons(HYDNS_TYPE_OPT),
		.size = bpf_htons(cfg->edns_size),
		.flags = flags,
		.rdlen = rdlen,
	};
	/* type, size, flags and rdlen are at odd offsets of the record */
	sum = hydns_sum_at((__u64)bpf_htons(HYDNS_TYPE_OPT) + bpf_htons(cfg->edns_size) + flags + rdlen, 1);
	layout->sum += hydns_sum_at(sum, pos);
	return rdlen ? hydns_write_options(ctx, q, rule, pos + HYDNS_OPT_LEN, layout) : 0;
}

#endif
