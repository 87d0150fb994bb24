/* SPDX-License-Identifier: GPL-2.0-only */
/* Logged answers: what the program puts into the log ring of a resolver that logs, and what it does without room. Exits 77 (skipped)
 * where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "expect.h"
#include "hydns/logged.h"

static struct ring_buffer *ring;
static __u8 record[HYDNS_LOGGED_MOST];
static size_t record_len;
static unsigned records;

static int take(void *ctx, void *data, size_t len)
{
	(void)ctx;
	assert_true(len <= sizeof(record));
	memcpy(record, data, len);
	record_len = len;
	records++;
	return 0;
}

/* octets 0: no ring. */
static void give_ring(__u32 octets)
{
	__u32 resolver = RESOLVER;
	int rings = kernel_map(kern, "hydns_log_rings"), fd;

	ring_buffer__free(ring);
	ring = NULL;
	bpf_map_delete_elem(rings, &resolver);
	if (!octets)
		return;
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "test_log_ring", 0, 0, octets, NULL);
	assert_true(fd >= 0);
	assert_int_equal(bpf_map_update_elem(rings, &resolver, &fd, BPF_ANY), 0);
	ring = ring_buffer__new(fd, take, NULL, NULL);
	assert_non_null(ring);
	close(fd);
}

static void configure(__u16 flags, __u32 one_in)
{
	struct hydns_resolver_config c;
	__u32 resolver = RESOLVER;

	kernel_config(kern, NULL);
	assert_int_equal(bpf_map_lookup_elem(kernel_map(kern, "hydns_resolver"), &resolver, &c), 0);
	c.flags |= flags;
	c.log_one_in = one_in;
	kernel_config(kern, &c);
}

static struct hydns_log_count counts(void)
{
	struct hydns_log_count n;

	kernel_sum(kern, "hydns_logs", RESOLVER, sizeof(n) / sizeof(__u64), (__u64 *)&n);
	return n;
}

static unsigned read_all(void)
{
	unsigned before = records;

	ring_buffer__consume(ring);
	return records - before;
}

/* The record that was read last is of this query, as it came, and the reply to it. */
static void expect_record(const struct query *q, const struct answer *a, const struct frame *asked)
{
	const struct hydns_logged *r = (const void *)record;
	static const __u8 mapped[12] = { [10] = 0xff, [11] = 0xff };
	__u8 want[FRAME_MAX];
	size_t len = answer_message(a, q, 0, 0, EDNS_SIZE, want), query_len = asked->len - asked->dns;

	assert_int_equal(record_len, sizeof(*r) + query_len + len);
	assert_int_equal(r->query_len, query_len);
	assert_int_equal(r->reply_len, len);
	assert_memory_equal(r + 1, asked->data + asked->dns, query_len);
	assert_memory_equal((const __u8 *)(r + 1) + query_len, want, len);
	assert_int_equal(r->ipv6, q->ipv6);
	assert_memory_equal(r->client + (q->ipv6 ? 0 : 12), q->ipv6 ? client6 : client4, q->ipv6 ? 16 : 4);
	assert_memory_equal(r->service + (q->ipv6 ? 0 : 12), q->ipv6 ? service6 : service4, q->ipv6 ? 16 : 4);
	if (!q->ipv6)
		assert_memory_equal(r->client, mapped, sizeof(mapped));
	assert_int_equal(ntohs(r->client_port), CLIENT_PORT);
	assert_int_equal(ntohs(r->service_port), SERVICE_PORT);
	assert_true(r->at_ns > 0);
}

static void test_records(void **state)
{
	const struct query queries[] = {
		{ .name = "a.example", .qtype = 1, .id = 1 },
		{ .name = "Capital.Example", .qtype = 28, .id = 2, .edns = true },
		{ .name = "six.example", .qtype = 1, .id = 3, .ipv6 = true, .edns = true, .ad = true },
		{ .name = "tags.example", .qtype = 1, .id = 4 },
	};

	(void)state;
	give_ring(HYDNS_LOG_RING_LEAST);
	configure(HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_LOGS_ALL, 0);
	for (unsigned i = 0; i < sizeof(queries) / sizeof(*queries); i++)
		for (unsigned addresses = 1; addresses <= 28; addresses += 9) {
			struct answer a = { 0 };
			struct frame f;
			__u32 handle;

			answer_addresses(&a, addresses, 300);
			handle = kernel_publish(kern, &queries[i], &a, 0, NULL);
			frame_query(&f, &queries[i]);
			expect_frame(queries[i].name, kern, &f, &queries[i], &a, 0, 0);
			assert_int_equal(read_all(), 1);
			expect_record(&queries[i], &a, &f);
			kernel_remove(kern, handle);
		}
	assert_int_equal(counts().lost, 0);
}

static void test_no_ring(void **state)
{
	struct answer a = { 0 };
	__u32 handle;
	struct frame f;

	(void)state;
	give_ring(0);
	configure(HYDNS_RESOLVER_LOGS, 1);
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	expect_pass("no ring", kern, &f, HYDNS_R_UNLOGGED);
	kernel_remove(kern, handle);
}

/* Lines of a query log name the interface of such a client. */
static void test_link_local(void **state)
{
	const struct query six = { .name = "six.example", .qtype = 1, .id = 3, .ipv6 = true };
	struct answer a = { 0 };
	__u32 handle;
	struct frame f;

	(void)state;
	give_ring(HYDNS_LOG_RING_LEAST);
	configure(HYDNS_RESOLVER_LOGS, 1);
	handle = publish_address(kern, &six, &a);
	frame_query(&f, &six);
	memcpy(f.data + f.l3 + 8, "\xfe\x80", 2);
	frame_seal(&f);
	expect_pass("link-local", kern, &f, HYDNS_R_UNLOGGED);
	assert_int_equal(read_all(), 0);
	kernel_remove(kern, handle);
}

/* Above the limit a resolver that logs gets all queries, which it counts. A link-local client's it counts alone. */
static void test_limited(void **state)
{
	const struct query q = { .name = "a.example", .qtype = 1, .id = 1 }, six = { .name = "a.example", .qtype = 1, .id = 1, .ipv6 = true };
	const struct hydns_limits limits = { .queries = 2 };
	struct hydns_resolver_count n;
	struct answer a = { 0 };
	__u32 handle = publish_address(kern, &q, &a);
	struct frame f;
	int reason;

	(void)state;
	give_ring(HYDNS_LOG_RING);
	configure(HYDNS_RESOLVER_LOGS, 1);
	kernel_limit(kern, &limits);
	for (unsigned i = 0; i < 5; i++) {
		frame_query(&f, &q);
		kernel_run(kern, &f, &reason);
		assert_int_equal(reason, i < limits.queries ? HYDNS_R_ANSWERED : HYDNS_R_LIMIT_REACHED);
	}
	assert_int_equal(read_all(), limits.queries);
	frame_query(&f, &six);
	memcpy(f.data + f.l3 + 8, "\xfe\x80", 2);
	frame_seal(&f);
	for (unsigned i = 0; i < 5; i++)
		expect_pass("link-local", kern, &f, HYDNS_R_UNLOGGED);
	kernel_counts(kern, &n);
	assert_int_equal(n.limited, 0);
	kernel_limit(kern, NULL);
	kernel_remove(kern, handle);
}

/* A reply with TC to a client above the limit of responses is logged as it is sent. */
static void test_truncated(void **state)
{
	const struct query q = { .name = "slip.example", .qtype = 1, .id = 1 };
	const struct answer none = { .flags = REPLY_FLAGS | REPLY_TC };
	const struct hydns_rates rates = { .most = { [HYDNS_RATE_ANSWER] = 1 }, .window = 5, .slip = 1, .ipv4_prefix = 32, .ipv6_prefix = 64 };
	struct answer a = { .account = HYDNS_RATE_ACCOUNT(HYDNS_RATE_ANSWER, 1, 1, 1) };
	__u32 handle = publish_address(kern, &q, &a);
	struct hydns_rate_bucket *buckets;
	uint8_t want[FRAME_MAX];
	size_t len = answer_message(&none, &q, 0, 0, EDNS_SIZE, want);
	struct frame f;
	int reason;

	(void)state;
	give_ring(HYDNS_LOG_RING);
	configure(HYDNS_RESOLVER_LOGS, 1);
	buckets = kernel_rate(kern, &rates);
	frame_query(&f, &q);
	kernel_run(kern, &f, &reason);
	assert_int_equal(reason, HYDNS_R_ANSWERED);
	kernel_log_rated(buckets, WALL_S);
	assert_int_equal(read_all(), 1);
	expect_short(kern, &q, HYDNS_R_LIMIT_TRUNCATED, none.flags);
	assert_int_equal(read_all(), 1);
	assert_int_equal(((const struct hydns_logged *)record)->reply_len, len);
	assert_memory_equal(record + sizeof(struct hydns_logged) + ((const struct hydns_logged *)record)->query_len, want, len);
	kernel_rate(kern, NULL);
	kernel_remove(kern, handle);
}

/* Answers until the ring is full, and returns how many. */
static unsigned fill(const struct frame *f, unsigned most)
{
	unsigned answered = 0;
	int reason = HYDNS_R_ANSWERED;

	while (answered < most) {
		struct frame g = *f;

		kernel_run(kern, &g, &reason);
		if (reason != HYDNS_R_ANSWERED)
			break;
		answered++;
	}
	return answered;
}

/* Complete: what finds no room passes, none is lost, and answers go on when there is room again. */
static void test_full_complete(void **state)
{
	struct hydns_log_count before;
	struct answer a = { 0 };
	struct frame f, g;
	unsigned answered;
	__u32 handle;
	int reason;

	(void)state;
	give_ring(HYDNS_LOG_RING_LEAST);
	configure(HYDNS_RESOLVER_LOGS | HYDNS_RESOLVER_LOGS_ALL, 7);
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	before = counts();
	answered = fill(&f, 100000);
	assert_true(answered > 0 && answered < 100000);
	g = f;
	assert_int_equal(kernel_run(kern, &g, &reason), XDP_PASS);
	assert_int_equal(reason, HYDNS_R_LOG_FULL);
	assert_memory_equal(g.data, f.data, f.len);
	assert_int_equal(counts().lost - before.lost, 0);
	assert_int_equal(counts().logged - before.logged, answered);
	assert_int_equal(read_all(), answered);
	assert_int_equal(fill(&f, 1), 1);
	assert_int_equal(read_all(), 1);
	kernel_remove(kern, handle);
}

/* Sample: all are answered, and counted as logged, skipped or lost. */
static void test_full_sample(void **state)
{
	const unsigned one_in = 3, answers = 3000;
	struct hydns_log_count before, after;
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;

	(void)state;
	give_ring(HYDNS_LOG_RING_LEAST);
	configure(HYDNS_RESOLVER_LOGS, one_in);
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	before = counts();
	assert_int_equal(fill(&f, answers), answers);
	after = counts();
	assert_in_range(after.skipped - before.skipped, answers - answers / one_in - 1, answers - answers / one_in + 1);
	assert_true(after.lost > before.lost);
	assert_int_equal(after.logged - before.logged + after.skipped - before.skipped + after.lost - before.lost, answers);
	assert_int_equal(read_all(), after.logged - before.logged);
	kernel_remove(kern, handle);
}

/* A resolver that does not log: its answers leave nothing behind. */
static void test_others(void **state)
{
	struct hydns_log_count before, after;
	struct answer a = { 0 };
	struct frame f;
	__u32 handle;

	(void)state;
	give_ring(HYDNS_LOG_RING_LEAST);
	configure(0, 1);
	handle = publish_address(kern, &plain, &a);
	frame_query(&f, &plain);
	before = counts();
	expect_frame("not logged", kern, &f, &plain, &a, 0, 0);
	after = counts();
	assert_memory_equal(&before, &after, sizeof(before));
	assert_int_equal(read_all(), 0);
	kernel_remove(kern, handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_records), cmocka_unit_test(test_no_ring), cmocka_unit_test(test_link_local), cmocka_unit_test(test_limited),
		cmocka_unit_test(test_truncated), cmocka_unit_test(test_full_complete), cmocka_unit_test(test_full_sample), cmocka_unit_test(test_others),
	};
	int failed;

	if (!expect_open(&(struct kernel_options){ .logs = true }))
		return SKIPPED;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	ring_buffer__free(ring);
	return expect_close(failed);
}
