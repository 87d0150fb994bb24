// SPDX-License-Identifier: GPL-2.0-only
/* The XDP program of test_cpus: keeps its CPU for a while when it receives a frame of one protocol. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define SLOW     0x88b5            /* IEEE Std 802: local experimental EtherType 1 */
#define LASTS_NS (20 * 1000000ULL)

__u64 begun, ended;

static long until(__u32 i, const __u64 *end)
{
	(void)i;
	return bpf_ktime_get_ns() >= *end;
}

SEC("xdp")
int slow(struct xdp_md *ctx)
{
	const struct ethhdr *eth = (void *)(long)ctx->data;
	__u64 end = bpf_ktime_get_ns() + LASTS_NS;

	if ((void *)(eth + 1) > (void *)(long)ctx->data_end || eth->h_proto != bpf_htons(SLOW))
		return XDP_PASS;
	__sync_fetch_and_add(&begun, 1);
	bpf_loop(1 << 23, until, &end, 0);
	__sync_fetch_and_add(&ended, 1);
	return XDP_DROP;
}

char _license[] SEC("license") = "GPL";
