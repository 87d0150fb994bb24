/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stage 1: Ethernet, VLAN tags, IPv4 or IPv6, UDP, with a cursor over the frame. Each parser returns HYDNS_R_ANSWERED (0)
 * to go on, or the reason to pass. None writes to the frame.
 */
#ifndef HYDNS_KERN_PROGRAM_PACKET_PARSE_BPF_H
#define HYDNS_KERN_PROGRAM_PACKET_PARSE_BPF_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include "hydns-kern/program/query.bpf.h"

#define HYDNS_VLAN_TAGS        2       /* a provider's tag, then a customer's (802.1ad) */
#define HYDNS_L3_MAX           (ETH_HLEN + 4 * HYDNS_VLAN_TAGS)
/* Most octets of headers before the DNS message: VLAN tags and IPv6. */
#define HYDNS_HEADERS_MAX      (HYDNS_L3_MAX + sizeof(struct ipv6hdr) + sizeof(struct udphdr))
#define HYDNS_IP_DF            0x4000

struct hydns_vlan_tag {
	__u16 tci;
	__be16 proto;
};

struct hydns_cursor {
	void *pos;
	void *end;
};

/* Refuses a frame with the group bit in either Ethernet address: its reply would come from a group address, or go to one. */
static __always_inline enum hydns_reason hydns_parse_eth(struct hydns_cursor *c, struct hydns_packet *p,
							 __be16 *proto)
{
	struct ethhdr *eth = c->pos;

	if ((void *)(eth + 1) > c->end)
		return HYDNS_R_FRAME_CUT;
	if ((eth->h_dest[0] | eth->h_source[0]) & 1)
		return HYDNS_R_GROUP_ADDRESS;
	*proto = eth->h_proto;
	c->pos = eth + 1;
	p->l3_off = ETH_HLEN;
	if (!hydns_vlan)
		return 0;
#pragma unroll
	for (int i = 0; i < HYDNS_VLAN_TAGS; i++) {
		struct hydns_vlan_tag *tag = c->pos;

		if (*proto != bpf_htons(ETH_P_8021Q) && *proto != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(tag + 1) > c->end)
			return HYDNS_R_FRAME_CUT;
		*proto = tag->proto;
		c->pos = tag + 1;
		p->l3_off += sizeof(*tag);
	}
	return 0;
}

/* *len: octets after the IP header, by its length field; the frame may be longer (padding). */
static __always_inline enum hydns_reason hydns_parse_ipv4(struct hydns_cursor *c, struct hydns_packet *p,
							  __u32 *len)
{
	struct iphdr *ip = c->pos;
	__u32 total;

	if ((void *)(ip + 1) > c->end)
		return HYDNS_R_FRAME_CUT;
	if (ip->protocol != IPPROTO_UDP)
		return HYDNS_R_NOT_UDP;
	total = bpf_ntohs(ip->tot_len);
	if (*(__u8 *)ip != 0x45)
		return HYDNS_R_IP_UNUSUAL;
	if (ip->frag_off & ~bpf_htons(HYDNS_IP_DF))
		return HYDNS_R_FRAGMENT;
	if (total < sizeof(*ip) + sizeof(struct udphdr) || total > c->end - c->pos)
		return HYDNS_R_IP_LENGTH;
	if (hydns_fold(hydns_sum_words(ip, sizeof(*ip) / 4)) != 0xffff)
		return HYDNS_R_BAD_CHECKSUM;
	hydns_map_ipv4(p->client.addr, ip->saddr);
	hydns_map_ipv4(p->service.addr, ip->daddr);
	p->addr_sum = (__u64)ip->saddr + ip->daddr;
	p->ipv6 = 0;
	p->dns_off = p->l3_off + sizeof(*ip) + sizeof(struct udphdr);
	*len = total - sizeof(*ip);
	c->pos = ip + 1;
	return 0;
}

static __always_inline enum hydns_reason hydns_parse_ipv6(struct hydns_cursor *c, struct hydns_packet *p,
							  __u32 *len)
{
	struct ipv6hdr *ip = c->pos;

	if ((void *)(ip + 1) > c->end)
		return HYDNS_R_FRAME_CUT;
	if (*(__u8 *)ip >> 4 != 6)
		return HYDNS_R_IP_UNUSUAL;
	switch (ip->nexthdr) {
	case IPPROTO_UDP:
		break;
	case IPPROTO_FRAGMENT:
		return HYDNS_R_FRAGMENT;
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
		return HYDNS_R_EXTENSION_HEADER;
	default:
		return HYDNS_R_NOT_UDP;
	}
	*len = bpf_ntohs(ip->payload_len);
	if (*len < sizeof(struct udphdr) || (long)(*len + sizeof(*ip)) > c->end - c->pos)
		return HYDNS_R_IP_LENGTH;
	__builtin_memcpy(p->client.addr, &ip->saddr, 16);
	__builtin_memcpy(p->service.addr, &ip->daddr, 16);
	p->addr_sum = hydns_sum_words(&ip->saddr, 8);
	p->ipv6 = 1;
	p->dns_off = p->l3_off + sizeof(*ip) + sizeof(struct udphdr);
	c->pos = ip + 1;
	return 0;
}

static __always_inline enum hydns_reason hydns_parse_udp(struct hydns_cursor *c, struct hydns_packet *p,
							 __u32 len)
{
	struct udphdr *udp = c->pos;

	if ((void *)(udp + 1) > c->end)
		return HYDNS_R_FRAME_CUT;
	if (bpf_ntohs(udp->len) != len)
		return HYDNS_R_UDP_LENGTH;
	p->sport = udp->source;
	p->service.port = udp->dest;
	p->service.reserved = 0;
	p->client.prefixlen = 128;
	p->message_len = len - sizeof(*udp);
	return 0;
}

static __always_inline enum hydns_reason hydns_parse(struct xdp_md *ctx, struct hydns_packet *p)
{
	struct hydns_cursor c = {
		.pos = (void *)(long)ctx->data,
		.end = (void *)(long)ctx->data_end,
	};
	enum hydns_reason r;
	__be16 proto;
	__u32 len;

	p->frame_len = c.end - c.pos;
	r = hydns_parse_eth(&c, p, &proto);
	if (r)
		return r;
	if (proto == bpf_htons(ETH_P_IP))
		r = hydns_parse_ipv4(&c, p, &len);
	else if (hydns_ipv6 && proto == bpf_htons(ETH_P_IPV6))
		r = hydns_parse_ipv6(&c, p, &len);
	else
		return HYDNS_R_NOT_IP;
	return r ? r : hydns_parse_udp(&c, p, len);
}

#endif
