/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Rates and bursts, with a clock of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "hydnsd/resolvers/user_rates.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/daemon/tokens.h"

#define SECONDS 10
#define BEGIN   (1000 * HYDNS_NS_PER_S)

/* Takes all tokens, and waits as long as hydnsd_tokens_wait() says. */
static uint32_t taken_within(struct hydnsd_tokens *t, uint32_t most, uint32_t rate, uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t each = hydnsd_tokens_each_ns(rate), now = begin_ns;
	uint32_t n = 0;

	while (now < end_ns)
		if (hydnsd_tokens_take(t, most, each, now))
			n++;
		else
			now += hydnsd_tokens_wait(t, most, each, now);
	return n;
}

/* A second need not divide evenly into nanoseconds: one token more in all. */
static void a_rate_is_what_it_says(void **state)
{
	(void)state;
	for (uint32_t rate = 1; rate <= 1000; rate++) {
		struct hydnsd_tokens t = { 0 };
		uint32_t n = taken_within(&t, 5, rate, BEGIN, BEGIN + SECONDS * HYDNS_NS_PER_S);

		assert_in_range(n, 4 + SECONDS * rate, 5 + SECONDS * rate);
	}
}

static void a_pause_fills_the_bucket_and_no_more(void **state)
{
	struct hydnsd_tokens t = { 0 };

	(void)state;
	assert_int_equal(taken_within(&t, 5, 1, BEGIN, BEGIN + 1), 5);
	assert_int_equal(taken_within(&t, 5, 1, BEGIN + 3 * HYDNS_NS_PER_S, BEGIN + 3 * HYDNS_NS_PER_S + 1), 3);
	assert_int_equal(taken_within(&t, 5, 1, BEGIN + 100 * HYDNS_NS_PER_S, BEGIN + 100 * HYDNS_NS_PER_S + 1), 5);
}

/* After a raise nobody waits longer than for one token at the new rate, whatever was taken at the old one. */
static void a_raised_rate_counts_at_once(void **state)
{
	const uint64_t each = hydnsd_tokens_each_ns(100);
	struct hydnsd_tokens t = { 0 };

	(void)state;
	assert_int_equal(taken_within(&t, 1000, 1, BEGIN, BEGIN + 1), 1000);
	assert_int_equal(hydnsd_tokens_wait(&t, 1000, each, BEGIN), each);
	assert_false(hydnsd_tokens_take(&t, 1000, each, BEGIN));
	assert_int_equal(hydnsd_tokens_wait(&t, 1000, each, BEGIN + each), 0);
	assert_true(hydnsd_tokens_take(&t, 1000, each, BEGIN + each));
}

static void a_smaller_burst_counts_at_once(void **state)
{
	const uint64_t each = hydnsd_tokens_each_ns(1);
	struct hydnsd_tokens t = { 0 };

	(void)state;
	assert_int_equal(taken_within(&t, 1000, 1, BEGIN, BEGIN + 1), 1000);
	assert_int_equal(hydnsd_tokens_wait(&t, 4, each, BEGIN), each);
}

static void users_have_accounts_of_their_own(void **state)
{
	static struct hydnsd_user_rates a;
	const uint64_t each = hydnsd_tokens_each_ns(10);

	(void)state;
	assert_int_equal(hydnsd_user_rates_take(&a, 7, 2, each, BEGIN), 0);
	assert_int_equal(hydnsd_user_rates_take(&a, 7, 2, each, BEGIN), 0);
	assert_int_equal(hydnsd_user_rates_take(&a, 7, 2, each, BEGIN), each);
	assert_int_equal(hydnsd_user_rates_take(&a, 8, 2, each, BEGIN), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rate_is_what_it_says), cmocka_unit_test(a_pause_fills_the_bucket_and_no_more),
		cmocka_unit_test(a_raised_rate_counts_at_once), cmocka_unit_test(a_smaller_burst_counts_at_once),
		cmocka_unit_test(users_have_accounts_of_their_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
