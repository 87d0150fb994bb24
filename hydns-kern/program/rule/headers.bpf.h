/* SPDX-License-Identifier: GPL-2.0-only */
/* The reply's headers, from Ethernet to DNS. */
#ifndef HYDNS_KERN_PROGRAM_RULE_HEADERS_BPF_H
#define HYDNS_KERN_PROGRAM_RULE_HEADERS_BPF_H

#include "hydns-kern/program/rule/layout.bpf.h"
#include "hydns-kern/program/packet/route.bpf.h"

#define HYDNS_HOP_LIMIT        64
#define HYDNS_IPV4_EVERY_PATH  576  /* RFC 791: every host accepts a datagram of this size */
#define HYDNS_IPV6_EVERY_PATH  1280 /* RFC 8200: the least MTU of a link */

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

#endif
