/* SPDX-License-Identifier: GPL-2.0-only */
/* Limited responses: what the program debits, and what it does with queries up to a limit and above it. Exits 77 (skipped) where BPF
 * programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <arpa/inet.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include "expect.h"

#define RATE   3
#define WINDOW 5
#define NAME   0x12345678U

static struct hydns_rate_bucket *buckets;
static struct answer answer;
static __u32 handle;
static const struct query six = { .name = "www.example", .qtype = 1, .id = 7, .ipv6 = true };
static const struct hydns_rates usual = {
	.most = { [HYDNS_RATE_ANSWER] = RATE }, .window = WINDOW, .slip = 0, .ipv4_prefix = 32, .ipv6_prefix = 64,
};

static void go_on(__s64 seconds)
{
	kernel_page(kern)->wall_ns += seconds * (__s64)HYDNS_NS_PER_S;
}

static void end_as(const struct query *q, unsigned times, int want, int action)
{
	for (unsigned i = 0; i < times; i++) {
		struct frame f;
		int reason;

		frame_query(&f, q);
		int did = kernel_run(kern, &f, &reason);

		assert_string_equal(hydns_reason_name((enum hydns_reason)reason), hydns_reason_name((enum hydns_reason)want));
		assert_int_equal(did, action);
	}
}

static void answered(unsigned times)
{
	end_as(&plain, times, HYDNS_R_ANSWERED, XDP_TX);
}

static void dropped(unsigned times)
{
	struct hydns_resolver_count before, after;

	kernel_counts(kern, &before);
	end_as(&plain, times, HYDNS_R_LIMITED, XDP_DROP);
	kernel_counts(kern, &after);
	assert_int_equal(after.limited - before.limited, times);
	assert_int_equal(after.answered, before.answered);
}

/* The cell of a kind; NULL: there is none. */
static struct hydns_rate *cell(enum hydns_rate_kind kind)
{
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_RATE_CELLS; j++)
			if (buckets[i].cell[j].tag && HYDNS_RATE_STATE_KIND(buckets[i].cell[j].state) == (__u32)kind)
				return &buckets[i].cell[j];
	return NULL;
}

static int balance(enum hydns_rate_kind kind)
{
	const struct hydns_rate *c = cell(kind);

	assert_non_null(c);
	return HYDNS_RATE_STATE_BALANCE(c->state);
}

static void rate_to(const struct hydns_rates *r)
{
	buckets = kernel_rate(kern, r);
}

/* What BIND does when the first query above the limit has reached it. */
static void log_client(enum hydns_rate_kind kind)
{
	cell(kind)->logged = WALL_S;
}

static int begin(void **state)
{
	(void)state;
	answer.account = HYDNS_RATE_ACCOUNT(HYDNS_RATE_ANSWER, 1, 1, NAME);
	handle = publish_address(kern, &plain, &answer);
	return 0;
}

static int end(void **state)
{
	(void)state;
	rate_to(NULL);
	return 0;
}

/* Up to the limit answered; above it BIND is told once, and the rest dropped, until the seconds have earned it again. */
static void test_verdicts(void **state)
{
	(void)state;
	rate_to(&usual);
	answered(RATE);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), 0);
	end_as(&plain, 4, HYDNS_R_LIMIT_REACHED, XDP_PASS);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), 0);        /* BIND debits what passes */
	log_client(HYDNS_RATE_ANSWER);
	dropped(2);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), -2);
	go_on(1);
	answered(RATE - 2);
	dropped(1);
	go_on(WINDOW + 1);
	answered(RATE);
	dropped(1);
	go_on(HYDNS_RATE_LOG_AGAIN);
	answered(RATE);
	end_as(&plain, 1, HYDNS_R_LIMIT_REACHED, XDP_PASS);
}

/* One in two slips, and is debited. */
static void test_slip(void **state)
{
	struct hydns_resolver_count before, after;
	struct hydns_rates r = usual;

	(void)state;
	r.slip = 2;
	rate_to(&r);
	answered(RATE);
	log_client(HYDNS_RATE_ANSWER);
	kernel_counts(kern, &before);
	for (unsigned i = 0; i < 3; i++) {
		expect_short(kern, &plain, HYDNS_R_LIMIT_TRUNCATED, REPLY_FLAGS | REPLY_TC);
		dropped(1);
	}
	kernel_counts(kern, &after);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), -6);
	assert_int_equal(cell(HYDNS_RATE_ANSWER)->slips, 0);
	assert_int_equal(after.slipped - before.slipped, 3);
	assert_int_equal(after.answered, before.answered);
}

/* A rule of this kind, with slip 1 and a client that has reached its limit. Returns the rule's handle. */
static __u32 slip_at_once(enum hydns_rate_kind kind, const struct query *q, struct answer *a)
{
	struct hydns_rates r = { .window = WINDOW, .slip = 1, .ipv4_prefix = 32, .ipv6_prefix = 64 };
	__u32 rule;

	r.most[kind] = 1;
	a->account = HYDNS_RATE_ACCOUNT(kind, 1, 1, NAME);
	rate_to(&r);
	rule = publish_address(kern, q, a);
	end_as(q, 1, HYDNS_R_ANSWERED, XDP_TX);
	log_client(kind);
	return rule;
}

/* Its flags are those of the answer, with NXDOMAIN if that is its kind, and AD to whoever asks for it. */
static void test_truncated_replies(void **state)
{
	const struct query rows[] = {
		{ .name = "slip.example", .qtype = 1, .id = 1 },
		{ .name = "SLIP.Example", .qtype = 1, .id = 2, .edns = true, .edns_size = 512 },
		{ .name = "slip.example", .qtype = 1, .id = 3, .edns = true, .want_do = true },
		{ .name = "slip.example", .qtype = 1, .id = 4, .ad = true, .ipv6 = true },
		{ .name = "slip.example", .qtype = 1, .id = 5, .norec = true, .edns = true, .ipv6 = true },
	};
	const struct { enum hydns_rate_kind kind; uint16_t flags, want; } kinds[] = {
		{ HYDNS_RATE_ANSWER, REPLY_FLAGS, REPLY_FLAGS | REPLY_TC },
		{ HYDNS_RATE_ANSWER, REPLY_FLAGS | REPLY_AA, REPLY_FLAGS | REPLY_AA | REPLY_TC },
		{ HYDNS_RATE_NODATA, REPLY_FLAGS, REPLY_FLAGS | REPLY_TC }, { HYDNS_RATE_NXDOMAIN, REPLY_FLAGS | 3, REPLY_FLAGS | REPLY_TC | 3 },
		{ HYDNS_RATE_ANSWER, REPLY_FLAGS | 3, REPLY_FLAGS | REPLY_TC },
	};
	struct hydns_resolver_count before, after;

	(void)state;
	kernel_counts(kern, &before);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (unsigned j = 0; j < sizeof(kinds) / sizeof(kinds[0]); j++) {
			struct answer a = { .flags = kinds[j].flags };
			__u32 rule = slip_at_once(kinds[j].kind, &rows[i], &a);

			expect_short(kern, &rows[i], HYDNS_R_LIMIT_TRUNCATED, kinds[j].want | (rows[i].ad || rows[i].want_do ? REPLY_AD : 0));
			kernel_remove(kern, rule);
		}
	kernel_counts(kern, &after);
	assert_int_equal(after.slipped - before.slipped, 25);
	assert_int_equal(after.slipped_ipv6 - before.slipped_ipv6, 10);
	assert_int_equal(after.slipped_edns - before.slipped_edns, 15);
	assert_int_equal(after.slipped_aa - before.slipped_aa, 5);
	assert_int_equal(after.slipped_nxdomain - before.slipped_nxdomain, 5);
}

/* Where the program can't know what BIND replies, the query passes, is debited, and BIND learns that it is. */
static void test_slips_left_to_bind(void **state)
{
	static const uint8_t cookie[] = { 0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8 }, error[] = { 0, 15, 0, 2, 0, 22 };
	const struct query q = { .name = "left.example", .qtype = 1, .id = 1, .edns = true };
	struct query with_cookie = q;
	struct answer a = { 0 }, referral = { 0 }, with_error = { .errors = error, .errors_len = sizeof(error) };
	const struct { enum hydns_rate_kind kind; const struct query *q; struct answer *a; } rows[] = {
		{ HYDNS_RATE_ANSWER, &with_cookie, &a }, { HYDNS_RATE_REFERRAL, &q, &referral }, { HYDNS_RATE_ANSWER, &q, &with_error },
	};
	const struct hydns_resolver_config answers_cookies = {
		.flags = HYDNS_RESOLVER_READY, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1,
	};
	const struct hydns_cookies secrets = { .set = 1, .count = 1 };

	(void)state;
	kernel_config(kern, &answers_cookies);
	kernel_cookies(kern, 1, &secrets);
	kernel_page(kern)->cookies = 1;
	with_cookie.options = cookie;
	with_cookie.options_len = sizeof(cookie);
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		__u32 rule = slip_at_once(rows[i].kind, rows[i].q, rows[i].a);

		for (unsigned marks = 1; marks < 4; marks++) {
			end_as(rows[i].q, 1, HYDNS_R_LIMIT_SLIP, XDP_PASS);
			assert_int_equal(hydns_rate_slips(cell(rows[i].kind)->slips, WALL_S), marks);
		}
		kernel_remove(kern, rule);
	}
	kernel_page(kern)->cookies = 0;
	kernel_config(kern, NULL);
}

/* The limit of all kinds counts beside the kind's. Above it nothing slips. */
static void test_all(void **state)
{
	struct hydns_rates r = usual;

	(void)state;
	r.most[HYDNS_RATE_ALL] = 2;
	r.slip = 1;
	rate_to(&r);
	answered(2);
	end_as(&plain, 1, HYDNS_R_LIMIT_REACHED, XDP_PASS);
	log_client(HYDNS_RATE_ALL);
	dropped(2);
	assert_int_equal(balance(HYDNS_RATE_ALL), -2);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), -1);
	r.most[HYDNS_RATE_ALL] = 100;
	rate_to(&r);
	answered(RATE);
	log_client(HYDNS_RATE_ANSWER);
	end_as(&plain, 2, HYDNS_R_LIMIT_TRUNCATED, XDP_TX);
	assert_int_equal(balance(HYDNS_RATE_ALL), 100 - RATE - 2);
}

static void test_flags(void **state)
{
	struct hydns_rates r = usual;

	(void)state;
	r.flags = HYDNS_RATES_LOG_ONLY;
	rate_to(&r);
	answered(RATE);
	end_as(&plain, 1, HYDNS_R_LIMIT_REACHED, XDP_PASS);
	log_client(HYDNS_RATE_ANSWER);
	answered(4);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), -4);
	r.flags = HYDNS_RATES_LOG_DROPS;
	rate_to(&r);
	answered(RATE);
	log_client(HYDNS_RATE_ANSWER);
	end_as(&plain, 3, HYDNS_R_LIMIT_REACHED, XDP_PASS);
}

/* While BIND's log has clients, one query a second passes, undebited. */
static void test_log(void **state)
{
	(void)state;
	rate_to(&usual);
	kernel_page(kern)->rates.logging = 1;
	end_as(&plain, 1, HYDNS_R_LIMIT_LOG, XDP_PASS);
	answered(RATE);
	go_on(1);
	end_as(&plain, 1, HYDNS_R_LIMIT_LOG, XDP_PASS);
	answered(1);
}

/* An exempt client, and an uncounted rule, have no balance. An IPv6 client has one. */
static void test_clients(void **state)
{
	static const __u8 any[16];
	struct hydns_rates r = usual;
	struct answer uncounted = { 0 }, counted = { 0 };
	__u32 h;

	(void)state;
	r.most[HYDNS_RATE_ANSWER] = 100;
	rate_to(&r);
	kernel_acl(kern, any, 0, HYDNS_ACL_ALLOW_EXEMPT);
	answered(5);
	assert_null(cell(HYDNS_RATE_ANSWER));
	kernel_acl(kern, any, 0, HYDNS_ACL_ALLOW);
	h = publish_address(kern, &six, &uncounted);
	end_as(&six, 5, HYDNS_R_ANSWERED, XDP_TX);
	assert_null(cell(HYDNS_RATE_ANSWER));
	kernel_remove(kern, h);
	counted.account = answer.account;
	h = publish_address(kern, &six, &counted);
	end_as(&six, 2, HYDNS_R_ANSWERED, XDP_TX);
	assert_int_equal(balance(HYDNS_RATE_ANSWER), 98);
	kernel_remove(kern, h);
}

/* Without memory, and in a bucket whose clients BIND counts alone, the query passes. A cell that says as much as a new one makes way. */
static void test_uncounted(void **state)
{
	const __u64 busy = HYDNS_RATE_STATE(WALL_S, HYDNS_RATE_ANSWER, 0, 0);
	__u32 resolver = RESOLVER;

	(void)state;
	rate_to(&usual);
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_RATE_CELLS; j++)
			buckets[i].cell[j] = (struct hydns_rate){ .tag = j + 1, .state = busy };
	end_as(&plain, 3, HYDNS_R_UNCOUNTED, XDP_PASS);
	assert_int_equal(buckets[0].cell[0].state, busy);
	go_on(2);
	answered(RATE);
	rate_to(&usual);
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		buckets[i].overflowed = WALL_S;
	end_as(&plain, 1, HYDNS_R_UNCOUNTED, XDP_PASS);
	go_on(1);
	answered(1);
	bpf_map_delete_elem(kernel_map(kern, "hydns_budgets"), &resolver);
	end_as(&plain, 1, HYDNS_R_UNCOUNTED, XDP_PASS);
}

/* What passes for another reason is BIND's to debit. */
static void test_passed(void **state)
{
	const struct query other = { .name = "other.example", .qtype = 1, .id = 7 };

	(void)state;
	rate_to(&usual);
	end_as(&other, RATE + 3, HYDNS_R_MISS, XDP_PASS);
	assert_null(cell(HYDNS_RATE_ANSWER));
	answered(RATE);
}

/* A dry run says what would happen, and changes nothing (kernel_dry() compares). */
static void test_dry(void **state)
{
	struct frame f;

	(void)state;
	rate_to(&usual);
	frame_query(&f, &plain);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_ANSWERED);
	assert_null(cell(HYDNS_RATE_ANSWER));
	answered(RATE);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_LIMIT_REACHED);
	log_client(HYDNS_RATE_ANSWER);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_LIMITED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts), cmocka_unit_test(test_slip), cmocka_unit_test(test_truncated_replies),
		cmocka_unit_test(test_slips_left_to_bind), cmocka_unit_test(test_all), cmocka_unit_test(test_flags),
		cmocka_unit_test(test_log), cmocka_unit_test(test_clients), cmocka_unit_test(test_uncounted), cmocka_unit_test(test_passed),
		cmocka_unit_test(test_dry),
	};

	if (!expect_open(&(struct kernel_options){ .logs = true }))
		return SKIPPED;
	return expect_close(cmocka_run_group_tests(tests, begin, end));
}
