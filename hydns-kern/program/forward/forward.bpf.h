/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program for a query whose name may be in a forwarded zone; hydns_miss tail-calls it. It parks the query and sends a request to an
 * upstream server in its place. Whatever does not hold leaves the query to the resolver, unchanged.
 */
#ifndef HYDNS_KERN_PROGRAM_FORWARD_FORWARD_BPF_H
#define HYDNS_KERN_PROGRAM_FORWARD_FORWARD_BPF_H

#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/forward/request.bpf.h"
#include "hydns-kern/program/forward/zones.bpf.h"
#include "hydns-kern/program/miss/park.bpf.h"
#include "hydns-kern/program/miss/replay.bpf.h"
#include "hydns-kern/program/queue/ports.bpf.h"
#include "hydns-kern/program/queue/queries.bpf.h"
#include "hydns-kern/program/rule/limited.bpf.h"

#define HYDNS_PORT_DRAWS       4       /* with three quarters of all ports taken, one of three requests finds none */
#define HYDNS_LEFT_OF(spill)   (HYDNS_FORWARD_LEFT_PER_QUESTION + (spill))
/* Neither left nor sent: the name is in no zone, or the query was parked with the others. */
#define HYDNS_FORWARD_NOT      (HYDNS_FORWARD_LEFTS + 1)
#define HYDNS_FORWARD_JOINED   (HYDNS_FORWARD_LEFTS + 2)

/* A request that is being made, in scratch that only a reply uses. */
struct hydns_forward_work {
	struct hydns_labels labels;
	struct hydns_forwarded facts;
	struct hydns_forward_question question;
	struct hydns_forward_way way;
	__u32 ipv6;
	__u32 start, len;              /* of the frame, in reply.group_tail */
};
_Static_assert(sizeof(struct hydns_forward_work) + sizeof(struct hydns_parked) + HYDNS_PARKED_FRAME <= HYDNS_SLOT_MOST,
	       "room behind a parked record");

static __always_inline struct hydns_forward_work *hydns_forward_scratch(struct hydns_query *q)
{
	/* the beginning is where hydns_join() makes a record */
	return (void *)(q->reply.group_head + sizeof(struct hydns_parked) + HYDNS_PARKED_FRAME);
}

/* The number of the zones that may be forwarded for this resolver; 0: none. */
static __always_inline __u32 hydns_forward_number(const struct hydns_question *q)
{
	void *pages = bpf_map_lookup_elem(&hydns_pages, &q->resolver);
	const struct hydns_resolver_page *page;
	__u32 zero = 0;

	if (!pages)
		return 0;
	page = bpf_map_lookup_elem(pages, &zero);
	return page ? *(const volatile __u32 *)&page->forward : 0;
}

/* Reads the stamp first: what the plugin removes after that is newer than the request. False: rules are suspended. */
static __always_inline bool hydns_forward_stamp(const struct hydns_question *q, struct hydns_forwarded *f)
{
	void *pages = bpf_map_lookup_elem(&hydns_pages, &q->resolver);
	const struct hydns_resolver_page *page;
	__u32 zero = 0;

	if (!pages)
		return false;
	page = bpf_map_lookup_elem(pages, &zero);
	if (!page)
		return false;
	f->generation = *(const volatile __u64 *)&page->generation;
	f->epoch = *(const volatile __u32 *)&page->epoch;
	f->number = *(const volatile __u32 *)&page->forward;
	return !(f->epoch & HYDNS_EPOCH_FLAGS);
}

/* The n-th of the upstreams in a set. */
static __always_inline __u32 hydns_forward_nth(__u32 set, __u32 n)
{
	for (__u32 i = 0; i < HYDNS_FORWARD_UPSTREAMS; i++) {
		if (!(set >> i & 1))
			continue;
		if (!n)
			return i;
		n--;
	}
	return 0;
}

/* Chooses zone and upstream. HYDNS_FORWARD_LEFTS: there are both. */
static __always_inline __u32 hydns_forward_choose(struct hydns_query *q, struct hydns_forward_work *w, __u64 random)
{
	const struct hydns_forwarding *f = bpf_map_lookup_elem(&hydns_forward, &q->question.resolver);
	const struct hydns_forward_zone *z;
	__u32 labels, set, i, number = w->facts.number;

	if (!f || !number || *(const volatile __u32 *)&f->number != number)
		return HYDNS_FORWARD_NOT;
	labels = hydns_hash_labels(&q->question, &w->labels);
	if (labels > HYDNS_FORWARD_LABELS)
		return HYDNS_FORWARD_LEFT_QUESTION;
	z = hydns_forward_zone_of(&q->question, &w->labels, number, *(const volatile __u32 *)&f->depths, labels);
	if (!z || !z->upstreams)
		return HYDNS_FORWARD_NOT;
	/* DS is the parent zone's: the resolver knows where to ask */
	if (q->question.variant || q->question.qtype == bpf_htons(HYDNS_TYPE_DS) || hydns_never_shared(&q->question))
		return HYDNS_FORWARD_LEFT_QUESTION;
	w->facts.tried = q->cpu.replaying ? q->cpu.tried : 0;
	set = z->upstreams & *(const volatile __u32 *)&f->usable & ~w->facts.tried;
	if (!set)
		return HYDNS_FORWARD_LEFT_UPSTREAM;
	i = hydns_forward_nth(set, (random >> 32) % __builtin_popcount(set));
	w->facts.zone = z->zone;
	w->facts.upstream = i;
	w->way = f->way[i & (HYDNS_FORWARD_UPSTREAMS - 1)];
	w->ipv6 = *(const __u64 *)w->way.addr || (__u32)*(const __u64 *)(w->way.addr + 8) != 0xffff0000U;
	return HYDNS_FORWARD_LEFTS;
}

/* Takes a random port for the request. False: each draw found one that is taken. */
static __always_inline bool hydns_forward_port(struct hydns_query *q, struct hydns_forward_work *w, __u64 now)
{
	const __u64 seed[2] = { hydns_geometry.tag_seed[0], hydns_geometry.tag_seed[1] };
	__u64 tag = hydns_remote_tag((const void *)w->way.addr, w->way.port, seed);
	__u32 range = *(const volatile __u32 *)&hydns_upstream;

	for (int draw = 0; draw < HYDNS_PORT_DRAWS; draw++) {
		__u64 random = hydns_random(&q->cpu, now);
		__u32 port = (range & 0xffff) + (__u32)((random >> 32) * (range >> 16) >> 32);
		__u64 word = HYDNS_PORT_WORD(random & 63, q->question.resolver, HYDNS_FORWARD_DEVICE, tag);
		__u64 *at = bpf_map_lookup_elem(&hydns_ports, &port);

		if (!range || !at)
			return false;
		if (__sync_val_compare_and_swap(at, 0, word))
			continue;
		w->facts.port = port;
		w->facts.word = word;
		w->facts.id = random >> 8;
		return true;
	}
	return false;
}

static __always_inline void hydns_forward_free_port(const struct hydns_forward_work *w)
{
	__u32 port = w->facts.port;
	__u64 *at = bpf_map_lookup_elem(&hydns_ports, &port);

	if (at)
		*(volatile __u64 *)at = 0;
}

/* Writes the port's request. */
static __always_inline bool hydns_forward_expect(const struct hydns_question *q, const struct hydns_forward_work *w)
{
	__u32 port = w->facts.port;
	struct hydns_forward_request *r = bpf_map_lookup_elem(&hydns_fwd_ports, &port);

	if (!r)
		return false;
	*r = (struct hydns_forward_request){
		.key = w->question.key, .word = w->facts.word, .letters = w->facts.letters, .id = w->facts.id,
		.upstream = w->facts.upstream, .resolver = q->resolver,
	};
	return true;
}

/* Makes the request's frame in scratch. */
static __always_inline bool hydns_forward_make(struct hydns_query *q, struct hydns_forward_work *w)
{
	__u8 *scratch = q->reply.group_tail;
	__u32 len = hydns_request_message(scratch, &q->question, w->facts.letters, w->facts.id);

	if (!len)
		return false;
	w->start = hydns_request_headers(scratch, &w->way, w->ipv6, w->facts.port, len,
					 hydns_sum_octets(scratch + HYDNS_REQUEST_MESSAGE, len, HYDNS_REQUEST_OCTETS));
	w->len = HYDNS_REQUEST_MESSAGE - w->start + len;
	return true;
}

/* Hands the query to hydnsd and makes room for the request: HYDNS_FORWARD_LEFTS. Else the frame is as it was. */
static __always_inline __u32 hydns_forward_hand(struct xdp_md *ctx, struct hydns_query *q, struct hydns_forward_work *w,
						__u64 now)
{
	struct hydns_forwarded_query *r = bpf_ringbuf_reserve(&hydns_parked, sizeof(*r), 0);
	__u64 len = q->packet.frame_len;

	if (!r)
		return HYDNS_FORWARD_LEFT_ROOM;
	if (!hydns_bounded(&len, HYDNS_PARKED_FRAME) || bpf_xdp_load_bytes(ctx, 0, r->frame, len)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		return HYDNS_FORWARD_LEFT_FRAME;
	}
	hydns_describe(&r->parked, ctx, q, w->question.key, now);
	if (q->cpu.replaying)
		r->parked.at_ns = q->cpu.asked_ns;
	r->forwarded = w->facts;
	if (bpf_xdp_adjust_tail(ctx, (int)w->len - (int)q->packet.frame_len)) {
		bpf_ringbuf_discard(r, BPF_RB_NO_WAKEUP);
		return HYDNS_FORWARD_LEFT_ROOM;
	}
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
	return HYDNS_FORWARD_LEFTS;
}

/* The question is not open yet: it is from here on. */
static __always_inline __u32 hydns_forward_begin(struct xdp_md *ctx, struct hydns_query *q, struct hydns_parking *p,
						 struct hydns_forward_work *w, __u64 now)
{
	__u32 left = HYDNS_FORWARD_LEFT_PORT;

	w->facts.letters = hydns_random(&q->cpu, now);
	w->facts.sent_ns = now;
	if (hydns_forward_port(q, w, now)) {
		left = HYDNS_FORWARD_LEFT_FRAME;
		__sync_fetch_and_add(&p->waiting, 1);
		if (hydns_forward_make(q, w) && hydns_forward_expect(&q->question, w))
			left = hydns_forward_hand(ctx, q, w, now);
		if (left == HYDNS_FORWARD_LEFTS)
			return left;
		__sync_fetch_and_add(&p->waiting, -1);
		hydns_forward_free_port(w);
	}
	bpf_map_delete_elem(&hydns_fwd_open, &w->question);
	return left;
}

/* HYDNS_FORWARD_LEFTS: the query is hydnsd's, and the request is in scratch. */
static __always_inline __u32 hydns_forward_query(struct xdp_md *ctx, struct hydns_query *q, struct hydns_parking *p,
						 struct hydns_forward_work *w, __u64 now)
{
	const struct hydns_forward_open fresh = { 0 };
	__u32 left, ifindex = ctx->ingress_ifindex, spill;
	struct hydns_forward_open *open;

	if (!hydns_forward_stamp(&q->question, &w->facts))
		return HYDNS_FORWARD_NOT;
	left = hydns_forward_choose(q, w, hydns_random(&q->cpu, now));
	if (left != HYDNS_FORWARD_LEFTS)
		return left;
	/* no reply to a tagged query is routed (route.bpf.h) */
	if (q->packet.frame_len > HYDNS_PARKED_FRAME || (hydns_fib && q->packet.l3_off != ETH_HLEN))
		return HYDNS_FORWARD_LEFT_FRAME;
	if (!bpf_map_lookup_elem(&hydns_park_at, &ifindex))
		return HYDNS_FORWARD_LEFT_INTERFACE;
	w->question = (struct hydns_forward_question){
		.key = hydns_plugin_key(&q->question, p), .resolver = q->question.resolver,
	};
	open = bpf_map_lookup_elem(&hydns_fwd_open, &w->question);
	if (!open) {
		spill = hydns_bound_of(p, 0, hydns_now(&q->cpu));
		if (spill < HYDNS_SPILLS)
			return HYDNS_LEFT_OF(spill);
		if (!bpf_map_update_elem(&hydns_fwd_open, &w->question, &fresh, BPF_NOEXIST))
			return hydns_forward_begin(ctx, q, p, w, now);
		open = bpf_map_lookup_elem(&hydns_fwd_open, &w->question);
	}
	if (!open)
		return HYDNS_FORWARD_LEFT_OPEN;
	spill = hydns_join(ctx, q, p, &open->parked, w->question.key, hydns_now(&q->cpu));
	return spill < HYDNS_SPILLS ? HYDNS_LEFT_OF(spill) : HYDNS_FORWARD_JOINED;
}

/* Writes the request over the query and sends it. */
static __always_inline int hydns_forward_send(struct xdp_md *ctx, struct hydns_query *q, const struct hydns_forward_work *w)
{
	__u64 len = w->len;
	__u32 start = w->start, out = w->way.ifindex;

	if (!hydns_bounded(&len, HYDNS_REQUEST_FRAME) || start > HYDNS_REQUEST_MESSAGE ||
	    bpf_xdp_store_bytes(ctx, 0, q->reply.group_tail + start, len)) {
		hydns_count(ctx, HYDNS_R_ABORTED); /* the request ends by its timeout */
		return XDP_DROP;
	}
	hydns_count(ctx, HYDNS_R_FORWARDED);
	return out == ctx->ingress_ifindex ? XDP_TX : bpf_redirect_map(&hydns_out, out, 0);
}

/* As if there were no forwarding. */
static __always_inline int hydns_forward_leave(struct xdp_md *ctx, struct hydns_query *q)
{
	hydns_limit_pass(q);
	if (q->cpu.replaying)
		return hydns_replayed(ctx, q->cpu.reason);
	hydns_count(ctx, q->cpu.reason);
	return hydns_queue ? hydns_query_to_ring(ctx) : XDP_PASS;
}

SEC("xdp.frags")
int hydns_forward_miss(struct xdp_md *ctx)
{
	__u32 zero = 0, left;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_forward_work *w;
	struct hydns_forward_count *n;
	struct hydns_parking *p;

	if (!q)
		return XDP_PASS;
	p = bpf_map_lookup_elem(&hydns_parking, &q->question.resolver);
	n = bpf_map_lookup_elem(&hydns_fwd_count, &q->question.resolver);
	if (!p || !n || !*(const volatile __u32 *)&p->max)
		return hydns_forward_leave(ctx, q);
	w = hydns_forward_scratch(q);
	left = hydns_forward_query(ctx, q, p, w, hydns_fixed_now_ns ? hydns_fixed_now_ns : bpf_ktime_get_ns());
	if (q->cpu.replaying && (left == HYDNS_FORWARD_LEFTS || left == HYDNS_FORWARD_JOINED))
		hydns_replay_forwarded();
	if (left == HYDNS_FORWARD_LEFTS) {
		++n->sent;
		return hydns_forward_send(ctx, q, w);
	}
	if (left == HYDNS_FORWARD_JOINED) {
		++n->joined;
		hydns_count(ctx, HYDNS_R_PARKED);
		return hydns_action(HYDNS_R_PARKED);
	}
	if (left < HYDNS_FORWARD_LEFTS)
		++n->left[left];
	return hydns_forward_leave(ctx, q);
}

#endif
