/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load generator in the kernel. pace_generate runs by BPF_PROG_TEST_RUN and writes the next query over the frame: the kernel
 * reuses live frames without resetting them, so the server's changes are still there, also of the length. Live (pace_live)
 * the frame then leaves by its ingress interface; otherwise another program is called on it, so that one test run can time
 * many different queries.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "hydns-kern/cost/rewrite.bpf.h"
#include "hydns-kern/program/packet/fold.bpf.h"
#include "test-harness/bench/kernel/pace.h"

#define SPIN_MAX  (1 << 20)
#define ROOM_SPIN (1 << 9)               /* some microseconds */

const volatile bool pace_live = false;
const volatile __u32 pace_mask = 0;      /* of indexes into the sequence */
const volatile __u16 pace_port = 0;      /* source port of replies, network order */
const volatile __u32 pace_repeated = 0;  /* numbers below this stay as they are in the sequence */

struct pace_template pace_template;
__u32 pace_place;
__u32 pace_start;                        /* added to the place */
__u32 pace_offset;                       /* added to the other numbers */
__u64 pace_gap_ns;                       /* from one query to the next; 0: as fast as possible */
__u64 pace_due_ns;
__u32 pace_window;                       /* queries under way at most; 0: any number, and the next ones are not used */
__u32 pace_queries;                      /* the most queries to send */
__u32 pace_warm;                         /* the reply with which the clock starts; a multiple of PACE_TICK */
__u64 pace_begun_ns;                     /* when the first left */
__u32 pace_batch;                        /* frames that leave together */
__u32 pace_frame;                        /* of this test run: the first of a batch decides for all of it */
__u32 pace_lost;                         /* queries that count as lost */
bool pace_held;                          /* do not send this batch */
struct pace_tally pace_tally;

struct pace_block {
	__u32 number[PACE_BLOCK];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct pace_block);
} pace_sequence SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} pace_next SEC(".maps");

static long is_due(__u32 i, void *due)
{
	(void)i;
	return bpf_ktime_get_ns() >= *(__u64 *)due;
}

/* A busy wait: the test run has the processor to itself and sends frames in batches anyway. */
static __always_inline void wait_until_due(void)
{
	__u64 due = pace_due_ns + pace_gap_ns, now = bpf_ktime_get_ns();

	if (due + 1000000 < now)
		due = now;       /* at the start or after an interruption: do not catch up */
	bpf_loop(SPIN_MAX, is_due, &due, 0);
	pace_due_ns = due;
}

static long has_room(__u32 i, void *most)
{
	(void)i;
	return (__s32)(pace_place - pace_lost - (__u32)pace_tally.replies) <= *(__s32 *)most;
}

/*
 * Whether this frame may leave. A batch leaves as a whole or not at all: its first frame can't be answered before its last one
 * is made. The wait is short, because softirqs are off in a test run and a server behind the resolver may need this processor
 * to answer.
 */
static __always_inline bool room(void)
{
	__s32 most = pace_window - pace_batch;

	if (pace_place >= pace_queries)
		return false;
	if (pace_batch && pace_frame++ % pace_batch == 0) {
		bpf_loop(ROOM_SPIN, has_room, &most, 0);
		pace_held = !has_room(0, &most);
	}
	if (!pace_held && !pace_place)
		pace_begun_ns = bpf_ktime_get_ns();
	return !pace_held;
}

/* The label is at an odd offset of the UDP datagram (after a length octet), so its octets enter the checksum swapped. */
static __always_inline void fill_in(__u32 number)
{
	__u64 label = pace_label(number), sum;
	__u32 label_at = pace_template.label_at, check_at = pace_template.check_at;
	__u16 check;

	if (label_at > PACE_FRAME_MAX - PACE_LABEL || check_at > PACE_FRAME_MAX - 2)
		return;
	sum = (label >> 32) + (__u32)label;
	sum = (__u64)hydns_fold(sum) << 8;
	check = ~hydns_fold((__u16)~pace_template.check + sum);
	*(__u64 *)(pace_template.frame + label_at) = label;
	*(__u16 *)(pace_template.frame + check_at) = check ? check : 0xffff;
}

static __always_inline __u32 next_number(void)
{
	__u32 place = (pace_start + pace_place++) & pace_mask, block = place / PACE_BLOCK;
	struct pace_block *b = bpf_map_lookup_elem(&pace_sequence, &block);
	__u32 number = b ? b->number[place % PACE_BLOCK] : 0;

	return number < pace_repeated ? number : number + pace_offset;
}

/* The same program type as the program under test, so that this can call it. */
SEC("xdp.frags")
int pace_generate(struct xdp_md *ctx)
{
	if (pace_live && pace_gap_ns)
		wait_until_due();
	if (pace_live && pace_window && !room())
		return XDP_DROP;
	fill_in(next_number());
	if (!hydns_rewrite(ctx, pace_template.frame, pace_template.len, PACE_FRAME_MAX))
		return XDP_ABORTED;
	if (pace_live)
		return XDP_TX;
	bpf_tail_call(ctx, &pace_next, 0);
	return XDP_ABORTED;
}

/* Does nothing: to measure the cost of calling a program. */
SEC("xdp.frags")
int pace_nothing(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

static __always_inline void swap_macs(struct ethhdr *eth)
{
	__u8 mac[ETH_ALEN];

	__builtin_memcpy(mac, eth->h_source, ETH_ALEN);
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	__builtin_memcpy(eth->h_dest, mac, ETH_ALEN);
}

static __always_inline void swap_ports(struct udphdr *udp)
{
	__be16 port = udp->source;

	udp->source = udp->dest;
	udp->dest = port;
}

/* Sends the same frames back with addresses and ports swapped: the link's limit. */
SEC("xdp.frags")
int pace_echo(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	void *l3 = eth + 1;

	if (l3 > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = l3;
		__be32 addr;

		if ((void *)(ip + 1) + sizeof(struct udphdr) > end || ip->protocol != IPPROTO_UDP)
			return XDP_PASS;
		addr = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = addr;
		swap_ports((void *)(ip + 1));
	} else {
		struct ipv6hdr *ip = l3;
		struct in6_addr addr;

		if ((void *)(ip + 1) + sizeof(struct udphdr) > end || ip->nexthdr != IPPROTO_UDP)
			return XDP_PASS;
		addr = ip->saddr;
		ip->saddr = ip->daddr;
		ip->daddr = addr;
		swap_ports((void *)(ip + 1));
	}
	swap_macs(eth);
	return XDP_TX;
}

/* Counts a reply of the server; false for other frames. */
static __always_inline bool tally(const struct udphdr *udp, void *end)
{
	const __u8 *dns = (const void *)(udp + 1);
	__u64 now;

	if (dns + 12 > (__u8 *)end || udp->source != pace_port)
		return false;
	pace_tally.replies++;
	pace_tally.answers += (dns[2] & 0x80) && (dns[6] | dns[7] | (dns[3] & 0x0f) == 3);
	if (pace_tally.replies % PACE_TICK && pace_tally.replies != pace_queries)
		return true;
	now = bpf_ktime_get_ns();
	if (pace_tally.replies == pace_warm)
		pace_tally.first_ns = now;
	pace_tally.last_ns = now;
	pace_tally.last = pace_tally.replies;
	return true;
}

static __always_inline bool is_reply(void *data, void *end)
{
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)(eth + 1);

	if ((void *)(ip6 + 1) + sizeof(struct udphdr) > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP) && ip->protocol == IPPROTO_UDP)
		return tally((void *)(ip + 1), end);
	if (eth->h_proto == bpf_htons(ETH_P_IPV6) && ip6->nexthdr == IPPROTO_UDP)
		return tally((void *)(ip6 + 1), end);
	return false;
}

/* At the client's end: counts and drops replies, and passes other frames (neighbour discovery). */
SEC("xdp.frags")
int pace_sink(struct xdp_md *ctx)
{
	return is_reply((void *)(long)ctx->data, (void *)(long)ctx->data_end) ? XDP_DROP : XDP_PASS;
}

/* The same at tc, for replies from a socket, without the cost of converting each to an XDP frame. */
SEC("tc")
int pace_sink_tc(struct __sk_buff *skb)
{
	return is_reply((void *)(long)skb->data, (void *)(long)skb->data_end) ? TC_ACT_SHOT : TC_ACT_OK;
}

char _license[] SEC("license") = "GPL";
