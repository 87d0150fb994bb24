/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Captures, in the build of the program that hydnsctl loads for them. It copies frames when a packet enters, and where it is
 * counted, which each packet is once.
 */
#ifndef HYDNS_KERN_CAPTURE_WATCH_BPF_H
#define HYDNS_KERN_CAPTURE_WATCH_BPF_H

#include <linux/if_ether.h>
#include <linux/in.h>
#include "hydns/capture.h"
#include "hydns-kern/program/query.bpf.h"

#define HYDNS_OCTETS           (HYDNS_CAPTURE_MOST + 1)
#define HYDNS_PADDING          16      /* octets that may be read behind the last one */
#define HYDNS_LABELS           128     /* more than a name has */

/* The packet in work. */
struct hydns_watched {
	__u32 wanted;        /* it passes the filters that can be judged when it enters */
	__u32 reserved;
	struct hydns_captured said;
	__u8  octets[2 * HYDNS_OCTETS + HYDNS_PADDING];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_watched);
} hydns_watched SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_capture_filter);
} hydns_capture_filter SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, HYDNS_CAPTURE_RING);
} hydns_captured SEC(".maps");

/* Packets that found no room in the ring, by interface. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HYDNS_CAPTURE_LINKS);
	__type(key, __u32);
	__type(value, __u64);
} hydns_lost SEC(".maps");

/* -- reading the copied frame ------------------------------------------------------------------------------- */
static __always_inline __u32 hydns_u8(const struct hydns_watched *w, __u32 at)
{
	return w->octets[at & HYDNS_CAPTURE_MOST];
}

static __always_inline __u32 hydns_u16(const struct hydns_watched *w, __u32 at)
{
	return hydns_u8(w, at) << 8 | hydns_u8(w, at + 1);
}

static __always_inline __u64 hydns_u64(const struct hydns_watched *w, __u32 at)
{
	return *(const __u64 *)(w->octets + (at & HYDNS_CAPTURE_MOST));
}

struct hydns_place {
	__u32 client;        /* where its address is */
	__u32 dns;           /* the DNS message */
	bool ipv6;
};

/* False: it is not UDP. */
static __always_inline bool hydns_find_place(const struct hydns_watched *w, struct hydns_place *p)
{
	__u32 at = 12, type = hydns_u16(w, at);

#pragma unroll
	for (int i = 0; i < 2; i++) {
		if (type != ETH_P_8021Q && type != ETH_P_8021AD)
			break;
		at += 4;
		type = hydns_u16(w, at);
	}
	at += 2;
	p->ipv6 = type == ETH_P_IPV6;
	if (p->ipv6) {
		p->client = at + 8;
		p->dns = at + 40 + 8;
		return hydns_u8(w, at + 6) == IPPROTO_UDP;
	}
	p->client = at + 12;
	p->dns = at + (hydns_u8(w, at) & 15) * 4 + 8;
	return type == ETH_P_IP && hydns_u8(w, at + 9) == IPPROTO_UDP;
}

/* -- filters ------------------------------------------------------------------------------------------------ */
struct hydns_label_walk {
	const struct hydns_watched *w;
	__u32 at, end;       /* end: of the frame, then of the name */
	__u32 mark;          /* where a label is to begin; 0: anywhere */
	bool ended, marked;  /* the root label was found; a label begins at mark */
};

static long hydns_next_label(__u32 i, struct hydns_label_walk *l)
{
	__u32 len;

	(void)i;
	if (l->at >= l->end)
		return 1;
	l->marked = l->marked || l->at == l->mark;
	len = hydns_u8(l->w, l->at);
	l->at += 1 + len;
	if (len)
		return 0;
	l->ended = true;
	l->end = l->at;
	return 1;
}

struct hydns_comparison {
	const struct hydns_watched *w;
	const struct hydns_capture_filter *f;
	__u32 at;
	bool same;
};

static long hydns_compare(__u32 i, struct hydns_comparison *c)
{
	__u32 octet = hydns_u8(c->w, c->at + i);

	/* lengths of labels are below 'A' */
	octet += octet >= 'A' && octet <= 'Z' ? 'a' - 'A' : 0;
	c->same = octet == c->f->name[i & 255];
	return !c->same;
}

/* end: of the frame. */
static __always_inline bool hydns_name_wanted(const struct hydns_watched *w, const struct hydns_capture_filter *f, __u32 dns,
					      __u32 end)
{
	__u32 begin = dns + HYDNS_DNS_HEADER;
	struct hydns_label_walk l = { .w = w, .at = begin, .end = end };
	struct hydns_comparison c = { .w = w, .f = f };

	bpf_loop(HYDNS_LABELS, hydns_next_label, &l, 0);
	if (!l.ended || l.end - begin < f->name_len || (l.end - begin > f->name_len && !f->below))
		return false;
	c.at = l.mark = l.end - f->name_len;
	l.at = begin;
	bpf_loop(HYDNS_LABELS, hydns_next_label, &l, 0);
	if (!l.marked)
		return false;
	bpf_loop(f->name_len, hydns_compare, &c, 0);
	return c.same;
}

static __always_inline bool hydns_client_wanted(const struct hydns_watched *w, const struct hydns_capture_filter *f,
						const struct hydns_place *p)
{
	__u64 high = 0, low;

	if (p->ipv6) {
		high = hydns_u64(w, p->client);
		low = hydns_u64(w, p->client + 8);
	} else {
		low = 0xffff0000ULL | hydns_u64(w, p->client) << 32;
	}
	return (high & f->mask[0]) == f->client[0] && (low & f->mask[1]) == f->client[1];
}

static __always_inline bool hydns_frame_wanted(const struct hydns_watched *w, const struct hydns_capture_filter *f, __u32 len)
{
	bool by_client = f->mask[0] || f->mask[1];
	struct hydns_place p;

	if (!by_client && !f->name_len)
		return true;
	if (!hydns_find_place(w, &p) || p.dns > len)
		return false;
	return (!by_client || hydns_client_wanted(w, f, &p)) && (!f->name_len || hydns_name_wanted(w, f, p.dns, len));
}

/* -- copying ------------------------------------------------------------------------------------------------ */
/* Copies the frame to octet `to`, which is at most HYDNS_CAPTURE_MOST; returns how much of it. */
static __always_inline __u32 hydns_copy(struct hydns_watched *w, struct xdp_md *ctx, enum hydns_capture_way way, __u32 to)
{
	__u64 len = w->said.whole[way] = bpf_xdp_get_buff_len(ctx);

	w->said.at_ns[way] = bpf_ktime_get_ns();
	if (len > HYDNS_CAPTURE_MOST)
		len = HYDNS_CAPTURE_MOST;
	return hydns_bounded(&len, HYDNS_CAPTURE_MOST) && !bpf_xdp_load_bytes(ctx, 0, w->octets + (to & HYDNS_CAPTURE_MOST), len) ?
	       len : 0;
}

static __always_inline __u32 hydns_least(__u32 len, const struct hydns_capture_filter *f)
{
	return len < f->most ? len : f->most;
}

static __always_inline void hydns_lose(__u32 ifindex)
{
	__u64 one = 1, *n = bpf_map_lookup_elem(&hydns_lost, &ifindex);

	if (!n && !bpf_map_update_elem(&hydns_lost, &ifindex, &one, BPF_NOEXIST))
		return;
	n = n ? n : bpf_map_lookup_elem(&hydns_lost, &ifindex);
	if (n)
		__sync_fetch_and_add(n, 1);
}

/* A wake-up is an interrupt that a packet pays for, so there is one for each quarter of the ring: the reader looks often by itself. */
static __always_inline __u64 hydns_wakeup(__u64 len)
{
	__u64 at = bpf_ringbuf_query(&hydns_captured, BPF_RB_PROD_POS), end = at + sizeof(struct hydns_captured) + len + 2 * sizeof(__u64);

	return (at ^ end) & -(HYDNS_CAPTURE_RING / 4ULL) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void hydns_say(struct hydns_watched *w)
{
	__u64 len = (__u64)w->said.octets[HYDNS_CAPTURE_IN] + w->said.octets[HYDNS_CAPTURE_OUT], wakeup = hydns_wakeup(len);

	if (!hydns_bounded(&len, 2 * HYDNS_CAPTURE_MOST) ||
	    bpf_ringbuf_output(&hydns_captured, &w->said, sizeof(w->said) + len, wakeup))
		hydns_lose(w->said.ifindex[HYDNS_CAPTURE_IN]);
}

/* -- where packets enter and end ------------------------------------------------------------------------------ */
/* Global functions: the verifier checks them once. */
__noinline int hydns_watch_enters(struct xdp_md *ctx)
{
	__u32 zero = 0, len;
	const struct hydns_capture_filter *f = bpf_map_lookup_elem(&hydns_capture_filter, &zero);
	struct hydns_watched *w = bpf_map_lookup_elem(&hydns_watched, &zero);

	if (!w || !f)
		return 0;
	w->wanted = 0;
	if (f->ifindex && f->ifindex != ctx->ingress_ifindex)
		return 0;
	len = hydns_copy(w, ctx, HYDNS_CAPTURE_IN, 0);
	w->said.ifindex[HYDNS_CAPTURE_IN] = ctx->ingress_ifindex;
	w->said.octets[HYDNS_CAPTURE_IN] = hydns_least(len, f);
	w->wanted = hydns_frame_wanted(w, f, len);
	return 0;
}

/* out: the interface that the frame leaves by; 0: that which it came in by. */
__noinline int hydns_watch_ends(struct xdp_md *ctx, __u32 reason, __u32 replayed, __u32 out)
{
	__u32 zero = 0;
	const struct hydns_capture_filter *f = bpf_map_lookup_elem(&hydns_capture_filter, &zero);
	struct hydns_watched *w = bpf_map_lookup_elem(&hydns_watched, &zero);

	if (!w || !f || !w->wanted || !(f->reasons >> (reason & 63) & 1))
		return 0;
	w->wanted = 0;
	w->said.reason = reason;
	w->said.replayed = replayed;
	w->said.octets[HYDNS_CAPTURE_OUT] = 0;
	if (reason == HYDNS_R_ANSWERED || reason == HYDNS_R_FORWARDED) {
		w->said.ifindex[HYDNS_CAPTURE_OUT] = out ? out : ctx->ingress_ifindex;
		w->said.octets[HYDNS_CAPTURE_OUT] =
			hydns_least(hydns_copy(w, ctx, HYDNS_CAPTURE_OUT, w->said.octets[HYDNS_CAPTURE_IN]), f);
	}
	hydns_say(w);
	return 0;
}

static __always_inline bool hydns_enters(struct xdp_md *ctx, const struct hydns_switch *s)
{
	hydns_watch_enters(ctx);
	return *(const volatile __u32 *)&s->paused;
}

static __always_inline void hydns_watch_end(struct xdp_md *ctx, __u32 reason)
{
	__u32 zero = 0;
	const struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (q)
		hydns_watch_ends(ctx, reason, q->cpu.replaying, reason == HYDNS_R_ANSWERED ? q->reply.out : 0);
}

#endif
