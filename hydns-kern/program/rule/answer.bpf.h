/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage 6: the reply. hydns_answer_check() is the last check that can pass a query, but for hydns_resize(), which passes it
 * when there is no room. hydns_answer_write() changes the frame; a packet is dropped if that fails, because it can't be passed
 * half-written.
 */
#ifndef HYDNS_KERN_PROGRAM_RULE_ANSWER_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_ANSWER_BPF_H

#include "hydns-kern/program/rule/lookup.bpf.h"
#include "hydns-kern/program/dns/cookie.bpf.h"
#include "hydns-kern/program/packet/route.bpf.h"
#include "hydns-kern/program/rule/logged.bpf.h"
#include "hydns-kern/program/rule/rated.bpf.h"

#define HYDNS_HOP_LIMIT        64
#define HYDNS_IPV4_EVERY_PATH  576  /* RFC 791: every host accepts a datagram of this size */
#define HYDNS_IPV6_EVERY_PATH  1280 /* RFC 8200: the least MTU of a link */
/* Bound of any offset into the reply's frame, as a mask that the verifier understands. */
#define HYDNS_OFF_MASK         0x0fff
/* Longest answer that is copied word by word: some addresses, an alias, most negative answers. */
#define HYDNS_ANSWER_SHORT     128

struct hydns_layout {
	__u64 data_len;      /* question and answer */
	__u64 sum;           /* of the DNS message, added up while it is written */
	__u64 seconds;       /* to subtract from each TTL */
	__u32 dns_len;
	__u32 answer_off;    /* from the frame's start */
	__u32 ttls;          /* where the TTLs' offsets begin in the slot */
	bool question_stands; /* the query's question is already where the reply's belongs */
};

/* Most octets of a DNS message from this resolver to this client. */
static __always_inline __u32 hydns_answer_limit(const struct hydns_query *q,
						const struct hydns_resolver_config *cfg)
{
	__u32 limit = HYDNS_PLAIN_UDP;

	if (q->question.edns && q->question.edns_size > limit)
		limit = q->question.edns_size;
	return limit < cfg->max_udp ? limit : cfg->max_udp;
}

/* What rules of two kinds ask for beside room. BIND as an authoritative server leaves additional data out for a client with a small
 * EDNS size, and shows them to others. And resolvers cut extended errors that find no room: Unbound goes by the size that it tells
 * clients, whatever they say. */
static __always_inline bool hydns_special_fits(const struct hydns_query *q, const struct hydns_resolver_config *cfg,
					       const struct hydns_rule *rule, const struct hydns_layout *layout)
{
	if ((rule->flags & HYDNS_RULE_STATIC_TTL) && q->question.edns && q->question.edns_size <= HYDNS_PLAIN_UDP)
		return false;
	return !(rule->flags & HYDNS_RULE_ERRORS) || layout->dns_len <= cfg->edns_size;
}

static __always_inline bool hydns_answer_fits(struct xdp_md *ctx, const struct hydns_query *q,
					      const struct hydns_resolver_config *cfg,
					      const struct hydns_rule *rule, const struct hydns_layout *layout)
{
	__u32 dns_len = layout->dns_len, ip_len = q->packet.dns_off - q->packet.l3_off + dns_len, mtu = 0;

	if ((rule->flags & (HYDNS_RULE_STATIC_TTL | HYDNS_RULE_ERRORS)) && !hydns_special_fits(q, cfg, rule, layout))
		return false;
	if (dns_len > hydns_answer_limit(q, cfg))
		return false;
	/* Routers do not fragment IPv6, and the program does not know the path's MTU. The resolver's socket fragments larger
	 * replies. */
	if (q->packet.ipv6)
		return ip_len <= HYDNS_IPV6_EVERY_PATH;
	return ip_len <= HYDNS_IPV4_EVERY_PATH || (!bpf_check_mtu(ctx, 0, &mtu, 0, 0) && ip_len <= mtu);
}

/* 0, or why the program must not answer this query from this rule now. */
static __always_inline enum hydns_reason hydns_answer_check(struct xdp_md *ctx, struct hydns_query *q,
							    const struct hydns_resolver_config *cfg,
							    const struct hydns_rule *rule,
							    const struct hydns_layout *layout, __u64 now, bool dry)
{
	/* base_ns comes from the fine clock and now from the coarse one, so base_ns may be slightly ahead. */
	__u64 age = now > rule->base_ns ? now - rule->base_ns : 0;
	enum hydns_reason r;

	if (age >= rule->expire_ms * HYDNS_NS_PER_MS)
		return HYDNS_R_EXPIRED;
	if (!hydns_answer_fits(ctx, q, cfg, rule, layout))
		return HYDNS_R_TOO_BIG;
	r = hydns_route(ctx, q, q->packet.dns_off - q->packet.l3_off + layout->dns_len);
	if (r)
		return r;
	if (age >= rule->refresh_ms * HYDNS_NS_PER_MS && hydns_claim_refresh(rule, now, dry))
		return HYDNS_R_REFRESH;
	return 0;
}

/* Sum of len octets, most at most, as if they began at an even offset. The caller has put zeros after them. */
static __always_inline __u64 hydns_sum_octets(const __u8 *block, __u32 len, __u32 most)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < most; i += 8) {
		const __u32 *w = (const void *)(block + i);

		if (i >= len)
			break;
		sum += (__u64)w[0] + w[1];
	}
	return hydns_fold(sum);
}

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

/* Offset of TTL number i in the answer; 0 if the rule is malformed. */
static __always_inline __u32 hydns_ttl_offset(const struct hydns_rule *rule, const struct hydns_layout *layout,
					      __u32 i)
{
	__u64 at = layout->ttls + 2 * (__u64)i;

	HYDNS_OPAQUE(at);
	if (at > HYDNS_SLOT_MOST - 2)
		return 0;
	return *(const __u16 *)((const void *)rule + at);
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
	__u32 first = g->first;

	i += first;
	if (i >= HYDNS_TTLS_MAX)
		return 0;
	return hydns_ttl_offset(rule, layout, i) - hydns_ttl_offset(rule, layout, first);
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
	at = HYDNS_RULE_ROTATIONS((__u64)rule->name_len, rule->answer_len, rule->ttl_count) + HYDNS_ROTATION_LEN * rule->rotation_count +
	     2 * (__u64)rule->place_count + HYDNS_ACCOUNT_LEN(rule->flags);
	HYDNS_OPAQUE(at);
	if (at > HYDNS_POINTERS_AT_MOST)
		return -1;
	pointers = (const void *)(slot->octet + at);
	for (__u32 i = 0; i < HYDNS_POINTERS_MOST; i++) {
		__u16 *p, old, moved;
		__u64 pos;

		if (i >= pointers->count)
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

/* Counts the TTLs in the frame down, and adds answer and TTLs to the message's sum. */
static __always_inline int hydns_write_ttls(struct xdp_md *ctx, const struct hydns_rule *rule,
					    struct hydns_layout *layout)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 sum = rule->answer_sum;

	for (__u32 i = 0; i < HYDNS_TTLS_MAX; i++) {
		__u32 off, ttl;
		__u64 pos;
		__be32 *p;

		if (i >= rule->ttl_count)
			break;
		off = hydns_ttl_offset(rule, layout, i);
		pos = (layout->answer_off + off) & HYDNS_OFF_MASK;
		HYDNS_OPAQUE(pos);
		if (pos > HYDNS_OFF_MASK)
			return -1;
		p = data + pos;
		HYDNS_OPAQUE(p);
		if ((void *)(p + 1) > end)
			return -1;
		ttl = bpf_ntohl(*p);
		ttl = bpf_htonl(ttl > layout->seconds ? ttl - layout->seconds : 0);
		*p = ttl;
		sum += (__u64)ttl << (off & 1 ? 8 : 0);
	}
	layout->sum += hydns_sum_at(sum, layout->answer_off);
	return 0;
}

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

static __always_inline void hydns_write_dns_header(struct hydns_dns_header *h, const struct hydns_query *q,
						   const struct hydns_rule *rule, struct hydns_layout *layout)
{
	const struct hydns_dns_header *asked = (const void *)q->question.message;
	bool ad = (rule->flags & HYDNS_RULE_SECURE) && (q->question.ad || (q->question.variant & HYDNS_VARIANT_DO));
	/* RD is the only flag that flags[0] of an admitted query can have. */
	__u32 flags = rule->reply_flags | asked->flags[0] | (ad ? HYDNS_FLAGS_AD << 8 : 0);
	__u32 arcount = bpf_htons(rule->arcount + q->question.edns), *word = (void *)h, w;

	w = asked->id | flags << 16;
	word[0] = w;
	layout->sum += w;
	w = bpf_htons(1) | (__u32)bpf_htons(rule->ancount) << 16;
	word[1] = w;
	layout->sum += w;
	w = bpf_htons(rule->nscount) | arcount << 16;
	word[2] = w;
	layout->sum += w;
}

static __always_inline void hydns_write_udp(struct udphdr *udp, const struct hydns_query *q,
					    const struct hydns_layout *layout)
{
	__u64 sum;
	__u16 check;

	udp->source = q->packet.service.port;
	udp->dest = q->packet.sport;
	udp->len = bpf_htons(sizeof(*udp) + layout->dns_len);
	sum = q->packet.addr_sum + bpf_htons(IPPROTO_UDP) + udp->len; /* pseudo-header */
	sum += udp->source;
	sum += udp->dest;
	sum += udp->len;
	check = ~hydns_fold(sum + hydns_fold(layout->sum));
	udp->check = check ? check : 0xffff; /* 0 would mean "no checksum" */
}

/*
 * Sets DF only on a reply that every path takes. A larger one must stay fragmentable, as the resolver's own datagrams are, or
 * a client behind a tunnel would never get it. Its IP identification is the query's DNS id.
 */
static __always_inline void hydns_write_ipv4(struct iphdr *ip, const struct hydns_query *q, __u32 len)
{
	bool atomic = len <= HYDNS_IPV4_EVERY_PATH;
	__be32 addr = ip->saddr;
	__u32 *word = (void *)ip, length, fragment, lives = HYDNS_HOP_LIMIT | IPPROTO_UDP << 8;

	ip->saddr = ip->daddr;
	ip->daddr = addr;
	length = 0x45 | (__u32)bpf_htons(len) << 16;     /* version and header length; TOS 0 */
	fragment = atomic ? (__u32)bpf_htons(HYDNS_IP_DF) << 16 : *(const __be16 *)q->question.message;
	word[0] = length;
	word[1] = fragment;
	word[2] = lives | (__u32)(__u16)~hydns_fold(q->packet.addr_sum + length + fragment + lives) << 16;
}

static __always_inline void hydns_write_ipv6(struct ipv6hdr *ip, const struct hydns_query *q, __u32 len)
{
	__builtin_memcpy(&ip->saddr, q->packet.service.addr, 16);
	__builtin_memcpy(&ip->daddr, q->packet.client.addr, 16);
	*(__be32 *)ip = bpf_htonl(6U << 28); /* no traffic class, no flow label */
	ip->payload_len = bpf_htons(len - sizeof(*ip));
	ip->hop_limit = HYDNS_HOP_LIMIT;
}

/* Writes all headers, innermost first. The rest of the message must be written and summed already. */
static __always_inline int hydns_write_headers(struct xdp_md *ctx, const struct hydns_query *q,
					       const struct hydns_rule *rule, struct hydns_layout *layout)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 l3 = q->packet.l3_off, udp_off = q->packet.dns_off - sizeof(struct udphdr);
	__u32 ip_len = q->packet.dns_off - q->packet.l3_off + layout->dns_len;
	void *ip;
	struct udphdr *udp;

	if (l3 > HYDNS_L3_MAX || udp_off > HYDNS_L3_MAX + sizeof(struct ipv6hdr))
		return -1;
	udp = data + udp_off;
	HYDNS_OPAQUE(udp);
	ip = data + l3;
	HYDNS_OPAQUE(ip);
	if ((void *)(udp + 1) + HYDNS_DNS_HEADER > end ||
	    ip + sizeof(struct ipv6hdr) > end || data + ETH_HLEN > end)
		return -1;
	hydns_write_dns_header((void *)(udp + 1), q, rule, layout);
	hydns_write_udp(udp, q, layout);
	if (q->packet.ipv6)
		hydns_write_ipv6(ip, q, ip_len);
	else
		hydns_write_ipv4(ip, q, ip_len);
	hydns_write_macs(data, &q->reply);
	return 0;
}

/* 0, or -1 with the frame half-written. */
static __always_inline int hydns_answer_write(struct xdp_md *ctx, struct hydns_query *q,
					      const struct hydns_resolver_config *cfg,
					      const struct hydns_rule *rule, struct hydns_layout *layout, bool below)
{
	__u64 fixed = (__u64)q->question.qtype + bpf_htons(HYDNS_CLASS_IN);

	layout->sum = q->question.name_sum + hydns_sum_at(fixed, q->question.name_len);
	if (below ? hydns_store_below(ctx, q, rule, layout) : hydns_write_data(ctx, q, rule, layout))
		return -1;
	if (hydns_write_ttls(ctx, rule, layout))
		return -1;
	if (below && hydns_write_pointers(ctx, q, rule, layout))
		return -1;
	if (rule->rotation_count && (cfg->flags & HYDNS_RESOLVER_ROTATES) &&
	    hydns_rotate_all(ctx, q, rule, layout, cfg->flags & HYDNS_RESOLVER_SHUFFLES))
		return -1;
	if (hydns_write_opt(ctx, q, cfg, rule, layout))
		return -1;
	return hydns_write_headers(ctx, q, rule, layout);
}

static __always_inline void hydns_count_answer(const struct hydns_query *q, __u32 dns_len)
{
	struct hydns_resolver_count *n = bpf_map_lookup_elem(&hydns_answers, &q->question.resolver);

	if (!n)
		return;
	n->answered++;
	n->ipv6 += q->packet.ipv6;
	n->edns += q->question.edns;
	n->ad += q->question.ad;
	n->octets += dns_len;
	hydns_count_cookie(q, n);
}

/*
 * Makes the frame as long as the reply. Normally it moves the frame's end. A veth copies a query into a buffer hardly longer
 * than the query, but leaves headroom for XDP; then this moves the frame's start and the headers. 0, or the reason; the frame
 * has changed only with ABORTED.
 */
static __always_inline enum hydns_reason hydns_resize(struct xdp_md *ctx, struct hydns_query *q,
						      struct hydns_layout *layout)
{
	int growth = (int)(q->packet.dns_off + layout->dns_len) - (int)q->packet.frame_len;
	__u64 headers = q->packet.dns_off;

	layout->question_stands = !bpf_xdp_adjust_tail(ctx, growth);
	if (layout->question_stands)
		return 0;
	if (growth <= 0 || !hydns_bounded(&headers, HYDNS_HEADERS_MAX) ||
	    bpf_xdp_load_bytes(ctx, 0, q->reply.group_head, headers) || bpf_xdp_adjust_head(ctx, -growth))
		return HYDNS_R_NO_ROOM;
	return bpf_xdp_store_bytes(ctx, 0, q->reply.group_head, headers) ? HYDNS_R_ABORTED : 0;
}

/*
 * The log and the limit of responses decide last. Why they refuse an answer goes to q->cpu.reason, from where a program of its own reads
 * it: with a number that the verifier does not know, or with a few constants, it would follow all ways out of the program for each of
 * the many states here, more instructions than it allows.
 */
#define HYDNS_R_REFUSED HYDNS_R_LIMIT_SLIP

static __always_inline enum hydns_reason hydns_refuse(struct hydns_query *q, int reason)
{
	q->cpu.reason = reason;
	return reason == HYDNS_R_ANSWERED ? HYDNS_R_ANSWERED : HYDNS_R_REFUSED;
}

/*
 * dry: stops before the frame changes and counts nothing. logs: this program logs and limits answers of resolvers that want it. below:
 * the rule is the template for the query's name, and not the query's own rule.
 */
static __always_inline enum hydns_reason hydns_answer(struct xdp_md *ctx, struct hydns_query *q,
						      const struct hydns_resolver_config *cfg,
						      const struct hydns_rule *rule, __u64 now, bool dry, bool logs, bool below)
{
	bool logged = logs && !dry && (cfg->flags & HYDNS_RESOLVER_LOGS), rated = logs && (cfg->flags & HYDNS_RESOLVER_RATES);
	struct hydns_layout layout = {};
	enum hydns_reason r;
	__u32 *hits;

	layout.data_len = (__u64)q->question.name_len + 4 + rule->answer_len;
	layout.dns_len = HYDNS_DNS_HEADER + layout.data_len + hydns_opt_len(q);
	if ((rule->flags & HYDNS_RULE_ERRORS) && q->question.edns)
		layout.dns_len += hydns_errors_len((void *)rule);
	r = hydns_answer_check(ctx, q, cfg, rule, &layout, now, dry);
	if (r)
		return r;
	if (dry && (cfg->flags & HYDNS_RESOLVER_LOGS) && !hydns_can_log(q))
		return HYDNS_R_UNLOGGED;
	if (dry)
		return rated ? hydns_refuse(q, hydns_rate(q, (void *)rule, true)) : HYDNS_R_ANSWERED;
	layout.answer_off = q->packet.dns_off + HYDNS_DNS_HEADER + q->question.name_len + 4;
	layout.ttls = HYDNS_RULE_TTLS(below ? rule->name_len : q->question.name_len, rule->answer_len);
	hits = hydns_hits_here(&q->cpu, rule);
	if (!hits)
		return HYDNS_R_NO_ENTRY;
	/* Unlike the query's id and the time, by which the resolver rotates, the count of answers from this rule is evenly
	 * spread: a client may always use the same id. */
	hydns_choose_rotation(rule, hits, &q->reply);
	if (!(rule->flags & HYDNS_RULE_STATIC_TTL) && now > rule->base_ns)
		layout.seconds = (now - rule->base_ns) / HYDNS_NS_PER_S;
	if (logged && (r = hydns_refuse(q, hydns_log_begin(ctx, q))))
		return r;
	if (rated && (r = hydns_refuse(q, hydns_rate(q, (void *)rule, false))))
		return r;
	r = hydns_resize(ctx, q, &layout);
	if (r) {
		if (rated)
			hydns_rate_return(q, (void *)rule);
		return r;
	}
	if (hydns_answer_write(ctx, q, cfg, rule, &layout, below))
		return HYDNS_R_ABORTED;
	if (logged)
		hydns_log_end(ctx, q, layout.dns_len);
	hydns_count_hit(&q->cpu, rule, hits);
	hydns_count_answer(q, layout.dns_len);
	return HYDNS_R_ANSWERED;
}

#endif
