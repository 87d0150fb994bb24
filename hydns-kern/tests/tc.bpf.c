// SPDX-License-Identifier: GPL-2.0-only
/* The tc program of test_programs: counts the frames of one protocol and lets every frame go on. */
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define COUNTED 0x88b5      /* IEEE Std 802: local experimental EtherType 1 */

__u64 frames;

SEC("tc")
int count(struct __sk_buff *skb)
{
	if (skb->protocol == bpf_htons(COUNTED))
		__sync_fetch_and_add(&frames, 1);
	return TC_ACT_UNSPEC;
}

char _license[] SEC("license") = "GPL";
