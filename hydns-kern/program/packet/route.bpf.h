/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which way the reply leaves. By default it goes back the way that the query came, with addresses swapped. With reply-path
 * fib it takes the way that the kernel's routing tables give to a packet of this host from the service's address to the
 * client's: out of the same interface, or out of another one that the program is attached to.
 */
#ifndef HYDNS_KERN_PROGRAM_PACKET_ROUTE_BPF_H
#define HYDNS_KERN_PROGRAM_PACKET_ROUTE_BPF_H

#include "hydns-kern/program/miss/replays.bpf.h"
#include "hydns-kern/program/packet/parse.bpf.h"

#define HYDNS_FAMILY_IPV4      2    /* AF_INET and AF_INET6: libc's header is not for BPF */
#define HYDNS_FAMILY_IPV6      10
/* A look-up with this ifindex finds the route of the host's own packets, including policy rules with `iif lo'. */
#define HYDNS_LOOPBACK         1

static __always_inline bool hydns_route_link_local(const struct hydns_packet *p)
{
	return p->ipv6 && p->client.addr[0] == 0xfe && (p->client.addr[1] & 0xc0) == 0x80;
}

static __always_inline bool hydns_route_no_neighbour(const struct bpf_fib_lookup *p)
{
	/* Linux 6.1 also returns a neighbour that is not resolved yet. */
	return !(p->dmac[0] | p->dmac[1] | p->dmac[2] | p->dmac[3] | p->dmac[4] | p->dmac[5]);
}

/* Stores in q->reply the way of a reply of ip_len octets; 0, or why it must pass. Changes no packet. A tagged query passes,
 * because its route leads to the VLAN's device, which XDP can't send on; so does one with a link-local source, which needs
 * a scope. */
static __always_inline enum hydns_reason hydns_route(struct xdp_md *ctx, struct hydns_query *q, __u32 ip_len)
{
	struct bpf_fib_lookup p = {
		.family = q->packet.ipv6 ? HYDNS_FAMILY_IPV6 : HYDNS_FAMILY_IPV4,
		.l4_protocol = IPPROTO_UDP,
		.sport = q->packet.service.port,
		.dport = q->packet.sport,
		.tot_len = ip_len,
		.ifindex = HYDNS_LOOPBACK,
	};
	int rc;

	if (!hydns_fib)
		return 0;
	if (q->packet.l3_off != ETH_HLEN || hydns_route_link_local(&q->packet))
		return HYDNS_R_NO_ROUTE;
	if (q->packet.ipv6) {
		__builtin_memcpy(p.ipv6_src, q->packet.service.addr, 16);
		__builtin_memcpy(p.ipv6_dst, q->packet.client.addr, 16);
	} else {
		__builtin_memcpy(&p.ipv4_src, q->packet.service.addr + 12, 4);
		__builtin_memcpy(&p.ipv4_dst, q->packet.client.addr + 12, 4);
	}
	rc = bpf_fib_lookup(ctx, &p, sizeof(p), 0);
	if (rc == BPF_FIB_LKUP_RET_FRAG_NEEDED)
		return HYDNS_R_TOO_BIG;
	if (rc != BPF_FIB_LKUP_RET_SUCCESS || hydns_route_no_neighbour(&p))
		return HYDNS_R_NO_ROUTE;
	q->reply.out = p.ifindex == ctx->ingress_ifindex ? 0 : p.ifindex;
	if (q->reply.out && !bpf_map_lookup_elem(&hydns_out, &q->reply.out))
		return HYDNS_R_NO_ROUTE;
	if (q->cpu.replaying && hydns_by_another_link(p.ifindex))
		return HYDNS_R_PARKED;
	__builtin_memcpy(q->reply.out_macs, p.dmac, ETH_ALEN);
	__builtin_memcpy(q->reply.out_macs + ETH_ALEN, p.smac, ETH_ALEN);
	return 0;
}

/* The XDP action that sends the reply. */
static __always_inline int hydns_send(const struct hydns_reply *reply)
{
	return hydns_fib && reply->out ? bpf_redirect_map(&hydns_out, reply->out, 0) : XDP_TX;
}

static __always_inline void hydns_write_macs(struct ethhdr *eth, const struct hydns_reply *reply)
{
	__u8 mac[ETH_ALEN];

	if (hydns_fib) {
		__builtin_memcpy(eth, reply->out_macs, 2 * ETH_ALEN);
		return;
	}
	__builtin_memcpy(mac, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, mac, ETH_ALEN);
}

#endif
