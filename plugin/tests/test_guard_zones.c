/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Zones below which resolutions fail or wait: what is counted, what is worth a report, and that ten million zones take no more memory
 * and hide no flooded one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "plugin/internal.h"

#define FAILURES 50U
#define WAITING  100U
#define CROWD    10000000U     /* zones with one failure each */
#define SECOND   HYDNS_NS_PER_S
#define ROOM     8

static const uint8_t flooded[] = "\7flooded\7example", slow[] = "\4SLOW\7example", top[] = "\7example";

static struct hydns_plugin *plugin;

static int begin(void **state)
{
	(void)state;
	plugin = calloc(1, sizeof(*plugin));
	plugin->seed[0] = 0x1234, plugin->seed[1] = 0x5678;
	pthread_mutex_init(&plugin->guard.lock, NULL);
	atomic_store(&plugin->guard.failures, FAILURES);
	atomic_store(&plugin->guard.waiting, WAITING);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pthread_mutex_destroy(&plugin->guard.lock);
	free(plugin);
	return 0;
}

static void ended(const uint8_t *zone, size_t len, unsigned times, bool failed, uint64_t took_ms)
{
	for (unsigned i = 0; i < times; i++)
		hydns_plugin_resolution(plugin, zone, len, failed, took_ms);
}

/* What is reported a second after the last time. */
static unsigned take(struct hydns_guard_report *out, unsigned room)
{
	return hydns_guard_zones_take(&plugin->guard, plugin->guard.since_ns + SECOND, out, room);
}

static void test_failures(void **state)
{
	struct hydns_guard_report r[ROOM];

	(void)state;
	ended(flooded, sizeof(flooded), FAILURES - 1, true, 1);
	assert_int_equal(take(r, ROOM), 0);
	ended(flooded, sizeof(flooded), FAILURES, true, 1);
	ended(slow, sizeof(slow), FAILURES - 1, true, 1);
	assert_int_equal(take(r, ROOM), 1);
	assert_int_equal(r[0].failures, FAILURES);
	assert_int_equal(r[0].len, sizeof(flooded));
	assert_memory_equal(r[0].suffix, flooded, sizeof(flooded));
	assert_int_equal(take(r, ROOM), 0);            /* it began anew */
}

/* A hundred that take a second each wait at once, in one second; and are told in small letters. */
static void test_waiting(void **state)
{
	struct hydns_guard_report r[ROOM];

	(void)state;
	ended(slow, sizeof(slow), WAITING - 1, false, 1000);
	assert_int_equal(take(r, ROOM), 0);
	ended(slow, sizeof(slow), WAITING, false, 1000);
	assert_int_equal(take(r, ROOM), 1);
	assert_int_equal(r[0].waiting, WAITING);
	assert_int_equal(r[0].failures, 0);
	assert_memory_equal(r[0].suffix, "\4slow\7example", sizeof(slow));
}

/* What ends well and soon is not counted, nor the root, nor a name that is too long; and nothing while hydnsd wants no reports. */
static void test_not_counted(void **state)
{
	uint8_t longer[HYDNS_GUARD_SUFFIX_MOST + 1] = { 63 };
	struct hydns_guard_report r[ROOM];

	(void)state;
	ended(flooded, sizeof(flooded), 100000, false, 150);
	ended((const uint8_t *)"", 1, FAILURES, true, 5000);
	memset(longer + 1, 'a', 63);
	ended(longer, sizeof(longer), FAILURES, true, 5000);
	assert_int_equal(take(r, ROOM), 0);
	assert_false(hydns_plugin_wants_resolution(plugin, false, 150));
	assert_true(hydns_plugin_wants_resolution(plugin, true, 0));
	atomic_store(&plugin->guard.failures, 0);
	ended(slow, sizeof(slow), WAITING, true, 1000);
	assert_int_equal(take(r, ROOM), 1);
	atomic_store(&plugin->guard.waiting, 0);
	assert_false(hydns_plugin_wants_resolution(plugin, true, 100000));
	ended(slow, sizeof(slow), WAITING, true, 1000);
	atomic_store(&plugin->guard.failures, FAILURES);
	atomic_store(&plugin->guard.waiting, WAITING);
	assert_int_equal(take(r, ROOM), 0);
	ended(top, sizeof(top), FAILURES, true, 1);
	assert_int_equal(take(r, ROOM), 1);            /* hydnsd says which zones it guards */
}

static void test_room(void **state)
{
	struct hydns_guard_report r[ROOM];
	uint8_t zone[] = "\3z00\7example";

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		zone[2] = (uint8_t)('a' + i);
		ended(zone, sizeof(zone), FAILURES, true, 1);
	}
	assert_int_equal(take(r, ROOM), ROOM);
}

static void test_crowd(void **state)
{
	struct hydns_guard_report r[ROOM];
	uint8_t zone[] = "\10z0000000\7example";

	(void)state;
	for (unsigned i = 0; i < CROWD; i++) {
		for (unsigned n = i, at = 8; at > 1; at--, n /= 10)
			zone[at] = (uint8_t)('0' + n % 10);
		ended(zone, sizeof(zone), 1, true, 1);
		if (i % 2000 == 0)
			ended(flooded, sizeof(flooded), 10, true, 1);  /* one in 200 */
	}
	assert_true(take(r, ROOM) > 0);
	for (unsigned i = 0; i < ROOM; i++)
		if (r[i].len == sizeof(flooded) && !memcmp(r[i].suffix, flooded, sizeof(flooded)))
			return;
	fail_msg("the flooded zone is not among the reports");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_failures), cmocka_unit_test(test_waiting), cmocka_unit_test(test_not_counted),
		cmocka_unit_test(test_room), cmocka_unit_test(test_crowd),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
