// SPDX-License-Identifier: GPL-2.0-only
/* For clsact of a client's link, egress (network.py, with_room): appends octets to the Ethernet frames of UDP packets, which all receivers
 * ignore. A veth's XDP program gets a packet in a buffer that is hardly longer; these come in one that is as long as a network card's, so a
 * long reply has room. */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define FRAME 1514              /* as FRAME of batch.py */
#define IPV4_PROTOCOL (ETH_HLEN + 9)
#define IPV6_NEXT (ETH_HLEN + 6)

SEC("tc/room")
int room(struct __sk_buff *skb)
{
	__u8 protocol = 0;
	int at = skb->protocol == bpf_htons(ETH_P_IP) ? IPV4_PROTOCOL : skb->protocol == bpf_htons(ETH_P_IPV6) ? IPV6_NEXT : 0;

	if (at && skb->len < FRAME && !bpf_skb_load_bytes(skb, at, &protocol, sizeof(protocol)) && protocol == IPPROTO_UDP)
		bpf_skb_change_tail(skb, FRAME, 0);
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
