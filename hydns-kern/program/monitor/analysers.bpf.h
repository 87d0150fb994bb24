/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Analysers. While hydnsd has set some of hydns_analysing, a query that is about to end goes through them, by a tail call each: the
 * one of the lowest number first, then the next. A query that was answered ends after the last one; another goes on in hydns_left,
 * as hydns_xdp would have gone on. Analysers change nothing but their own maps. When hydnsd ends, the kernel empties hydns_stages,
 * and none is called any more.
 */
#ifndef HYDNS_KERN_PROGRAM_MONITOR_ANALYSERS_BPF_H
#define HYDNS_KERN_PROGRAM_MONITOR_ANALYSERS_BPF_H

#include <bpf/bpf_endian.h>
#include "hydns/hash.h"
#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/monitor/monitor.bpf.h"
#include "hydns-kern/program/rule/lookup.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_HEAVY_SETS);
	__type(key, __u32);
	__type(value, struct hydns_heavy_set);
} hydns_an_client SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_HEAVY_SETS);
	__type(key, __u32);
	__type(value, struct hydns_suffix_set);
} hydns_an_suffix SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_figures);
} hydns_an_figure SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_QUERY_SAMPLES);
	__type(key, __u32);
	__type(value, struct hydns_query_sample);
} hydns_an_sample SEC(".maps");

/* Analysers by bit, which hydnsd writes. */
__u32 hydns_analysing;

/* -- the way through them ------------------------------------------------------------------------------------ */
/* Calls the analysers that the query has not been to. Returns when there is none. */
static __always_inline void hydns_next_analyser(struct xdp_md *ctx, struct hydns_query *q)
{
#define HYDNS_ANALYSER(name, by, conditions, text)                                              \
	if (q->cpu.analysers >> HYDNS_ANALYSER_##name & 1) {                                    \
		q->cpu.analysers &= ~(1U << HYDNS_ANALYSER_##name);                             \
		bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_ANALYSER_##name);                 \
	}
#include "hydns/analysers.def"
#undef HYDNS_ANALYSER
}

/* The query ends with this reason and action, or goes on in hydns_left. Returns when nobody analyses. A parked query was analysed
 * before it comes in again; one whose checksum or source is wrong is nobody's. */
static __always_inline void hydns_analyse(struct xdp_md *ctx, struct hydns_query *q, __u32 reason, int action)
{
	__u32 analysers = *(const volatile __u32 *)&hydns_analysing;

	if (!analysers || q->cpu.replaying || !(reason == HYDNS_R_ANSWERED || HYDNS_BEFORE_NAME(reason) || HYDNS_LOOKED_UP >> reason & 1))
		return;
	q->cpu.analysers = analysers;
	q->cpu.reason = reason;
	q->cpu.action = action;
	hydns_next_analyser(ctx, q);
}

/* The end of each analyser. */
static __always_inline int hydns_analysed(struct xdp_md *ctx, struct hydns_query *q)
{
	hydns_next_analyser(ctx, q);
	if (q->cpu.reason == HYDNS_R_ANSWERED)
		return q->cpu.action;
	bpf_tail_call(ctx, &hydns_stages, HYDNS_STAGE_LEFT);
	hydns_count(ctx, q->cpu.reason);       /* hydnsd has just ended */
	return hydns_action(q->cpu.reason);
}

/* Its name, type and octets are known. */
static __always_inline bool hydns_is_named(const struct hydns_query *q)
{
	return !HYDNS_BEFORE_NAME(q->cpu.reason);
}

/* -- clients --------------------------------------------------------------------------------------------------- */
static __always_inline __u64 hydns_network(const struct hydns_packet *p)
{
	const __u64 *addr = (const void *)p->client.addr;

	return p->ipv6 ? addr[0] & 0x00ffffffffffffffULL : (addr[1] >> 32 & 0xffffff) | (__u64)HYDNS_NETWORK_IPV4 << 56;
}

SEC("xdp.frags")
int hydns_analyse_clients(struct xdp_md *ctx)
{
	const __u64 secret[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	__u32 zero = 0, set;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_heavy_set *s;
	__u64 key;

	if (!q)
		return XDP_PASS;
	key = hydns_network(&q->packet);
	set = hydns_heavy_set_of(key, secret);
	s = bpf_map_lookup_elem(&hydns_an_client, &set);
	if (s)
		hydns_heavy_add(s, key);
	return hydns_analysed(ctx, q);
}

/* -- suffixes -------------------------------------------------------------------------------------------------- */
/* Octet number at of the name. */
static __always_inline __u32 hydns_name_octet(const struct hydns_question *q, __u32 at)
{
	return ((const __u8 *)q->name)[at & HYDNS_NAME_MAX];
}

/* Where the suffix begins in the name, and, 8 bits higher, its octets with the root label; of these 0: there is none that is short
 * enough. Global functions, as below: the verifier checks them once. */
__noinline int hydns_suffix(struct hydns_query *q)
{
	__u32 at = 0, last[HYDNS_SUFFIX_LABELS + 1] = { 0 }, labels = 0, len;

	if (!q)
		return 0;
	for (; labels <= HYDNS_NAME_MAX / 2; labels++) {
		len = hydns_name_octet(&q->question, at);
		if (!len)
			break;
		last[2] = last[1];
		last[1] = last[0];
		last[0] = at;
		at += 1 + len;
	}
	len = q->question.name_len;
	at = labels > 1 ? last[1] : last[0];
	if (labels > HYDNS_SUFFIX_LABELS && hydns_name_octet(&q->question, at) <= HYDNS_SUFFIX_SHORT && len - last[2] <= HYDNS_SUFFIX_MOST)
		at = last[2];
	if (len - at > HYDNS_SUFFIX_MOST)
		at = last[0];
	return at | (len - at <= HYDNS_SUFFIX_MOST ? len - at : 0) << 8;
}

__noinline int hydns_count_suffix(struct hydns_query *q)
{
	const __u64 secret[2] = { hydns_geometry.seed[0], hydns_geometry.seed[1] };
	__u64 word[HYDNS_SUFFIX_MOST / 8], key;
	struct hydns_suffix_set *s;
	__u32 len, set, entry, at;
	struct hydns_sip sip;

	if (!q)
		return 0;
	at = hydns_suffix(q);
	len = at >> 8;
	at &= HYDNS_NAME_MAX;
	if (!len)
		return 0;
	hydns_sip_begin(&sip, secret);
	for (__u32 i = 0; i < HYDNS_SUFFIX_MOST / 8; i++) {
		const __u64 *from = (const void *)((const __u8 *)q->question.name + at + 8 * i);

		word[i] = 8 * i < len ? *from & hydns_name_mask(len - 8 * i) : 0;
		hydns_sip_word(&sip, word[i]);
	}
	key = hydns_sip_end(&sip);
	set = hydns_heavy_set_of(key, secret);
	s = bpf_map_lookup_elem(&hydns_an_suffix, &set);
	if (!s)
		return 0;
	entry = hydns_heavy_add(&s->keys, key);
	if (entry >= HYDNS_HEAVY_NEW)
		__builtin_memcpy(s->name[entry & (HYDNS_HEAVY_ENTRIES - 1)], word, HYDNS_SUFFIX_MOST);
	return 0;
}

SEC("xdp.frags")
int hydns_analyse_suffixes(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);

	if (!q)
		return XDP_PASS;
	if (hydns_is_named(q))
		hydns_count_suffix(q);
	return hydns_analysed(ctx, q);
}

/* -- figures --------------------------------------------------------------------------------------------------- */
static __always_inline struct hydns_figures *hydns_figures_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&hydns_an_figure, &zero);
}

SEC("xdp.frags")
int hydns_analyse_types(struct xdp_md *ctx)
{
	__u32 zero = 0, type;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_figures *f = hydns_figures_here();

	if (!q)
		return XDP_PASS;
	type = bpf_ntohs(q->question.qtype);
	if (f && hydns_is_named(q))
		f->type[type < HYDNS_FIGURE_TYPES - 1 ? type : HYDNS_FIGURE_TYPES - 1]++;
	return hydns_analysed(ctx, q);
}

/* Octets of the DNS message that the frame has now. */
static __always_inline __u32 hydns_message_now(struct xdp_md *ctx, const struct hydns_query *q)
{
	__u32 len = bpf_xdp_get_buff_len(ctx);

	return len > q->packet.dns_off ? len - q->packet.dns_off : 0;
}

static __always_inline __u32 hydns_size_class(__u32 octets)
{
	__u32 n = 0;

	while (n < HYDNS_FIGURE_SIZES - 1 && octets > 1U << n)
		n++;
	return n;
}

SEC("xdp.frags")
int hydns_analyse_sizes(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_figures *f = hydns_figures_here();

	if (!q)
		return XDP_PASS;
	if (f) {
		f->query_size[hydns_size_class(q->packet.message_len)]++;
		if (q->cpu.reason == HYDNS_R_ANSWERED)
			f->reply_size[hydns_size_class(hydns_message_now(ctx, q))]++;
	}
	return hydns_analysed(ctx, q);
}

SEC("xdp.frags")
int hydns_analyse_rcodes(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_figures *f = hydns_figures_here();
	__u8 flags;

	if (!q)
		return XDP_PASS;
	if (f && q->cpu.reason == HYDNS_R_ANSWERED && !bpf_xdp_load_bytes(ctx, q->packet.dns_off + 3, &flags, sizeof(flags)))
		f->rcode[flags & (HYDNS_FIGURE_RCODES - 1)]++;
	return hydns_analysed(ctx, q);
}

SEC("xdp.frags")
int hydns_analyse_amplification(struct xdp_md *ctx)
{
	__u32 zero = 0;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_figures *f = hydns_figures_here();

	if (!q)
		return XDP_PASS;
	if (f && q->cpu.reason == HYDNS_R_ANSWERED) {
		f->replies++;
		f->query_octets += q->packet.message_len;
		f->reply_octets += hydns_message_now(ctx, q);
	}
	return hydns_analysed(ctx, q);
}

/* -- sample ------------------------------------------------------------------------------------------------------ */
/* The first HYDNS_QUERY_SAMPLES of a window; then one of as many as there were so far takes a place by chance, so that in the end each
 * query has the same chance (reservoir sampling, J. Vitter, ACM TOMS 11(1), 1985). */
static __always_inline __u32 hydns_sample_place(__u64 number)
{
	__u64 n = number ? number : 1;

	return n <= HYDNS_QUERY_SAMPLES ? n - 1 : (__u32)(bpf_get_prandom_u32() % n);
}

SEC("xdp.frags")
int hydns_analyse_sample(struct xdp_md *ctx)
{
	__u32 zero = 0, place;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_query_sample *first = bpf_map_lookup_elem(&hydns_an_sample, &zero), *s;

	if (!q)
		return XDP_PASS;
	if (!first)
		return hydns_analysed(ctx, q);
	place = hydns_sample_place(++first->number);
	s = place < HYDNS_QUERY_SAMPLES ? bpf_map_lookup_elem(&hydns_an_sample, &place) : NULL;
	if (s) {
		if (place)
			s->number = first->number;
		__builtin_memcpy(s->client, q->packet.client.addr, sizeof(s->client));
		s->reason = q->cpu.reason;
		s->name_len = hydns_is_named(q) ? q->question.name_len : 0;
		s->qtype = q->question.qtype;
		__builtin_memcpy(s->name, q->question.name, sizeof(s->name));
	}
	return hydns_analysed(ctx, q);
}

#endif
