/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <string.h>
#include <sanitizer/asan_interface.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "stages.h"
/* The program's configuration is constant, because the loader writes it before; here stages_run() does. */
#define const
#include "hydns-kern/program/maps.bpf.h"
#undef const
/*
 * Unpoisons, of the message in scratch, what the program writes there and the word after it, and at least the longest name:
 * the loop over the labels may run past the message, because the program compares the name's end with the message's only
 * after it.
 */
#define HYDNS_SHOW_MESSAGE(q, len)                                                                  \
	ASAN_UNPOISON_MEMORY_REGION((q)->message, (len) + sizeof(__u64) > HYDNS_DNS_HEADER + HYDNS_NAME_MAX ? \
				    (len) + sizeof(__u64) : HYDNS_DNS_HEADER + HYDNS_NAME_MAX)
#include "hydns-kern/program/hydns.bpf.c"

#define NOW_NS 5000000000000ULL

const uint64_t stages_seed[2] = { 0x0706050403020100ULL, 0x0f0e0d0c0b0a0908ULL };

/* The maps' contents: every destination is a service of one resolver, which allows every client. */
static struct hydns_query scratch;
static __u64 counted[HYDNS_REASONS];
static struct hydns_resolver_config config;
static struct hydns_resolver_page page = { .epoch = 1, .heartbeat_ns = NOW_NS };
static __u64 serial;
static struct hydns_switch switches;
static __u32 allow = HYDNS_ACL_ALLOW;
static struct hydns_bucket no_rules;
static struct hydns_service service = { .resolver = STAGES_RESOLVER };

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	if (map == &hydns_stats)
		return &counted[*(const __u32 *)key];
	if (map == &hydns_scratch)
		return &scratch;
	if (map == &hydns_switch)
		return &switches;
	if (map == &hydns_svcserial)
		return &serial;
	if (map == &hydns_services)
		return &service;
	if (map == &hydns_resolver)
		return &config;
	/* a look-up in an outer map returns the inner map, and one in that its entry: here both are the entry */
	if (map == &hydns_pages || map == &page)
		return &page;
	if (map == &hydns_acls || map == &allow)
		return &allow;
	if (map == &hydns_index)
		return &no_rules;
	return NULL;
}

static __u64 bpf_ktime_get_coarse_ns(void)
{
	return NOW_NS;
}

static __u64 bpf_jiffies64(void)
{
	return NOW_NS / 4000000;
}

static void configure(const struct stages_settings *s)
{
	hydns_vlan = s->vlan;
	hydns_ipv6 = s->ipv6;
	hydns_partial_checksum = s->partial_checksum;
	hydns_geometry.buckets = 1;
	hydns_geometry.seed[0] = stages_seed[0];
	hydns_geometry.seed[1] = stages_seed[1];
	config.flags = HYDNS_RESOLVER_READY | s->resolver_flags;
}

static int reason_counted(void)
{
	int reason = -1;

	for (int r = 0; r < HYDNS_REASONS; r++) {
		if (!counted[r])
			continue;
		if (reason >= 0 || counted[r] != 1)
			return -1;
		reason = r;
	}
	return reason;
}

static void report(struct stages_outcome *out)
{
	const struct hydns_query *q = &scratch;

	out->ipv6 = q->packet.ipv6;
	out->edns = q->question.edns;
	out->ad = q->question.ad;
	memcpy(out->client, q->packet.client.addr, sizeof(out->client));
	memcpy(out->service, q->packet.service.addr, sizeof(out->service));
	out->client_port = bpf_ntohs(q->packet.sport);
	out->service_port = bpf_ntohs(q->packet.service.port);
	out->message_off = q->packet.dns_off;
	out->message_len = q->packet.message_len;
	out->qtype = bpf_ntohs(q->question.qtype);
	out->edns_size = q->question.edns_size;
	out->variant = q->question.variant;
	out->name_len = q->question.name_len;
	memcpy(out->name, q->question.name, (q->question.name_len + 7) / 8 * 8);
	out->hash = q->question.hash;
	out->name_sum = hydns_fold(q->question.name_sum);
	out->addr_sum = hydns_fold(q->packet.addr_sum);
}

void stages_run(uint8_t *frame, size_t len, const struct stages_settings *s, uint8_t fill,
		struct stages_outcome *out)
{
	struct xdp_md ctx = { .data = (unsigned long)frame, .data_end = (unsigned long)frame + len };
	const size_t unread = sizeof(scratch) - offsetof(struct hydns_query, question.message);

	configure(s);
	ASAN_UNPOISON_MEMORY_REGION(scratch.question.message, unread);
	memset(&scratch, fill, sizeof(scratch));
	memset(counted, 0, sizeof(counted));
	ASAN_POISON_MEMORY_REGION(scratch.question.message, unread);
	memset(out, 0, sizeof(*out));
	out->action = hydns_xdp(&ctx);
	out->reason = reason_counted();
	ASAN_UNPOISON_MEMORY_REGION(scratch.question.message, unread);
	if (out->reason == HYDNS_R_MISS)
		report(out);
}
