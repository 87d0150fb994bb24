/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An answer of an upstream server to a query that left by a ring goes to the ring of the thread that sent it. Fragments,
 * packets with IP options and wrong lengths have ended with other reasons before; the UDP checksum, the local address and the
 * message are the thread's to check.
 */
#ifndef HYDNS_KERN_PROGRAM_QUEUE_ANSWERS_BPF_H
#define HYDNS_KERN_PROGRAM_QUEUE_ANSWERS_BPF_H

#include "hydns-kern/program/queue/lanes.bpf.h"
#include "hydns-kern/program/queue/ports.bpf.h"
#include "hydns-kern/program/rule/admit.bpf.h"

/*
 * XDP_REDIRECT to a ring, or XDP_PASS. A packet for another host, which this one forwards, must pass even if the port here is
 * claimed for the same server. One that came by another interface than the query left by must pass, so that the host's source
 * validation judges it.
 */
static __noinline int hydns_answer_to_ring(struct xdp_md *ctx)
{
	__u32 zero = 0, resolver;
	const struct hydns_query *q = bpf_map_lookup_elem(&hydns_scratch, &zero);
	struct hydns_target to;
	struct hydns_queue_count *n;
	__u64 word;

	if (!q)
		return XDP_PASS;
	word = hydns_claimed(bpf_ntohs(q->packet.service.port), (const void *)q->packet.client.addr, q->packet.sport);
	if (!word || !hydns_maybe_own(q->packet.service.addr))
		return XDP_PASS;
	resolver = HYDNS_PORT_RESOLVER(word);
	n = bpf_map_lookup_elem(&hydns_queued, &resolver);
	if (!n || !hydns_lane_of(ctx, &q->packet, resolver, HYDNS_QUEUE_UPSTREAM, &to))
		return XDP_PASS;
	if (to.lane->device != HYDNS_PORT_DEVICE(word))
		return XDP_PASS;
	return hydns_redirect(&to, HYDNS_PORT_THREAD(word), &n->answers, &n->full);
}

#endif
