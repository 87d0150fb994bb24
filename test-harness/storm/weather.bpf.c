// SPDX-License-Identifier: GPL-2.0-only
/* What a bad network does with UDP packets, by chance (storm/network.py): for clsact of a link, at either end. Not every kernel has
 * the scheduler netem.
 *   loss         drops
 *   duplication  sends or receives once more
 *   lateness     a classifier: those that the filter's action takes along a slower way */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define PERCENT (0xffffffffU / 100)
#define LOSS (5 * PERCENT)
#define DUPLICATION (5 * PERCENT)
#define LATENESS (10 * PERCENT)
#define AGAIN 0x73746f72        /* mark of a packet that is there a second time */
#define IPV4_PROTOCOL (ETH_HLEN + 9)
#define IPV6_NEXT (ETH_HLEN + 6)

/* Neighbours' questions and the like are spared: a lost one stands for seconds. */
static int is_udp(struct __sk_buff *skb)
{
	__u8 protocol = 0;
	int at = skb->protocol == bpf_htons(ETH_P_IP) ? IPV4_PROTOCOL : skb->protocol == bpf_htons(ETH_P_IPV6) ? IPV6_NEXT : 0;

	return at && !bpf_skb_load_bytes(skb, at, &protocol, sizeof(protocol)) && protocol == IPPROTO_UDP;
}

static int happens(struct __sk_buff *skb, __u32 chance)
{
	return is_udp(skb) && bpf_get_prandom_u32() < chance;
}

SEC("tc/loss")
int loss(struct __sk_buff *skb)
{
	return happens(skb, LOSS) ? TC_ACT_SHOT : TC_ACT_OK;
}

/* The second one comes by here as well. */
SEC("tc/duplication")
int duplication(struct __sk_buff *skb)
{
	if (skb->mark == AGAIN || !happens(skb, DUPLICATION))
		return TC_ACT_OK;
	skb->mark = AGAIN;
	bpf_clone_redirect(skb, skb->ifindex, skb->ingress_ifindex ? BPF_F_INGRESS : 0);
	skb->mark = 0;
	return TC_ACT_OK;
}

SEC("tc/lateness")
int lateness(struct __sk_buff *skb)
{
	return happens(skb, LATENESS) ? -1 : 0;
}

char LICENSE[] SEC("license") = "GPL";
