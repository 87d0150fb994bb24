/* SPDX-License-Identifier: GPL-2.0-only */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "parking.h"
#include "hydns/hash.h"
#include "hydns-kern/loader/kern.h"

static const __u64 seed[2] = { 0x1111222233334444ULL, 0x5555666677778888ULL };

static int read_record(void *arg, void *data, size_t len)
{
	struct parking *p = arg;

	assert_true(len >= sizeof(p->last));
	memcpy(&p->last, data, sizeof(p->last));
	assert_int_equal(len, sizeof(p->last) + p->last.frame_len);
	memcpy(p->frame, (struct hydns_parked *)data + 1, p->last.frame_len);
	return 0;
}

static void *mapped(struct kernel *k, const char *name)
{
	struct hydns_mapping m;

	assert_int_equal(hydns_map_memory(kernel_map(k, name), true, &m), 0);
	return m.at;
}

void parking_open(struct parking *p, struct kernel *k)
{
	__u32 here = PARKED_HERE;

	*p = (struct parking){ .k = k, .bounds = (struct hydns_parking *)mapped(k, "hydns_parking") + RESOLVER,
		.replays = mapped(k, "hydns_replays"), .buckets = (void *)(kernel_page(k) + 1) };
	p->buffer = ring_buffer__new(kernel_map(k, "hydns_parked"), read_record, p, NULL);
	assert_non_null(p->buffer);
	*p->bounds = (struct hydns_parking){ .seed = { seed[0], seed[1] }, .heartbeat_ns = NOW_NS, .max = 100, .resume = 50,
					     .per_question = 100 };
	p->replays->secret[0] = 0x1234567812345678ULL;
	p->replays->secret[1] = 0x8765432187654321ULL;
	assert_int_equal(bpf_map_update_elem(kernel_map(k, "hydns_park_at"), &here, &here, BPF_ANY), 0);
}

void parking_close(struct parking *p)
{
	ring_buffer__free(p->buffer);
}

__u64 parking_key(const struct query *q)
{
	__u8 name[256];
	size_t len = name_wire(q->name, name);

	for (size_t i = 0; i < len; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			name[i] += 'a' - 'A';
	return hydns_key_hash(name, (__u8)len, htons(q->qtype), (q->want_do ? HYDNS_VARIANT_DO : 0) |
			      (q->norec ? HYDNS_VARIANT_NO_RD : 0), 0, seed);
}

static volatile struct hydns_under_way *entry_of(struct parking *p, const struct query *q, unsigned n)
{
	return &p->buckets[HYDNS_UNDER_WAY_BUCKET(parking_key(q))].entry[n];
}

void parking_begin(struct parking *p, const struct query *q, unsigned n, __u64 at_ns)
{
	entry_of(p, q, n)->parked = 0;
	entry_of(p, q, n)->word = HYDNS_UNDER_WAY_WORD(parking_key(q), at_ns / HYDNS_NS_PER_MS);
	kernel_page(p->k)->under_way++;
}

void parking_end(struct parking *p, const struct query *q, unsigned n)
{
	entry_of(p, q, n)->word = 0;
	kernel_page(p->k)->under_way--;
}

int parking_drain(struct parking *p)
{
	return ring_buffer__consume(p->buffer);
}

struct hydns_parking_count parking_counts(struct parking *p)
{
	struct hydns_parking_count n;

	kernel_sum(p->k, "hydns_spills", RESOLVER, sizeof(n) / sizeof(__u64), (__u64 *)&n);
	return n;
}

int parking_action(struct parking *p, const struct query *q, int reason)
{
	struct frame f;
	int counted, action;

	frame_query(&f, q);
	action = kernel_run(p->k, &f, &counted);
	if (counted != reason)
		fail_msg("%s: counted as %s, expected %s", q->name, counted < 0 ? "none or several" :
			 hydns_reason_name((enum hydns_reason)counted), hydns_reason_name((enum hydns_reason)reason));
	return action;
}
