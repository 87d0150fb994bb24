/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Withdrawals that need a scan of the store: which client has to wait for which. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "hydnsd/daemon/daemon.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/tests/build.h"

#define CAPACITY 100000                /* more slots than one round scans */
#define NOW_NS   1000000000ULL
#define MUCH     500                   /* withdrawals for many scans */

enum { WORST, SECOND, THIRD, CLIENTS };

static struct build_store store;
static struct hydnsd d;
static uint32_t order[CLIENTS * MUCH], done; /* clients, as their withdrawals ended */
static uint32_t tags[CLIENTS];         /* the next one of each */

static int set_up(void **state)
{
	(void)state;
	build_store_open(&store, CAPACITY, 0, NOW_NS);
	d = (struct hydnsd){ .rules = store.rules, .withdrawals = hydnsd_withdrawals_new() };
	memset(tags, 0, sizeof(tags));
	done = 0;
	return d.withdrawals ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	hydnsd_withdrawals_free(d.withdrawals);
	build_store_close(&store);
	return 0;
}

/* A client's withdrawals end in the order in which it asked. */
static void record(struct hydnsd *of, uint64_t client, uint32_t tag, uint32_t withdrawn)
{
	assert_ptr_equal(of, &d);
	assert_int_equal(withdrawn, 0);
	assert_true(client < CLIENTS);
	assert_int_equal(tag, tags[client]++);
	order[done++] = (uint32_t)client;
}

static void ask(uint64_t client, uint32_t times)
{
	struct hydnsd_withdrawal w = { .resolver = (uint32_t)client, .scope = HYDNS_SCOPE_SUBTREE, .name_len = 6,
				       .name = "\4test" };
	static uint32_t asked[CLIENTS];

	if (!done && !hydnsd_withdrawals_waiting(d.withdrawals))
		memset(asked, 0, sizeof(asked));
	while (times--) {
		const struct hydnsd_withdrawal_end end = { .done = record, .client = client, .tag = asked[client]++ };

		assert_int_equal(hydnsd_withdrawals_begin(&d, &w, 1, &end), 0);
	}
}

static void finish(void)
{
	while (hydnsd_withdrawals_work(&d) >= 0)
		;
	assert_int_equal(hydnsd_withdrawals_waiting(d.withdrawals), 0);
}

/* Position of a client's n-th withdrawal among all. */
static uint32_t position(uint32_t client, uint32_t n)
{
	for (uint32_t i = 0; i < done; i++)
		if (order[i] == client && n-- == 0)
			return i;
	fail_msg("client %u has not got so much done", client);
	return 0;
}

/* A client that asks for one withdrawal is in the first scan, whatever waits before it. */
static void one_beside_many(void **state)
{
	(void)state;
	ask(WORST, MUCH);
	ask(SECOND, 1);
	ask(THIRD, 1);
	assert_int_equal(hydnsd_withdrawals_waiting(d.withdrawals), MUCH + 2);
	finish();
	assert_int_equal(done, MUCH + 2);
	assert_in_range(position(SECOND, 0), 0, HYDNSD_SCAN_MAX - 1);
	assert_in_range(position(THIRD, 0), 0, HYDNSD_SCAN_MAX - 1);
}

/* A client that asks during a scan is in the next one, however many have waited longer. */
static void one_that_comes_later(void **state)
{
	(void)state;
	ask(WORST, MUCH);
	assert_int_equal(hydnsd_withdrawals_work(&d), 0);
	assert_int_equal(done, 0);
	ask(SECOND, 1);
	finish();
	assert_in_range(position(SECOND, 0), HYDNSD_SCAN_MAX, 2 * HYDNSD_SCAN_MAX - 1);
}

/* Of two clients that ask for much, each has half of every scan. */
static void two_that_ask_for_much(void **state)
{
	(void)state;
	ask(WORST, MUCH);
	ask(SECOND, MUCH);
	finish();
	for (uint32_t n = 0; n < MUCH; n += HYDNSD_SCAN_MAX / 2) {
		uint32_t first = n * 2, last = first + HYDNSD_SCAN_MAX - 1;

		assert_in_range(position(WORST, n), first, last);
		assert_in_range(position(SECOND, n), first, last);
	}
}

/* Fair shares leave no part of a scan unused. */
static void one_alone_has_whole_passes(void **state)
{
	(void)state;
	ask(WORST, HYDNSD_SCAN_MAX);
	assert_int_equal(hydnsd_withdrawals_work(&d), 0);
	ask(SECOND, 1);
	while (done < HYDNSD_SCAN_MAX)
		hydnsd_withdrawals_work(&d);
	assert_int_equal(tags[WORST], HYDNSD_SCAN_MAX);
	finish();
}

#define IN_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_STORE(one_beside_many),
		IN_STORE(one_that_comes_later),
		IN_STORE(two_that_ask_for_much),
		IN_STORE(one_alone_has_whole_passes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
