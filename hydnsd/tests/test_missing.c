/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Missing questions: hot ones without a rule. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hydnsd/daemon/clock.h"
#include "hydnsd/rules/missing.h"
#include "hydnsd/tests/store.h"

#define SECOND_MS 1000
#define NOW_MS    (NOW_NS / HYDNS_NS_PER_MS)

struct listed {
	unsigned count;
	struct hydnsd_missing last;
	uint64_t hottest;
};

static void count(const struct hydnsd_missing *what, void *arg)
{
	struct listed *h = arg;

	h->count++;
	h->last = *what;
	if (what->rate > h->hottest)
		h->hottest = what->rate;
}

static struct listed list(const struct hydnsd_missing_table *a, uint64_t now_ms)
{
	struct listed h = { 0 };

	hydnsd_missing_each(a, now_ms, count, &h);
	return h;
}

/* Hot rules that leave are recorded with the reason. Cold ones, and those that a newer answer replaces, are not. */
static void hot_rules_that_leave_are_told(void **state)
{
	struct hydnsd_missing_table *a = hydnsd_missing_new();
	struct listed h;

	(void)state;
	hydnsd_rules_set_missing(store.rules, a);
	assert_int_equal(admit_address("hot.example.", NULL, 1000), HYDNSD_ACCEPTED);
	assert_int_equal(admit_address_at("hot.example.", NULL, 1000, NOW_NS + 5 * HYDNS_NS_PER_S), HYDNSD_ACCEPTED);
	assert_int_equal(list(a, NOW_MS).count, 0);
	assert_int_equal(withdraw(HYDNS_SCOPE_NAME, "hot.example.", 1), 1);
	h = list(a, NOW_MS);
	assert_int_equal(h.count, 1);
	assert_string_equal(hydnsd_missing_reason(&h.last), "WITHDRAWN");
	assert_memory_equal(h.last.name, "\3hot\7example", 13);
	assert_true(h.last.rate >= 10 * 1000000 && h.last.resolver == 1 && h.last.qtype == htons(1));
	assert_int_equal(list(a, NOW_MS + HYDNSD_MISSING_MS + 1).count, 0);
	build_store_grace(&store);
	assert_int_equal(admit_address("hot.example.", NULL, 1000), HYDNSD_ACCEPTED);
	hydnsd_rules_expire(store.rules, NOW_NS + 300 * HYDNS_NS_PER_S, 100);
	h = list(a, NOW_MS + 300 * SECOND_MS);
	assert_int_equal(h.count, 1);
	assert_string_equal(hydnsd_missing_reason(&h.last), "EXPIRED");
	hydnsd_rules_set_missing(store.rules, NULL);
	hydnsd_missing_free(a);
	a = hydnsd_missing_new();
	hydnsd_rules_set_missing(store.rules, a);
	assert_int_equal(admit_address("warm.example.", NULL, 100), HYDNSD_ACCEPTED);
	hydnsd_rules_set_capacity(store.rules, 0);
	hydnsd_rules_expire(store.rules, NOW_NS, 100);
	h = list(a, NOW_MS);
	assert_int_equal(h.count, 1);
	assert_string_equal(hydnsd_missing_reason(&h.last), "EVICTED");
	hydnsd_rules_set_missing(store.rules, NULL);
	hydnsd_missing_free(a);
}

/* However many are recorded, memory does not grow, and the hottest stays. Cold ones are not recorded. */
static void the_hottest_absent_stay(void **state)
{
	static const uint8_t name[] = "\3www\7example";
	struct hydnsd_missing_table *a = hydnsd_missing_new();
	struct hydnsd_missing what = {
		.name = name, .name_len = sizeof(name), .refused = HYDNSD_REJECT_FULL, .at_ms = NOW_MS,
	};
	struct listed h;

	(void)state;
	what.rate = HYDNSD_MISSING_RATE_MIN - 1;
	what.key = 1;
	hydnsd_missing_record(a, &what);
	assert_int_equal(list(a, NOW_MS).count, 0);
	for (uint64_t n = 0; n < 100000; n++) {
		what.key = n * 0x9e3779b97f4a7c15;
		what.rate = HYDNSD_MISSING_RATE_MIN + (n == 777 ? 1000000 : n % 1000);
		hydnsd_missing_record(a, &what);
	}
	h = list(a, NOW_MS);
	assert_true(h.count > 100 && h.count * sizeof(what) < hydnsd_missing_bytes());
	assert_int_equal(h.hottest, HYDNSD_MISSING_RATE_MIN + 1000000);
	assert_string_equal(hydnsd_missing_reason(&h.last), "FULL");
	assert_true(hydnsd_missing_rate(10, 0) > 0);
	hydnsd_missing_free(a);
}

/* When a question is offered again after its rule was removed, its resolver has hardly counted it: the former rate holds, for a
 * while. */
static void a_former_rate_holds_for_a_while(void **state)
{
	static const uint8_t name[] = "\3www\7example";
	struct hydnsd_missing_table *a = hydnsd_missing_new();
	struct hydnsd_missing what = {
		.name = name, .name_len = sizeof(name), .removal = HYDNSD_REMOVAL_WITHDRAWN, .at_ms = NOW_MS, .key = 5,
		.rate = 500 * 1000000ULL,
	};
	struct listed h;

	(void)state;
	hydnsd_missing_record(a, &what);
	what.removal = HYDNSD_REMOVAL_NOT;
	what.refused = HYDNSD_REJECT_COLD;
	what.rate = 1000000;
	for (uint64_t at = 1; at <= 20; at++) {
		what.at_ms = NOW_MS + at * SECOND_MS;
		hydnsd_missing_record(a, &what);
		h = list(a, what.at_ms);
		assert_int_equal(h.count, 1);
		assert_string_equal(hydnsd_missing_reason(&h.last), "COLD");
		assert_int_equal(h.last.rate, at < 10 ? 500 * 1000000ULL : 1000000);
	}
	hydnsd_missing_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_STORE(hot_rules_that_leave_are_told),
		cmocka_unit_test(the_hottest_absent_stay),
		cmocka_unit_test(a_former_rate_holds_for_a_while),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
