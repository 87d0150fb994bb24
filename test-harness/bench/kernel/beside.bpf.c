/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Load generator in the kernel for good queries beside a flood. beside_generate runs by BPF_PROG_TEST_RUN with live frames, as
 * pace_generate (pace.bpf.c), but by the clock: a frame for which no query is due is dropped. So it never waits with softirqs
 * off, the wait would be that of other queries, and what else runs on its processor gets in between. Good queries go first: when
 * the generator can't keep up, it is the flood that lacks.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "hydns-kern/program/packet/fold.bpf.h"
#include "test-harness/bench/kernel/beside.h"

#define LATE_NS      10000000            /* after a longer interruption it does not catch up */
#define DNS_HEADER   12
#define TRUNCATED    0x02                /* of the header's third octet */
#define SCATTER      2654435761U         /* odd: another number for each */
#define HOT_SCATTER  40503U

const volatile __u16 beside_port = 0;      /* source port of replies, network order */
const volatile __u16 beside_good_port = 0; /* source port of good queries, network order */
const volatile __u8 beside_kernel_hops = 0;

struct beside_stream beside_streams[BESIDE_STREAMS];
struct beside_tally beside_tally;
bool beside_counts;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BESIDE_TEMPLATES);
	__type(key, __u32);
	__type(value, struct beside_template);
} beside_frames SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BESIDE_GOOD_MAX);
	__type(key, __u32);
	__type(value, struct beside_good);
} beside_queries SEC(".maps");

/* Whether a query of the stream is due. */
static __always_inline bool due(struct beside_stream *s, __u64 now)
{
	if (!s->gap_ns || now < s->due_ns)
		return false;
	s->due_ns += s->gap_ns;
	if (s->due_ns + LATE_NS < now)
		s->due_ns = now;
	return true;
}

/* The number of the name that query number n asks for. */
static __always_inline __u32 name_number(const struct beside_stream *s, __u32 n)
{
	if (s->new_every && n % s->new_every == 0)
		return (s->names + n) * SCATTER;
	return s->hot ? (n * HOT_SCATTER >> 3) % s->hot : 0;
}

static __always_inline __u64 halves(__u32 word)
{
	return (word & 0xffff) + (word >> 16);
}

/* A field of the frame; NULL: it has none. The mask is for the verifier: the program that steers this has checked offsets. */
static __always_inline void *field(struct beside_template *t, __u32 at)
{
	at &= PACE_FRAME_MAX - 1;
	barrier_var(at);
	return at ? t->frame + at : NULL;
}

static __always_inline void put_check(struct beside_template *t, __u32 at, __u16 former, __u64 more)
{
	__u16 check = ~hydns_fold((__u16)~former + more), *in_frame = field(t, at);

	if (in_frame)
		*in_frame = check ? check : 0xffff;
}

static __always_inline void fill_in(struct beside_template *t, __u32 number, __u32 n, __u32 which)
{
	__u64 label = pace_label(number), sum = 0, moved = 0, *label_in = field(t, t->label_at);
	__be32 source = bpf_htonl(t->source + which * t->stride), *source_in = field(t, t->source_at);
	__be16 *id_in = field(t, t->id_at);

	if (label_in) {
		*label_in = label;
		sum += (__u64)hydns_fold((label >> 32) + (__u32)label) << 8;
	}
	if (id_in) {
		*id_in = bpf_htons(n);
		sum += bpf_htons(n);
	}
	if (source_in) {
		*source_in = source;
		moved = halves(source) + halves(~bpf_htonl(t->source));
	}
	put_check(t, t->udp_check_at, t->udp_check, sum + moved);
	put_check(t, t->ip_check_at, t->ip_check, moved);
}

static __always_inline void note_good(__u32 n, __u64 now)
{
	struct beside_good *q = bpf_map_lookup_elem(&beside_queries, &n);

	if (q)
		q->sent_ns = now;
}

static __always_inline struct beside_template *next_frame(struct beside_stream *s, bool good, __u64 now)
{
	__u32 n = s->sent++, key = s->first + n % (s->templates ? s->templates : 1);
	struct beside_template *t = bpf_map_lookup_elem(&beside_frames, &key);

	if (!t)
		return NULL;
	fill_in(t, name_number(s, n), n, n / (s->templates ? s->templates : 1) % (t->sources ? t->sources : 1));
	if (good)
		note_good(n, now);
	else if (beside_counts)
		beside_tally.flood_sent++;
	return t;
}

SEC("xdp.frags")
int beside_generate(struct xdp_md *ctx)
{
	__u64 now = bpf_ktime_get_ns(), len;
	bool good = due(&beside_streams[BESIDE_GOOD], now);
	struct beside_template *t;

	if (good)
		t = next_frame(&beside_streams[BESIDE_GOOD], true, now);
	else if (due(&beside_streams[BESIDE_FLOOD], now))
		t = next_frame(&beside_streams[BESIDE_FLOOD], false, now);
	else
		return XDP_DROP;
	if (!t)
		return XDP_ABORTED;
	len = t->len;
	if (len < ETH_HLEN)
		return XDP_ABORTED;
	barrier_var(len);        /* Linux 6.1 takes two comparisons, and not the one that clang would make of them */
	if (len > PACE_FRAME_MAX || bpf_xdp_adjust_tail(ctx, (int)len - (int)bpf_xdp_get_buff_len(ctx)) ||
	    bpf_xdp_store_bytes(ctx, 0, t->frame, len))
		return XDP_ABORTED;
	return XDP_TX;
}

/* A reply to a good query: the first one counts. */
static __always_inline void good_reply(const __u8 *dns, __u8 hops)
{
	__u32 n = dns[0] << 8 | dns[1];
	struct beside_good *q = bpf_map_lookup_elem(&beside_queries, &n);

	if (!q || !q->sent_ns || q->replied_ns)
		return;
	q->replied_ns = bpf_ktime_get_ns();
	q->hops = hops;
	q->answered = !(dns[2] & TRUNCATED) && !(dns[3] & 0x0f) && (dns[6] | dns[7]);
}

static __always_inline void flood_reply(const __u8 *dns, __u32 octets, __u8 hops)
{
	if (!beside_counts)
		return;
	__sync_fetch_and_add(&beside_tally.flood_replies, 1);
	__sync_fetch_and_add(&beside_tally.flood_octets, octets);
	if (dns[2] & TRUNCATED)
		__sync_fetch_and_add(&beside_tally.flood_truncated, 1);
	if (hops == beside_kernel_hops)
		__sync_fetch_and_add(&beside_tally.flood_by_kernel, 1);
}

/* False for frames that are no reply of the server. */
static __always_inline bool tally(const struct udphdr *udp, void *end, __u32 octets, __u8 hops)
{
	const __u8 *dns = (const void *)(udp + 1);

	if (dns + DNS_HEADER > (__u8 *)end || udp->source != beside_port)
		return false;
	if (udp->dest == beside_good_port)
		good_reply(dns, hops);
	else
		flood_reply(dns, octets, hops);
	return true;
}

/* At the client's end, on whatever processor a reply comes: counts and drops replies, and passes other frames (ARP). */
SEC("xdp.frags")
int beside_sink(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct ethhdr *eth = data;
	struct iphdr *ip = (void *)(eth + 1);
	struct ipv6hdr *ip6 = (void *)(eth + 1);
	__u32 octets = bpf_xdp_get_buff_len(ctx);
	bool reply = false;

	if ((void *)(ip6 + 1) + sizeof(struct udphdr) > end)
		return XDP_PASS;
	if (eth->h_proto == bpf_htons(ETH_P_IP) && ip->protocol == IPPROTO_UDP)
		reply = tally((void *)(ip + 1), end, octets, ip->ttl);
	else if (eth->h_proto == bpf_htons(ETH_P_IPV6) && ip6->nexthdr == IPPROTO_UDP)
		reply = tally((void *)(ip6 + 1), end, octets, ip6->hop_limit);
	return reply ? XDP_DROP : XDP_PASS;
}

char _license[] SEC("license") = "GPL";
