/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program for a packet to a port that upstream servers answer to; hydns_xdp tail-calls it. If it is the answer to a request, hydnsd
 * gets its message. Everything has to fit, and only one packet can be the answer.
 */
#ifndef HYDNS_KERN_PROGRAM_FORWARD_ANSWER_BPF_H
#define HYDNS_KERN_PROGRAM_FORWARD_ANSWER_BPF_H

#include "hydns-kern/program/count.bpf.h"
#include "hydns-kern/program/dns/message.bpf.h"
#include "hydns-kern/program/forward/letters.bpf.h"
#include "hydns-kern/program/forward/maps.bpf.h"
#include "hydns-kern/program/miss/park.bpf.h"
#include "hydns-kern/program/queue/answers.bpf.h"

/* A record of hydns_answered, in scratch that only a reply uses. */
struct hydns_taken {
	struct hydns_forward_answer head;
	__u8 message[HYDNS_FORWARD_ANSWER + 8]; /* 8 more for the zeros that follow it while it is summed */
};
_Static_assert(sizeof(struct hydns_taken) <= HYDNS_SLOT_MOST, "a record fits");

/* The n-th tag of the frame, as in a way. */
static __always_inline __u16 hydns_frame_tag(const struct hydns_vlan_tag *tags, __u32 n, __be16 type)
{
	return HYDNS_FORWARD_TAG(bpf_ntohs(tags[n].tci), type == bpf_htons(ETH_P_8021AD));
}

/* Whether the frame has the request's tags. The type of a tag stands before it. */
static __always_inline bool hydns_same_tags(struct xdp_md *ctx, const struct hydns_packet *p, const __u16 want[HYDNS_FORWARD_TAGS])
{
	struct {
		__be16 type;
		struct hydns_vlan_tag tag[HYDNS_FORWARD_TAGS];
	} in;

	if (p->l3_off == ETH_HLEN)
		return !want[0];
	if (!hydns_vlan || bpf_xdp_load_bytes(ctx, 2 * ETH_ALEN, &in, sizeof(in)))
		return false;
	if (p->l3_off == ETH_HLEN + sizeof(struct hydns_vlan_tag))
		return want[0] == hydns_frame_tag(in.tag, 0, in.type) && !want[1];
	return want[1] == hydns_frame_tag(in.tag, 0, in.type) && want[0] == hydns_frame_tag(in.tag, 1, in.tag[0].proto);
}

/* Whether the frame came by an interface and in a VLAN by which the answer may. */
static __always_inline bool hydns_by_its_way(struct xdp_md *ctx, const struct hydns_packet *p, const struct hydns_forward_way *way)
{
	if (way->ifindex == ctx->ingress_ifindex)
		return hydns_same_tags(ctx, p, way->tag);
	return (way->flags & HYDNS_FORWARD_WAY_ANY) && p->l3_off == ETH_HLEN;
}

/* Whether addresses, ports and interface are those by which the request left. */
static __always_inline bool hydns_from_upstream(struct xdp_md *ctx, const struct hydns_packet *p,
						const struct hydns_forward_request *r)
{
	__u32 resolver = r->resolver;
	const struct hydns_forwarding *f = bpf_map_lookup_elem(&hydns_forward, &resolver);
	const struct hydns_forward_way *way;
	const __u64 *a, *b;

	if (!f)
		return false;
	way = &f->way[r->upstream & (HYDNS_FORWARD_UPSTREAMS - 1)];
	a = (const void *)way->addr;
	b = (const void *)p->client.addr;
	if (a[0] != b[0] || a[1] != b[1] || way->port != p->sport || !hydns_by_its_way(ctx, p, way))
		return false;
	a = (const void *)way->source;
	b = (const void *)p->service.addr;
	return a[0] == b[0] && a[1] == b[1];
}

/* Copies the message and verifies the UDP checksum. */
static __always_inline bool hydns_take_message(struct xdp_md *ctx, struct hydns_query *q, struct hydns_taken *t)
{
	__u64 len = q->packet.message_len, end, most = HYDNS_QUERY_MAX;

	if (len < HYDNS_QUERY_MIN || !hydns_bounded(&len, HYDNS_FORWARD_ANSWER) ||
	    bpf_xdp_load_bytes(ctx, q->packet.dns_off, t->message, len))
		return false;
	end = q->packet.message_len;
	if (end > HYDNS_FORWARD_ANSWER)
		return false;
	*(__u64 *)(t->message + end) = 0;
	/* Once more its beginning, where the question is read as that of a query. */
	if (end < most)
		most = end;
	if (!hydns_bounded(&most, HYDNS_QUERY_MAX) || bpf_xdp_load_bytes(ctx, q->packet.dns_off, q->question.message, most))
		return false;
	return !hydns_udp_verify(ctx, &q->packet, hydns_sum_octets(t->message, end, HYDNS_FORWARD_ANSWER));
}

/* Whether the question is in the request's letters. Writes the name in lower case. */
static __always_inline bool hydns_same_letters(struct hydns_question *q, __u64 letters)
{
	const __u64 *word = (const void *)(q->message + HYDNS_DNS_HEADER);
	__u32 len = q->name_len;
	__u64 wrong = 0;

	for (__u32 i = 0; i < HYDNS_NAME_WORDS; i++) {
		__u64 w, lower;

		if (i * 8 >= len)
			break;
		w = word[i] & hydns_name_mask(len - i * 8);
		lower = hydns_lower8(w);
		q->name[i] = lower;
		wrong |= w ^ hydns_capitals8(lower, letters, i);
	}
	return !wrong;
}

/* Whether the message answers the request's question. */
static __always_inline bool hydns_same_question(struct hydns_query *q, const struct hydns_forward_request *r)
{
	const struct hydns_dns_header *h = (const void *)q->question.message;
	struct hydns_parking *p;
	__u32 resolver = r->resolver;

	if (h->id != r->id || !(h->flags[0] & HYDNS_FLAGS_QR) || h->qdcount != bpf_htons(1))
		return false;
	if (hydns_dns_question(&q->question, q->packet.message_len) || !hydns_same_letters(&q->question, r->letters))
		return false;
	p = bpf_map_lookup_elem(&hydns_parking, &resolver);
	q->question.variant = 0;
	return p && hydns_plugin_key(&q->question, p) == r->key;
}

/* Ends the request: true for one packet only. */
static __always_inline bool hydns_close_port(__u32 port, __u64 word)
{
	__u64 *at = bpf_map_lookup_elem(&hydns_ports, &port);

	return at && __sync_val_compare_and_swap(at, word, 0) == word;
}

static __always_inline enum hydns_reason hydns_take_answer(struct xdp_md *ctx, struct hydns_query *q, __u32 port, __u64 word)
{
	__u32 resolver = HYDNS_PORT_RESOLVER(word);
	struct hydns_forward_count *n = bpf_map_lookup_elem(&hydns_fwd_count, &resolver);
	const struct hydns_forward_request *r = bpf_map_lookup_elem(&hydns_fwd_ports, &port);
	struct hydns_taken *t = (void *)q->reply.group_head;
	struct hydns_forward_request open;
	__u64 len;

	if (!n || !r)
		return HYDNS_R_NO_ENTRY;
	open = *r;
	if (open.word != word || open.resolver != resolver || !hydns_from_upstream(ctx, &q->packet, &open) ||
	    !hydns_take_message(ctx, q, t) || !hydns_same_question(q, &open) || !hydns_close_port(port, word)) {
		++n->mismatched;
		return HYDNS_R_UPSTREAM_FALSE;
	}
	t->head = (struct hydns_forward_answer){
		.key = open.key, .word = word, .at_ns = hydns_fixed_now_ns ? hydns_fixed_now_ns : bpf_ktime_get_ns(),
		.len = q->packet.message_len, .port = port, .id = open.id, .resolver = resolver, .upstream = open.upstream,
	};
	len = q->packet.message_len;
	if (hydns_bounded(&len, HYDNS_FORWARD_ANSWER) && !bpf_ringbuf_output(&hydns_answered, t, sizeof(t->head) + len, 0))
		++n->answers;
	return HYDNS_R_UPSTREAM_ANSWER;
}

SEC("xdp.frags")
int hydns_forwarded(struct xdp_md *ctx)
{
	__u32 zero = 0, port;
	struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	enum hydns_reason reason;
	__u64 word;

	if (!q)
		return XDP_PASS;
	port = bpf_ntohs(q->packet.service.port);
	word = hydns_claimed(port, (const void *)q->packet.client.addr, q->packet.sport);
	if (!word || HYDNS_PORT_DEVICE(word) != HYDNS_FORWARD_DEVICE) {
		hydns_count(ctx, q->cpu.reason);
		return hydns_queue ? hydns_answer_to_ring(ctx) : XDP_PASS;
	}
	reason = hydns_take_answer(ctx, q, port, word);
	hydns_count(ctx, reason);
	return hydns_action(reason);
}

#endif
