// SPDX-License-Identifier: GPL-2.0-only
/* Hands queries to dnsdist's AF_XDP socket: those for an address and port that dnsdist has put into a map; the rest
 * goes to the network stack. Layout of keys and names of maps are dnsdist's. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

struct destination_v4 {
	__be32 addr;
	__be16 port;
	__u16 zero;
};

struct destination_v6 {
	struct in6_addr addr;
	__be16 port;
	__u16 zero;
};

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 16);
} xskmap SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct destination_v4);
	__type(value, bool);
	__uint(max_entries, 16);
} destinations_v4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct destination_v6);
	__type(value, bool);
	__uint(max_entries, 16);
} destinations_v6 SEC(".maps");

static bool is_ours(void *ip, void *end, __be16 proto)
{
	struct ipv6hdr *v6 = ip;
	struct iphdr *v4 = ip;
	struct udphdr *udp;

	if (proto == bpf_htons(ETH_P_IP)) {
		struct destination_v4 d = { 0 };

		udp = (void *)(v4 + 1);
		if ((void *)(udp + 1) > end || v4->ihl != 5 || v4->protocol != IPPROTO_UDP)
			return false;
		d.addr = v4->daddr;
		d.port = udp->dest;
		return bpf_map_lookup_elem(&destinations_v4, &d);
	}
	if (proto == bpf_htons(ETH_P_IPV6)) {
		struct destination_v6 d = { 0 };

		udp = (void *)(v6 + 1);
		if ((void *)(udp + 1) > end || v6->nexthdr != IPPROTO_UDP)
			return false;
		d.addr = v6->daddr;
		d.port = udp->dest;
		return bpf_map_lookup_elem(&destinations_v6, &d);
	}
	return false;
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;

	if ((void *)(eth + 1) > end || !is_ours(eth + 1, end, eth->h_proto))
		return XDP_PASS;
	return bpf_redirect_map(&xskmap, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "GPL";
