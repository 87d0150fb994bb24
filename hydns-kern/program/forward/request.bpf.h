/* SPDX-License-Identifier: GPL-2.0-only */
/* The frame of a request, made in scratch: Ethernet with its tags, IP, UDP, and the question with an OPT record. */
#ifndef HYDNS_KERN_PROGRAM_FORWARD_REQUEST_BPF_H
#define HYDNS_KERN_PROGRAM_FORWARD_REQUEST_BPF_H

#include "hydns-kern/program/forward/letters.bpf.h"
#include "hydns-kern/program/forward/maps.bpf.h"
#include "hydns-kern/program/rule/answer.bpf.h"

/* Where the message begins in scratch: its name is then aligned to words, and the headers of either family have room before it. */
#define HYDNS_REQUEST_MESSAGE  76
#define HYDNS_REQUEST_NAME     (HYDNS_REQUEST_MESSAGE + HYDNS_DNS_HEADER)
#define HYDNS_REQUEST_TAIL     (4 + HYDNS_OPT_LEN)  /* type, class, OPT */
#define HYDNS_REQUEST_OCTETS   (HYDNS_DNS_HEADER + HYDNS_NAME_MAX + HYDNS_REQUEST_TAIL)
#define HYDNS_REQUEST_IPV4     (ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr))
#define HYDNS_REQUEST_IPV6     (ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct udphdr))
#define HYDNS_REQUEST_TAGS     (HYDNS_FORWARD_TAGS * sizeof(struct hydns_vlan_tag))
#define HYDNS_REQUEST_FRAME    (HYDNS_REQUEST_IPV6 + HYDNS_REQUEST_TAGS + HYDNS_REQUEST_OCTETS)
_Static_assert(HYDNS_REQUEST_NAME % 8 == 0 && HYDNS_REQUEST_MESSAGE >= HYDNS_REQUEST_IPV6 + HYDNS_REQUEST_TAGS, "room and alignment");

struct hydns_request_tail {
	__u16 type, class;
	struct hydns_opt opt;
} __attribute__((packed));
_Static_assert(sizeof(struct hydns_request_tail) == HYDNS_REQUEST_TAIL, "the message's end");

/* Writes the message; returns its length. */
static __always_inline __u32 hydns_request_message(__u8 *scratch, const struct hydns_question *q, __u64 letters, __u16 id)
{
	__u64 len = q->name_len, *name = (void *)(scratch + HYDNS_REQUEST_NAME);
	struct hydns_dns_header *h = (void *)(scratch + HYDNS_REQUEST_MESSAGE);
	struct hydns_request_tail *tail;

	*h = (struct hydns_dns_header){ .id = id, .flags = { HYDNS_FLAGS_RD, 0 }, .qdcount = bpf_htons(1), .arcount = bpf_htons(1) };
	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		if (i * 8 >= len)
			break;
		name[i] = hydns_capitals8(q->name[i], letters, i);
	}
	if (!hydns_bounded(&len, HYDNS_NAME_MAX))
		return 0;
	tail = (void *)(scratch + HYDNS_REQUEST_NAME + len);
	*tail = (struct hydns_request_tail){
		.type = q->qtype, .class = bpf_htons(HYDNS_CLASS_IN),
		.opt = { .type = bpf_htons(HYDNS_TYPE_OPT), .size = bpf_htons(HYDNS_FORWARD_ANSWER) },
	};
	*(__u64 *)(tail + 1) = 0;      /* the sum reads whole words */
	return HYDNS_DNS_HEADER + len + HYDNS_REQUEST_TAIL;
}

/* Where a datagram comes from and goes to, for its headers. */
static __always_inline void hydns_request_udp(struct udphdr *udp, const struct hydns_forward_way *way, __u32 port, __u32 len,
					      __u64 sum)
{
	__u16 check;

	*udp = (struct udphdr){ .source = bpf_htons(port), .dest = way->port, .len = bpf_htons(sizeof(*udp) + len) };
	sum += bpf_htons(IPPROTO_UDP) + (__u64)udp->len + udp->source + udp->dest + udp->len;
	check = ~hydns_fold(sum);
	udp->check = check ? check : 0xffff; /* 0 would mean "no checksum" */
}

static __always_inline void hydns_request_ipv4(struct iphdr *ip, const struct hydns_forward_way *way, __u32 len)
{
	*ip = (struct iphdr){
		.version = 4, .ihl = 5, .tot_len = bpf_htons(len), .frag_off = bpf_htons(HYDNS_IP_DF), .ttl = HYDNS_HOP_LIMIT,
		.protocol = IPPROTO_UDP,
	};
	__builtin_memcpy(&ip->saddr, way->source + 12, 4);
	__builtin_memcpy(&ip->daddr, way->addr + 12, 4);
	ip->check = ~hydns_fold(hydns_sum_words(ip, sizeof(*ip) / 4));
}

static __always_inline void hydns_request_ipv6(struct ipv6hdr *ip, const struct hydns_forward_way *way, __u32 payload)
{
	*(__be32 *)ip = bpf_htonl(6U << 28);
	ip->payload_len = bpf_htons(payload);
	ip->nexthdr = IPPROTO_UDP;
	ip->hop_limit = HYDNS_HOP_LIMIT;
	__builtin_memcpy(&ip->saddr, way->source, 16);
	__builtin_memcpy(&ip->daddr, way->addr, 16);
}

static __always_inline void hydns_request_tag(__u8 *at, __u16 tag)
{
	__be16 *field = (void *)at;

	field[0] = HYDNS_FORWARD_TAG_IS_PROVIDERS(tag) ? bpf_htons(ETH_P_8021AD) : bpf_htons(ETH_P_8021Q);
	field[1] = bpf_htons(tag & HYDNS_FORWARD_TAG_ID);
}

/* Writes Ethernet addresses, tags and type before the IP header; returns the frame's start. */
static __always_inline __u32 hydns_request_ethernet(__u8 *scratch, const struct hydns_forward_way *way, __u32 ip, __be16 type)
{
	*(__be16 *)(scratch + ip - sizeof(type)) = type;
	if (!hydns_vlan || !way->tag[0]) {
		__builtin_memcpy(scratch + ip - ETH_HLEN, way->macs, 2 * ETH_ALEN);
		return ip - ETH_HLEN;
	}
	hydns_request_tag(scratch + ip - sizeof(type) - sizeof(struct hydns_vlan_tag), way->tag[0]);
	if (!way->tag[1]) {
		__builtin_memcpy(scratch + ip - ETH_HLEN - sizeof(struct hydns_vlan_tag), way->macs, 2 * ETH_ALEN);
		return ip - ETH_HLEN - sizeof(struct hydns_vlan_tag);
	}
	hydns_request_tag(scratch + ip - sizeof(type) - HYDNS_REQUEST_TAGS, way->tag[1]);
	__builtin_memcpy(scratch + ip - ETH_HLEN - HYDNS_REQUEST_TAGS, way->macs, 2 * ETH_ALEN);
	return ip - ETH_HLEN - HYDNS_REQUEST_TAGS;
}

/* Writes all headers before the message; returns the frame's start in scratch. */
static __always_inline __u32 hydns_request_headers(__u8 *scratch, const struct hydns_forward_way *way, bool ipv6, __u32 port,
						   __u32 len, __u64 sum)
{
	const __u32 ip4 = HYDNS_REQUEST_MESSAGE - HYDNS_REQUEST_IPV4 + ETH_HLEN, ip6 = HYDNS_REQUEST_MESSAGE - HYDNS_REQUEST_IPV6 + ETH_HLEN;
	__u32 udp_len = sizeof(struct udphdr) + len;

	/* The first words of an IPv4 address in IPv6 form would count in the sum. */
	if (ipv6)
		sum += hydns_sum_words(way->source, 4) + hydns_sum_words(way->addr, 4);
	else
		sum += (__u64)*(const __u32 *)(way->source + 12) + *(const __u32 *)(way->addr + 12);
	hydns_request_udp((void *)(scratch + HYDNS_REQUEST_MESSAGE - sizeof(struct udphdr)), way, port, len, sum);
	if (ipv6) {
		hydns_request_ipv6((void *)(scratch + ip6), way, udp_len);
		return hydns_request_ethernet(scratch, way, ip6, bpf_htons(ETH_P_IPV6));
	}
	hydns_request_ipv4((void *)(scratch + ip4), way, sizeof(struct iphdr) + udp_len);
	return hydns_request_ethernet(scratch, way, ip4, bpf_htons(ETH_P_IP));
}

#endif
