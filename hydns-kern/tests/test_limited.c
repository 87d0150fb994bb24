/* SPDX-License-Identifier: GPL-2.0-only */
/* Limited clients: what the program counts in their budgets, and what it does with queries up to the limit, at it and above it. Exits 77
 * (skipped) where BPF programs can't be loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include "expect.h"

#define LIMIT 3

static struct hydns_budget_bucket *budgets;
static struct answer answer;
static __u32 handle;

static void limit_to(const struct hydns_limits *l)
{
	budgets = kernel_limit(kern, l);
}

/* The clock goes on: the program's is fixed, so the wall clock moves. */
static void go_on(__s64 seconds)
{
	kernel_page(kern)->wall_ns += seconds * (__s64)HYDNS_NS_PER_S;
}

/* The only cell that is in use. */
static struct hydns_budget *cell(void)
{
	struct hydns_budget *found = NULL;

	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		for (unsigned j = 0; j < HYDNS_BUDGET_CELLS; j++)
			if (budgets[i].cell[j].tag) {
				assert_null(found);
				found = &budgets[i].cell[j];
			}
	assert_non_null(found);
	return found;
}

static __u32 passed(void)
{
	return cell()->passed[0] + cell()->passed[1];
}

/* So many queries end with this reason, and this XDP action. */
static void end_as(const struct query *q, unsigned times, int want, int action)
{
	for (unsigned i = 0; i < times; i++) {
		struct frame f;
		int reason;

		frame_query(&f, q);
		assert_int_equal(kernel_run(kern, &f, &reason), action);
		assert_string_equal(hydns_reason_name((enum hydns_reason)reason), hydns_reason_name((enum hydns_reason)want));
	}
}

static void answered(const struct query *q, unsigned times)
{
	end_as(q, times, HYDNS_R_ANSWERED, XDP_TX);
}

static void dropped(const struct query *q, unsigned times)
{
	struct hydns_resolver_count before, after;

	kernel_counts(kern, &before);
	end_as(q, times, HYDNS_R_LIMITED, XDP_DROP);
	kernel_counts(kern, &after);
	assert_int_equal(after.limited - before.limited, times);
	assert_int_equal(after.answered, before.answered);
}

static void crosses(const struct query *q)
{
	__u32 before = passed();

	end_as(q, 1, HYDNS_R_LIMIT_REACHED, XDP_PASS);
	assert_int_equal(passed() - before, HYDNS_BUDGET_CROSSED);
}

static const struct query six = { .name = "www.example", .qtype = 1, .id = 7, .ipv6 = true };

static int begin(void **state)
{
	(void)state;
	handle = publish_address(kern, &plain, &answer);
	return handle ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	limit_to(NULL);
	kernel_config(kern, NULL);
	kernel_remove(kern, handle);
	return 0;
}

static void test_verdicts(void **state)
{
	const struct query *queries[] = { &plain, &six };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		limit_to(&(struct hydns_limits){ .queries = LIMIT });
		if (queries[i] == &six) {
			struct answer a = { 0 };
			__u32 h = publish_address(kern, &six, &a);

			answered(&six, LIMIT);
			kernel_remove(kern, h);
		} else {
			answered(&plain, LIMIT);
		}
		assert_int_equal((__u32)(cell()->used[0] | cell()->used[1]), LIMIT);
		crosses(queries[i]);
		dropped(queries[i], 5);
		assert_int_equal((__u32)(cell()->used[0] | cell()->used[1]), LIMIT + 6);
	}
}

static void test_windows(void **state)
{
	(void)state;
	limit_to(&(struct hydns_limits){ .queries = LIMIT });
	for (int second = 0; second < 4; second++, go_on(1)) {
		answered(&plain, LIMIT);
		crosses(&plain);
		dropped(&plain, 1);
	}
	limit_to(&(struct hydns_limits){ .queries = LIMIT, .backoff = 1 });
	answered(&plain, LIMIT);
	crosses(&plain);
	for (int second = 1; second <= HYDNS_BUDGET_WINDOW; second++) {
		go_on(1);
		dropped(&plain, second == 1 ? 2 : 1);   /* also once the second has begun */
	}
	go_on(1);
	answered(&plain, LIMIT);
	go_on(-1);                     /* the clock was set back: what was spent then still counts */
	answered(&plain, 1);
}

static void test_slip(void **state)
{
	(void)state;
	limit_to(&(struct hydns_limits){ .queries = LIMIT, .slip = 1 });
	answered(&plain, LIMIT);
	crosses(&plain);
	answered(&plain, 20);
}

/* The resolver is told of each that the program has counted and passes; none of those that it answers. */
static void test_misses(void **state)
{
	const struct query miss = { .name = "other.example", .qtype = 1, .id = 8 };

	(void)state;
	limit_to(&(struct hydns_limits){ .queries = LIMIT });
	end_as(&miss, LIMIT - 1, HYDNS_R_MISS, XDP_PASS);
	assert_int_equal(passed(), (LIMIT - 1) * HYDNS_BUDGET_ALLOWED);
	answered(&plain, 1);
	assert_int_equal(passed(), (LIMIT - 1) * HYDNS_BUDGET_ALLOWED);
	crosses(&miss);
	dropped(&miss, 3);
	limit_to(&(struct hydns_limits){ .queries = LIMIT, .slip = 1 });
	end_as(&miss, LIMIT, HYDNS_R_MISS, XDP_PASS);
	crosses(&miss);
	end_as(&miss, 5, HYDNS_R_MISS, XDP_PASS);
	assert_int_equal(passed(), HYDNS_BUDGET_CROSSED + (LIMIT + 5) * HYDNS_BUDGET_ALLOWED);
}

/* Type ANY is never answered, but counted as all are. */
static void test_any(void **state)
{
	struct query any = { .name = "www.example", .qtype = 255, .id = 8 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		any.ipv6 = i;
		limit_to(&(struct hydns_limits){ .queries = LIMIT });
		end_as(&any, LIMIT, HYDNS_R_TYPE_ANY, XDP_PASS);
		assert_int_equal(passed(), LIMIT * HYDNS_BUDGET_ALLOWED);
		crosses(&any);
		dropped(&any, 3);
	}
}

/* Without a limit nothing is counted. Without budgets, or a cell, the query passes. */
static void test_uncounted(void **state)
{
	struct hydns_budget_bucket full;
	__u32 resolver = RESOLVER;

	(void)state;
	limit_to(&(struct hydns_limits){ 0 });
	answered(&plain, 10);
	limit_to(&(struct hydns_limits){ .queries = LIMIT });
	for (unsigned j = 0; j < HYDNS_BUDGET_CELLS; j++)
		full.cell[j] = (struct hydns_budget){ .tag = j + 1, .used = { (__u64)WALL_S << 32 | LIMIT } };
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		budgets[i] = full;
	end_as(&plain, 3, HYDNS_R_UNCOUNTED, XDP_PASS);
	assert_memory_equal(&budgets[0], &full, sizeof(full));
	bpf_map_delete_elem(kernel_map(kern, "hydns_budgets"), &resolver);
	end_as(&plain, 3, HYDNS_R_UNCOUNTED, XDP_PASS);
}

/* A cookie that the kernel can't judge may be valid, with a limit of its own: the resolver counts the query. */
static void test_unjudged_cookies(void **state)
{
	static const __u8 cookie[] = { 0, 10, 0, 24, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0, 0, 0, 9, 9, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1 };
	const struct hydns_resolver_config judging = { .flags = HYDNS_RESOLVER_READY, .edns_size = EDNS_SIZE, .max_udp = 4096, .acl_half = 1 };
	const struct query q = { .name = "www.example", .qtype = 1, .id = 9, .edns = true, .options = cookie, .options_len = sizeof(cookie) };

	(void)state;
	kernel_config(kern, &judging);
	limit_to(&(struct hydns_limits){ .queries = LIMIT });
	assert_int_equal(kernel_page(kern)->cookies, 0);
	end_as(&q, LIMIT + 5, HYDNS_R_MISS, XDP_PASS);
	for (unsigned i = 0; i < HYDNS_BUDGET_BUCKETS; i++)
		assert_int_equal(budgets[i].cell[0].tag | budgets[i].cell[1].tag | budgets[i].cell[2].tag | budgets[i].cell[3].tag, 0);
	kernel_config(kern, NULL);
}

/* Though no query can be answered, the resolver is spared those above the limit. */
static void test_empty_store(void **state)
{
	(void)state;
	limit_to(&(struct hydns_limits){ .queries = LIMIT });
	answered(&plain, LIMIT);
	kernel_empty(kern, true);
	crosses(&plain);
	dropped(&plain, 3);
	kernel_empty(kern, false);
	limit_to(NULL);
	kernel_empty(kern, true);
	end_as(&plain, 1, HYDNS_R_EMPTY, XDP_PASS);
	kernel_empty(kern, false);
}

/* A dry run says what would happen, and counts nothing (kernel_dry() compares). */
static void test_dry(void **state)
{
	struct frame f;

	(void)state;
	limit_to(&(struct hydns_limits){ .queries = LIMIT });
	frame_query(&f, &plain);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_ANSWERED);
	answered(&plain, LIMIT);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_LIMITED);
	go_on(1);
	assert_int_equal(kernel_dry(kern, &f).reason, HYDNS_R_ANSWERED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts), cmocka_unit_test(test_windows), cmocka_unit_test(test_slip), cmocka_unit_test(test_misses),
		cmocka_unit_test(test_any),
		cmocka_unit_test(test_uncounted), cmocka_unit_test(test_unjudged_cookies), cmocka_unit_test(test_empty_store), cmocka_unit_test(test_dry),
	};

	if (!expect_open(&expect_usual))
		return SKIPPED;
	return expect_close(cmocka_run_group_tests(tests, begin, end));
}
