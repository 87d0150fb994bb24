/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage 3: the DNS message. Copies it once into scratch, verifies the UDP checksum, then reads header, question and EDNS.
 * Only an ordinary query goes on: one question, and at most an OPT record (RFC 1035, RFC 6891).
 */
#ifndef HYDNS_KERN_PROGRAM_DNS_MESSAGE_BPF_H
#define HYDNS_KERN_PROGRAM_DNS_MESSAGE_BPF_H

#include "hydns-kern/program/packet/parse.bpf.h"
#include "hydns/cookie.h"
#include "hydns/dns.h"

#define HYDNS_QUERY_MIN        (HYDNS_DNS_HEADER + 5)  /* the root's name, type, class */
#define HYDNS_LABELS_MAX       128  /* 127 labels of one octet, and the root */
#define HYDNS_OPTIONS_MAX      8    /* EDNS options that are read; a query with more of them passes */
#define HYDNS_COOKIE_OPTION_LEN (4 + HYDNS_COOKIE_LEN)
#define HYDNS_FLAGS_QR         0x80 /* in the first octet of the flags */
#define HYDNS_FLAGS_AA         0x04
#define HYDNS_FLAGS_TC         0x02
#define HYDNS_FLAGS_RD         0x01
#define HYDNS_FLAGS_RA         0x80 /* in the second */
#define HYDNS_FLAGS_AD         0x20
#define HYDNS_PLAIN_UDP        512  /* RFC 1035 section 4.2.1; a smaller EDNS size counts as this one (RFC 6891) */

#ifndef HYDNS_SHOW_MESSAGE
#define HYDNS_SHOW_MESSAGE(q, len)      /* the fuzzer unpoisons this much of the scratch */
#endif

struct hydns_dns_header {
	__u16 id;
	__u8  flags[2];
	__u16 qdcount, ancount, nscount, arcount;
};
struct hydns_opt {
	__u8  root;
	__u16 type;
	__u16 size;
	__u8  rcode;         /* upper octet of the extended RCODE */
	__u8  version;
	__u16 flags;
	__u16 rdlen;
} __attribute__((packed));
_Static_assert(sizeof(struct hydns_dns_header) == HYDNS_DNS_HEADER, "DNS header");
_Static_assert(sizeof(struct hydns_opt) == HYDNS_OPT_LEN, "OPT record");

/*
 * Copies the message into scratch, followed by zeros up to the next word, and returns its folded sum, or -1 when it is not
 * within the frame's first buffer. It copies and sums word by word: for the length of a query a helper and a second pass
 * for the sum cost more.
 */
static __always_inline int hydns_message_take(struct xdp_md *ctx, struct hydns_query *q)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end, *message;
	__u64 off = q->packet.dns_off, len = q->packet.message_len, sum = 0, i, last, rest, at;

	if (off > HYDNS_HEADERS_MAX || len < HYDNS_QUERY_MIN || len > HYDNS_QUERY_MAX)
		return -1;
	HYDNS_SHOW_MESSAGE(&q->question, len);
	message = data + off;
	HYDNS_OPAQUE(message);
	if (message + HYDNS_DNS_HEADER > end)
		return -1;
	/* 32 bits at a time up to the question, then in the words of 64 bits in which the question is read later. */
	for (i = 0; i < HYDNS_DNS_HEADER; i += 4) {
		*(__u32 *)(q->question.message + i) = *(__u32 *)(message + i);
		sum += *(__u32 *)(message + i);
	}
	for (i = HYDNS_DNS_HEADER; i + 8 <= len && i < HYDNS_QUERY_MAX; i += 8) {
		__u64 w;

		if (message + i + 8 > end)
			return -1;
		w = *(__u64 *)(message + i);
		*(__u64 *)(q->question.message + i) = w;
		sum += (w >> 32) + (__u32)w;
	}
	/* Reload the length: the 6.1 verifier derives wrong bounds from the loop. */
	len = *(const volatile __u16 *)&q->packet.message_len;
	last = len - 8;
	HYDNS_OPAQUE(last);   /* one offset for the verifier; clang would add the length and subtract 8 */
	if (last > HYDNS_QUERY_MAX)
		return -1;
	message += last;
	HYDNS_OPAQUE(message);
	if (message + 8 > end)
		return -1;
	/* Load the last eight octets and shift out those that the loop has copied already. */
	last = *(__u64 *)message;
	rest = (len - HYDNS_DNS_HEADER) & 7;
	last = rest ? last >> (64 - 8 * rest) : 0;
	at = len - rest;
	if (at > HYDNS_QUERY_MAX)
		return -1;
	*(__u64 *)(q->question.message + at) = last;
	return hydns_fold(sum + (last >> 32) + (__u32)last);
}

static __always_inline enum hydns_reason hydns_udp_verify(struct xdp_md *ctx, const struct hydns_packet *p,
							   __u32 message_sum)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	__u64 off = p->dns_off - sizeof(struct udphdr), pseudo;
	struct udphdr *udp;

	if (off > HYDNS_L3_MAX + sizeof(struct ipv6hdr))
		return HYDNS_R_FRAME_CUT;
	udp = data + off;
	HYDNS_OPAQUE(udp);
	if ((void *)(udp + 1) > end)
		return HYDNS_R_FRAME_CUT;
	if (!udp->check)
		return p->ipv6 ? HYDNS_R_BAD_CHECKSUM : 0; /* none: RFC 768 allows it, RFC 8200 does not */
	pseudo = p->addr_sum + bpf_htons(IPPROTO_UDP) + udp->len;
	if (hydns_partial_checksum && udp->check == hydns_fold(pseudo))
		return 0;
	if (hydns_fold(pseudo + hydns_sum_words(udp, 2) + message_sum) != 0xffff)
		return HYDNS_R_BAD_CHECKSUM;
	return 0;
}

static __always_inline enum hydns_reason hydns_dns_copy(struct xdp_md *ctx, struct hydns_query *q)
{
	int sum;

	if (q->packet.message_len < HYDNS_QUERY_MIN)
		return HYDNS_R_DNS_UNUSUAL;
	if (q->packet.message_len > HYDNS_QUERY_MAX)
		return HYDNS_R_TOO_LONG;
	sum = hydns_message_take(ctx, q);
	return sum < 0 ? HYDNS_R_FRAME_CUT : hydns_udp_verify(ctx, &q->packet, sum);
}

static __always_inline enum hydns_reason hydns_dns_header(struct hydns_question *q)
{
	const struct hydns_dns_header *h = (void *)q->message;

	/* Of all flags only RD and AD may be set; opcode and RCODE must be 0. */
	if ((h->flags[0] & ~HYDNS_FLAGS_RD) || (h->flags[1] & ~HYDNS_FLAGS_AD))
		return HYDNS_R_DNS_UNUSUAL;
	if (h->qdcount != bpf_htons(1) || h->ancount || h->nscount ||
	    (h->arcount && h->arcount != bpf_htons(1)))
		return HYDNS_R_DNS_UNUSUAL;
	q->variant = h->flags[0] ? 0 : HYDNS_VARIANT_NO_RD;
	q->ad = !!(h->flags[1] & HYDNS_FLAGS_AD);
	q->edns = !!h->arcount;
	return 0;
}

/* Length of the question's name with its root label; 0 when a label is compressed, of an extended type or too long, or when
 * the name does not end within HYDNS_NAME_MAX. */
static __always_inline __u32 hydns_name_len(struct hydns_question *q)
{
	__u32 off = 0;

	for (int i = 0; i < HYDNS_LABELS_MAX; i++) {
		__u32 label;

		if (off >= HYDNS_NAME_MAX)
			return 0;
		label = q->message[HYDNS_DNS_HEADER + off];
		if (!label)
			return off + 1;
		if (label > 63)
			return 0;
		off += label + 1;
	}
	return 0;
}

static __always_inline enum hydns_reason hydns_dns_question(struct hydns_question *q, __u32 len)
{
	__u32 n = hydns_name_len(q), type;
	const __u16 *fixed;

	HYDNS_OPAQUE(n);
	if (!n || n > HYDNS_NAME_MAX || HYDNS_DNS_HEADER + n + 4 > len)
		return HYDNS_R_QUESTION_UNUSUAL;
	fixed = (void *)(q->message + HYDNS_DNS_HEADER + n);
	q->name_len = n;
	q->qtype = fixed[0];
	type = bpf_ntohs(fixed[0]);
	if (fixed[1] != bpf_htons(HYDNS_CLASS_IN) || !type || type == HYDNS_TYPE_OPT ||
	    (type >= HYDNS_TYPE_META_FIRST && type < HYDNS_TYPE_ANY))
		return HYDNS_R_QUESTION_UNUSUAL;
	return 0;
}

/* Records the COOKIE option with len octets of data at pos, if it is the first: the resolver ignores others. False: its
 * length is malformed (RFC 7873 section 4). */
static __always_inline bool hydns_option_cookie(struct hydns_question *q, __u32 pos, __u32 len)
{
	if (q->cookie_len)
		return true;
	q->cookie_at = pos;
	q->cookie_len = len;
	return len == HYDNS_COOKIE_CLIENT_LEN || (len >= HYDNS_COOKIE_MIN && len <= HYDNS_COOKIE_MAX);
}

/*
 * Reads the options from pos to the message's end; 0: the query passes. An option that may change an answer over UDP makes
 * the query pass. All others are ignored, as the resolver ignores them: DAU, DHU, N3U, KEEPALIVE (TCP alone), PADDING (TLS
 * alone), CHAIN, KEY-TAG, unassigned and experimental codes. A strict resolver refuses options of a wrong length, so there
 * every option but one COOKIE makes the query pass.
 */
static __noinline __u32 hydns_options_ok(struct hydns_question *q, __u32 pos, __u32 end, __u32 resolver_flags)
{
	for (int i = 0; i < HYDNS_OPTIONS_MAX; i++) {
		const __u16 *option;
		__u32 len;

		if (pos == end)
			return 1;
		if (pos > HYDNS_QUERY_MAX - 4 || pos + 4 > end)
			return 0;
		option = (void *)(q->message + pos);
		len = bpf_ntohs(option[1]);
		pos += 4;
		switch (bpf_ntohs(option[0])) {
		case HYDNS_OPTION_NSID:
		case HYDNS_OPTION_SUBNET:
		case HYDNS_OPTION_EXPIRE:
			return 0;
		case HYDNS_OPTION_COOKIE:
			if ((resolver_flags & HYDNS_RESOLVER_STRICT_EDNS) && q->cookie_len)
				return 0;
			if (!(resolver_flags & HYDNS_RESOLVER_IGNORES_COOKIE) && !hydns_option_cookie(q, pos, len))
				return 0;
			break;
		default:
			if (resolver_flags & HYDNS_RESOLVER_STRICT_EDNS)
				return 0;
		}
		pos += len;
	}
	return pos == end;
}

static __always_inline enum hydns_reason hydns_dns_edns(struct hydns_question *q, __u32 len, __u32 resolver_flags)
{
	__u32 pos = HYDNS_DNS_HEADER + q->name_len + 4;
	const struct hydns_opt *opt = (void *)(q->message + pos);

	q->edns_size = 0;
	q->cookie_len = 0;
	if (!q->edns)
		return pos == len ? 0 : HYDNS_R_DNS_UNUSUAL;
	if (pos + sizeof(*opt) > len || opt->root || opt->type != bpf_htons(HYDNS_TYPE_OPT) ||
	    pos + sizeof(*opt) + bpf_ntohs(opt->rdlen) != len)
		return HYDNS_R_EDNS_UNUSUAL;
	if (opt->rcode || opt->version || (opt->flags & ~bpf_htons(HYDNS_EDNS_DO)))
		return HYDNS_R_EDNS_UNUSUAL;
	if (opt->rdlen && !hydns_options_ok(q, pos + sizeof(*opt), len, resolver_flags))
		return HYDNS_R_EDNS_UNUSUAL;
	q->variant |= opt->flags ? HYDNS_VARIANT_DO : 0;
	q->edns_size = bpf_ntohs(opt->size);
	return 0;
}

#endif
