/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Another XDP program: counts DNS queries over IPv4, and passes everything. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* Pinned where xdp-loader's --pin-path says. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
	__uint(pinning, LIBBPF_PIN_BY_NAME);
} queries SEC(".maps");

SEC("xdp")
int count_queries(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u32 zero = 0;
	__u64 *count;

	if ((void *)(udp + 1) > end || eth->h_proto != bpf_htons(ETH_P_IP) || ip->protocol != IPPROTO_UDP ||
	    udp->dest != bpf_htons(53))
		return XDP_PASS;
	count = bpf_map_lookup_elem(&queries, &zero);
	if (count)
		__sync_fetch_and_add(count, 1);
	return XDP_PASS;
}

char _license[] SEC("license") = "GPL";
